// The plans of depthwise_conv: what is a depthwise convolution, vectors, windows, and the launch.
#include "tilewright/plan/depthwise_conv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// 3x3 with a padding of 1 and a filter for each of 72 channels.
op::Conv2d convolution() {
  return {.x = op::packed_tensor(kApart, DType::f16, {2, 7, 10, 72}),
          .w = op::packed_tensor(2 * kApart, DType::f16, {72, 3, 3, 1}),
          .y = op::packed_tensor(3 * kApart, DType::f16, {2, 7, 10, 72}),
          .c = {},
          .padding = {1, 1},
          .groups = 72};
}

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::with_longest_lines(op::view(conv))); }

/// The reasons of all designs, or "" for those that compute the convolution.
std::vector<std::string> reasons(const op::Conv2d& conv) {
  std::vector<std::string> all;
  for (const FlatDesign& design : depthwise_conv_designs(signature_of(conv), kSm80)) {
    const Result<DepthwiseConvPlan> plan = plan_depthwise_conv(signature_of(conv), design);
    const Support support = plan ? check_arguments(*plan, op::view(conv)) : Support(plan.refusal());
    all.push_back(support ? "" : support.reason());
  }
  return all;
}
std::size_t count_supported(const op::Conv2d& conv) {
  const std::vector<std::string> all = reasons(conv);
  return static_cast<std::size_t>(std::ranges::count(all, ""));
}

TEST(DepthwiseConv, IsABatchOfColumnsOfAdjacentChannels) {
  const op::Conv2d conv = convolution();
  EXPECT_TRUE(is_depthwise_conv(op::view(conv)));
  op::Conv2d gradient = conv;
  gradient.pass = op::ConvPass::dgrad;
  EXPECT_TRUE(is_depthwise_conv(op::view(gradient)));
  gradient.pass = op::ConvPass::wgrad;
  EXPECT_FALSE(is_depthwise_conv(op::view(gradient)));
  op::Conv2d pairs = conv;  // two channels a group
  pairs.groups = 36;
  pairs.w = op::packed_tensor(2 * kApart, DType::f16, {72, 3, 3, 2});
  EXPECT_FALSE(is_depthwise_conv(op::view(pairs)));
  op::Conv2d doubled = conv;  // two filters for each channel
  doubled.w = op::packed_tensor(2 * kApart, DType::f16, {144, 3, 3, 1});
  doubled.y = op::packed_tensor(3 * kApart, DType::f16, {2, 7, 10, 144});
  EXPECT_FALSE(is_depthwise_conv(op::view(doubled)));
}

TEST(DepthwiseConv, AWindowOfItsOwnAnyWindowAndSingleElements) {
  const op::Conv2d conv = convolution();
  EXPECT_EQ(count_supported(conv), 8U);
  op::Conv2d dilated = conv;
  dilated.dilation = {1, 2};
  EXPECT_EQ(count_supported(dilated), 2U);
  op::Conv2d misaligned = conv;
  misaligned.x.address += 2;
  EXPECT_EQ(count_supported(misaligned), 1U);
  EXPECT_THAT(reasons(misaligned), testing::Contains(HasSubstr("A is aligned to 1 elements, the kernel needs 8")));
  EXPECT_THAT(reasons(conv), testing::Contains(HasSubstr("the code has 5 adjacent taps along the width")));
  op::Conv2d odd = conv;
  odd.groups = 71;
  odd.x = op::packed_tensor(kApart, DType::f16, {2, 7, 10, 71});
  odd.w = op::packed_tensor(2 * kApart, DType::f16, {71, 3, 3, 1});
  odd.y = op::packed_tensor(3 * kApart, DType::f16, {2, 7, 10, 71});
  EXPECT_THAT(reasons(odd), testing::Contains(HasSubstr("the 71 channels must be a multiple of 8")));
  op::Conv2d large = conv;
  large.w = op::packed_tensor(2 * kApart, DType::f16, {72, 15, 15, 1});
  EXPECT_EQ(count_supported(large), 0U);
  EXPECT_THAT(reasons(large), testing::Contains(HasSubstr("need 57600 bytes of shared memory, of 49152")));
}

