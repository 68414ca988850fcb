// stem_conv and stem_wgrad: convolutions of images of few channels, and their filter gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/convolutions.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

class StemConvolutions : public Convolutions {
 protected:
  void SetUp() override {
    Convolutions::SetUp();
    if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  }
};

// Each convolution is run by one of its designs, and the next convolution by another one.
TEST_P(StemConvolutions, AreExact) {
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
    const op::Conv2d conv = numbered_convolution(ConvPass::fprop, shape, number);
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = number == 2 ? 1 : 0, .red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "stem_conv");
    ASSERT_GE(kernels.size(), 2U);
    expect_exact_of(kernels[number * 3 % kernels.size()], guarded);
    ++number;
  }
}

TEST_P(StemConvolutions, HaveEpilogues) {
  op::Conv2d conv =
      convolution(ConvPass::fprop,
                  {.n = 1, .h = 12, .w = 24, .c = 3, .k = 48, .r = 3, .s = 3, .padding = 1, .stride = 2}, DType::f16);
  conv.epilogue = *op::parse_epilogue("let t = alpha * acc + row(bias) + residual; D = relu(t); aux = t", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 48})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f16, conv.y.shape)},
                  {"aux", op::packed_tensor(7 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
  const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "stem_conv");
  ASSERT_FALSE(kernels.empty());
  expect_equal_to_reference(kernels.front(), guarded);
  conv.epilogue = *op::parse_epilogue("D = acc; row(sums) = sum(acc)", DType::f32);
  conv.tensors = {{"sums", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 48})}};
  EXPECT_TRUE(kernels_of_family(conv, "stem_conv").empty());
}

// The rows of a window are filled up with pixels outside it, which must not reach the sums.
TEST_P(StemConvolutions, IgnoreInfinitiesOutsideTheWindow) {
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
    set_addresses(conv, x, w, y);
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(conv, "stem_conv");
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

TEST_P(StemConvolutions, OfNetworksAreComputedByTheirFamilyFirst) {
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
  EXPECT_TRUE(kernels_of_family(dilated, "stem_conv").empty());
}

// Each convolution is run by one of its designs, and the next convolution by another one.
TEST_P(StemConvolutions, FilterGradientsAreExact) {
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
    const op::Conv2d conv = numbered_convolution(ConvPass::wgrad, shape, number);
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "stem_wgrad");
    ASSERT_GE(kernels.size(), 2U);
    for (const std::size_t which : {number * 3, number * 5 + 1})
      expect_exact_in_two_runs_of(kernels[which % kernels.size()], guarded);
    ++number;
  }
  expect_exact_without_product(convolution(ConvPass::wgrad, shapes[3], DType::f16), "stem_wgrad");
  op::Conv2d conv = convolution(ConvPass::wgrad, shapes[3], DType::f16);
  conv.alpha = 2;
  conv.beta = 1;
  conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + column(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {72, 1, 1, 1})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.w.shape)}};
  GuardedConvolution with_epilogue(engine().device(), conv, {.red_zone = 0});
  expect_equal_to_reference(kernels_of_family(with_epilogue.on_device(), "stem_wgrad").front(), with_epilogue);
  conv = convolution(ConvPass::wgrad, shapes[5], DType::f16);
  conv.y.address += 2;
  EXPECT_TRUE(kernels_of_family(conv, "stem_wgrad").empty()) << "y is not aligned to vectors";
}

// Positions behind the last one of a row have windows of pixels, too, which must not reach the sums.
TEST_P(StemConvolutions, FilterGradientsIgnoreInfinitiesOutsideTheWindow) {
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
    set_addresses(conv, x, w, y);
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(conv, "stem_wgrad");
    ASSERT_FALSE(kernels.empty());
    engine().run(conv, kernels.front());
    for (const std::uint16_t sum : w) EXPECT_EQ(sum, 0x4500) << "stride " << stride;  // 5
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, StemConvolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
