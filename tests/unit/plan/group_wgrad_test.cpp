// The plans of group_wgrad: the groups and warps of a CTA, the layout of the fragments, the launch, refusals.
#include "tilewright/plan/group_wgrad.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// The filter gradient of 3x3 with a padding of 1, in groups of `channels` channels and `filters` filters.
op::Conv2d convolution(std::int64_t groups, std::int64_t channels, std::int64_t filters) {
  return {.pass = op::ConvPass::wgrad,
          .x = op::packed_tensor(kApart, DType::bf16, {32, 14, 14, groups * channels}),
          .w = op::packed_tensor(2 * kApart, DType::bf16, {groups * filters, 3, 3, channels}),
          .y = op::packed_tensor(3 * kApart, DType::bf16, {32, 14, 14, groups * filters}),
          .c = {},
          .padding = {1, 1},
          .groups = groups};
}

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::view(conv)); }
std::vector<FlatDesign> designs_of(const op::Conv2d& conv) {
  return group_wgrad_designs(op::view(conv), signature_of(conv), kSm80);
}
GroupWgradPlan plan_of(const op::Conv2d& conv, std::size_t number = 0) {
  return plan_group_wgrad(signature_of(conv), designs_of(conv).at(number)).value_or_throw();
}
std::string reason(const op::Conv2d& conv) {
  return check_arguments(plan_of(convolution(32, 16, 16)), op::view(conv)).reason();
}

TEST(GroupWgrad, WarpsShareTheTapsOfLargeGroups) {
  const GroupWgradPlan small = plan_of(convolution(32, 16, 16));
  EXPECT_EQ(small.groups, 4);
  EXPECT_EQ(small.units, 1);
  EXPECT_EQ(small.taps_of_warp(), 9);
  const GroupWgradPlan large = plan_of(convolution(4, 64, 32));
  EXPECT_EQ(large.groups, 1);
  EXPECT_EQ(large.units, 9);
  EXPECT_EQ(large.taps_of_warp(), 1);
  const GroupWgradPlan middle = plan_of(convolution(8, 32, 32));
  EXPECT_EQ(middle.groups, 2);
  EXPECT_EQ(middle.units * middle.taps_of_warp(), 9);
  EXPECT_TRUE(designs_of(convolution(4, 64, 64)).empty()) << "a warp has too many sums for one tap";
  EXPECT_TRUE(designs_of(convolution(4, 64, 72)).empty());
  EXPECT_TRUE(designs_of(convolution(4, 12, 16)).empty());
}

// A warp takes a microsecond for a block of two rows, in which its copies and products follow each other: with one CTA
// of eight warps on an SM, 49x72x72x128 took 205 us, and 57 to 73 us with several CTAs or larger blocks (H200).
TEST(GroupWgrad, SmallBlocksTakeTheLatencyOfAWarp) {
  op::Conv2d conv = convolution(8, 16, 16);
  conv.x = op::packed_tensor(kApart, DType::bf16, {49, 72, 72, 128});
  conv.w = op::packed_tensor(2 * kApart, DType::bf16, {128, 1, 7, 16});
  conv.y = op::packed_tensor(3 * kApart, DType::bf16, {49, 78, 72, 128});
  conv.padding = {3, 3};
  const op::GemmView view = op::view(conv);
  double two_teams = 0, fastest = 1e9;
  for (const FlatDesign& design : group_wgrad_designs(view, op::describe(view), kSm90a)) {
    const Result<GroupWgradPlan> plan = plan_group_wgrad(op::describe(view), design);
    if (!plan) continue;  // too many registers
    const double us = estimate_us(*plan, view);
    if (plan->rows == 2 && plan->positions == 16 && plan->teams == 2) two_teams = us;
    fastest = std::min(fastest, us);
  }
  EXPECT_GT(two_teams, 2 * fastest);
}

TEST(GroupWgrad, FragmentsAreSixteenFiltersOfSixteenPositions) {
  const GroupWgradPlan plan = plan_of(convolution(32, 16, 16));
  const layout::Layout fragments = gradient_fragments(plan);
  const int pixel = plan.gradient_pixel_bytes();
  EXPECT_EQ(pixel, 128 + 16);
  // Lane 8 * i + j addresses row j of matrix i.
  EXPECT_EQ(fragments({3, 0, 0}), 3 * pixel);
  EXPECT_EQ(fragments({8 + 3, 0, 0}), 3 * pixel + 16);
  EXPECT_EQ(fragments({16 + 3, 0, 0}), 11 * pixel);
}

TEST(GroupWgrad, CtasWaitForEachOther) {
  const op::Conv2d conv = convolution(32, 16, 16);
  for (const FlatDesign& design : designs_of(conv)) {
    const Result<GroupWgradPlan> planned = plan_group_wgrad(signature_of(conv), design);
    if (!planned || !check_arguments(*planned, op::view(conv))) continue;
    const GroupWgradPlan& plan = *planned;
    const Launch launched = launch(plan, op::view(conv));
    EXPECT_TRUE(launched.cooperative);
    EXPECT_EQ(launched.grid[0] % 8U, 0U) << "slabs of four groups";
    EXPECT_EQ(launched.block[0], static_cast<unsigned>(plan.threads()));
    EXPECT_EQ(launched.parameters().size(), parameter_layout(plan).size);
    EXPECT_EQ(launched.workspace_bytes(), kWorkspaceCounterBytes + std::size_t{launched.grid[0]} *
                                                                       static_cast<unsigned>(plan.teams) *
                                                                       static_cast<unsigned>(plan.quads()) * 16);
  }
}

TEST(GroupWgrad, RefusesOtherGradients) {
  op::Conv2d conv = convolution(32, 16, 16);
  conv.pass = op::ConvPass::fprop;
  EXPECT_TRUE(designs_of(conv).empty());
  conv = convolution(32, 16, 16);
  conv.y.address += 2;
  EXPECT_EQ(reason(conv), "y is aligned to 1 elements, the kernel needs 8");
  EXPECT_THAT(reason(convolution(32, 8, 16)), HasSubstr("got 32 of 8, 16 and 9"));
  FlatDesign design = designs_of(convolution(32, 16, 16)).front();
  design.stages = 3;
  EXPECT_THAT(plan_group_wgrad(signature_of(convolution(32, 16, 16)), design).reason(),
              HasSubstr("group_wgrad offers a tile"));
}

}  // namespace
}  // namespace tilewright::plan
