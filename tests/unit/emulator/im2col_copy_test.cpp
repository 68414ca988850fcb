// Tensor copies in .im2col mode: the example of the PTX ISA, random maps against index arithmetic, and refused starts.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "hopper_kernel.hpp"

namespace tilewright::emulator {
namespace {

/// An im2col map, and one copy: the coordinates C, W, H, D, N and the offsets W, H, D.
struct Im2colCopy {
  TensorMap map;
  std::vector<int> at, offsets;
};

std::string joined(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

/// Copies to shared memory, and from there to `out`. `mask` is empty, or the CTAs of a multicast.
std::string kernel_of(const Im2colCopy& copy, std::string_view mask = "") {
  const std::uint64_t bytes = box_bytes(copy.map);
  return hopper_kernel(init_bars({1}) +
                       fmt::format(R"(
    @!%first bra LOADED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], {0};
    cp.async.bulk.tensor.{1}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{4} [%base],
      [%map_a, {{{2}}}], [%bars], {{{3}}}{5};
    LOADED:
    )",
                                   bytes, copy.map.rank, joined(copy.at), joined(copy.offsets),
                                   mask.empty() ? "" : ".multicast::cluster", mask) +
                       wait_for("A", 0, "0") +
                       fmt::format(R"(
    mov.u32 %r1, 0;
    COPY:
    add.u32 %r2, %base, %r1;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2];
    cvt.u64.u32 %x0, %r1;
    add.u64 %x0, %out, %x0;
    @%first st.global.v4.u32 [%x0], {{%r4, %r5, %r6, %r7}};
    add.u32 %r1, %r1, 16;
    setp.lt.u32 %p, %r1, {0};
    @%p bra COPY;
    )",
                                   bytes));
}

template <class T>
std::vector<T> run(Im2colCopy copy, const std::vector<T>& memory, std::string_view mask = "") {
  const auto device = test_device();
  const auto tensor = upload(device, memory);
  copy.map.address = tensor.address();
  const runtime::DeviceBuffer out(device, box_bytes(copy.map));
  launch_hopper(*device, kernel_of(copy, mask), pack_maps({device->encode(copy.map), {}}, {out.address()}),
                {.block = {32, 1, 1}, .dynamic_smem_bytes = 65536});
  return download<T>(*device, out);
}

/// Packed images of 32-bit elements.
TensorMap images(std::vector<std::uint64_t> extents, Im2colBox box) {
  TensorMap map;
  map.type = TensorMapType::u32;
  map.rank = static_cast<int>(extents.size());
  std::uint64_t stride = 4;
  for (std::size_t mode = 0; mode < extents.size(); ++mode) {
    map.extents[mode] = extents[mode];
    map.strides[mode] = stride;
    stride *= extents[mode];
  }
  map.im2col = box;
  return map;
}

// PTX ISA, "Tensor im2col mode", the second example: 4x4 images with the values 1 to 32, and a 3x3 filter.
TEST(Im2colCopy, TheExampleOfThePtxIsa) {
  const Im2colCopy copy{
      images({4, 4, 4, 2},
             {.lower_corner = {-1, -1}, .upper_corner = {-1, -1}, .channels_per_pixel = 4, .pixels_per_column = 16}),
      {0, 2, 1, 0},
      {0, 0}};
  std::vector<std::uint32_t> memory(128);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i / 4 + 1);
  const std::vector<std::uint32_t> loaded = run(copy, memory);
  std::vector<std::uint32_t> pixels;
  for (std::size_t i = 0; i < loaded.size(); i += 4) pixels.push_back(loaded[i]);
  EXPECT_EQ(pixels, (std::vector<std::uint32_t>{7, 0, 9, 10, 11, 0, 0, 0, 0, 0, 17, 18, 19, 0, 21, 22}));
}

/// The expected elements, by the number of each pixel in the grid of all pixels that the bounding boxes have.
std::vector<std::uint32_t> expected(const Im2colCopy& copy, const std::vector<std::uint32_t>& memory) {
  const TensorMap& map = copy.map;
  const auto images = static_cast<std::size_t>(map.rank) - 1;
  std::vector<std::int64_t> steps, lower;
  std::int64_t first = 0, count = 1;
  for (std::size_t mode = 1; mode < images; ++mode) {
    const std::int64_t from = map.im2col->lower_corner[mode - 1];
    const std::int64_t to = static_cast<std::int64_t>(map.extents[mode]) + map.im2col->upper_corner[mode - 1];
    lower.push_back(from);
    steps.push_back((to - from - 1) / map.element_strides[mode] + 1);
    first += (copy.at[mode] - from) / map.element_strides[mode] * count;
    count *= steps.back();
  }
  first += copy.at[images] * count;
  std::vector<std::uint32_t> all;
  for (std::int64_t pixel = first; pixel < first + map.im2col->pixels_per_column; ++pixel) {
    std::int64_t rest = pixel, from = 0;
    bool is_inside = true;
    for (std::size_t mode = 1; mode <= images; ++mode) {
      const bool is_image = mode == images;
      const std::int64_t number = is_image ? rest : rest % steps[mode - 1];
      const std::int64_t c =
          is_image ? number : lower[mode - 1] + number * map.element_strides[mode] + copy.offsets[mode - 1];
      if (!is_image) rest /= steps[mode - 1];
      is_inside = is_inside && c >= 0 && c < static_cast<std::int64_t>(map.extents[mode]);
      from += c * static_cast<std::int64_t>(map.strides[mode] / 4);
    }
    for (std::uint32_t channel = 0; channel < map.im2col->channels_per_pixel; ++channel) {
      const std::int64_t c = copy.at[0] + channel;
      const bool has_channel = c >= 0 && c < static_cast<std::int64_t>(map.extents[0]);
      all.push_back(is_inside && has_channel ? memory[static_cast<std::size_t>(from + c)] : 0);
    }
  }
  return all;
}

