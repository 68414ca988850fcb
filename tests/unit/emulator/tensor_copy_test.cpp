// Tensor copies compared with plain loops: boxes, swizzles, element strides, out-of-bounds fill, stores, reductions.
#include <gtest/gtest.h>

#include "hopper_kernel.hpp"
#include "tests/unit/base/tensor_map_rules.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"

namespace tilewright::emulator {
namespace {

/// Loads one box at these coordinates to shared memory, and copies those bytes to `out`.
std::string load_kernel(const TensorMap& d, const std::vector<int>& at, std::string_view form,
                        std::uint32_t smem_offset) {
  std::string coordinates;
  for (const int c : at) coordinates += fmt::format("{}{}", coordinates.empty() ? "" : ", ", c);
  const std::uint64_t bytes = box_bytes(d);
  return hopper_kernel(init_bars({1}) +
                       fmt::format(R"(
    @!%first bra LOADED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], {0};
    add.u32 %r0, %base, {4};
    cp.async.bulk.tensor.{1}d.{2}.mbarrier::complete_tx::bytes [%r0], [%map_a, {{{3}}}], [%bars];
    LOADED:
    )",
                                   bytes, d.rank, form, coordinates, smem_offset) +
                       wait_for("A", 0, "0") +
                       fmt::format(R"(
    mov.u32 %r1, 0;
    COPY:
    add.u32 %r2, %base, %r1;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2+{1}];
    cvt.u64.u32 %x0, %r1;
    add.u64 %x0, %out, %x0;
    @%first st.global.v4.u32 [%x0], {{%r4, %r5, %r6, %r7}};
    add.u32 %r1, %r1, 16;
    setp.lt.u32 %p, %r1, {0};
    @%p bra COPY;
    )",
                                   bytes, smem_offset));
}

/// The expected bytes of the box: element by element in the order of the modes, swizzled by the shared address.
std::vector<std::uint8_t> expected_box(const TensorMap& d, const std::vector<std::uint8_t>& memory,
                                       const std::vector<int>& at, std::uint32_t smem_address) {
  const auto width = static_cast<std::uint64_t>(bytes(d.type));
  std::vector<std::uint8_t> box(box_bytes(d));
  for (std::uint64_t element = 0; element < box.size() / width; ++element) {
    std::uint64_t rest = element;
    std::uint64_t from = 0;
    bool inside = true;
    for (std::size_t mode = 0; mode < static_cast<std::size_t>(d.rank); ++mode) {
      const std::uint64_t count = box_elements(d, static_cast<int>(mode));
      const auto step = static_cast<std::int64_t>(mode == 0 ? 1 : d.element_strides[mode]);
      const std::int64_t c = at[mode] + static_cast<std::int64_t>(rest % count) * step;
      rest /= count;
      inside = inside && c >= 0 && c < static_cast<std::int64_t>(d.extents[mode]);
      from += static_cast<std::uint64_t>(c) * (mode == 0 ? width : d.strides[mode]);
    }
    const std::uint64_t to = smem_address + element * width;
    const auto chunks = static_cast<std::uint64_t>(std::max(tilewright::width(d.swizzle) / 16, 1));
    const std::uint64_t place = (to ^ (((to >> 7) & (chunks - 1)) << 4)) - smem_address;
    for (std::uint64_t b = 0; b < width; ++b) {
      const std::uint8_t outside = d.fill == TensorMapFill::zeros ? 0 : b % 2 == 0 ? 0xf7 : 0x7f;
      box[place + b] = inside ? memory[from + b] : outside;
    }
  }
  return box;
}

struct LoadCase {
  const char* name;
  TensorMap map;
  std::vector<int> at;
  std::string_view form = "shared::cluster.global.tile";
  std::uint32_t smem_offset = 0;
};

TensorMap describe(TensorMapType type, std::vector<std::uint64_t> extents, std::vector<std::uint32_t> box,
                   TensorMapSwizzle swizzle = TensorMapSwizzle::none) {
  TensorMap d;
  d.type = type;
  d.rank = static_cast<int>(extents.size());
  d.swizzle = swizzle;
  std::uint64_t stride = static_cast<std::uint64_t>(bytes(type));
  for (std::size_t mode = 0; mode < extents.size(); ++mode) {
    d.extents[mode] = extents[mode];
    d.box[mode] = box[mode];
    d.strides[mode] = (stride + 15) / 16 * 16;
    stride = d.strides[mode] * extents[mode];
    if (mode == 0) stride = extents[0] * static_cast<std::uint64_t>(bytes(type));
  }
  return d;
}

