// wgmma compared with plain loops, for all types, layouts and N, and the findings around it. An NVIDIA H200 gave the
// same bits for all of these products, from the same PTX.
#include <gtest/gtest.h>

#include <random>

#include "hopper_kernel.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/emulated_module.hpp"
#include "tilewright/emulator/instructions/shared_matrix.hpp"

namespace tilewright::emulator {
namespace {

std::uint32_t encode(std::string_view type, int value) {
  const auto real = static_cast<float>(value);
  if (type == "f16") return f32_to_f16(real);
  if (type == "bf16") return f32_to_bf16(real);
  if (type == "tf32" || type == "f32") return std::bit_cast<std::uint32_t>(real);
  if (type == "e4m3") return f64_to_e4m3(real);
  if (type == "e5m2") return f64_to_e5m2(real);
  return static_cast<std::uint32_t>(value);
}

int width_of(std::string_view type) {
  if (type == "f16" || type == "bf16") return 2;
  return type == "tf32" || type == "f32" || type == "s32" ? 4 : 1;
}

/// One wgmma of 64 x n x 32 bytes. `swizzle` is in bytes; 16 means none.
struct Product {
  std::string d, a, b;
  int n = 8;
  int swizzle = 128;
  bool a_mn = false, b_mn = false;
  bool a_in_registers = false;
  bool adds = true;
  int scale_a = 1, scale_b = 1;

  int k() const { return 32 / width_of(a); }
  bool integer() const { return d == "s32"; }
};

/// An operand in shared memory, in the canonical layouts of the PTX ISA ("Strides"), computed independently of the
/// emulator: the byte offset of (mn, k) before and after the swizzle, and the strides of the descriptor.
struct Operand {
  int rows, k, width, swizzle;
  bool mn_major;

  int elements_per_chunk() const { return 16 / width; }
  // A swizzle atom has 8 rows of M or N (K-major), or 8 rows of K (MN-major).
  int leading() const {
    if (!mn_major) return swizzle == 16 ? rows * 16 : 16;
    return swizzle == 16 ? rows / elements_per_chunk() * 128 : swizzle * 8;
  }
  int stride() const {
    if (!mn_major) return swizzle * 8;
    return swizzle == 16 ? 128 : rows * width / swizzle * swizzle * 8;
  }
  int offset(int mn, int kk) const {
    if (!mn_major) {
      const int byte = kk * width;
      if (swizzle == 16) return byte / 16 * leading() + mn / 8 * stride() + mn % 8 * 16 + byte % 16;
      return mn / 8 * stride() + mn % 8 * swizzle + byte;
    }
    const int byte = mn * width;
    if (swizzle == 16) return mn / elements_per_chunk() * stride() + kk / 8 * leading() + kk % 8 * 16 + byte % 16;
    return byte / swizzle * leading() + kk / 8 * stride() + kk % 8 * swizzle + byte % swizzle;
  }
  int swizzled_offset(int mn, int kk) const {
    const int at = offset(mn, kk);
    return at ^ (((at >> 7) & (swizzle / 16 - 1)) << 4);
  }
  std::uint64_t descriptor(int address) const {
    const std::uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return static_cast<std::uint64_t>(address >> 4) | static_cast<std::uint64_t>(leading() >> 4) << 16 |
           static_cast<std::uint64_t>(stride() >> 4) << 32 | mode << 62;
  }
};

constexpr int kOperandBytes = 32768;  // reserved for each operand
constexpr int kDynamic = 2048;        // shared address at which dynamic shared memory begins, after `bars`

std::string registers(std::string_view prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i == 0 ? "" : ", ", prefix, i);
  return text + "}";
}

std::string opcode(const Product& p) {
  return fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", p.n, p.k(), p.d, p.a, p.b);
}

int d_registers(const Product& p) { return p.d == "f16" ? p.n / 4 : p.n / 2; }

/// Copies the images of both operands from `out` to shared memory, executes the wgmma, and stores D's registers to
/// `out`.
std::string product_kernel(const Product& p, const Operand& a, const Operand& b) {
  std::string text = fmt::format(R"(
    shl.b32 %r0, %t, 4;
    FILL:
    cvt.u64.u32 %x0, %r0;
    add.u64 %x0, %out, %x0;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%x0];
    add.u32 %r1, %base, %r0;
    st.shared.v4.u32 [%r1], {{%r4, %r5, %r6, %r7}};
    add.u32 %r0, %r0, 2048;
    setp.lt.u32 %p, %r0, {};
    @%p bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mad.wide.u32 %x1, %t, {}, %out;
    mad.wide.u32 %x2, %t, 16, %out;
  )",
                                 2 * kOperandBytes, 4 * d_registers(p));
  for (int i = 0; i < d_registers(p); ++i) {
    text += fmt::format("ld.global.b32 %d{}, [%x1+{}];\n", i, 3 * kOperandBytes + 4 * i);
  }
  if (p.a_in_registers)
    text += fmt::format("ld.global.v4.b32 {{%d250, %d251, %d252, %d253}}, [%x2+{}];\n", 2 * kOperandBytes);
  text += fmt::format("setp.ne.u32 %q, {}, 0;\nwgmma.fence.sync.aligned;\n", p.adds ? 1 : 0);
  const std::string a_text =
      p.a_in_registers ? "{%d250, %d251, %d252, %d253}" : fmt::format("{}", a.descriptor(kDynamic));
  text += fmt::format("{} {}, {}, {}, %q", opcode(p), registers("%d", d_registers(p)), a_text,
                      b.descriptor(kDynamic + kOperandBytes));
  if (!p.integer()) text += fmt::format(", {}, {}", p.scale_a, p.scale_b);
  if (width_of(p.a) == 2 && !p.a_in_registers) text += fmt::format(", {}", p.a_mn ? 1 : 0);
  if (width_of(p.a) == 2) text += fmt::format(", {}", p.b_mn ? 1 : 0);
  text += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < d_registers(p); ++i) {
    text += fmt::format("st.global.b32 [%x1+{}], %d{};\n", 3 * kOperandBytes + 4 * i, i);
  }
  return hopper_kernel(text);
}

