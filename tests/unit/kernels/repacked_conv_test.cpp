// When tensors of convolutions are repacked, and what the kernels that do so say about themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::kernels {
namespace {

using op::ConvPass;
using testing::HasSubstr;

struct Shape {
  std::int64_t n, image, c, k, taps, stride = 1, groups = 1;
};
op::Conv2d convolution(ConvPass pass, const Shape& shape, DType type = DType::f16) {
  op::Conv2d conv;
  conv.pass = pass;
  conv.groups = shape.groups;
  conv.stride = {shape.stride, shape.stride};
  conv.padding = {shape.taps / 2, shape.taps / 2};
  const std::int64_t positions =
      op::conv_positions(shape.image, shape.taps / 2, shape.taps / 2, shape.taps, shape.stride, 1);
  conv.x = op::packed_tensor(std::uint64_t{1} << 40, type, {shape.n, shape.image, shape.image, shape.c});
  conv.w = op::packed_tensor(std::uint64_t{2} << 40, type, {shape.k, shape.taps, shape.taps, shape.c / shape.groups});
  conv.y = op::packed_tensor(std::uint64_t{3} << 40, type, {shape.n, positions, positions, shape.k});
  if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
  conv.epilogue = op::linear_combination(DType::f32);
  return conv;
}

/// The kernel with the shortest estimate.
registry::KernelPtr best_of(const op::Conv2d& conv, const Target& target = plan::kSm90) {
  registry::Discovery found;
  for (const auto& provider : make_providers()) {
    if (provider->runs_on(target)) provider->discover(conv, target, found);
  }
  return *std::ranges::min_element(
      found.kernels, {}, [&](const registry::KernelPtr& kernel) { return kernel->estimate_us(op::Problem(conv)); });
}

TEST(RepackedConv, IsTheFirstWhereTmaCannotLoadTheTensors) {
  const auto first = [](ConvPass pass, const Shape& shape, DType type = DType::f16) {
    return best_of(convolution(pass, shape, type))->name();
  };
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad})
    EXPECT_THAT(first(pass, {.n = 54, .image = 24, .c = 507, .k = 65, .taps = 5}), HasSubstr("repacked_pad"));
  // Gradients of images with few channels.
  EXPECT_THAT(first(ConvPass::dgrad, {.n = 32, .image = 224, .c = 3, .k = 64, .taps = 7, .stride = 2}),
              HasSubstr("repacked_blocks"));
  EXPECT_THAT(first(ConvPass::fprop, {.n = 8, .image = 224, .c = 3, .k = 192, .taps = 7}),
              HasSubstr("repacked_windows"));
  EXPECT_THAT(first(ConvPass::fprop, {.n = 8, .image = 128, .c = 64, .k = 3, .taps = 5}), HasSubstr("repacked_blocks"));
  EXPECT_THAT(first(ConvPass::fprop, {.n = 64, .image = 56, .c = 64, .k = 64, .taps = 3, .groups = 16}, DType::f32),
              HasSubstr("repacked_groups"));
}

TEST(RepackedConv, IsNotTheFirstWhereOthersLoadThem) {
  for (const Shape& shape : {Shape{.n = 32, .image = 28, .c = 128, .k = 128, .taps = 3},
                             {.n = 32, .image = 28, .c = 256, .k = 256, .taps = 3, .stride = 2},
                             {.n = 1, .image = 5, .c = 13, .k = 21, .taps = 3}}) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad})
      EXPECT_NE(best_of(convolution(pass, shape))->metadata().family, "repacked_conv") << shape.c << op::name(pass);
  }
  // sm90_gemm computes strided gradients in tf32 and repacks only the filter.
  const Shape strided{.n = 64, .image = 32, .c = 128, .k = 256, .taps = 3, .stride = 2};
  EXPECT_EQ(best_of(convolution(ConvPass::dgrad, strided, DType::f32))->metadata().family, "sm90_gemm");
}

TEST(RepackedConv, KernelsSayWhatTheyCopy) {
  const op::Conv2d conv = convolution(ConvPass::dgrad, {.n = 32, .image = 64, .c = 3, .k = 61, .taps = 7, .stride = 2});
  const registry::KernelPtr kernel = best_of(conv);
  ASSERT_EQ(kernel->metadata().family, "repacked_conv");
  const std::vector<std::string> remarks = kernel->remarks(conv);
  ASSERT_EQ(remarks.size(), 4U);
  EXPECT_THAT(remarks[0],
              HasSubstr("y is copied from rows of 122 to rows of 128 bytes first: 4194304 bytes, estimated "));
  EXPECT_THAT(remarks[1], HasSubstr("w is copied to the "));
  EXPECT_THAT(remarks[2], HasSubstr("x is copied from rows of "));
  EXPECT_THAT(remarks[3], HasSubstr("the fprop of the copies is computed by sm"));

  // The copies are behind the counters of the workspace. The product is between the copies of inputs and the output.
  EXPECT_GE(kernel->workspace_bytes(conv), plan::kWorkspaceCounterBytes + 4194304);
  const std::vector<registry::LaunchStep> steps = kernel->launch_steps(conv, std::uint64_t{1} << 45);
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[2].kernel, 0U);
  for (const std::string& suffix : kernel->symbol_suffixes())
    EXPECT_THAT(kernel->source().text, HasSubstr(suffix + "(const"));
}

TEST(RepackedConv, OtherProblemsAreRefused) {
  const Shape odd{.n = 54, .image = 24, .c = 507, .k = 64, .taps = 5};
  const registry::KernelPtr kernel = best_of(convolution(ConvPass::wgrad, odd));
  ASSERT_EQ(kernel->metadata().family, "repacked_conv");
  EXPECT_TRUE(kernel->supports(convolution(ConvPass::wgrad, {.n = 3, .image = 9, .c = 509, .k = 64, .taps = 5})));
  EXPECT_FALSE(kernel->supports(convolution(ConvPass::wgrad, {.n = 54, .image = 24, .c = 512, .k = 64, .taps = 5})));
  EXPECT_FALSE(kernel->supports(convolution(ConvPass::fprop, odd)));
  // The copy to x stores several pixels of 3 channels at once.
  const op::Conv2d stem = convolution(ConvPass::dgrad, {.n = 32, .image = 64, .c = 3, .k = 64, .taps = 7, .stride = 2});
  op::Conv2d misaligned = stem;
  misaligned.x.address += 2;
  EXPECT_FALSE(best_of(stem)->supports(misaligned));
  const auto provider = make_repacked_conv_provider();
  EXPECT_THAT(provider->make(kernel->metadata().signature, kernel->metadata().design).reason(),
              HasSubstr("its kernels are found by discovery only"));
  registry::Discovery found;
  provider->discover(op::Gemm{}, plan::kSm90, found);
  provider->discover(convolution(ConvPass::fprop, {.n = 2, .image = 9, .c = 13, .k = 13, .taps = 1}), plan::kSm90,
                     found);
  ASSERT_EQ(found.refused.size(), 2U);
  EXPECT_EQ(found.refused[0].reason(), "repacks tensors of convolutions only, but the problem is a gemm");
  EXPECT_EQ(found.refused[1].reason(), "the convolution is a GEMM of strided matrices");
}

}  // namespace
}  // namespace tilewright::kernels