std::vector<LoadCase> load_cases() {
  using S = TensorMapSwizzle;
  std::vector<LoadCase> cases = {
      {"1d", describe(TensorMapType::u8, {300}, {256}), {16}},
      {"1d past the end", describe(TensorMapType::f32, {300}, {64}), {280}},
      {"2d f16 128B", describe(TensorMapType::f16, {200, 100}, {64, 32}, S::bytes_128), {64, 3}},
      {"2d f16 64B", describe(TensorMapType::f16, {200, 100}, {32, 16}, S::bytes_64), {8, 3}},
      {"2d f16 32B", describe(TensorMapType::f16, {200, 100}, {16, 24}, S::bytes_32), {8, 3}},
      {"2d f32 128B", describe(TensorMapType::f32, {200, 100}, {32, 8}, S::bytes_128), {4, 1}},
      {"128B, start not aligned to the swizzle period",
       describe(TensorMapType::f16, {200, 100}, {64, 32}, S::bytes_128),
       {64, 3},
       "shared::cluster.global",
       384},
      {"before the start", describe(TensorMapType::f16, {200, 100}, {64, 32}, S::bytes_128), {-8, -3}},
      {"past both ends", describe(TensorMapType::f16, {200, 100}, {64, 32}, S::bytes_128), {168, 90}},
      {"outside in both modes", describe(TensorMapType::f16, {200, 100}, {64, 32}), {1000, -1000}},
      {"3d", describe(TensorMapType::f16, {40, 20, 10}, {8, 4, 3}), {16, 18, 2}},
      {"4d", describe(TensorMapType::u32, {12, 6, 5, 4}, {4, 2, 3, 2}), {4, 5, -1, 3}},
      {"5d to shared::cta",
       describe(TensorMapType::u8, {48, 3, 4, 3, 2}, {16, 2, 2, 2, 2}),
       {16, 1, 1, 2, 0},
       "shared::cta.global.tile"},
  };
  cases.push_back({"element strides", describe(TensorMapType::f16, {64, 60, 20}, {32, 16, 7}), {8, 5, 1}});
  cases.back().map.element_strides = {2, 3, 2, 1, 1};
  cases.push_back({"NaN fill", describe(TensorMapType::f32, {20, 10}, {16, 8}), {12, -2}});
  cases.back().map.fill = TensorMapFill::nan;
  return cases;
}