/// Row and column of D of a thread's value: PTX ISA, accumulator fragment of wgmma.m64nNkK.
std::pair<int, int> accumulator_position(int thread, int value) {
  return {thread / 32 * 16 + thread % 32 / 4 + value / 2 % 2 * 8, value / 4 * 8 + thread % 4 * 2 + value % 2};
}

/// Row and k of a thread's value of A in registers: PTX ISA, matrix A fragment of wgmma.
std::pair<int, int> a_position(int thread, int value, int width) {
  const int per_register = 4 / width;
  const int r = value / per_register;
  return {thread / 32 * 16 + thread % 32 / 4 + r % 2 * 8,
          r / 2 * (16 / width) + thread % 4 * per_register + value % per_register};
}

void put(std::vector<std::uint8_t>& image, std::size_t at, std::uint32_t bits, int width) {
  std::memcpy(&image[at], &bits, static_cast<std::size_t>(width));
}

void check(const Product& p) {
  std::mt19937 random(static_cast<unsigned>(p.n + p.swizzle));
  const Operand a{64, p.k(), width_of(p.a), p.swizzle, p.a_mn};
  const Operand b{p.n, p.k(), width_of(p.b), p.b_mn && p.n * 2 % p.swizzle != 0 ? 16 : p.swizzle, p.b_mn};
  const auto draw = [&](const std::string& type) { return static_cast<int>(random() % 9) - (type == "u8" ? 0 : 4); };
  std::vector<std::vector<int>> av(64, std::vector<int>(static_cast<std::size_t>(p.k())));
  std::vector<std::vector<int>> bv(static_cast<std::size_t>(p.n), std::vector<int>(static_cast<std::size_t>(p.k())));
  std::vector<std::uint8_t> image(3 * kOperandBytes + 128 * 4 * 128);
  for (int m = 0; m < 64; ++m) {
    for (int k = 0; k < p.k(); ++k) {
      const int value = av[m][k] = draw(p.a);
      put(image, static_cast<std::size_t>(a.swizzled_offset(m, k)), encode(p.a, value), a.width);
    }
  }
  for (int n = 0; n < p.n; ++n) {
    for (int k = 0; k < p.k(); ++k) {
      const int value = bv[n][k] = draw(p.b);
      put(image, static_cast<std::size_t>(kOperandBytes + b.swizzled_offset(n, k)), encode(p.b, value), b.width);
    }
  }
  const int d_width = p.d == "f16" ? 2 : 4;
  std::vector<std::uint8_t> expected(static_cast<std::size_t>(128 * 4 * d_registers(p)));
  for (int t = 0; t < 128; ++t) {
    for (int value = 0; value < 16 / a.width; ++value) {
      const auto [m, k] = a_position(t, value, a.width);
      put(image, static_cast<std::size_t>(2 * kOperandBytes + 16 * t + value * a.width), encode(p.a, av[m][k]),
          a.width);
    }
    for (int value = 0; value < p.n / 2; ++value) {
      const auto [m, n] = accumulator_position(t, value);
      const int c = (m + 3 * n) % 17 - 8;
      int sum = 0;
      for (int k = 0; k < p.k(); ++k) sum += av[m][k] * bv[n][k];
      sum = sum * p.scale_a * p.scale_b + (p.adds ? c : 0);
      const auto at = static_cast<std::size_t>(4 * d_registers(p) * t + value * d_width);
      put(image, 3 * kOperandBytes + at, encode(p.d, c), d_width);
      put(expected, at, encode(p.d, sum), d_width);
    }
  }
  const auto device = test_device();
  const auto out = upload(device, image);
  launch_hopper(*device, product_kernel(p, a, b), pack_maps({{}, {}}, {out.address()}),
                {.dynamic_smem_bytes = 2 * kOperandBytes});
  const auto result = download<std::uint8_t>(*device, out);
  const auto begin = result.begin() + 3 * kOperandBytes;
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), begin))
      << opcode(p) << " swizzle " << p.swizzle << " mn " << p.a_mn << p.b_mn << " registers " << p.a_in_registers;
}

