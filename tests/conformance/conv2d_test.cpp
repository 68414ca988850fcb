// Convolutions of every family that loads im2col operands, against the definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_tensors.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tests/unit/op/direct_convolution.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;
using testing::HasSubstr;

using GuardedConvolution = GuardedTensors<op::Conv2d>;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// A convolution of packed tensors; P and Q follow from the other extents.
struct Shape {
  std::int64_t n, h, w, c, k, r, s;
  std::int64_t padding = 0, stride = 1, dilation = 1, groups = 1;
};
op::Conv2d convolution(ConvPass pass, const Shape& shape, DType type) {
  op::Conv2d conv;
  conv.pass = pass;
  conv.padding = {shape.padding, shape.padding};
  conv.stride = {shape.stride, shape.stride};
  conv.dilation = {shape.dilation, shape.dilation};
  conv.groups = shape.groups;
  const auto positions = [&](std::int64_t extent, std::int64_t taps) {
    return op::conv_positions(extent, shape.padding, shape.padding, taps, shape.stride, shape.dilation);
  };
  conv.x = op::packed_tensor(kApart, type, {shape.n, shape.h, shape.w, shape.c});
  conv.w = op::packed_tensor(2 * kApart, type, {shape.k, shape.r, shape.s, shape.c / shape.groups});
  conv.y =
      op::packed_tensor(3 * kApart, type, {shape.n, positions(shape.h, shape.r), positions(shape.w, shape.s), shape.k});
  conv.accumulator = op::default_accumulator(type);
  op::Tensor& written = pass == ConvPass::fprop ? conv.y : pass == ConvPass::dgrad ? conv.x : conv.w;
  written.dtype = op::default_output(type);
  conv.epilogue = op::linear_combination(op::default_compute(conv.accumulator, written.dtype));
  conv.c = written;
  conv.c.address = 4 * kApart;
  return conv;
}

class Convolutions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  /// One kernel of each family. Its design does not depend on the extents, if possible, so that few are compiled. Those
  /// of stem_conv, stem_wgrad, group_conv and group_wgrad do, and have tests of their own, as repacked_conv has.
  std::vector<registry::KernelPtr> kernels(const op::Problem& problem) const {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      const std::string& family = metadata.family;
      const bool has_own_tests =
          family.starts_with("stem_") || family.starts_with("group_") || family.starts_with("repacked_");
      return has_own_tests ? std::string() : family;
    });
  }

  /// One kernel of repacked_conv for each way to repack: "pad8", "blocks2x2_pad8", ...
  std::vector<registry::KernelPtr> repacking_kernels(const op::Problem& problem) const {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      constexpr std::string_view kPrefix = "repacked_";
      if (!metadata.name.starts_with(kPrefix)) return std::string();
      return metadata.name.substr(kPrefix.size(), metadata.name.find("_sm") - kPrefix.size());
    });
  }

  /// One kernel for each name that `name_of` gives; kernels whose name is empty are left out.
  template <class NameOf>
  std::vector<registry::KernelPtr> first_kernels(const op::Problem& problem, const NameOf& name_of) const {
    std::map<std::string, registry::KernelPtr> first;
    for (const engine::RankedKernel& candidate : engine().find_kernels(problem)) {
      const std::string name = name_of(candidate.kernel->metadata());
      if (name.empty()) continue;
      registry::KernelPtr& kernel = first[name];
      const auto order = [](const registry::KernelPtr& each) {
        const plan::GemmTiling& tiling = plan::tiling(each->metadata().design);
        return std::tuple{tiling.split_k, std::abs(tiling.tile.m * tiling.tile.n - 64 * 64),
                          plan::to_string(each->metadata().design)};
      };
      if (kernel == nullptr || order(candidate.kernel) < order(kernel)) kernel = candidate.kernel;
    }
    std::vector<registry::KernelPtr> all;
    for (const auto& [name, kernel] : first) all.push_back(kernel);
    return all;
  }

  void expect_exact_of(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const {
    SCOPED_TRACE(kernel->name());
    guarded.upload();
    engine().run(guarded.on_device(), kernel);
    guarded.download();
    ASSERT_EQ(guarded.wrong(), "");
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    ASSERT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }

  std::vector<std::string> expect_exact_in_every_family(const op::Conv2d& conv, Placement placement = {}) const {
    SCOPED_TRACE(op::to_string(conv));
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    GuardedConvolution guarded(engine().device(), conv, placement);
    std::vector<std::string> families;
    for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) {
      families.push_back(kernel->metadata().family);
      expect_exact_of(kernel, guarded);
    }
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    const bool has_sm80 = signature.math == op::MathOperation::multiply_add_tf32 || bytes(signature.a.element) == 2;
    EXPECT_TRUE(!has_sm80 || std::ranges::count(families, "sm80_gemm") == 1);
    EXPECT_TRUE(signature.math != op::MathOperation::multiply_add || std::ranges::count(families, "simt_gemm") == 1);
    return families;
  }
};

TEST_P(Convolutions, Random) {
  for (std::uint64_t seed = 0; seed < 300 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_exact_in_every_family(op::random_convolution(seed, DType::f16));
  }
}

TEST_P(Convolutions, EveryTypeInEveryPass) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::s8, DType::e4m3}) {
    for (std::uint64_t seed = 1000; seed < 1004; ++seed)
      expect_exact_in_every_family(op::random_convolution(seed, type));
  }
  for (std::uint64_t seed = 1000; seed < 1003; ++seed) {
    op::Conv2d conv = op::random_convolution(seed, DType::f32);
    conv.math = op::MathOperation::multiply_add_tf32;
    expect_exact_in_every_family(conv);
  }
}

// The channels of a pixel are less than what cp.async moves.
TEST_P(Convolutions, StemsAreMultipliedByTensorCores) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape stem{.n = 2, .h = 11, .w = 9, .c = 3, .k = 16, .r = 7, .s = 7, .padding = 3, .stride = 2};
  const Shape odd{.n = 1, .h = 6, .w = 7, .c = 3, .k = 5, .r = 3, .s = 2, .padding = 1};
  for (const Shape& shape : {stem, odd}) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
      const std::vector<std::string> families = expect_exact_in_every_family(convolution(pass, shape, DType::f16));
      EXPECT_EQ(std::ranges::count(families, "sm80_gemm"), 1) << op::name(pass);
    }
  }
  const std::vector<std::string> families = expect_exact_in_every_family(convolution(ConvPass::fprop, odd, DType::s8));
  EXPECT_EQ(std::ranges::count(families, "sm80_gemm"), 1);
}

// The kernels of a family, best first.
std::vector<registry::KernelPtr> kernels_of(const engine::Engine& engine, const op::Problem& problem,
                                            std::string_view family = "stem_conv") {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& candidate : engine.find_kernels(problem)) {
    if (candidate.kernel->metadata().family == family) kernels.push_back(candidate.kernel);
  }
  return kernels;
}