TEST(Im2colCopy, RandomMaps) {
  std::mt19937 random(1);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int test = 0; test < 120; ++test) {
    const int spatial = from(1, 3);
    Im2colCopy copy;
    std::vector<std::uint64_t> extents{static_cast<std::uint64_t>(4 * from(1, 4))};
    copy.at = {4 * from(-1, 3)};
    Im2colBox box{.channels_per_pixel = static_cast<std::uint32_t>(4 * from(1, 2)),
                  .pixels_per_column = static_cast<std::uint32_t>(from(1, 64))};
    std::vector<std::uint32_t> strides{1};
    for (std::size_t mode = 0; mode < static_cast<std::size_t>(spatial); ++mode) {
      const int extent = from(1, 6), lower = from(-4, 3), stride = from(1, 4), span = from(1, 9);
      extents.push_back(static_cast<std::uint64_t>(extent));
      box.lower_corner[mode] = lower;
      box.upper_corner[mode] = lower + span - extent;
      strides.push_back(static_cast<std::uint32_t>(stride));
      copy.at.push_back(lower + stride * from(0, (span - 1) / stride));
      copy.offsets.push_back(from(0, 8));
    }
    extents.push_back(static_cast<std::uint64_t>(from(1, 3)));
    copy.at.push_back(from(0, 3));
    copy.map = images(extents, box);
    for (std::size_t mode = 1; mode < strides.size(); ++mode) copy.map.element_strides[mode] = strides[mode];
    std::vector<std::uint32_t> memory(
        std::accumulate(extents.begin(), extents.end(), std::uint64_t{1}, std::multiplies<>()));
    std::iota(memory.begin(), memory.end(), 1U);
    EXPECT_EQ(run(copy, memory), expected(copy, memory)) << "map " << test;
  }
}

TEST(Im2colCopy, MayBeMulticast) {
  const Im2colCopy copy{images({4, 3, 3, 1}, {.channels_per_pixel = 4, .pixels_per_column = 9}), {0, 0, 0, 0}, {1, 1}};
  std::vector<std::uint32_t> memory(36);
  std::iota(memory.begin(), memory.end(), 1U);
  EXPECT_EQ(run(copy, memory, ", 1"), expected(copy, memory));
}

TEST(Im2colCopy, RefusesStartsThatAreUndefined) {
  TensorMap map =
      images({4, 5, 5, 1},
             {.lower_corner = {-1, -1}, .upper_corner = {-1, -1}, .channels_per_pixel = 4, .pixels_per_column = 4});
  map.element_strides = {1, 2, 2, 1, 1};
  const std::vector<std::uint32_t> memory(100);
  const auto detail = [&](const TensorMap& of, const std::vector<int>& at) {
    return finding_of([&] { run(Im2colCopy{of, at, {0, 0}}, memory); });
  };
  EXPECT_EQ(detail(map, {0, 5, -1, 0}).kind, FindingKind::bad_descriptor) << "after the bounding box";
  EXPECT_NE(detail(map, {0, -1, -2, 0})
                .detail.find("starts at coordinate -2 of mode 2, but pixels are from -1 to 3, 2 apart"),
            std::string::npos);
  EXPECT_EQ(detail(map, {0, 0, -1, 0}).kind, FindingKind::bad_descriptor) << "between two pixels";
  EXPECT_NE(detail(map, {6, -1, -1, 0}).detail.find("starts at coordinate 6 of mode 0, which is byte 24"),
            std::string::npos);
  TensorMap tiled = map;
  tiled.im2col.reset();
  tiled.box = {4, 2, 2, 1};
  EXPECT_NE(detail(tiled, {0, -1, -1, 0}).detail.find("a copy in .im2col mode with a tiled map"), std::string::npos);
}

TEST(Im2colCopy, StoresRefuseBoundingBoxesThatEndBehindTheTensor) {
  const auto store = [](std::int32_t beyond) {
    const auto device = test_device();
    TensorMap map =
        images({4, 5, 5, 1}, {.upper_corner = {beyond, 0}, .channels_per_pixel = 4, .pixels_per_column = 4});
    const runtime::DeviceBuffer out(device, 400);
    map.address = out.address();
    launch_hopper(*device, hopper_kernel(R"(
    @!%first bra END;
    mov.u32 %r0, 1;
    st.shared.v4.u32 [%base], {%r0, %r0, %r0, %r0};
    st.shared.v4.u32 [%base+16], {%r0, %r0, %r0, %r0};
    st.shared.v4.u32 [%base+32], {%r0, %r0, %r0, %r0};
    st.shared.v4.u32 [%base+48], {%r0, %r0, %r0, %r0};
    fence.proxy.async;
    cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%map_a, {0, 1, 0, 0}], [%base];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    END:)"),
                  pack_maps({device->encode(map), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 1024});
  };
  EXPECT_NO_THROW(store(0));
  EXPECT_NO_THROW(store(-1));
  EXPECT_NE(finding_of([&] { store(2); }).detail.find("ends 2 pixels behind the tensor in mode 1"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::emulator