TEST(Wgmma, AllN) {
  for (int n = 8; n <= 256; n += 8) check({.d = "f32", .a = "f16", .b = "f16", .n = n});
}

TEST(Wgmma, AllTypesWithAInSharedMemoryAndRegisters) {
  const std::vector<std::array<std::string, 3>> types = {
      {"f32", "f16", "f16"},   {"f16", "f16", "f16"},   {"f32", "bf16", "bf16"}, {"f32", "tf32", "tf32"},
      {"f32", "e4m3", "e4m3"}, {"f32", "e4m3", "e5m2"}, {"f16", "e5m2", "e4m3"}, {"f32", "e5m2", "e5m2"},
      {"s32", "s8", "s8"},     {"s32", "s8", "u8"},     {"s32", "u8", "s8"},     {"s32", "u8", "u8"}};
  for (const auto& [d, a, b] : types) {
    for (const bool in_registers : {false, true}) {
      for (const int n : {8, 48, 128}) check({.d = d, .a = a, .b = b, .n = n, .a_in_registers = in_registers});
    }
  }
}

TEST(Wgmma, AllSwizzlesAndMajors) {
  for (const int swizzle : {16, 32, 64, 128}) {
    check({.d = "f32", .a = "tf32", .b = "tf32", .n = 64, .swizzle = swizzle});
    check({.d = "s32", .a = "s8", .b = "u8", .n = 96, .swizzle = swizzle});
    for (const bool a_mn : {false, true}) {
      for (const bool b_mn : {false, true}) {
        for (const int n : {64, 192}) {
          check({.d = "f32", .a = "bf16", .b = "bf16", .n = n, .swizzle = swizzle, .a_mn = a_mn, .b_mn = b_mn});
        }
      }
    }
  }
  check({.d = "f32", .a = "f16", .b = "f16", .n = 128, .b_mn = true, .a_in_registers = true});
}

TEST(Wgmma, ImmScalesAndScaleD) {
  check({.d = "f32", .a = "f16", .b = "f16", .n = 16, .adds = false});
  check({.d = "f32", .a = "f16", .b = "f16", .n = 16, .scale_a = -1});
  check({.d = "f16", .a = "f16", .b = "f16", .n = 16, .scale_b = -1});
  check({.d = "f32", .a = "tf32", .b = "tf32", .n = 16, .adds = false, .scale_a = -1, .scale_b = -1});
}