// Each convolution is run by one of its designs, and the next convolution by another one.
TEST_P(Convolutions, StemsHaveAFamilyOfTheirOwn) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape shapes[] = {
      // Rows of 222 bytes, so that the lines are copied element by element; windows begin at odd elements.
      {.n = 2, .h = 21, .w = 37, .c = 3, .k = 40, .r = 7, .s = 7, .padding = 3, .stride = 2},
      // Rows of 192, 216 and 228 bytes.
      {.n = 1, .h = 18, .w = 32, .c = 3, .k = 96, .r = 4, .s = 4, .stride = 4},
      {.n = 1, .h = 7, .w = 36, .c = 3, .k = 32, .r = 6, .s = 6, .padding = 2, .stride = 2},
      {.n = 3, .h = 9, .w = 38, .c = 3, .k = 70, .r = 3, .s = 3, .padding = 1, .stride = 2},
      // Windows of which every other one begins at an odd element.
      {.n = 1, .h = 5, .w = 16, .c = 3, .k = 24, .r = 3, .s = 3, .padding = 1},
      {.n = 1, .h = 6, .w = 21, .c = 1, .k = 9, .r = 5, .s = 5, .padding = 2},
      {.n = 1, .h = 8, .w = 24, .c = 3, .k = 16, .r = 2, .s = 5, .padding = 4, .stride = 3},
      // Several blocks along a row, four channels, and a window of one row.
      {.n = 1, .h = 3, .w = 176, .c = 4, .k = 130, .r = 3, .s = 3, .padding = 1},
      {.n = 2, .h = 3, .w = 40, .c = 2, .k = 33, .r = 1, .s = 9, .padding = 0, .stride = 1},
      // More blocks than CTAs, so that these take several, on an A100: 725 of four rows.
      {.n = 1, .h = 2900, .w = 14, .c = 2, .k = 8, .r = 3, .s = 3, .padding = 1},
  };
  std::size_t number = 0;
  for (const Shape& shape : shapes) {
    op::Conv2d conv = convolution(ConvPass::fprop, shape, number % 2 == 0 ? DType::f16 : DType::bf16);
    conv.mode = number % 3 == 0 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    conv.beta = number % 4 == 1 ? 1.0 : 0.0;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = number == 2 ? 1 : 0, .red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), guarded.on_device());
    ASSERT_GE(kernels.size(), 2U);
    expect_exact_of(kernels[number * 3 % kernels.size()], guarded);
    ++number;
  }
}

TEST_P(Convolutions, StemsWithAnEpilogue) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  op::Conv2d conv =
      convolution(ConvPass::fprop,
                  {.n = 1, .h = 12, .w = 24, .c = 3, .k = 48, .r = 3, .s = 3, .padding = 1, .stride = 2}, DType::f16);
  conv.epilogue = *op::parse_epilogue("let t = alpha * acc + row(bias) + residual; D = relu(t); aux = t", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 48})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f16, conv.y.shape)},
                  {"aux", op::packed_tensor(7 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
  const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), guarded.on_device());
  ASSERT_FALSE(kernels.empty());
  guarded.upload();
  engine().run(guarded.on_device(), kernels.front());
  guarded.download();
  const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
  EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  conv.epilogue = *op::parse_epilogue("D = acc; row(sums) = sum(acc)", DType::f32);
  conv.tensors = {{"sums", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 48})}};
  EXPECT_TRUE(kernels_of(engine(), conv).empty());
}

// The rows of a window are filled up with pixels outside it, which must not reach the sums.
TEST_P(Convolutions, StemsIgnoreInfinitiesOutsideTheWindow) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  constexpr std::int64_t kWidth = 16, kFilters = 8, kTaps = 3;
  constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
  for (const std::int64_t stride : {1, 2}) {
    op::Conv2d conv = convolution(
        ConvPass::fprop, {.n = 1, .h = 1, .w = kWidth, .c = 1, .k = kFilters, .r = 1, .s = kTaps, .stride = stride},
        DType::f16);
    conv.epilogue = *op::parse_epilogue("D = acc", DType::f32);
    conv.c = {};
    conv.padding = {0, 1};
    conv.y = op::packed_tensor(0, DType::f16, {1, 1, op::conv_positions(kWidth, 1, 1, kTaps, stride, 1), kFilters});
    std::vector<std::uint16_t> x(kWidth, kOne), w(kFilters * kTaps, kOne),
        y(static_cast<std::size_t>(conv.y.shape[2] * kFilters), 0x7e00);
    constexpr std::int64_t kInfinite = 6;
    x[kInfinite] = kInfinity;
    conv.x.address = reinterpret_cast<std::uint64_t>(x.data());
    conv.w.address = reinterpret_cast<std::uint64_t>(w.data());
    conv.y.address = reinterpret_cast<std::uint64_t>(y.data());
    const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), conv);
    ASSERT_FALSE(kernels.empty());
    engine().run(conv, kernels.front());
    for (std::int64_t q = 0; q < conv.y.shape[2]; ++q) {
      const std::int64_t first = q * stride - 1;
      const bool is_infinite = first <= kInfinite && kInfinite < first + kTaps;
      const std::uint16_t sum = first < 0 || first + kTaps > kWidth ? 0x4000 : 0x4200;  // 2 or 3 ones
      EXPECT_EQ(y[static_cast<std::size_t>(q * kFilters)], is_infinite ? kInfinity : sum)
          << "stride " << stride << ", position " << q;
    }
  }
}

TEST_P(Convolutions, StemsOfNetworksAreComputedByTheirFamilyFirst) {
  const Shape shapes[] = {{.n = 32, .h = 224, .w = 224, .c = 3, .k = 64, .r = 7, .s = 7, .padding = 3, .stride = 2},
                          {.n = 32, .h = 224, .w = 224, .c = 3, .k = 96, .r = 4, .s = 4, .stride = 4},
                          {.n = 32, .h = 224, .w = 224, .c = 3, .k = 32, .r = 3, .s = 3, .padding = 1, .stride = 2},
                          {.n = 8, .h = 640, .w = 640, .c = 3, .k = 32, .r = 6, .s = 6, .padding = 2, .stride = 2}};
  for (const Shape& shape : shapes) {
    const op::Conv2d conv = convolution(ConvPass::fprop, shape, DType::bf16);
    EXPECT_EQ(engine().find_kernels(conv).front().kernel->metadata().family, "stem_conv") << op::to_string(conv);
  }
  op::Conv2d dilated = convolution(ConvPass::fprop, shapes[0], DType::bf16);
  dilated.dilation = {1, 2};
  EXPECT_TRUE(kernels_of(engine(), dilated).empty());
}