TEST(DepthwiseConv, CtasTakeBandsOfPositionsOfTheirChannels) {
  const op::Conv2d conv = convolution();
  const DepthwiseConvPlan plan =
      plan_depthwise_conv(signature_of(conv), depthwise_conv_designs(signature_of(conv), kSm80).front())
          .value_or_throw();
  EXPECT_EQ(plan.vector, 8);
  EXPECT_EQ(plan.band(), 128 * 8 / 64);
  const Launch launched = launch(plan, op::view(conv));
  // 14 rows of three groups of four positions, in bands of 16, for two tiles of 64 channels.
  EXPECT_EQ(launched.grid[0], 3U * 2U);
  EXPECT_EQ(launched.dynamic_smem_bytes, 9U * 64U * 4U);
  EXPECT_EQ(launched.parameters().size(), parameter_layout(plan).size);
}

/// The plan of the first design whose window slides with this step.
DepthwiseConvPlan sliding_plan(const op::Conv2d& conv, int step) {
  for (const FlatDesign& design : depthwise_conv_designs(signature_of(conv), kSm80)) {
    if (design.stages == 2 && design.instruction.k == step)
      return plan_depthwise_conv(signature_of(conv), design).value_or_throw();
  }
  throw InternalError("no design");
}

TEST(DepthwiseConv, AWindowThatSlidesKeepsTheSumsOfSeveralRows) {
  op::Conv2d conv = convolution();
  const DepthwiseConvPlan adjacent = sliding_plan(conv, 1), strided = sliding_plan(conv, 2);
  EXPECT_EQ(adjacent.sums(), 3);
  EXPECT_EQ(adjacent.rows_ahead, 3);
  EXPECT_EQ(strided.sums(), 2);
  EXPECT_EQ(strided.rows_ahead, 2);
  EXPECT_EQ(check_arguments(strided, op::view(conv)).reason(),
            "the code has 3 adjacent taps along the height and a step of 2, got 3 taps and a step of 1");
  // With one row for each thread, two images of 7 rows have 42 groups of four positions, in 6 bands of 8. Higher images
  // keep three CTAs busy on each of 108 SMs.
  EXPECT_EQ(launch(adjacent, op::view(conv)).grid[0], 2U * 6U);
  conv.x = op::packed_tensor(kApart, DType::f16, {16, 112, 112, 72});
  conv.y = op::packed_tensor(3 * kApart, DType::f16, {16, 112, 112, 72});
  EXPECT_EQ(launch(adjacent, op::view(conv)).grid[0], 2U * 162U);
  EXPECT_LT(
      estimate_us(adjacent, op::view(conv)),
      estimate_us(plan_depthwise_conv(signature_of(conv), depthwise_conv_designs(signature_of(conv), kSm80).front())
                      .value_or_throw(),
                  op::view(conv)));
}

TEST(DepthwiseConv, RefusesDesignsAndEpilogues) {
  const op::Conv2d conv = convolution();
  const auto reason = [&](const auto& change) {
    FlatDesign design = depthwise_conv_designs(signature_of(conv), kSm80).front();
    op::GemmSignature signature = signature_of(conv);
    change(design, signature);
    return plan_depthwise_conv(signature, design).reason();
  };
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.stages = 3; }),
            "stages are 1, or 2 for windows of several taps that slide, got 3 and 3 taps");
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.stages = 2; }),
              HasSubstr("over 4 positions of 8 channels needs about 252 registers, of 168"));
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.warps_n = 2; }), HasSubstr("depthwise_conv offers a tile"));
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.tile.k = 9; }),
            "the taps of the code must be from 1 to 7, got 9");
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.tile.m = 32; }), HasSubstr("do not compute 32 positions"));
  EXPECT_THAT(reason([](auto&, op::GemmSignature& signature) { signature.a.im2col = op::Im2colAccess::none; }),
              HasSubstr("computes an im2col matrix times"));
  EXPECT_EQ(
      reason([](auto&, op::GemmSignature& signature) { signature.math = op::MathOperation::multiply_add_fast_f16; }),
      "multiplies on CUDA cores, got multiply_add_fast_f16");
}

}  // namespace
}  // namespace tilewright::plan