TEST(Wgmma, RefusesInvalidInstructions) {
  const auto refusal = [](std::string_view instruction) {
    const auto device = test_device();
    return finding_of([&] { launch_hopper(*device, hopper_kernel(instruction), pack_maps({{}, {}}, {0}), {}); });
  };
  for (const std::string_view instruction :
       {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2}, %x0, %x1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 2, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r0, %r1}, %x0, %x1, 1;",
        "setmaxnreg.inc.sync.aligned.u32 36;", "setmaxnreg.dec.sync.aligned.u32 16;"}) {
    EXPECT_EQ(refusal(instruction).kind, FindingKind::unsupported_instruction) << instruction;
  }
}

TEST(SharedMatrix, DecodesDescriptors) {
  const SharedMatrix m = decode_descriptor(0x2345 | std::uint64_t{0x1abc} << 16 | std::uint64_t{0x3123} << 32 |
                                           std::uint64_t{5} << 49 | std::uint64_t{2} << 62);
  EXPECT_EQ(m.start, 0x23450U);
  EXPECT_EQ(m.leading_bytes, 0x1abc0U);
  EXPECT_EQ(m.stride_bytes, 0x31230U);
  EXPECT_EQ(m.base_offset, 5U);
  EXPECT_EQ(m.swizzle_bytes, 64U);
}

TEST(SharedMatrix, Swizzle128MatchesCute) {
  // CuTe, SW128 in K-major order: row r of 128 bytes starts at r * 128 ^ ((r % 8) << 4).
  static constexpr std::uint32_t kRows[] = {0x0, 0x90, 0x120, 0x1b0, 0x240, 0x2d0, 0x360, 0x3f0, 0x400};
  for (std::uint32_t r = 0; r < 9; ++r) EXPECT_EQ(swizzled(r * 128, 128), kRows[r]);
}

// Checks -----------------------------------------------------------------------------------------------------------

constexpr std::string_view kMultiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 1, 1, 0, 0;";
constexpr std::string_view kCommit = "wgmma.commit_group.sync.aligned;";
constexpr std::string_view kWait = "wgmma.wait_group.sync.aligned 0;";

/// Fills the first 4 KiB of dynamic shared memory, which holds both operands, with zeros, and makes them visible.
std::string prepared(std::string_view fence = "fence.proxy.async.shared::cta;") {
  return fmt::format(R"(
    mad.lo.u32 %r0, %t, 16, %base;
    mov.u32 %r1, 0;
    st.shared.v4.u32 [%r0], {{%r1, %r1, %r1, %r1}};
    st.shared.v4.u32 [%r0+2048], {{%r1, %r1, %r1, %r1}};
    {}
    bar.sync 0;
    shr.u32 %r1, %base, 4;
    cvt.u64.u32 %x0, %r1;
    or.b64 %x0, %x0, {};
    mov.b64 %x1, %x0;
  )",
                     fence, (std::uint64_t{128} << 16) | (std::uint64_t{16} << 32));
}

Finding find(const std::string& body, std::uint32_t threads = 128) {
  return finding_of([&] {
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 4096);
    device->fill(out.address(), 0, 4096, nullptr);
    launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}),
                  {.block = {threads, 1, 1}, .dynamic_smem_bytes = 8192});
  });
}

Finding find_in_cluster(const std::string& body) {
  return finding_of([&] {
    const auto device = test_device();
    launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {0}),
                  {.grid = {2, 1, 1}, .cluster = {2, 1, 1}, .dynamic_smem_bytes = 8192});
  });
}

std::string lines(std::initializer_list<std::string_view> all) {
  std::string text;
  for (const std::string_view line : all) text += std::string(line) + "\n";
  return text;
}

constexpr std::string_view kFence = "wgmma.fence.sync.aligned;";

TEST(WgmmaChecks, CleanSequencesReportNothing) {
  EXPECT_EQ(
      find(prepared() + lines({kFence, kMultiply, kMultiply, kCommit, kWait, "st.global.f32 [%out], %f0;"})).detail,
      "");
  // Two groups, of which the first is waited for; a mov renames a register and does not access it.
  EXPECT_EQ(find(prepared() + lines({kFence, kMultiply, kCommit, "mov.f32 %f20, %f0;", kMultiply, kCommit,
                                     "wgmma.wait_group.sync.aligned 1;", kWait, "st.global.f32 [%out], %f20;"}))
                .detail,
            "");
}