TEST(TensorCopy, LoadsBoxes) {
  for (LoadCase& test : load_cases()) {
    const auto device = test_device();
    std::vector<std::uint8_t> memory(1 << 18);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    const auto tensor = upload(device, memory);
    test.map.address = tensor.address();
    ASSERT_LE(footprint(test.map), memory.size());
    const runtime::DeviceBuffer out(device, box_bytes(test.map));
    launch_hopper(*device, load_kernel(test.map, test.at, test.form, test.smem_offset),
                  pack_maps({device->encode(test.map), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 65536});
    // Dynamic shared memory starts at a multiple of 1024.
    EXPECT_EQ(download<std::uint8_t>(*device, out), expected_box(test.map, memory, test.at, 65536 + test.smem_offset))
        << test.name;
  }
}

TEST(TensorCopy, SwizzledNarrowRowsAndTf32RoundAsOnAnH200) {
  // Rows that are narrower than the swizzle are still 128 bytes apart: the 16-byte chunk of row r is at column r.
  const auto device = test_device();
  std::vector<std::uint32_t> memory(1024);
  for (std::uint32_t i = 0; i < 1024; ++i) memory[i] = i / 4;
  const auto tensor = upload(device, memory);
  const auto out = upload(device, std::vector<std::uint32_t>(256));
  TensorMap d = describe(TensorMapType::u32, {32, 32}, {4, 8}, TensorMapSwizzle::bytes_128);
  d.address = tensor.address();
  const std::string load = hopper_kernel(init_bars({1}) + R"(
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], 128;
    @%first cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%base], [%map_a, {0, 0}], [%bars];
  )" + wait_for("A", 0, "0") + R"(
    mad.lo.u32 %r0, %t, 144, %base;
    setp.lt.u32 %p, %t, 8;
    @%p ld.shared.u32 %r1, [%r0];
    mad.wide.u32 %x0, %t, 4, %out;
    @%p st.global.u32 [%x0], %r1;
  )");
  launch_hopper(*device, load, pack_maps({device->encode(d), {}}, {out.address()}),
                {.block = {32, 1, 1}, .dynamic_smem_bytes = 4096});
  const auto chunks = download<std::uint32_t>(*device, out);
  for (std::uint32_t row = 0; row < 8; ++row) EXPECT_EQ(chunks[row], 8 * row);

  // Loads of tf32 round to nearest even; NaN becomes canonical.
  const std::vector<std::uint32_t> values = {0x3f800fff, 0x3f801000, 0x3f801001, 0x3f803000, 0x3fffffff, 0x00000001,
                                             0x80000001, 0x007fffff, 0x7f800000, 0x7f800001, 0x7fc12345, 0x7f7fffff,
                                             0x00800fff, 0xffffffff, 0x3f802000, 0x3f801fff};
  const std::vector<std::uint32_t> rounded = {0x3f800000, 0x3f800000, 0x3f802000, 0x3f804000, 0x40000000, 0x00000000,
                                              0x80000000, 0x00800000, 0x7f800000, 0x7fffe000, 0x7fffe000, 0x7f800000,
                                              0x00800000, 0x7fffe000, 0x3f802000, 0x3f802000};
  for (const TensorMapType type :
       {TensorMapType::f32, TensorMapType::f32_ftz, TensorMapType::tf32, TensorMapType::tf32_ftz}) {
    const auto floats = upload(device, values);
    TensorMap row = describe(type, {16}, {16});
    row.address = floats.address();
    launch_hopper(*device, load_kernel(row, {0}, "shared::cluster.global", 0),
                  pack_maps({device->encode(row), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 4096});
    auto result = download<std::uint32_t>(*device, out);
    result.resize(16);
    EXPECT_EQ(result, type == TensorMapType::f32 || type == TensorMapType::f32_ftz ? values : rounded) << name(type);
  }
}

TEST(TensorCopy, StoresSkipElementsOutsideTheTensor) {
  const auto device = test_device();
  TensorMap d = describe(TensorMapType::u32, {20, 10}, {16, 8}, TensorMapSwizzle::bytes_64);
  const auto tensor = upload(device, std::vector<std::uint32_t>(200, 7));
  d.address = tensor.address();
  // Element (x, y) of the box has the value 100 * y + x.
  const std::string store = hopper_kernel(R"(
    shr.u32 %r0, %t, 4;
    and.b32 %r1, %t, 15;
    mad.lo.u32 %r2, %r0, 100, %r1;
    mad.lo.u32 %r3, %t, 4, %base;
    shr.u32 %r4, %r3, 7;
    and.b32 %r4, %r4, 3;
    shl.b32 %r4, %r4, 4;
    xor.b32 %r3, %r3, %r4;
    st.shared.u32 [%r3], %r2;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map_a, {12, -3}], [%base];
    @%first cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map_a, {12, 3}], [%base];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
  )");
  launch_hopper(*device, store, pack_maps({device->encode(d), {}}, {0}), {.dynamic_smem_bytes = 4096});
  const auto result = download<std::uint32_t>(*device, tensor);
  for (std::uint32_t y = 0; y < 10; ++y) {
    for (std::uint32_t x = 0; x < 20; ++x) {
      std::uint32_t expected = 7;
      if (x >= 12 && y < 5) expected = 100 * (y + 3) + x - 12;
      if (x >= 12 && y >= 3) expected += 100 * (y - 3) + x - 12;
      EXPECT_EQ(result[20 * y + x], expected) << x << " " << y;
    }
  }
}