// Filter gradients of stems. Each convolution is run by one of its designs, and the next convolution by another one.
TEST_P(Convolutions, FilterGradientsOfStemsHaveAFamilyOfTheirOwn) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape shapes[] = {
      // Rows of 222 bytes, so that the lines are copied element by element; windows begin at odd elements.
      {.n = 2, .h = 21, .w = 37, .c = 3, .k = 40, .r = 7, .s = 7, .padding = 3, .stride = 2},
      // Rows of 192, 216 and 228 bytes.
      {.n = 1, .h = 18, .w = 32, .c = 3, .k = 96, .r = 4, .s = 4, .stride = 4},
      {.n = 1, .h = 7, .w = 36, .c = 3, .k = 32, .r = 6, .s = 6, .padding = 2, .stride = 2},
      {.n = 3, .h = 9, .w = 38, .c = 3, .k = 72, .r = 3, .s = 3, .padding = 1, .stride = 2},
      // Windows of which every other one begins at an odd element.
      {.n = 1, .h = 5, .w = 16, .c = 3, .k = 24, .r = 3, .s = 3, .padding = 1},
      {.n = 1, .h = 6, .w = 21, .c = 1, .k = 8, .r = 5, .s = 5, .padding = 2},
      {.n = 1, .h = 8, .w = 24, .c = 3, .k = 16, .r = 2, .s = 5, .padding = 4, .stride = 3},
      // Several blocks along a row, four channels, several tiles of filters, patches, and a window of one row.
      {.n = 1, .h = 3, .w = 176, .c = 4, .k = 136, .r = 3, .s = 3, .padding = 1},
      {.n = 2, .h = 32, .w = 32, .c = 3, .k = 64, .r = 16, .s = 16, .stride = 16},
      {.n = 2, .h = 3, .w = 40, .c = 2, .k = 32, .r = 1, .s = 9, .padding = 0, .stride = 1},
      // More blocks than CTAs, so that these take several, on an A100.
      {.n = 1, .h = 1900, .w = 14, .c = 2, .k = 8, .r = 3, .s = 3, .padding = 1},
  };
  std::size_t number = 0;
  for (const Shape& shape : shapes) {
    op::Conv2d conv = convolution(ConvPass::wgrad, shape, number % 2 == 0 ? DType::f16 : DType::bf16);
    conv.mode = number % 3 == 0 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    conv.beta = number % 4 == 1 ? 1.0 : 0.0;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), guarded.on_device(), "stem_wgrad");
    ASSERT_GE(kernels.size(), 2U);
    for (const std::size_t which : {number * 3, number * 5 + 1}) {
      expect_exact_of(kernels[which % kernels.size()], guarded);
      expect_exact_of(kernels[which % kernels.size()], guarded);  // the first run has left the barrier as it found it
    }
    ++number;
  }
  op::Conv2d conv = convolution(ConvPass::wgrad, shapes[3], DType::f16);
  conv.alpha = 0.0;  // y and x are not read
  conv.beta = 2.0;
  GuardedConvolution unread(engine().device(), conv, {.red_zone = 0});
  expect_exact_of(kernels_of(engine(), unread.on_device(), "stem_wgrad").front(), unread);
  conv = convolution(ConvPass::wgrad, shapes[3], DType::f16);
  conv.epilogue = *op::parse_epilogue("D = relu(acc + column(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {72, 1, 1, 1})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.w.shape)}};
  GuardedConvolution with_epilogue(engine().device(), conv, {.red_zone = 0});
  with_epilogue.upload();
  engine().run(with_epilogue.on_device(), kernels_of(engine(), with_epilogue.on_device(), "stem_wgrad").front());
  with_epilogue.download();
  const op::Comparison comparison = op::compare(op::Problem(with_epilogue.host()));
  EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  conv = convolution(ConvPass::wgrad, shapes[5], DType::f16);
  conv.y.address += 2;
  EXPECT_TRUE(kernels_of(engine(), conv, "stem_wgrad").empty()) << "y is not aligned to vectors";
}

// Positions behind the last one of a row have windows of pixels, too, which must not reach the sums.
TEST_P(Convolutions, FilterGradientsOfStemsIgnoreInfinitiesOutsideTheWindow) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  constexpr std::int64_t kWidth = 40, kFilters = 8, kTaps = 3;
  constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
  for (const std::int64_t stride : {1, 2}) {
    op::Conv2d conv = convolution(
        ConvPass::wgrad, {.n = 1, .h = 1, .w = kWidth, .c = 1, .k = kFilters, .r = 1, .s = kTaps, .stride = stride},
        DType::f16);
    conv.epilogue = *op::parse_epilogue("D = acc", DType::f32);
    conv.c = {};
    constexpr std::int64_t kPositions = 5;
    conv.y = op::packed_tensor(0, DType::f16, {1, 1, kPositions, kFilters});
    std::vector<std::uint16_t> x(kWidth, kInfinity), w(kFilters * kTaps, 0x7e00), y(kPositions * kFilters, kOne);
    std::fill_n(x.begin(), (kPositions - 1) * stride + kTaps, kOne);
    conv.x.address = reinterpret_cast<std::uint64_t>(x.data());
    conv.w.address = reinterpret_cast<std::uint64_t>(w.data());
    conv.y.address = reinterpret_cast<std::uint64_t>(y.data());
    const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), conv, "stem_wgrad");
    ASSERT_FALSE(kernels.empty());
    engine().run(conv, kernels.front());
    for (const std::uint16_t sum : w) EXPECT_EQ(sum, 0x4500) << "stride " << stride;  // 5
  }
}

// Groups of 8 to 64 channels. Each convolution is run by two of its designs.
TEST_P(Convolutions, GroupsOfFewChannelsHaveAFamilyOfTheirOwn) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape shapes[] = {
      {.n = 2, .h = 14, .w = 14, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1, .groups = 4},
      // Filters of an odd number of vectors, which are filled up, and so are the 8 filters of a group.
      {.n = 1, .h = 9, .w = 7, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1, .groups = 8},
      {.n = 1, .h = 6, .w = 21, .c = 72, .k = 120, .r = 3, .s = 1, .padding = 1, .groups = 3},
      {.n = 2, .h = 11, .w = 13, .c = 64, .k = 128, .r = 3, .s = 3, .padding = 1, .stride = 2, .groups = 2},
      {.n = 1, .h = 12, .w = 15, .c = 128, .k = 128, .r = 2, .s = 3, .padding = 2, .dilation = 2, .groups = 2},
      // Several blocks along a row, and a window that is wider than the image.
      {.n = 1, .h = 5, .w = 70, .c = 32, .k = 96, .r = 1, .s = 5, .padding = 2, .groups = 2},
      {.n = 3, .h = 4, .w = 3, .c = 48, .k = 48, .r = 7, .s = 7, .padding = 3, .groups = 3},
      // No groups, and several tiles of filters.
      {.n = 1, .h = 11, .w = 17, .c = 48, .k = 56, .r = 3, .s = 4, .padding = 2},
      {.n = 1, .h = 6, .w = 9, .c = 24, .k = 136, .r = 3, .s = 3, .padding = 1, .stride = 2},
      // More blocks than CTAs, so that these take several, on an A100.
      {.n = 1, .h = 2300, .w = 5, .c = 16, .k = 16, .r = 3, .s = 3, .padding = 1, .groups = 2},
  };
  std::size_t number = 0;
  for (const Shape& shape : shapes) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad}) {
      if (pass == ConvPass::dgrad && shape.stride > 1) continue;
      op::Conv2d conv = convolution(pass, shape, number % 2 == 0 ? DType::f16 : DType::bf16);
      conv.mode = number % 3 == 0 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
      conv.beta = number % 4 == 1 ? 1.0 : 0.0;
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
      const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), guarded.on_device(), "group_conv");
      ASSERT_GE(kernels.size(), 2U);
      for (const std::size_t which : {number * 3, number * 5 + 1})
        expect_exact_of(kernels[which % kernels.size()], guarded);
      ++number;
    }
  }
  op::Conv2d conv = convolution(ConvPass::fprop, shapes[0], DType::f16);
  conv.alpha = 0.0;  // x and w are not read
  conv.beta = 2.0;
  GuardedConvolution unread(engine().device(), conv, {.red_zone = 0});
  expect_exact_of(kernels_of(engine(), unread.on_device(), "group_conv").front(), unread);
  conv = convolution(ConvPass::fprop, shapes[1], DType::f16);
  conv.epilogue = *op::parse_epilogue("let t = alpha * acc + row(bias) + residual; D = relu(t); aux = t", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 64})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f16, conv.y.shape)},
                  {"aux", op::packed_tensor(7 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution with_epilogue(engine().device(), conv, {.red_zone = 0});
  with_epilogue.upload();
  engine().run(with_epilogue.on_device(), kernels_of(engine(), with_epilogue.on_device(), "group_conv").front());
  with_epilogue.download();
  const op::Comparison comparison = op::compare(op::Problem(with_epilogue.host()));
  EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  conv = convolution(ConvPass::fprop, shapes[0], DType::f16);
  conv.x.address += 2;
  EXPECT_TRUE(kernels_of(engine(), conv, "group_conv").empty()) << "x is not aligned to vectors";
}

// Positions behind the last one of a row meet pixels, too, which must not reach the sums; nor must those that the
// fragments of filters with an odd number of octets are filled up with.
TEST_P(Convolutions, GroupsIgnoreInfinitiesOutsideTheWindow) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  constexpr std::int64_t kWidth = 20, kPositions = 5, kTaps = 3, kGroups = 2, kChannels = 8, kFilters = 16;
  constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::wgrad}) {
    op::Conv2d conv = convolution(pass,
                                  {.n = 1,
                                   .h = 1,
                                   .w = kWidth,
                                   .c = kGroups * kChannels,
                                   .k = kGroups * kFilters,
                                   .r = 1,
                                   .s = kTaps,
                                   .groups = kGroups},
                                  DType::f16);
    conv.epilogue = *op::parse_epilogue("D = acc", DType::f32);
    conv.c = {};
    conv.y = op::packed_tensor(0, DType::f16, {1, 1, kPositions, kGroups * kFilters});
    std::vector<std::uint16_t> x(kWidth * kGroups * kChannels, kInfinity),
        w(kGroups * kFilters * kTaps * kChannels, kOne), y(kPositions * kGroups * kFilters, kOne);
    // The first pixel of the first window is infinite in fprop: windows are filled up with it.
    const std::int64_t first = pass == ConvPass::fprop ? 1 : 0;
    std::fill(x.begin() + first * kGroups * kChannels, x.begin() + (kPositions - 1 + kTaps) * kGroups * kChannels,
              kOne);
    std::vector<std::uint16_t>& written = pass == ConvPass::fprop ? y : w;
    std::ranges::fill(written, std::uint16_t{0x7e00});
    conv.x.address = reinterpret_cast<std::uint64_t>(x.data());
    conv.w.address = reinterpret_cast<std::uint64_t>(w.data());
    conv.y.address = reinterpret_cast<std::uint64_t>(y.data());
    const std::vector<registry::KernelPtr> kernels =
        kernels_of(engine(), conv, pass == ConvPass::fprop ? "group_conv" : "group_wgrad");
    ASSERT_FALSE(kernels.empty());
    engine().run(conv, kernels.front());
    for (std::size_t i = 0; i < written.size(); ++i) {
      const bool is_infinite = pass == ConvPass::fprop && i < kGroups * kFilters;  // of the first pixel
      const std::uint16_t sum = pass == ConvPass::fprop ? 0x4e00 : 0x4500;         // 24 and 5
      EXPECT_EQ(written[i], is_infinite ? kInfinity : sum) << op::name(pass) << " " << i;
    }
  }
}