TEST(WgmmaChecks, AccessToAccumulatorsInFlight) {
  for (const std::string_view access : {"st.global.f32 [%out], %f3;", "add.f32 %f10, %f1, %f2;",
                                        "add.f32 %f2, %f10, %f11;", "mov.f32 %f3, 0f00000000;"}) {
    const Finding finding = find(prepared() + lines({kFence, kMultiply, kCommit, access, kWait}));
    EXPECT_EQ(finding.kind, FindingKind::wgmma_register_in_flight) << access << to_string(finding);
    EXPECT_NE(finding.detail.find("wgmma.mma_async"), std::string::npos) << finding.detail;
  }
  EXPECT_EQ(
      find(prepared() + lines({kFence, kMultiply, kCommit, "mov.f32 %f20, %f0;", "st.global.f32 [%out], %f20;", kWait}))
          .kind,
      FindingKind::wgmma_register_in_flight);
  // A wait before the commit waits for nothing.
  EXPECT_EQ(find(prepared() + lines({kFence, kMultiply, kWait, "st.global.f32 [%out], %f0;", kCommit})).kind,
            FindingKind::wgmma_register_in_flight);
  EXPECT_EQ(find(prepared() +
                 lines({kFence, kMultiply, kCommit, "wgmma.wait_group.sync.aligned 1;", "st.global.f32 [%out], %f0;"}))
                .kind,
            FindingKind::wgmma_register_in_flight);
}

TEST(WgmmaChecks, AccessToRegistersOfAInFlight) {
  constexpr std::string_view kFromRegisters =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%d8, %d9, %d10, %d11}, %x1, 1, 1, 1, "
      "0;";
  EXPECT_EQ(find(prepared() + lines({kFence, kFromRegisters, kCommit, kWait, "add.u32 %d9, %d9, 1;"})).detail, "");
  EXPECT_EQ(find(prepared() + lines({kFence, kFromRegisters, kCommit, "add.u32 %d9, %d9, 1;", kWait})).kind,
            FindingKind::wgmma_register_in_flight);
}

TEST(WgmmaChecks, MissingFence) {
  EXPECT_EQ(find(prepared() + lines({kMultiply, kCommit, kWait})).kind, FindingKind::missing_wgmma_fence);
  const auto scaled = [](std::string_view fence) {
    return lines(
        {kFence, kMultiply, kCommit, kWait, "mul.f32 %f0, %f0, 0f40000000;", fence, kMultiply, kCommit, kWait});
  };
  EXPECT_EQ(find(prepared() + scaled("")).kind, FindingKind::missing_wgmma_fence);
  EXPECT_EQ(find(prepared() + scaled(kFence)).detail, "");
}

/// The findings of a launch that continues after them, and the first number of its output.
std::pair<std::vector<Finding>, float> result_of(const std::string& ptx) {
  EmulatedModule module(ptx, kSm90a, checking_options());
  std::vector<float> out(1024, -1.0F);
  const std::vector<KernelArgument> arguments{std::vector<std::byte>(128), std::vector<std::byte>(128),
                                              ArrayArgument{std::as_writable_bytes(std::span(out))}};
  runtime::LaunchConfig config;
  config.block = {128, 1, 1};
  config.dynamic_smem_bytes = 8192;
  std::vector<Finding> findings = module.launch(module.kernel("k"), config, arguments);
  return {std::move(findings), out[0]};
}

