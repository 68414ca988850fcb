// The plans of skinny_gemm: where its designs are offered, how lines and K are divided, refusals, and the launch.
#include "tilewright/plan/skinny_gemm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr TypeCase kF32{DType::f32, DType::f32, DType::f32, DType::f32};
constexpr TypeCase kBf16{DType::bf16, DType::bf16, DType::bf16, DType::f32};
constexpr TypeCase kF64{DType::f64, DType::f64, DType::f64, DType::f64};
constexpr TypeCase kE4m3{DType::e4m3, DType::e4m3, DType::bf16, DType::f32};
constexpr Layouts kTn{kRow, kColumn, kRow, kRow}, kNn{kRow, kRow, kRow, kRow};

std::size_t offered(const TypeCase& types, const Layouts& layouts, std::int64_t m, std::int64_t n, std::int64_t k) {
  const op::Gemm gemm = problem_of(describe(types, layouts), m, n, k);
  return skinny_gemm_designs(op::view(gemm), op::describe(gemm), kSm90).size();
}

TEST(SkinnyGemm, IsOfferedWhereItIsFasterThanTensorCores) {
  EXPECT_GT(offered(kF32, kTn, 8, 4096, 4096), 0U);
  EXPECT_GT(offered(kF32, kTn, 4096, 8, 4096), 0U);
  EXPECT_EQ(offered(kF32, kTn, 9, 9, 4096), 0U);
  EXPECT_GT(offered(kF32, kNn, 2, 4096, 4096), 0U);
  EXPECT_EQ(offered(kF32, kNn, 3, 4096, 4096), 0U);  // the lines of B are not contiguous along K
  EXPECT_GT(offered(kBf16, kTn, 2, 4096, 4096), 0U);
  EXPECT_EQ(offered(kBf16, kTn, 3, 4096, 4096), 0U);
  EXPECT_GT(offered(kBf16, kTn, 4, 4096, 4094), 0U);  // rows that TMA does not load
  EXPECT_EQ(offered(kBf16, kTn, 5, 4096, 4094), 0U);
  EXPECT_GT(offered(kF64, kTn, 2, 4096, 4096), 0U);
  EXPECT_EQ(offered(kF64, kTn, 3, 4096, 4096), 0U);
  EXPECT_EQ(offered(kE4m3, kTn, 1, 4096, 4096), 0U);
}

SkinnyGemmPlan plan_of(
    const op::Gemm& gemm, FlatDesign (*change)(FlatDesign) = [](FlatDesign same) { return same; }) {
  const op::GemmSignature signature = op::describe(gemm);
  return plan_skinny_gemm(signature, change(skinny_gemm_designs(op::view(gemm), signature, kSm90).front()))
      .value_or_throw();
}

TEST(SkinnyGemm, LanesTakeOtherLinesWhereKIsShort) {
  const SkinnyGemmPlan of_long = plan_of(problem_of(describe(kF32, kTn), 2, 512, 8192));
  EXPECT_EQ(of_long.lane_groups, 1);
  EXPECT_EQ(of_long.tile.n, of_long.thread_lines * of_long.warps_lines);
  const SkinnyGemmPlan of_short = plan_of(problem_of(describe(kF32, kTn), 2, 512, 64));
  EXPECT_EQ(of_short.lane_groups, 8);
  EXPECT_EQ(of_short.tile.n, 8 * of_short.thread_lines * of_short.warps_lines);
}

TEST(SkinnyGemm, ComputesFewColumnsAndTransposedProblems) {
  const SkinnyGemmPlan columns = plan_of(problem_of(describe(kF32, kTn), 512, 3, 256));
  EXPECT_FALSE(columns.rows_are_few);
  EXPECT_EQ(columns.few, 4);
  EXPECT_EQ(columns.tile.n, 4);
  const SkinnyGemmPlan transposed = plan_of(problem_of(describe(kF32, {kRow, kColumn, kColumn, kColumn}), 3, 512, 256));
  EXPECT_TRUE(transposed.is_transposed);
  EXPECT_FALSE(transposed.rows_are_few);  // of the transposed problem
}

// Each element of a column with gaps is in a sector of its own, which every warp loads.
TEST(SkinnyGemm, EstimateCountsTheSectorsOfAStridedColumn) {
  const auto estimate = [](std::int64_t ldb) {
    op::Gemm gemm = problem_of(describe(kBf16, kNn), 14144, 1, 59008);
    gemm.b = op::matrix(gemm.b.address, DType::bf16, 59008, 1, kRow, ldb);
    return estimate_us(plan_of(gemm), op::view(gemm));
  };
  EXPECT_GT(estimate(24), 1.5 * estimate(1));
  EXPECT_GT(estimate(24), estimate(8));
}

TEST(SkinnyGemm, LaunchesAClusterForEachTile) {
  op::Gemm gemm = problem_of(describe(kF32, kNn), 1, 1000, 4096);
  const SkinnyGemmPlan plan = plan_of(gemm, [](FlatDesign design) {
    design.cluster.k = 4;
    return design;
  });
  const Launch launch = plan::launch(plan, op::view(gemm));
  const auto tiles = static_cast<std::uint32_t>((1000 + plan.tile.n - 1) / plan.tile.n);
  EXPECT_EQ(launch.grid[0], 4 * tiles);
  EXPECT_EQ(launch.cluster[0], 4U);
  EXPECT_EQ(launch.block[0], static_cast<std::uint32_t>(plan.threads()));
  EXPECT_FALSE(launch.cooperative);
}

TEST(SkinnyGemm, RefusalsNameTheNumber) {
  const op::Gemm gemm = problem_of(describe(kF32, kTn), 2, 512, 256);
  const op::GemmSignature signature = op::describe(gemm);
  const FlatDesign design = skinny_gemm_designs(op::view(gemm), signature, kSm90).front();
  const auto reason = [&](const op::GemmSignature& described, const FlatDesign& changed) {
    const Result<SkinnyGemmPlan> plan = plan_skinny_gemm(described, changed);
    return plan ? std::string() : plan.reason();
  };
  FlatDesign three = design;
  three.tile.m = three.instruction.m = 3;
  EXPECT_EQ(reason(signature, three), "the few rows or columns must be a power of two up to 8, got 3");
  FlatDesign clusters = design;
  clusters.target = kSm80;
  clusters.cluster.k = 2;
  EXPECT_THAT(reason(signature, clusters), HasSubstr("needs sm_90"));
  FlatDesign split = design;
  split.split_k = 2;
  EXPECT_THAT(reason(signature, split), HasSubstr("skinny_gemm offers a tile"));
  op::GemmSignature tensor_cores = signature;
  tensor_cores.math = op::MathOperation::multiply_add_tf32;
  EXPECT_THAT(reason(tensor_cores, design), HasSubstr("needs tensor cores"));
  EXPECT_EQ(check_arguments(plan_of(gemm), op::view(problem_of(describe(kF32, kTn), 3, 512, 256))).reason(),
            "computes at most 2 rows, got 3");
}

TEST(SkinnyGemm, HasAnOrderOfItsOwn) {
  const op::Gemm gemm = problem_of(describe(kF32, kTn), 2, 512, 256);
  const SumOrder order = sum_order(plan_of(gemm), op::view(gemm));
  EXPECT_TRUE(order.takes_turns);
  EXPECT_THAT(to_string(order), HasSubstr("in turns"));
}

}  // namespace
}  // namespace tilewright::plan