TEST_P(Convolutions, FilterGradientsOfGroupsHaveAFamilyOfTheirOwn) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape shapes[] = {
      {.n = 2, .h = 14, .w = 14, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1, .groups = 4},
      // An odd number of octets of channels, and warps whose last taps do not exist.
      {.n = 1, .h = 9, .w = 7, .c = 64, .k = 128, .r = 3, .s = 3, .padding = 1, .groups = 8},
      {.n = 1, .h = 6, .w = 21, .c = 72, .k = 96, .r = 3, .s = 1, .padding = 1, .groups = 3},
      {.n = 2, .h = 11, .w = 13, .c = 64, .k = 128, .r = 3, .s = 3, .padding = 1, .stride = 2, .groups = 2},
      {.n = 1, .h = 12, .w = 15, .c = 128, .k = 64, .r = 2, .s = 3, .padding = 2, .dilation = 2, .groups = 2},
      {.n = 1, .h = 5, .w = 70, .c = 32, .k = 96, .r = 1, .s = 5, .padding = 2, .groups = 2},
      {.n = 3, .h = 4, .w = 3, .c = 48, .k = 48, .r = 7, .s = 7, .padding = 3, .groups = 3},
      // More blocks than CTAs, so that these take several, on an A100.
      {.n = 1, .h = 2300, .w = 5, .c = 16, .k = 32, .r = 3, .s = 3, .padding = 1, .groups = 2},
  };
  std::size_t number = 0;
  for (const Shape& shape : shapes) {
    op::Conv2d conv = convolution(ConvPass::wgrad, shape, number % 2 == 0 ? DType::f16 : DType::bf16);
    conv.mode = number % 3 == 0 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    conv.beta = number % 4 == 1 ? 1.0 : 0.0;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of(engine(), guarded.on_device(), "group_wgrad");
    ASSERT_GE(kernels.size(), 2U);
    for (const std::size_t which : {number * 3, number * 5 + 1}) {
      expect_exact_of(kernels[which % kernels.size()], guarded);
      expect_exact_of(kernels[which % kernels.size()], guarded);  // the first run has left the barrier as it found it
    }
    ++number;
  }
  op::Conv2d conv = convolution(ConvPass::wgrad, shapes[0], DType::f16);
  conv.alpha = 0.0;  // y and x are not read
  conv.beta = 2.0;
  GuardedConvolution unread(engine().device(), conv, {.red_zone = 0});
  expect_exact_of(kernels_of(engine(), unread.on_device(), "group_wgrad").front(), unread);
  conv = convolution(ConvPass::wgrad, shapes[0], DType::f16);
  conv.y.address += 2;
  EXPECT_TRUE(kernels_of(engine(), conv, "group_wgrad").empty()) << "y is not aligned to vectors";
}

// A filter for each channel: windows of 3 to 7 taps and steps of 1 and 2 have code of their own, which moves vectors of
// channels; others, and other alignments, have code for any window.
TEST_P(Convolutions, DepthwiseConvolutionsHaveAFamilyOfTheirOwn) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const std::vector<std::pair<Shape, bool>> shapes{
      // The second is whether vectors of channels can be moved.
      {{.n = 2, .h = 6, .w = 9, .c = 72, .k = 72, .r = 3, .s = 3, .padding = 1, .groups = 72}, true},
      {{.n = 1, .h = 9, .w = 8, .c = 16, .k = 16, .r = 7, .s = 7, .padding = 3, .groups = 16}, true},
      {{.n = 1, .h = 9, .w = 11, .c = 8, .k = 8, .r = 5, .s = 5, .padding = 2, .stride = 2, .groups = 8}, true},
      {{.n = 1, .h = 9, .w = 9, .c = 8, .k = 8, .r = 3, .s = 2, .padding = 2, .dilation = 2, .groups = 8}, true},
      {{.n = 2, .h = 5, .w = 7, .c = 13, .k = 13, .r = 3, .s = 3, .padding = 1, .stride = 3, .groups = 13}, false},
  };
  for (const auto& [shape, has_vectors] : shapes) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad}) {
      op::Conv2d conv = convolution(pass, shape, DType::f16);
      conv.mode = shape.r == 5 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
      conv.beta = shape.r == 7 ? 1.0 : 0.0;
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
      int count = 0;
      bool is_first = true, has_vector = false;
      for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
        const bool is_own = candidate.kernel->metadata().family == "depthwise_conv";
        EXPECT_TRUE(is_own || !is_first) << "the family is expected to be the fastest";
        is_first = false;
        if (!is_own) continue;
        ++count;
        has_vector |= plan::flatten(candidate.kernel->metadata().design, nullptr).instruction.n > 1;
        expect_exact_of(candidate.kernel, guarded);
      }
      EXPECT_GE(count, 1) << op::to_string(conv);
      EXPECT_EQ(has_vector, has_vectors);
    }
  }
  for (const int offset : {0, 1, 0}) {  // the kernel of vectors is not remembered for other addresses
    GuardedConvolution guarded(engine().device(), convolution(ConvPass::fprop, shapes[1].first, DType::f16),
                               {.offset_elements = offset, .red_zone = 0});
    guarded.upload();
    engine().run(guarded.on_device());
    guarded.download();
    EXPECT_EQ(guarded.wrong(), "");
  }
  op::Conv2d conv = convolution(ConvPass::fprop, shapes[0].first, DType::s8);
  conv.epilogue = *op::parse_epilogue("D = relu(acc + row(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 72})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
  const registry::KernelPtr kernel = engine().find_kernels(guarded.on_device()).front().kernel;
  EXPECT_EQ(kernel->metadata().family, "depthwise_conv");
  guarded.upload();
  engine().run(guarded.on_device(), kernel);
  guarded.download();
  EXPECT_TRUE(op::compare(op::Problem(guarded.host())).is_exact());
}