TEST(WgmmaChecks, TheProductIsComputedAfterAFinding) {
  const std::string store = "\nsetp.eq.u32 %p, %t, 0;\n@%p st.global.f32 [%out], %f0;\n";
  const auto [none, right] = result_of(hopper_kernel(prepared() + lines({kFence, kMultiply, kCommit, kWait}) + store));
  EXPECT_TRUE(none.empty()) << to_string(none.at(0));
  EXPECT_NE(right, -1.0F);
  const auto [unfenced, same] = result_of(hopper_kernel(prepared() + lines({kMultiply, kCommit, kWait}) + store));
  ASSERT_FALSE(unfenced.empty());
  EXPECT_EQ(unfenced[0].kind, FindingKind::missing_wgmma_fence);
  EXPECT_EQ(same, right);
  const auto [early, also] = result_of(hopper_kernel(prepared() + lines({kFence, kMultiply, kCommit}) + store));
  ASSERT_FALSE(early.empty());
  EXPECT_EQ(early[0].kind, FindingKind::wgmma_register_in_flight);
  EXPECT_EQ(also, right);
}

TEST(WgmmaChecks, DebugBuildsMoveRegistersAroundEachProduct) {
  std::string ptx = hopper_kernel(
      prepared() + lines({kFence, "add.f32 %f0, %f0, %f0;", kMultiply, "st.global.f32 [%out], %f0;", kCommit, kWait}));
  EXPECT_FALSE(result_of(ptx).first.empty());
  const std::string_view target = ".target sm_90a";
  ptx.insert(ptx.find(target) + target.size(), ", debug");
  const std::vector<Finding> findings = result_of(ptx).first;
  for (const Finding& finding : findings) EXPECT_EQ(finding.kind, FindingKind::global_race) << to_string(finding);
}

TEST(WgmmaChecks, MissingProxyFence) {
  const Finding finding = find(prepared("") + lines({kFence, kMultiply, kCommit, kWait}));
  EXPECT_EQ(finding.kind, FindingKind::missing_proxy_fence) << to_string(finding);
  EXPECT_NE(finding.detail.find("st.shared.v4.u32"), std::string::npos) << finding.detail;
  // The reading threads may execute the proxy fence instead, after the barrier.
  EXPECT_EQ(find(prepared("") + lines({"fence.proxy.async;", kFence, kMultiply, kCommit, kWait})).detail, "");
}

/// A chunk is judged like the one before it only if all its words have the same accesses.
TEST(WgmmaChecks, MissingProxyFenceOfOneWord) {
  for (const int word : {0, 1, 2, 3}) {
    const std::string store = fmt::format("@%first st.shared.u32 [%base+{}], 0;", 3 * 256 + 2 * 16 + 4 * word);
    const std::string multiply = lines({store, "bar.sync 0;", kFence, kMultiply, kCommit, kWait});
    const Finding finding = find(prepared() + multiply);
    EXPECT_EQ(finding.kind, FindingKind::missing_proxy_fence) << word << ": " << to_string(finding);
    EXPECT_NE(finding.detail.find("st.shared.u32"), std::string::npos) << finding.detail;
    EXPECT_EQ(find(prepared() + store + "fence.proxy.async;" + multiply.substr(store.size())).detail, "");
  }
}

TEST(WgmmaChecks, OverwritingOperandsInFlight) {
  const auto overwrite = [](std::string_view before) {
    return lines(
        {kFence, kMultiply, kCommit, before, "bar.sync 0;", "mov.u32 %r2, 0;", "st.shared.u32 [%r0], %r2;", kWait});
  };
  EXPECT_EQ(find(prepared() + overwrite(kWait)).detail, "");
  const Finding finding = find(prepared() + overwrite(""));
  EXPECT_EQ(finding.kind, FindingKind::async_read_in_flight) << to_string(finding);
  EXPECT_NE(finding.detail.find("the wgmma of warp"), std::string::npos) << finding.detail;
}

/// The eight rows of a core matrix are judged together if they were accessed alike. These threads write one of A's, of
/// rows 24 to 31, which warp 1 reads after another.
constexpr std::string_view kIsOfCore = "sub.u32 %r2, %t, 48;\nsetp.lt.u32 %p, %r2, 8;";
constexpr std::string_view kStoreCore = "@%p st.shared.v4.u32 [%r0], {%r2, %r2, %r2, %r2};";

TEST(WgmmaChecks, MissingProxyFenceOfACoreMatrix) {
  const auto body = [](std::string_view fence) {
    return prepared() + lines({kIsOfCore, kStoreCore, fence, "bar.sync 0;", kFence, kMultiply, kCommit, kWait});
  };
  const Finding finding = find(body(""));
  EXPECT_EQ(finding.kind, FindingKind::missing_proxy_fence) << to_string(finding);
  EXPECT_EQ(find(body("fence.proxy.async;")).detail, "");
}

