// group_conv and group_wgrad: convolutions in groups of 8 to 64 channels, and their filter gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/convolutions.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

class GroupConvolutions : public Convolutions {
 protected:
  void SetUp() override {
    Convolutions::SetUp();
    if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  }
};

// Each convolution is run by two of its designs.
TEST_P(GroupConvolutions, AreExact) {
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
      const op::Conv2d conv = numbered_convolution(pass, shape, number);
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
      const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "group_conv");
      ASSERT_GE(kernels.size(), 2U);
      for (const std::size_t which : {number * 3, number * 5 + 1})
        expect_exact_of(kernels[which % kernels.size()], guarded);
      ++number;
    }
  }
  expect_exact_without_product(convolution(ConvPass::fprop, shapes[0], DType::f16), "group_conv");
  op::Conv2d conv = convolution(ConvPass::fprop, shapes[1], DType::f16);
  conv.epilogue = *op::parse_epilogue("let t = alpha * acc + row(bias) + residual; D = relu(t); aux = t", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 64})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f16, conv.y.shape)},
                  {"aux", op::packed_tensor(7 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution with_epilogue(engine().device(), conv, {.red_zone = 0});
  expect_equal_to_reference(kernels_of_family(with_epilogue.on_device(), "group_conv").front(), with_epilogue);
  conv = convolution(ConvPass::fprop, shapes[0], DType::f16);
  conv.x.address += 2;
  EXPECT_TRUE(kernels_of_family(conv, "group_conv").empty()) << "x is not aligned to vectors";
}

TEST_P(GroupConvolutions, FilterGradientsAreExact) {
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
    const op::Conv2d conv = numbered_convolution(ConvPass::wgrad, shape, number);
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "group_wgrad");
    ASSERT_GE(kernels.size(), 2U);
    for (const std::size_t which : {number * 3, number * 5 + 1})
      expect_exact_in_two_runs_of(kernels[which % kernels.size()], guarded);
    ++number;
  }
  expect_exact_without_product(convolution(ConvPass::wgrad, shapes[0], DType::f16), "group_wgrad");
  op::Conv2d conv = convolution(ConvPass::wgrad, shapes[0], DType::f16);
  conv.alpha = 2;
  conv.beta = 1;
  conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + column(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {64, 1, 1, 1})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.w.shape)}};
  GuardedConvolution with_epilogue(engine().device(), conv, {.red_zone = 0});
  const std::vector<registry::KernelPtr> kernels = kernels_of_family(with_epilogue.on_device(), "group_wgrad");
  ASSERT_FALSE(kernels.empty());
  expect_equal_to_reference(kernels.front(), with_epilogue);
  conv = convolution(ConvPass::wgrad, shapes[0], DType::f16);
  conv.y.address += 2;
  EXPECT_TRUE(kernels_of_family(conv, "group_wgrad").empty()) << "y is not aligned to vectors";
}

// Positions behind the last one of a row meet pixels, too, which must not reach the sums; nor must those that the
// fragments of filters with an odd number of octets are filled up with.
TEST_P(GroupConvolutions, IgnoreInfinitiesOutsideTheWindow) {
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
    set_addresses(conv, x, w, y);
    const std::vector<registry::KernelPtr> kernels =
        kernels_of_family(conv, pass == ConvPass::fprop ? "group_conv" : "group_wgrad");
    ASSERT_FALSE(kernels.empty());
    engine().run(conv, kernels.front());
    for (std::size_t i = 0; i < written.size(); ++i) {
      const bool is_infinite = pass == ConvPass::fprop && i < kGroups * kFilters;  // of the first pixel
      const std::uint16_t sum = pass == ConvPass::fprop ? 0x4e00 : 0x4500;         // 24 and 5
      EXPECT_EQ(written[i], is_infinite ? kInfinity : sum) << op::name(pass) << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupConvolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