// The gradient of a filter sums over all pixels. Threads that have the same taps take different rows of the output, and
// so do CTAs, which add their partial sums through the workspace.
TEST_P(Convolutions, FilterGradientsOfDepthwiseConvolutions) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  struct Case {
    Shape shape;
    int kernels;    // of the family, at least
    int vector;     // the channels of a thread of the widest of them
    bool is_split;  // whether several CTAs of one of these have the same taps and channels
  };
  const std::vector<Case> cases{
      {{.n = 5, .h = 9, .w = 6, .c = 40, .k = 40, .r = 7, .s = 7, .padding = 3, .groups = 40}, 9, 8, true},
      {{.n = 1, .h = 6, .w = 9, .c = 72, .k = 72, .r = 3, .s = 3, .padding = 1, .groups = 72}, 9, 8, false},
      {{.n = 3, .h = 17, .w = 11, .c = 8, .k = 8, .r = 5, .s = 5, .padding = 2, .stride = 2, .groups = 8}, 9, 8, true},
      {{.n = 1, .h = 5, .w = 8, .c = 20, .k = 20, .r = 2, .s = 9, .padding = 4, .groups = 20}, 5, 4, true},
      {{.n = 1, .h = 9, .w = 9, .c = 8, .k = 8, .r = 3, .s = 2, .padding = 2, .dilation = 2, .groups = 8}, 3, 8, false},
      {{.n = 1, .h = 4, .w = 5, .c = 4, .k = 4, .r = 33, .s = 2, .padding = 16, .groups = 4}, 5, 4, true},
      {{.n = 2, .h = 5, .w = 7, .c = 13, .k = 13, .r = 3, .s = 3, .padding = 1, .stride = 3, .groups = 13}, 1, 1, true},
  };
  const auto kernels_of_family = [&](const op::Conv2d& conv) {
    std::vector<registry::KernelPtr> all;
    for (const engine::RankedKernel& candidate : engine().find_kernels(conv)) {
      if (candidate.kernel->metadata().family == "depthwise_conv") all.push_back(candidate.kernel);
    }
    return all;
  };
  for (const auto& [shape, least, vector, is_split] : cases) {
    op::Conv2d conv = convolution(ConvPass::wgrad, shape, DType::f16);
    conv.mode = shape.r == 5 || shape.s == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    conv.beta = shape.r == 7 ? 1.0 : 0.0;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    int count = 0, widest = 0;
    bool has_parts = false;
    for (const registry::KernelPtr& kernel : kernels_of_family(guarded.on_device())) {
      ++count;
      const int channels = plan::flatten(kernel->metadata().design, nullptr).instruction.n;
      widest = std::max(widest, channels);
      has_parts |= channels == vector && kernel->workspace_bytes(guarded.on_device()) > 0;
      expect_exact_of(kernel, guarded);
      expect_exact_of(kernel, guarded);  // the first run has left the counters as it found them
    }
    EXPECT_GE(count, least);
    EXPECT_EQ(widest, vector);
    EXPECT_EQ(has_parts, is_split);
  }
  const auto expect_exact_in_family = [&](const op::Conv2d& conv, int offset = 0) {
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = offset, .red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    guarded.upload();
    engine().run(guarded.on_device(), kernels.front());
    guarded.download();
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  };
  for (const DType type : {DType::bf16, DType::f32, DType::f64, DType::s8})
    expect_exact_in_family(convolution(ConvPass::wgrad, cases[2].shape, type));
  for (const int offset : {0, 1, 0})  // the kernel of vectors is not remembered for other addresses
    expect_exact_in_family(convolution(ConvPass::wgrad, cases[0].shape, DType::f16), offset);
  op::Conv2d conv = convolution(ConvPass::wgrad, cases[0].shape, DType::f16);
  conv.alpha = 0.0;  // y and x are not read
  conv.beta = 2.0;
  expect_exact_in_family(conv);
  conv = convolution(ConvPass::wgrad, cases[1].shape, DType::f16);
  conv.epilogue = *op::parse_epilogue("D = relu(acc + row(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 3, 3, 1})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.w.shape)}};
  expect_exact_in_family(conv);
  conv = convolution(ConvPass::wgrad,
                     {.n = 32, .h = 14, .w = 14, .c = 384, .k = 384, .r = 7, .s = 7, .padding = 3, .groups = 384},
                     DType::f16);
  for (op::Tensor* const tensor : {&conv.x, &conv.w, &conv.y, &conv.c}) {
    tensor->address = 0;
    tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  EXPECT_EQ(engine().find_kernels(conv).front().kernel->metadata().family, "depthwise_conv");
}

TEST_P(Convolutions, TensorsMayHaveGapsAndAnyAlignment) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    for (const int offset : {0, 1}) {
      op::Conv2d conv =
          convolution(pass, {.n = 2, .h = 6, .w = 5, .c = 16, .k = 8, .r = 3, .s = 2, .padding = 1}, DType::f16);
      // A slice of channels of a larger tensor; pixels of gathered tensors need not follow each other.
      const auto pad = [](op::Tensor& tensor, bool between_images) {
        const std::int64_t pitch = tensor.shape[3] + 8;
        tensor.stride = {tensor.shape[1] * tensor.shape[2] * pitch + (between_images ? 16 : 0),
                         tensor.shape[2] * pitch + (between_images ? 8 : 0), pitch, 1};
        if (between_images) tensor.stride[0] += tensor.shape[1] * 8;
      };
      pad(conv.x, pass != ConvPass::dgrad);
      pad(conv.y, pass == ConvPass::dgrad);
      conv.c = conv.written();
      conv.c.address = 4 * kApart;
      conv.beta = 1.0;
      expect_exact_in_every_family(conv, {.offset_elements = offset});
    }
  }
}

TEST_P(Convolutions, EpiloguesReadTensorsOfPixelsAndChannels) {
  const Shape shape{.n = 2, .h = 6, .w = 5, .c = 16, .k = 16, .r = 3, .s = 3, .padding = 1, .groups = 2};
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    op::Conv2d conv = convolution(pass, shape, DType::f16);
    conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + row(bias) + residual)", DType::f32);
    const op::Dims& whole = conv.written().shape;
    const bool is_weights = pass == ConvPass::wgrad;  // its rows are filters
    const op::Dims bias{1, is_weights ? whole[1] : 1, is_weights ? whole[2] : 1, whole[3]};
    conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, bias)},
                    {"residual", op::packed_tensor(6 * kApart, DType::f16, whole)}};
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) {
      guarded.upload();
      engine().run(guarded.on_device(), kernel);
      guarded.download();
      const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
      EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
    }
  }
}

