// The plans of reduce_split_k: threads, vectors, parameters and limits.
#include "tilewright/plan/reduce_split_k.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::plan {
namespace {

using op::MatrixLayout;
constexpr auto kRow = MatrixLayout::row_major;
constexpr auto kColumn = MatrixLayout::column_major;

op::ReduceSplitK problem(MatrixLayout parts = kRow, MatrixLayout d = kRow, std::int64_t m = 256, std::int64_t n = 384,
                         std::int64_t count = 4, const std::string& epilogue = "D = alpha * acc + beta * C") {
  op::ReduceSplitK reduction;
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  reduction.parts = op::batched(op::matrix(kApart, DType::f32, m, n, parts), count);
  reduction.epilogue = op::parse_epilogue(epilogue, DType::f32, {}).value_or_throw();
  reduction.d = op::matrix(2 * kApart, DType::f16, m, reduction.d_columns(), d);
  for (const op::EpilogueTensor& each : op::epilogue_tensors(reduction.epilogue)) {
    reduction.tensors.push_back(
        {std::string(each.label),
         op::matrix(3 * kApart, DType::f32, each.broadcast.along_m ? m : 1, each.broadcast.along_n ? n : 1)});
  }
  return reduction;
}

ReduceSplitKPlan plan_of(const op::ReduceSplitK& reduction, const FlatDesign& design) {
  return plan_reduce_split_k(op::describe(reduction), design).value_or_throw();
}

std::vector<FlatDesign> designs_for(const op::ReduceSplitK& reduction) {
  return reduce_split_k_designs(op::describe(reduction), kSm80);
}

std::string reason(FlatDesign design, const op::ReduceSplitK& reduction = problem()) {
  return plan_reduce_split_k(op::describe(reduction), design).reason();
}

TEST(ReduceSplitKPlan, EveryDesignIsPlanned) {
  for (const auto parts : {kRow, kColumn}) {
    for (const auto d : {kRow, kColumn}) {
      const op::ReduceSplitK reduction = problem(parts, d);
      ASSERT_FALSE(designs_for(reduction).empty());
      for (const FlatDesign& design : designs_for(reduction)) {
        const ReduceSplitKPlan plan = plan_of(reduction, design);
        EXPECT_TRUE(check_arguments(plan, reduction));
        EXPECT_EQ(plan.is_transposed, d == kColumn);
        EXPECT_EQ(plan.operands.d.layout, kRow);
        EXPECT_EQ(plan.threads(), 128);
        EXPECT_GT(estimate_us(plan, reduction), 0.0);
      }
    }
  }
}

// Threads and vectors cover a band of the tile once.
TEST(ReduceSplitKPlan, ThreadsCoverABand) {
  for (const auto parts : {kRow, kColumn}) {
    const op::ReduceSplitK reduction = problem(parts);
    for (const FlatDesign& design : designs_for(reduction)) {
      const ReduceSplitKPlan plan = plan_of(reduction, design);
      const layout::Layout threads = thread_coordinates(plan);
      std::set<std::pair<std::int64_t, std::int64_t>> covered;
      for (int thread = 0; thread < plan.threads(); ++thread) {
        const layout::IntTuple at = coordinate(threads, thread);
        for (int i = 0; i < plan.vector; ++i) covered.emplace(at[0].value(), at[1].value() + i);
      }
      EXPECT_EQ(static_cast<int>(covered.size()), plan.threads_m * plan.tile.n);
      EXPECT_EQ(*covered.rbegin(), (std::pair<std::int64_t, std::int64_t>{plan.threads_m - 1, plan.tile.n - 1}));
      // Consecutive threads load consecutive addresses of a part.
      const layout::IntTuple first = coordinate(threads, 0), second = coordinate(threads, 1);
      EXPECT_EQ(second[0].value() - first[0].value(), parts == kColumn ? 1 : 0);
      EXPECT_EQ(second[1].value() - first[1].value(), parts == kColumn ? 0 : plan.vector);
    }
  }
}

TEST(ReduceSplitKPlan, VectorsFollowTheAlignment) {
  EXPECT_EQ(plan_of(problem(), designs_for(problem()).front()).part_vector, 4) << "16 bytes of f32";
  const op::ReduceSplitK odd = problem(kRow, kRow, 256, 383);
  EXPECT_EQ(plan_of(odd, designs_for(odd).front()).vector, 1);
  const op::ReduceSplitK across = problem(kColumn);
  const ReduceSplitKPlan plan = plan_of(across, designs_for(across).front());
  EXPECT_EQ(plan.vector, 4) << "the parts lie across the rows of D";
  EXPECT_EQ(plan.part_vector, 1);
  const op::ReduceSplitK gated = problem(kRow, kRow, 256, 382, 4, "D = swiglu(acc)");
  for (const FlatDesign& design : designs_for(gated)) EXPECT_GE(plan_of(gated, design).vector, 2);
}

TEST(ReduceSplitKPlan, RefusesWithTheNumber) {
  const FlatDesign good = designs_for(problem()).front();
  const auto changed = [&](auto change) {
    FlatDesign design = good;
    change(design);
    return reason(design);
  };
  EXPECT_EQ(changed([](FlatDesign& d) { d.target = Target{75}; }), "cp.async needs sm_80, the target is sm_75");
  EXPECT_EQ(changed([](FlatDesign& d) { d.tile.k = 17; }),
            "tile k, the parts loaded at once, must be from 1 to 16, got 17");
  EXPECT_EQ(changed([](FlatDesign& d) { d.tile.n = 100; }),
            "128 threads with 4 columns each do not divide a tile of 100 columns");
  EXPECT_EQ(changed([](FlatDesign& d) { d.tile.m = 6; }), "a tile of 6 rows is not divisible by 4 threads along them");
  EXPECT_EQ(changed([](FlatDesign& d) { d.instruction.n = 3; }),
            "a thread must compute 1x1, 1x2 and so on to 1x16 elements of D as computed, got 1x3x1");
  EXPECT_THAT(changed([](FlatDesign& d) { d.split_k = 2; }), testing::HasSubstr("reduce_split_k offers a tile"));
  EXPECT_EQ(reason(good, problem(kRow, kColumn, 256, 384, 4, "D = swiglu(acc)")),
            "the epilogue pairs columns, which needs a row-major D");
}

TEST(ReduceSplitKPlan, RefusesArgumentsBeyondTheGrid) {
  const ReduceSplitKPlan plan = plan_of(problem(), designs_for(problem()).front());
  const op::ReduceSplitK huge = problem(kRow, kRow, 2000000000, 2000000000, 1);
  EXPECT_THAT(check_arguments(plan, huge).reason(), testing::HasSubstr("more than the 2147483647 of a grid"));
}

TEST(ReduceSplitKPlan, LaunchesACtaForEachTile) {
  const op::ReduceSplitK reduction = problem(kRow, kRow, 257, 385);
  const ReduceSplitKPlan plan = plan_of(reduction, designs_for(reduction).front());
  const Launch launched = launch(plan, reduction);
  const auto ceil_div = [](int x, int y) { return (x + y - 1) / y; };
  EXPECT_EQ(launched.grid[0], static_cast<unsigned>(ceil_div(257, plan.tile.m) * ceil_div(385, plan.tile.n)));
  EXPECT_EQ(launched.block[0], 128U);
  EXPECT_EQ(launched.workspace_bytes(), 0U);
  EXPECT_EQ(launched.parameters().size(), parameter_layout(plan).size);
  const op::ReduceSplitK reduced = problem(kRow, kRow, 257, 385, 4, "D = acc; row(total) = sum(acc)");
  const ReduceSplitKPlan with_bands = plan_of(reduced, designs_for(reduced).front());
  EXPECT_EQ(with_bands.bands(), 8);
  EXPECT_GT(launch(with_bands, reduced).workspace_bytes(), kWorkspaceCounterBytes);
}

TEST(ReduceSplitKPlan, TheEstimateGrowsWithTheParts) {
  const auto estimate = [](std::int64_t count) {
    const op::ReduceSplitK reduction = problem(kRow, kRow, 4096, 4096, count);
    return estimate_us(plan_of(reduction, designs_for(reduction).front()), reduction);
  };
  EXPECT_GT(estimate(8), 1.7 * estimate(4));
  EXPECT_GT(estimate(1), 0.0);
}

}  // namespace
}  // namespace tilewright::plan
