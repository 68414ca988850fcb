// The plans of filter gradients in depthwise_conv: vectors, windows, and how rows are divided among threads and CTAs.
#include "tilewright/plan/depthwise_wgrad.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// The gradient of a filter for each of `channels` channels, whose padding keeps the extents of the images.
op::Conv2d gradient(const op::Dims& images, std::int64_t taps_h, std::int64_t taps_w) {
  const std::int64_t channels = images[3];
  return {.pass = op::ConvPass::wgrad,
          .x = op::packed_tensor(kApart, DType::f16, images),
          .w = op::packed_tensor(2 * kApart, DType::f16, {channels, taps_h, taps_w, 1}),
          .y = op::packed_tensor(3 * kApart, DType::f16, images),
          .c = {},
          .padding = {taps_h / 2, taps_w / 2},
          .groups = channels};
}
op::Conv2d small_gradient() { return gradient({2, 7, 10, 72}, 3, 3); }

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::with_longest_lines(op::view(conv))); }

/// The reasons of all designs, or "" for those that compute the gradient.
std::vector<std::string> reasons(const op::Conv2d& conv) {
  std::vector<std::string> all;
  for (const FlatDesign& design : depthwise_wgrad_designs(signature_of(conv), kSm80)) {
    const Result<DepthwiseWgradPlan> plan = plan_depthwise_wgrad(signature_of(conv), design);
    const Support support = plan ? check_arguments(*plan, op::view(conv)) : Support(plan.refusal());
    all.push_back(support ? "" : support.reason());
  }
  return all;
}
std::ptrdiff_t count_supported(const op::Conv2d& conv) { return std::ranges::count(reasons(conv), ""); }

/// The plan of the widest vectors with `taps` adjacent taps and a step of 1, or with taps at any distance (1).
DepthwiseWgradPlan plan_with(const op::Conv2d& conv, int taps, const Target& target) {
  for (const FlatDesign& design : depthwise_wgrad_designs(signature_of(conv), target)) {
    if (design.tile.k == taps && design.instruction.k == 1)
      return plan_depthwise_wgrad(signature_of(conv), design).value_or_throw();
  }
  ADD_FAILURE() << "no design with " << taps << " taps";
  return {};
}

TEST(DepthwiseWgrad, IsABatchOfRowsOfAdjacentChannels) {
  op::Conv2d conv = small_gradient();
  EXPECT_TRUE(is_depthwise_wgrad(op::view(conv)));
  conv.pass = op::ConvPass::dgrad;
  EXPECT_FALSE(is_depthwise_wgrad(op::view(conv)));
  op::Conv2d pairs = small_gradient();  // two channels a group
  pairs.groups = 36;
  pairs.w = op::packed_tensor(2 * kApart, DType::f16, {72, 3, 3, 2});
  EXPECT_FALSE(is_depthwise_wgrad(op::view(pairs)));
  EXPECT_THAT(reasons(pairs), Contains(HasSubstr("one filter of one channel in each group, got 2 filters and 2 ch")));
  op::Conv2d doubled = small_gradient();  // two filters for each channel
  doubled.w = op::packed_tensor(2 * kApart, DType::f16, {144, 3, 3, 1});
  doubled.y = op::packed_tensor(3 * kApart, DType::f16, {2, 7, 10, 144});
  EXPECT_FALSE(is_depthwise_wgrad(op::view(doubled)));
  EXPECT_EQ(count_supported(gradient({2, 7, 10, 72}, 1, 1)), 0) << "the matrix of x is no im2col matrix";
}

TEST(DepthwiseWgrad, WindowsAnyTapsAndSingleElements) {
  const op::Conv2d conv = small_gradient();
  EXPECT_EQ(count_supported(conv), 9);  // windows of 3, 5 and 7 taps and any taps, of 8 and 4 channels, and 1 channel
  op::Conv2d dilated = conv;
  dilated.dilation = {1, 2};
  EXPECT_EQ(count_supported(dilated), 3);
  EXPECT_THAT(reasons(dilated), Contains(HasSubstr("and a step of 1, got taps 2 apart and a step of 1")));
  op::Conv2d misaligned = conv;
  misaligned.x.address += 2;
  EXPECT_EQ(count_supported(misaligned), 1);
  EXPECT_THAT(reasons(misaligned), Contains("B is aligned to 1 elements, the kernel needs 8"));
  misaligned = conv;
  misaligned.y.address += 8;
  EXPECT_EQ(count_supported(misaligned), 5);
  EXPECT_THAT(reasons(misaligned), Contains("A is aligned to 4 elements, the kernel needs 8"));
  EXPECT_THAT(reasons(gradient({2, 7, 10, 71}, 3, 3)), Contains(HasSubstr("71 channels must be a multiple of 8")));
  EXPECT_EQ(count_supported(gradient({2, 7, 10, 71}, 3, 3)), 1);
  const op::Conv2d wide = gradient({1, 2, 2, 32 * 63481}, 3, 3);
  EXPECT_THAT(reasons(wide), Contains("63481 tiles of channels and taps need an arrival counter each, a workspace has "
                                      "63480"));
}