TEST_P(Convolutions, SplitK) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    const op::Conv2d conv =
        convolution(pass, {.n = 1, .h = 12, .w = 12, .c = 32, .k = 32, .r = 3, .s = 3, .padding = 1}, DType::f16);
    GuardedConvolution guarded(engine().device(), conv);
    std::map<std::string, registry::KernelPtr> split;
    for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
      if (plan::tiling(candidate.kernel->metadata().design).split_k > 1)
        split.insert({candidate.kernel->metadata().family, candidate.kernel});
    }
    EXPECT_EQ(split.count("sm80_gemm"), 1U) << op::to_string(conv);
    for (const auto& [family, kernel] : split) expect_exact_of(kernel, guarded);
  }
}

TEST_P(Convolutions, SinglePixelsAreComputedByEveryFamilyOfGemms) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    const op::Conv2d conv = convolution(pass, {.n = 2, .h = 5, .w = 7, .c = 64, .k = 32, .r = 1, .s = 1}, DType::f16);
    const std::vector<std::string> families = expect_exact_in_every_family(conv);
    EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), GetParam() == "emulator:sm_80" ? 0 : 1);
  }
}

// A mainloop step is no longer than K: 16 and 32 elements of f16 have rows of 32 and 64 bytes in shared memory.
TEST_P(Convolutions, Sm90MultipliesFewChannelsInShortSteps) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const Shape shape{.n = 2, .h = 9, .w = 8, .c = 32, .k = 16, .r = 1, .s = 1};
  for (const auto& [pass, k] : {std::pair{ConvPass::fprop, 32}, {ConvPass::dgrad, 16}}) {
    GuardedConvolution guarded(engine().device(), convolution(pass, shape, DType::f16));
    const std::vector<registry::KernelPtr> all = kernels(guarded.on_device());
    const auto kernel = std::ranges::find(all, "sm90_gemm", [](const auto& each) { return each->metadata().family; });
    ASSERT_NE(kernel, all.end());
    EXPECT_EQ(plan::tiling((*kernel)->metadata().design).tile.k, k);
    expect_exact_of(*kernel, guarded);
  }
}

// Boxes of TMA end behind the last channel of a tap, where both operands are filled with zeros.
TEST_P(Convolutions, Sm90PadsTaps) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const auto padded_kernels = [&](const op::Problem& problem) {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      const bool is_padded = metadata.family == "sm90_gemm" && metadata.operands().a.has_padded_taps;
      return is_padded ? fmt::format("rows of {}", metadata.operands().a.tap_row) : std::string();
    });
  };
  struct Case {
    ConvPass pass;
    DType type;
    Shape shape;
    std::size_t lengths;  // of rows
  };
  const Shape wide{.n = 2, .h = 9, .w = 7, .c = 48, .k = 40, .r = 3, .s = 3, .padding = 1};
  const Shape strided{.n = 1, .h = 11, .w = 8, .c = 72, .k = 24, .r = 3, .s = 4, .padding = 2, .stride = 2};
  for (const auto& [pass, type, shape, lengths] : {Case{ConvPass::fprop, DType::f16, wide, 1},
                                                   {ConvPass::dgrad, DType::f16, wide, 2},
                                                   {ConvPass::wgrad, DType::f16, wide, 0},
                                                   {ConvPass::fprop, DType::f16, strided, 3},
                                                   {ConvPass::dgrad, DType::f16, strided, 1},
                                                   {ConvPass::fprop, DType::f32, strided, 2},
                                                   {ConvPass::fprop, DType::s8, wide, 1}}) {
    op::Conv2d conv = convolution(pass, shape, type);
    if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
    conv.mode = shape.stride == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const std::vector<registry::KernelPtr> all = padded_kernels(guarded.on_device());
    EXPECT_EQ(all.size(), lengths);
    for (const registry::KernelPtr& kernel : all) expect_exact_of(kernel, guarded);
  }
}

// Where the channels of a tap end, a box of the filter must not reach the next tap: zeros of the image times its
// infinities would be NaNs.
TEST_P(Convolutions, PaddedTapsIgnoreInfinitiesOfTheNextTap) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
  constexpr std::int64_t kChannels = 48, kFilters = 8;
  op::Conv2d conv =
      convolution(ConvPass::fprop,
                  {.n = 1, .h = 1, .w = 4, .c = kChannels, .k = kFilters, .r = 1, .s = 2, .padding = 0}, DType::f16);
  conv.epilogue = *op::parse_epilogue("D = acc", DType::f32);
  conv.c = {};
  conv.padding = {0, 1};
  conv.y = op::packed_tensor(0, DType::f16, {1, 1, 1, kFilters});  // of the padding and the first pixel
  std::vector<std::uint16_t> x(4 * kChannels, kOne), w(kFilters * 2 * kChannels, kOne), y(kFilters, 0x7e00);
  w[kChannels] = kInfinity;  // of the first filter, behind the channels of its first tap
  conv.x.address = reinterpret_cast<std::uint64_t>(x.data());
  conv.w.address = reinterpret_cast<std::uint64_t>(w.data());
  conv.y.address = reinterpret_cast<std::uint64_t>(y.data());
  for (const engine::RankedKernel& candidate : engine().find_kernels(conv)) {
    const registry::KernelMetadata& metadata = candidate.kernel->metadata();
    if (metadata.family != "sm90_gemm" || !metadata.operands().a.has_padded_taps) continue;
    engine().run(conv, candidate.kernel);
    EXPECT_EQ(y[0], kInfinity);
    EXPECT_EQ(y[1], 0x5200);  // 48
    return;
  }
  FAIL() << "no kernel pads the taps";
}

TEST_P(Convolutions, Sm90LoadsIm2colByTma) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const std::vector<Shape> shapes{
      {.n = 2, .h = 9, .w = 7, .c = 64, .k = 128, .r = 3, .s = 3, .padding = 1},
      {.n = 3, .h = 11, .w = 6, .c = 128, .k = 64, .r = 3, .s = 2, .padding = 2, .stride = 2},
      {.n = 1, .h = 12, .w = 13, .c = 64, .k = 64, .r = 2, .s = 3, .padding = 1, .dilation = 3},
      {.n = 2, .h = 8, .w = 8, .c = 40, .k = 24, .r = 1, .s = 1, .stride = 3},  // nine classes of pixels
      {.n = 2, .h = 10, .w = 8, .c = 64, .k = 64, .r = 2, .s = 2, .stride = 4},
      {.n = 2, .h = 7, .w = 10, .c = 96, .k = 48, .r = 3, .s = 3, .padding = 1},  // tap rows of 64 and 32 bytes
      {.n = 3, .h = 6, .w = 9, .c = 16, .k = 8, .r = 5, .s = 3, .padding = 2},    // of 32 and 16 bytes
      {.n = 2, .h = 9, .w = 8, .c = 72, .k = 64, .r = 1, .s = 1, .stride = 2},    // pixels without products
      {.n = 1, .h = 13, .w = 9, .c = 64, .k = 32, .r = 3, .s = 4, .padding = 2, .stride = 2, .dilation = 2},
      {.n = 2, .h = 9, .w = 11, .c = 64, .k = 96, .r = 3, .s = 3, .padding = 1, .groups = 4},
  };
  for (const Shape& shape : shapes) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
      for (const op::ConvMode mode : {op::ConvMode::cross_correlation, op::ConvMode::convolution}) {
        op::Conv2d conv = convolution(pass, shape, DType::f16);
        conv.mode = mode;
        if (mode == op::ConvMode::convolution && shape.stride == 1 && shape.dilation == 1) continue;
        const std::vector<std::string> families = expect_exact_in_every_family(conv);
        const bool is_refused = pass == ConvPass::dgrad && (shape.stride > 3 || shape.groups > 1);
        EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), is_refused ? 0 : 1) << op::to_string(conv);
      }
    }
  }
}

