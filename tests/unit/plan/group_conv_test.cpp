// The plans of group_conv: the groups of a CTA, the order of the filters, the launch, refusals.
#include "tilewright/plan/group_conv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// 3x3 with a padding of 1, in groups of `channels` channels and `filters` filters.
op::Conv2d convolution(std::int64_t groups, std::int64_t channels, std::int64_t filters) {
  return {.x = op::packed_tensor(kApart, DType::bf16, {32, 14, 14, groups * channels}),
          .w = op::packed_tensor(2 * kApart, DType::bf16, {groups * filters, 3, 3, channels}),
          .y = op::packed_tensor(3 * kApart, DType::bf16, {32, 14, 14, groups * filters}),
          .c = {},
          .padding = {1, 1},
          .groups = groups};
}

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::view(conv)); }
std::vector<FlatDesign> designs_of(const op::Conv2d& conv) {
  return group_conv_designs(op::view(conv), signature_of(conv), kSm80);
}
GroupConvPlan plan_of(const op::Conv2d& conv, std::size_t number = 0) {
  return plan_group_conv(signature_of(conv), designs_of(conv).at(number)).value_or_throw();
}
std::string reason(const op::Conv2d& conv) {
  return check_arguments(plan_of(convolution(32, 16, 16)), op::view(conv)).reason();
}

TEST(GroupConv, CtasHave64AdjacentChannels) {
  EXPECT_EQ(plan_of(convolution(32, 16, 16)).groups_of_cta, 4);
  EXPECT_EQ(plan_of(convolution(32, 8, 8)).groups_of_cta, 8);
  EXPECT_EQ(plan_of(convolution(6, 16, 16)).groups_of_cta, 2) << "the groups of a CTA divide those of the convolution";
  EXPECT_EQ(plan_of(convolution(2, 64, 32)).groups_of_cta, 1);
  EXPECT_EQ(plan_of(convolution(32, 16, 16)).pixel_bytes(), 128 + 16);
  EXPECT_TRUE(designs_of(convolution(2, 72, 64)).empty());
  EXPECT_EQ(plan_of(convolution(2, 64, 72)).tile.n, 48) << "two tiles of filters";
  EXPECT_EQ(plan_of(convolution(1, 48, 64)).groups_of_cta, 1);
  EXPECT_TRUE(designs_of(convolution(1, 64, 64)).empty()) << "TMA loads wide boxes";
  EXPECT_TRUE(designs_of(convolution(2, 12, 16)).empty());
}

TEST(GroupConv, EachLaneHasAdjacentColumns) {
  for (const std::int64_t count : {16, 32, 48, 64}) {
    const GroupConvPlan plan = plan_of(convolution(2, 16, count));
    const layout::Layout lines = filter_lines(plan);
    const int line = plan.filter_line_bytes(), adjacent = plan.lane_columns();
    EXPECT_EQ(adjacent, count % 32 == 0 ? 8 : 4);
    std::set<std::int64_t> places;
    for (int filter = 0; filter < plan.tile.n; ++filter) {
      const std::int64_t place = lines(filter) / line;
      places.insert(place);
      // Lane t of four has columns 2t and 2t + 1 of each instruction.
      EXPECT_EQ(place % 8 / 2, filter / adjacent % 4);
      EXPECT_EQ(place / (4 * adjacent), filter / (4 * adjacent));
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(count));
  }
}

TEST(GroupConv, CtasTakeBlocksOfTheirGroups) {
  const op::Conv2d conv = convolution(32, 16, 16);
  for (std::size_t i = 0; i < designs_of(conv).size(); ++i) {
    const GroupConvPlan plan = plan_of(conv, i);
    ASSERT_TRUE(check_arguments(plan, op::view(conv)));
    const Launch launched = launch(plan, op::view(conv));
    EXPECT_EQ(launched.grid[0] % 8, 0U) << "slabs of four groups";
    EXPECT_EQ(launched.block[0], 256U);
    EXPECT_EQ(launched.parameters().size(), gemm_parameter_layout(plan).size);
    EXPECT_GT(estimate_us(plan, op::view(conv)), 0);
  }
  EXPECT_EQ(to_string(sum_order(plan_of(conv), op::view(conv))), "mma.sync 16x8x16 over 144");
}

TEST(GroupConv, RefusesOtherConvolutions) {
  op::Conv2d conv = convolution(32, 16, 16);
  conv.pass = op::ConvPass::wgrad;
  EXPECT_TRUE(designs_of(conv).empty());
  conv = convolution(32, 16, 16);
  conv.x.address += 2;
  EXPECT_EQ(reason(conv), "x is aligned to 1 elements, the kernel needs 8");
  EXPECT_THAT(reason(convolution(32, 8, 16)), HasSubstr("4 groups of 16 channels each, got 32 groups of 8"));
  EXPECT_THAT(reason(convolution(32, 16, 32)), HasSubstr("up to 16 columns, got 9 for 32"));
  FlatDesign design = designs_of(convolution(32, 16, 16)).front();
  design.stages = 3;
  EXPECT_THAT(plan_group_conv(signature_of(convolution(32, 16, 16)), design).reason(),
              HasSubstr("group_conv offers a tile"));
}

}  // namespace
}  // namespace tilewright::plan