/// Shared memory that holds elements outside of the tensor need not be written.
TEST(TensorCopy, ClippedStoresReadWhatTheyStore) {
  const auto device = test_device();
  TensorMap d = describe(TensorMapType::u32, {20, 10}, {16, 8});
  const auto tensor = upload(device, std::vector<std::uint32_t>(200, 7));
  d.address = tensor.address();
  // Threads write the 8 columns and 5 rows of the box that are inside the tensor, or all but one element of these.
  const auto store = [&](std::uint32_t missing) {
    return finding_of([&] {
      launch_hopper(*device,
                    hopper_kernel(fmt::format(R"(
    shr.u32 %r0, %t, 4;
    and.b32 %r1, %t, 15;
    setp.lt.u32 %p, %r1, 8;
    setp.lt.and.u32 %p, %r0, 5, %p;
    setp.ne.and.u32 %p, %t, {}, %p;
    mad.lo.u32 %r3, %t, 4, %base;
    @%p st.shared.u32 [%r3], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map_a, {{12, 5}}], [%base];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
  )",
                                              missing)),
                    pack_maps({device->encode(d), {}}, {0}), {.dynamic_smem_bytes = 4096});
    });
  };
  EXPECT_TRUE(store(1000).detail.empty()) << to_string(store(1000));
  EXPECT_EQ(store(21).kind, FindingKind::uninitialised_shared_read);
  EXPECT_EQ(download<std::uint32_t>(*device, tensor)[20 * 5 + 12], 0U);
  EXPECT_EQ(download<std::uint32_t>(*device, tensor)[20 * 9 + 19], 71U);
}

/// As measured on an H200; loads from there are legal.
TEST(TensorCopy, StoresMustNotStartBeforeTheFirstMode) {
  const auto device = test_device();
  TensorMap d = describe(TensorMapType::bf16, {64, 16}, {16, 8});
  const auto tensor = upload(device, std::vector<std::uint32_t>(64 * 16 / 2, 7));
  d.address = tensor.address();
  const auto store = [&](std::string_view copy) {
    return finding_of([&] {
      launch_hopper(*device,
                    hopper_kernel(fmt::format(R"(
    mad.lo.u32 %r3, %t, 4, %base;
    st.shared.u32 [%r3], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first {}.bulk_group [%map_a, {{-8, 0}}], [%base];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
  )",
                                              copy)),
                    pack_maps({device->encode(d), {}}, {0}), {.dynamic_smem_bytes = 4096});
    });
  };
  const Finding refused = store("cp.async.bulk.tensor.2d.global.shared::cta.tile");
  EXPECT_EQ(refused.kind, FindingKind::bad_descriptor);
  EXPECT_NE(refused.detail.find("starts at coordinate -8 of mode 0"), std::string::npos) << refused.detail;
  EXPECT_TRUE(store("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile").detail.empty());
}

/// CUTLASS clears this bit of the tensor maps that the driver encodes, whose words have 64 bits.
TEST(TensorCopy, MapsMayLoseBit21OfTheirSecondWord) {
  TensorMap d = describe(TensorMapType::u32, {20, 10}, {16, 8});
  d.address = 0x7ffff0200000;
  EncodedTensorMap encoded = encode_tensor_map(d);
  encoded.bytes[8 + 2] &= ~std::byte{0x20};
  const auto decoded = decode_tensor_map(encoded.bytes.data());
  ASSERT_TRUE(decoded) << decoded.reason();
  EXPECT_EQ(decoded->address, d.address);
}