TEST_P(Convolutions, EverySm90DesignLoadsIm2col) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const Shape wide{.n = 2, .h = 17, .w = 13, .c = 64, .k = 128, .r = 2, .s = 3, .padding = 1};
  const Shape narrow{
      .n = 2, .h = 17, .w = 13, .c = 32, .k = 48, .r = 2, .s = 3, .padding = 1};  // several boxes per stage
  const Shape strided{.n = 2, .h = 15, .w = 18, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1, .stride = 2};
  for (const auto& [pass, shape] : {std::pair{ConvPass::fprop, wide},
                                    {ConvPass::dgrad, wide},
                                    {ConvPass::wgrad, wide},
                                    {ConvPass::fprop, narrow},
                                    {ConvPass::wgrad, narrow},
                                    {ConvPass::dgrad, strided}}) {
    const op::Conv2d conv = convolution(pass, shape, DType::f16);
    GuardedConvolution guarded(engine().device(), conv);
    for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                     {"two atoms", {256, 64}, 2, 3},
                                     {"ping-pong", {64, 64}, 2, 4, {1, 1}, plan::Schedule::ping_pong},
                                     {"multicast of both", {64, 64}, 1, 4, {2, 2}},
                                     {"swapped", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, true},
                                     {"split-K", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, false, 3}}) {
      const bool is_gradient = pass == ConvPass::dgrad;
      const bool is_as_in_fprop = is_gradient && shape.stride == 1 && tested.cluster[0] == 1 && !tested.swaps;
      const bool is_refused = is_gradient && shape.stride > 1 && (tested.swaps || tested.split_k > 1);
      if (is_as_in_fprop || is_refused) continue;
      SCOPED_TRACE(fmt::format("{} {}", op::name(pass), tested.name));
      const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
      plan::Sm90GemmDesign design = design_of(tested, signature);
      design.target = engine().device()->properties().target;
      expect_exact_of(engine().make_kernel(signature, design), guarded);
    }
  }
}

// wgmma takes elements that are not 16 bits wide along K only, but the channels of a filter are contiguous along N of
// dgrad. All CTAs copy its taps to lines along K first.
TEST_P(Convolutions, Sm90RepacksTheFilterOfInputGradients) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  struct Case {
    DType type;
    Shape shape;
  };
  for (const auto& [type, shape] :
       {Case{DType::f32, {.n = 2, .h = 9, .w = 7, .c = 72, .k = 36, .r = 3, .s = 3, .padding = 1}},
        {DType::f32, {.n = 1, .h = 8, .w = 9, .c = 32, .k = 64, .r = 1, .s = 4, .padding = 2}},
        {DType::f32, {.n = 2, .h = 6, .w = 6, .c = 40, .k = 4, .r = 5, .s = 1, .dilation = 1}},
        {DType::s8, {.n = 2, .h = 8, .w = 7, .c = 80, .k = 48, .r = 2, .s = 3, .padding = 1}},
        {DType::e4m3, {.n = 1, .h = 7, .w = 7, .c = 32, .k = 32, .r = 3, .s = 3}}}) {
    for (const ConvPass pass : {ConvPass::dgrad, ConvPass::wgrad}) {
      op::Conv2d conv = convolution(pass, shape, type);
      conv.mode = shape.s == 4 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
      if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
      SCOPED_TRACE(op::to_string(conv));
      const std::vector<std::string> families = expect_exact_in_every_family(conv);
      EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), pass == ConvPass::dgrad ? 1 : 0);
    }
  }
  op::Conv2d conv = convolution(ConvPass::dgrad,
                                {.n = 2, .h = 17, .w = 13, .c = 64, .k = 96, .r = 2, .s = 3, .padding = 1}, DType::f32);
  conv.math = op::MathOperation::multiply_add_tf32;
  GuardedConvolution guarded(engine().device(), conv);
  for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                   {"ping-pong", {64, 64}, 2, 4, {1, 1}, plan::Schedule::ping_pong},
                                   {"multicast of both", {64, 64}, 1, 4, {2, 2}},
                                   {"swapped", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, true},
                                   {"split-K", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, false, 3}}) {
    SCOPED_TRACE(tested.name);
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    plan::Sm90GemmDesign design = design_of(tested, signature);
    design.target = engine().device()->properties().target;
    design.tile.k = 32;
    design.repacks_operands = true;
    const registry::KernelPtr kernel = engine().make_kernel(signature, design);
    expect_exact_of(kernel, guarded);
    expect_exact_of(kernel, guarded);  // the first run has left the barrier as it found it
  }
  conv.w.stride[1] += 64;  // the taps have two strides
  for (const engine::RankedKernel& candidate : engine().find_kernels(conv))
    EXPECT_NE(candidate.kernel->metadata().family, "sm90_gemm");
}

// Each class of pixels has an im2col matrix of the copy of the filter.
TEST_P(Convolutions, Sm90RepacksTheFilterOfStridedGradients) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const Shape some{.n = 2, .h = 9, .w = 8, .c = 40, .k = 36, .r = 3, .s = 3, .padding = 1, .stride = 2};
  const Shape single{.n = 1, .h = 9, .w = 6, .c = 32, .k = 32, .r = 1, .s = 1, .stride = 2};
  const Shape dilated{
      .n = 1, .h = 8, .w = 9, .c = 32, .k = 64, .r = 4, .s = 3, .padding = 2, .stride = 2, .dilation = 2};
  const Shape nine{.n = 2, .h = 10, .w = 11, .c = 32, .k = 32, .r = 4, .s = 3, .padding = 1, .stride = 3};
  for (const auto& [type, shape] :
       {std::pair{DType::f32, some}, {DType::f32, single}, {DType::f32, nine}, {DType::s8, dilated}}) {
    op::Conv2d conv = convolution(ConvPass::dgrad, shape, type);
    if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const std::vector<registry::KernelPtr> all = kernels(guarded.on_device());
    const auto kernel = std::ranges::find(all, "sm90_gemm", [](const auto& each) { return each->metadata().family; });
    ASSERT_NE(kernel, all.end());
    expect_exact_of(*kernel, guarded);
    expect_exact_of(*kernel, guarded);  // the first run has left the barrier as it found it
  }
}