TEST(DepthwiseWgrad, LanesAndPartsShareTheRows) {
  const op::Conv2d small = small_gradient();
  DepthwiseWgradPlan plan = plan_with(small, 3, kSm80);
  EXPECT_EQ(plan.vector, 8);
  EXPECT_EQ(plan.slots(), 256 * 8 / 32);
  Launch launched = launch(plan, op::view(small));
  // 9 vectors of channels are three tiles of 3. 28 threads have each of three rows of the filter, and there are only 14
  // short rows of the output: there is nothing to split.
  EXPECT_EQ(divide(plan, op::view(small)).vectors, 3);
  EXPECT_EQ(divide(plan, op::view(small)).lanes, 28);
  EXPECT_EQ(divide(plan, op::view(small)).segments, 14);
  EXPECT_EQ(launched.grid[0], 3U);
  EXPECT_EQ(launched.dynamic_smem_bytes, 3U * 8U * 4U * 128U);
  EXPECT_EQ(launched.workspace_bytes(), 0U);
  EXPECT_EQ(launched.parameters().size(), parameter_layout(plan).size);

  const op::Conv2d large = gradient({32, 14, 14, 384}, 7, 7);
  plan = plan_with(large, 7, kSm90);
  const DepthwiseWgradDivision division = divide(plan, op::view(large));
  EXPECT_EQ(division.lanes, 9);
  EXPECT_EQ(division.parts, 11);  // of 12 tiles: a CTA for each of 132 SMs
  EXPECT_EQ(division.segments_of_part, 41);
  launched = launch(plan, op::view(large));
  EXPECT_EQ(launched.grid[0], 132U);
  EXPECT_EQ(launched.workspace_bytes(), kWorkspaceCounterBytes + 132U * 49U * 32U * 4U);
  EXPECT_LT(estimate_us(plan, op::view(large)), estimate_us(plan_with(large, 1, kSm90), op::view(large)));

  op::Conv2d scaled = large;
  scaled.alpha = 0.0;
  EXPECT_EQ(divide(plan, op::view(scaled)).segments, 0) << "x and y are not read";
  EXPECT_EQ(divide(plan, op::view(scaled)).parts, 1);
}

TEST(DepthwiseWgrad, FewLongRowsAreDividedIntoSegments) {
  const op::Conv2d wide = gradient({4, 20, 500, 24}, 3, 3);
  const DepthwiseWgradDivision division = divide(plan_with(wide, 3, kSm90), op::view(wide));
  EXPECT_GT(division.segments_of_row, 1);
  EXPECT_EQ(division.segments, 80 * division.segments_of_row);
  EXPECT_GE(division.positions_of_segment * division.segments_of_row, 500);
  EXPECT_LT(division.positions_of_segment * (division.segments_of_row - 1), 500);
  EXPECT_GE(division.segments_of_part * division.parts, division.segments);
  const op::Conv2d many = gradient({256, 28, 28, 192}, 3, 3);
  EXPECT_EQ(divide(plan_with(many, 3, kSm90), op::view(many)).segments_of_row, 1);
}

TEST(DepthwiseWgrad, LargeFiltersHaveSeveralTiles) {
  const op::Conv2d conv = gradient({1, 40, 40, 32}, 33, 9);
  const DepthwiseWgradDivision division = divide(plan_with(conv, 5, kSm80), op::view(conv));
  EXPECT_EQ(division.tap_groups, 2);
  EXPECT_EQ(division.units, 66);
  EXPECT_EQ(division.unit_tiles, 3);  // half of the 64 slots at most
  EXPECT_EQ(division.units_of_tile, 22);
  EXPECT_EQ(division.lanes, 2);
}

TEST(DepthwiseWgrad, RefusesDesignsAndEpilogues) {
  const op::Conv2d conv = small_gradient();
  const auto reason = [&](const auto& change) {
    FlatDesign design = depthwise_wgrad_designs(signature_of(conv), kSm80).front();
    op::GemmSignature signature = signature_of(conv);
    change(design, signature);
    return plan_depthwise_wgrad(signature, design).reason();
  };
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.stages = 2; }), HasSubstr("depthwise_conv offers a tile"));
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.tile.k = 9; }),
            "the taps of the code must be from 1 to 7, got 9");
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.instruction.k = 3; }), "the step must be from 1 to 2, got 3");
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.tile.m = 32; }), HasSubstr("does not have 32 threads"));
  EXPECT_THAT(reason([](FlatDesign& design, auto&) {
                design.warps_m = 16;
                design.tile = {128, 32, 7};
              }),
              HasSubstr("need 57344 bytes of shared memory, of 49152"));
  EXPECT_THAT(reason([](auto&, op::GemmSignature& signature) { signature.b.im2col = op::Im2colAccess::none; }),
              HasSubstr("computes one row times an im2col matrix"));
  EXPECT_EQ(
      reason([](auto&, op::GemmSignature& signature) { signature.math = op::MathOperation::multiply_add_fast_f16; }),
      "multiplies on CUDA cores, got multiply_add_fast_f16");
}

}  // namespace
}  // namespace tilewright::plan