TEST(TensorCopy, ReductionsUseTheMapsType) {
  struct Case {
    TensorMapType type;
    std::string_view operation;
    std::uint64_t memory, operand, result;
  };
  const Case cases[] = {
      {TensorMapType::u32, "add", 5, 0xffffffff, 4},
      {TensorMapType::s32, "min", 5, 0xffffffff, 0xffffffff},
      {TensorMapType::u32, "min", 5, 0xffffffff, 5},
      {TensorMapType::s32, "max", 5, 0xffffffff, 5},
      {TensorMapType::u32, "and", 12, 10, 8},
      {TensorMapType::u32, "or", 12, 10, 14},
      {TensorMapType::u64, "xor", std::uint64_t{12} << 40, std::uint64_t{10} << 40, std::uint64_t{6} << 40},
      {TensorMapType::u32, "inc", 7, 7, 0},
      {TensorMapType::u32, "dec", 0, 7, 7},
      {TensorMapType::f32, "add", 0x3f800000, 0x40000000, 0x40400000},
      {TensorMapType::f16, "add", 0x3c00, 0x4000, 0x4200},
      {TensorMapType::bf16, "max", 0x3f80, 0xc000, 0x3f80},
      {TensorMapType::f16, "min", 0x3c00, 0xc000, 0xc000},
  };
  for (const Case& test : cases) {
    const auto device = test_device();
    const auto width = static_cast<std::size_t>(bytes(test.type));
    std::vector<std::uint8_t> memory(16), operand(16);
    for (std::size_t i = 0; i < 16; i += width) {
      std::memcpy(&memory[i], &test.memory, width);
      std::memcpy(&operand[i], &test.operand, width);
    }
    const auto tensor = upload(device, memory);
    const auto out = upload(device, operand);
    TensorMap d = describe(test.type, {16 / width}, {static_cast<std::uint32_t>(16 / width)});
    d.address = tensor.address();
    launch_hopper(*device,
                  hopper_kernel(fmt::format(R"(
      @!%first bra END;
      ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%out];
      st.shared.v4.u32 [%base], {{%r0, %r1, %r2, %r3}};
      fence.proxy.async;
      cp.reduce.async.bulk.tensor.1d.global.shared::cta.{}.bulk_group [%map_a, {{0}}], [%base];
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 0;
      END:)",
                                            test.operation)),
                  pack_maps({device->encode(d), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 1024});
    const auto result = download<std::uint8_t>(*device, tensor);
    std::uint64_t last = 0;
    std::memcpy(&last, &result[16 - width], width);
    EXPECT_EQ(last, test.result) << test.operation << " of " << name(test.type);
  }
}

TEST(TensorCopy, InvalidTensorMapsAreFound) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, 4096);
  const auto find = [&](const TensorMap& d, const EncodedTensorMap& map) {
    return finding_of([&] {
      launch_hopper(*device, load_kernel(d, {0, 0}, "shared::cluster.global", 0), pack_maps({map, {}}, {out.address()}),
                    {.block = {32, 1, 1}, .dynamic_smem_bytes = 4096});
    });
  };
  TensorMap d = describe(TensorMapType::u8, {16, 16}, {16, 16});
  EXPECT_EQ(find(d, EncodedTensorMap{}).kind, FindingKind::bad_descriptor);
  TensorMap cube = describe(TensorMapType::u8, {16, 16, 2}, {16, 16, 1});
  cube.address = out.address();
  EXPECT_EQ(find(d, device->encode(cube)).kind, FindingKind::bad_descriptor);
  d.address = out.address() + 3968;  // 256 bytes where 128 are left
  EXPECT_EQ(find(d, device->encode(d)).kind, FindingKind::out_of_bounds_global);
}

TEST(TensorCopy, TiledCopiesRefuseIm2colMaps) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, 4096);
  TensorMap image = image_map(1);
  image.address = out.address();
  const Finding finding = finding_of([&] {
    launch_hopper(*device, load_kernel(image, {0, 0, 0}, "shared::cluster.global", 0),
                  pack_maps({device->encode(image), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 32768});
  });
  EXPECT_EQ(finding.kind, FindingKind::bad_descriptor);
  EXPECT_NE(finding.detail.find("a copy in .tile mode with an im2col map"), std::string::npos) << finding.detail;
}

TEST(TensorCopy, EncodedMapsAreDecodedAsTheyWere) {
  for (TensorMapRule& rule : tensor_map_rules()) {
    if (!rule.refusal.empty()) continue;
    for (auto mode = static_cast<std::size_t>(rule.map.rank); mode < kMaxTensorMapRank; ++mode) {
      rule.map.extents[mode] = rule.map.strides[mode] = rule.map.box[mode] = 0;
    }
    if (rule.map.im2col) rule.map.box = {};
    const EncodedTensorMap encoded = encode_tensor_map(rule.map);
    const auto decoded = decode_tensor_map(encoded.bytes.data());
    ASSERT_TRUE(decoded) << rule.name;
    EXPECT_EQ(*decoded, rule.map) << rule.name;
  }
  EXPECT_FALSE(decode_tensor_map(EncodedTensorMap{}.bytes.data()));
}

TEST(TensorCopy, EncodingNeedsSm90) {
  TensorMap d = describe(TensorMapType::u8, {16}, {16});
  d.address = 1 << 20;
  EXPECT_THROW(make_emulated_device(kSm80)->encode(d), InvalidArgument);
  d.box[0] = 8;
  EXPECT_THROW(test_device()->encode(d), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::emulator