TEST_P(Convolutions, BlocksOfChannels) {
  // The kernels for sm_90a are those for sm_80.
  const std::uint64_t seeds = GetParam() == "emulator:sm_90a" ? 2 : 16;
  for (std::uint64_t seed = 0; seed < seeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    op::Conv2d conv = op::random_blocked_convolution(seed, DType::s8);
    if (seed % 8 == 7 && conv.y.shape.rank() == 5) {  // gaps between the images and the rows of y
      conv.y.stride[2] += 32;
      conv.y.stride[1] += 32 * conv.y.shape[2];
      conv.y.stride[0] += 32 * conv.y.shape[2] * conv.y.shape[1] + 64;
      conv.c.stride = conv.y.stride;
    }
    const std::vector<std::string> families = expect_exact_in_every_family(conv);
    EXPECT_EQ(families, (std::vector<std::string>{"simt_gemm", "sm80_gemm"}));
  }
  op::Conv2d conv = op::random_blocked_convolution(0, DType::s8);
  conv.x = op::packed_tensor(kApart, DType::s8, {1, 2, 4, 4, 32});
  conv.w = op::packed_tensor(2 * kApart, DType::s8, {2, 3, 3, 64, 32});
  conv.y = op::packed_tensor(3 * kApart, DType::s8, {1, 2, 4, 4, 32});
  conv.padding = conv.stride = conv.dilation = {1, 1};
  conv.c = conv.y;
  conv.c.address = 4 * kApart;
  if (GetParam() != "emulator:sm_80") {
    EXPECT_THAT(engine::to_text(engine().explain(conv)),
                HasSubstr("sm90_gemm: A is an im2col matrix of images with blocks of channels"));
  }
  conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + row(bias))", DType::f32);
  conv.alpha = 0.5;
  conv.beta = 1.0;
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 2, 1, 1, 32})}};
  GuardedConvolution guarded(engine().device(), conv);
  std::map<std::string, registry::KernelPtr> chosen;
  for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) chosen[kernel->metadata().family] = kernel;
  for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
    if (plan::tiling(candidate.kernel->metadata().design).split_k > 1) chosen.insert({"split-K", candidate.kernel});
  }
  EXPECT_EQ(chosen.size(), 3U);
  for (const auto& [name, kernel] : chosen) {
    SCOPED_TRACE(name);
    guarded.upload();
    engine().run(guarded.on_device(), kernel);
    guarded.download();
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }
}

// repacked_conv computes on copies: with rows of channels, or of a window, padded to multiples of 16 bytes, with blocks
// of pixels of a gradient as channels, or with groups merged. Inner kernels of sm80_gemm are used on both targets.
TEST_P(Convolutions, Sm90RepacksTensors) {
  struct Case {
    ConvPass pass;
    DType type;
    Shape shape;
    std::string_view expected;  // a way to repack that must be among the kernels
  };
  const Shape odd{.n = 2, .h = 7, .w = 6, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1};
  const Shape odd_strided{.n = 1, .h = 9, .w = 8, .c = 13, .k = 16, .r = 3, .s = 3, .padding = 1, .stride = 2};
  const Shape stem{.n = 2, .h = 9, .w = 8, .c = 3, .k = 16, .r = 5, .s = 4, .padding = 2, .stride = 2};
  const Shape few{.n = 2, .h = 5, .w = 12, .c = 3, .k = 16, .r = 3, .s = 4, .padding = 1};
  const Shape to_few{.n = 1, .h = 9, .w = 8, .c = 24, .k = 3, .r = 3, .s = 4, .padding = 2, .stride = 2, .dilation = 2};
  const Shape dilated{
      .n = 1, .h = 8, .w = 7, .c = 3, .k = 13, .r = 2, .s = 3, .padding = 3, .stride = 3, .dilation = 2};
  const Shape grouped{.n = 2, .h = 6, .w = 5, .c = 16, .k = 32, .r = 3, .s = 2, .padding = 1, .groups = 4};
  const Shape word{.n = 6, .h = 8, .w = 7, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1, .stride = 2, .dilation = 2};
  for (const auto& [pass, type, shape, expected] : {Case{ConvPass::fprop, DType::f16, odd, "pad8"},
                                                    {ConvPass::wgrad, DType::f32, word, "images4"},
                                                    {ConvPass::wgrad, DType::s8, odd, "images16"},
                                                    {ConvPass::dgrad, DType::f16, odd, "pad8"},
                                                    {ConvPass::wgrad, DType::f16, odd, "pad8"},
                                                    {ConvPass::fprop, DType::s8, odd, "pad16"},
                                                    {ConvPass::dgrad, DType::f16, odd_strided, "pad8"},
                                                    {ConvPass::dgrad, DType::f16, stem, "blocks4x4_pad8"},
                                                    {ConvPass::dgrad, DType::f16, dilated, "blocks3x3_pad8"},
                                                    {ConvPass::dgrad, DType::f16, few, "blocks1x4_pad8"},
                                                    {ConvPass::fprop, DType::f16, to_few, "blocks1x2_pad8"},
                                                    {ConvPass::dgrad, DType::f32, odd_strided, "blocks2x2_pad4"},
                                                    {ConvPass::fprop, DType::f32, stem, "windows4"},
                                                    {ConvPass::fprop, DType::f16, grouped, "groups2"},
                                                    {ConvPass::dgrad, DType::f16, grouped, "groups4"},
                                                    {ConvPass::wgrad, DType::f16, grouped, "groups4"}}) {
    op::Conv2d conv = convolution(pass, shape, type);
    if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
    conv.mode = shape.dilation == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    SCOPED_TRACE(op::to_string(conv));
    // Tensors begin anywhere, and end where reading one byte more is an error.
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = 1, .red_zone = 0});
    const std::vector<registry::KernelPtr> all = repacking_kernels(guarded.on_device());
    const auto kernel = std::ranges::find_if(all, [&, of = expected](const registry::KernelPtr& each) {
      return each->name().starts_with(fmt::format("repacked_{}_sm", of));
    });
    ASSERT_NE(kernel, all.end()) << expected;
    expect_exact_of(*kernel, guarded);
  }
}

TEST_P(Convolutions, Sm90RepacksRandomTensors) {
  for (std::uint64_t seed = 2000; seed < 2012 && !HasFatalFailure(); ++seed) {
    op::Conv2d conv = op::random_convolution(seed, DType::f16);
    if (conv.beta != 0 && conv.pass != ConvPass::fprop) conv.beta = 0;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, op::to_string(conv)));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    for (const registry::KernelPtr& kernel : repacking_kernels(guarded.on_device())) expect_exact_of(kernel, guarded);
  }
}

TEST_P(Convolutions, Sm90RepacksTensorsWithAnEpilogue) {
  const Shape odd{.n = 2, .h = 7, .w = 6, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1};
  const Shape strided{.n = 2, .h = 7, .w = 6, .c = 13, .k = 24, .r = 3, .s = 2, .padding = 1, .stride = 2};
  struct Case {
    ConvPass pass;
    DType type;
    Shape shape;
    std::string_view expected;  // a way to repack that must be among the kernels
  };
  for (const auto& [pass, type, shape, expected] : {Case{ConvPass::fprop, DType::f16, odd, "pad8"},
                                                    {ConvPass::dgrad, DType::f16, strided, "pad8"},
                                                    {ConvPass::wgrad, DType::f16, odd, "pad8"},
                                                    {ConvPass::wgrad, DType::f32, odd, "images4"}}) {
    op::Conv2d conv = convolution(pass, shape, type);
    if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
    conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + row(bias) + column(scale))", DType::f32);
    conv.beta = 1;
    const op::Dims written = conv.written().shape;
    const bool is_filter = pass == ConvPass::wgrad;
    const op::Dims bias{1, is_filter ? written[1] : 1, is_filter ? written[2] : 1, written[3]};
    const op::Dims scale{written[0], is_filter ? 1 : written[1], is_filter ? 1 : written[2], 1};
    conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, bias)},
                    {"scale", op::packed_tensor(6 * kApart, DType::f32, scale)}};
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const std::vector<registry::KernelPtr> all = repacking_kernels(guarded.on_device());
    const auto kernel = std::ranges::find_if(all, [&, of = expected](const registry::KernelPtr& each) {
      return each->name().starts_with(fmt::format("repacked_{}_sm", of));
    });
    ASSERT_NE(kernel, all.end()) << expected;
    guarded.upload();
    engine().run(guarded.on_device(), *kernel);
    guarded.download();
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Convolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