TEST(WgmmaChecks, OverwritingACoreMatrixInFlight) {
  const auto body = [](std::string_view before) {
    return prepared() + lines({kIsOfCore, kFence, kMultiply, kCommit, before, "bar.sync 0;", kStoreCore, kWait});
  };
  EXPECT_EQ(find(body(kWait)).detail, "");
  const Finding finding = find(body(""));
  EXPECT_EQ(finding.kind, FindingKind::async_read_in_flight) << to_string(finding);
}

TEST(WgmmaChecks, AThreadReadsACoreMatrixThatIsOverwritten) {
  // Warp 0 reads it, then warp 1 by its wgmma, and overwrites it.
  const auto body = [](std::string_view barrier) {
    return prepared() + lines({"setp.lt.u32 %p, %t, 8;", "@%p ld.shared.v4.u32 {%d8, %d9, %d10, %d11}, [%r0+768];",
                               kFence, kMultiply, kCommit, kWait, barrier, kIsOfCore, kStoreCore});
  };
  EXPECT_EQ(find(body("bar.sync 0;")).detail, "");
  const Finding finding = find(body(""));
  EXPECT_EQ(finding.kind, FindingKind::shared_race) << to_string(finding);
}

TEST(WgmmaChecks, DescriptorsOutOfSharedMemory) {
  EXPECT_EQ(find(prepared() + lines({"or.b64 %x1, %x1, 0x3000;", kFence, kMultiply, kCommit, kWait})).kind,
            FindingKind::out_of_bounds_shared);
}

TEST(WgmmaChecks, TheRankOfACtaIsNoPartOfADescriptor) {
  const std::string product = lines({kFence, kMultiply, kCommit, kWait});
  const Finding finding = find_in_cluster(prepared() + product);
  EXPECT_EQ(finding.kind, FindingKind::bad_descriptor) << to_string(finding);
  ASSERT_TRUE(finding.thread.has_value());
  EXPECT_EQ(finding.thread->cta, (runtime::Dim3{1, 0, 0}));
  EXPECT_NE(finding.detail.find("is 2304 bytes, but 2048 in the CTA of rank 0"), std::string::npos) << finding.detail;
  std::string masked = prepared();
  const std::string_view shift = "shr.u32 %r1, %base, 4;";
  masked.replace(masked.find(shift), shift.size(), "and.b32 %r1, %base, 0x3ffff;\nshr.u32 %r1, %r1, 4;");
  EXPECT_EQ(find_in_cluster(masked + product).detail, "");
}

TEST(WgmmaChecks, WarpOfTheWarpgroupMissing) {
  const Finding finding =
      find(prepared() + "setp.ge.u32 %p, %t, 96;\n@%p bra END;\n" + lines({kFence, kMultiply, kCommit, kWait, "END:"}));
  EXPECT_EQ(finding.kind, FindingKind::barrier_divergence) << to_string(finding);
  EXPECT_NE(finding.detail.find("wgmma.mma_async"), std::string::npos);
}

TEST(Setmaxnreg, MustBeUniformInAWarpgroup) {
  const std::string_view inc = "setmaxnreg.inc.sync.aligned.u32 240;";
  const std::string_view dec = "setmaxnreg.dec.sync.aligned.u32 24;";
  const std::string per_group =
      lines({"setp.ge.u32 %p, %t, 128;", "@%p bra SECOND;", dec, "bra END;", "SECOND:", inc, "END:"});
  EXPECT_EQ(find(per_group, 256).detail, "");
  const std::string per_warp =
      lines({"setp.ge.u32 %p, %t, 32;", "@%p bra SECOND;", dec, "bra END;", "SECOND:", inc, "END:"});
  EXPECT_EQ(find(per_warp, 128).kind, FindingKind::barrier_divergence);
  EXPECT_EQ(find(lines({"@%first setmaxnreg.dec.sync.aligned.u32 24;"}), 128).kind, FindingKind::barrier_divergence);
}

}  // namespace
}  // namespace tilewright::emulator
