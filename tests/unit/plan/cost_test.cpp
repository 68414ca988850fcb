// The cost model. It is used for ranking, so the tests check the order of estimates, and that a plan that cannot run
// has an infinite time.
#include "tilewright/plan/cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"
#include "tilewright/plan/sm90/launch.hpp"

namespace tilewright::plan {
namespace {

op::Gemm problem(const TypeCase& types, std::int64_t m, std::int64_t n, std::int64_t k, const Layouts& layouts = {}) {
  return problem_of(describe(types, layouts), m, n, k);
}

const TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
const TypeCase kF32{DType::f32, DType::f32, DType::f32, DType::f32};

/// The estimated time, tile and instruction class of the best plan of all families.
struct Best {
  double us = INFINITY;
  TileShape tile;
  bool is_simt = false;
};

Best best_of(const op::Gemm& gemm, const Target& target) {
  Best best;
  const op::GemmSignature description = op::describe(gemm);
  const auto consider = [&](const auto& design, const auto& plan) {
    if (!plan) return;
    const double us = estimate_us(arch::limits(target), cost_input(*plan, op::view(gemm)));
    if (us < best.us) best = {us, design.tile, std::is_same_v<decltype(design), const SimtGemmDesign&>};
  };
  for (const Sm80GemmDesign& design : sm80_gemm_designs(description, target))
    consider(design, plan_sm80_gemm(description, design));
  for (const SimtGemmDesign& design : simt_gemm_designs(description, target))
    consider(design, plan_simt_gemm(description, design));
  return best;
}

/// The inputs of the cost model for every f16 and f32 plan of a problem.
std::vector<CostInput> inputs(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<CostInput> all;
  const op::Gemm half = problem(kF16, m, n, k);
  for (const Sm80GemmDesign& design : sm80_gemm_designs(op::describe(half), kSm90)) {
    const auto plan = plan_sm80_gemm(op::describe(half), design);
    if (plan) all.push_back(cost_input(*plan, op::view(half)));
  }
  const op::Gemm single = problem(kF32, m, n, k);
  for (const SimtGemmDesign& design : simt_gemm_designs(op::describe(single), kSm90)) {
    const auto plan = plan_simt_gemm(op::describe(single), design);
    if (plan) all.push_back(cost_input(*plan, op::view(single)));
  }
  EXPECT_GE(all.size(), 5U);
  return all;
}

/// The shortest estimated time of sm90_gemm.
double best_by_wgmma(const op::Gemm& gemm) {
  double best = INFINITY;
  const op::GemmSignature description = op::describe(gemm);
  for (const Sm90GemmDesign& design : sm90_gemm_designs(op::view(gemm), description, kSm90)) {
    const auto plan = plan_sm90_gemm(description, design);
    if (plan) best = std::min(best, estimate_us(arch::limits(kSm90), cost_input(*plan, op::view(gemm))));
  }
  return best;
}

// TMA is the fastest path. Loading or repacking one unaligned operand costs less than two, and both are faster than the
// other families.
TEST(Cost, UnalignedOperandsCostByTheByteAndBeatCudaCores) {
  const double by_tma = best_by_wgmma(problem(kF16, 4096, 4096, 4096));
  op::Gemm unaligned_b = problem(kF16, 4096, 4096, 4096);
  unaligned_b.b.stride = {1, 4097};
  const double one = best_by_wgmma(unaligned_b);
  const double words = best_by_wgmma(problem(kF16, 4096, 4096, 4094));
  const double halves = best_by_wgmma(problem(kF16, 4095, 4095, 4095));
  EXPECT_LT(by_tma, one);
  EXPECT_LT(one, halves);
  EXPECT_LT(words, halves);
  EXPECT_LT(halves, best_of(problem(kF16, 4095, 4095, 4095), kSm90).us);
}

TEST(Cost, CountsTheStoresThatUnalignedRowsOfDTake) {
  const op::Gemm gemm = problem(kF16, 4096, 4096, 64);
  op::GemmSignature signature = op::describe(gemm);
  const Sm80GemmDesign design = sm80_gemm_designs(signature, kSm90).front();
  const double area = design.tile.m * design.tile.n;
  const auto input = [&](int alignment, bool realigns_rows) {
    signature.d.alignment = alignment;
    CostInput counted;
    count_stores(plan_sm80_gemm(signature, design).value_or_throw(), realigns_rows, 32, counted);
    return counted;
  };
  EXPECT_EQ(input(8, false).more_stores, 0);
  EXPECT_EQ(input(8, false).row_ends, 0);
  EXPECT_EQ(input(4, false).more_stores, area / 4 - area / 8);
  EXPECT_EQ(input(4, false).row_ends, 2 * area / 32);
  EXPECT_EQ(input(1, false).more_stores, area - area / 8);
  EXPECT_EQ(input(1, true).more_stores, area / 8) << "to shared memory";
  EXPECT_EQ(input(1, true).row_ends, 2 * design.tile.m);
}

TEST(Cost, PlainStoresOfLongLinesAreCheaper) {
  Sm90CostInput input{.m = 8192, .n = 8192, .k = 64, .tile = {128, 256, 64}, .subtiles = 4, .fma_per_clock = 4096};
  const double by_tma = estimate_us(arch::limits(kSm90), input);
  input.plain_line_bytes = 512;
  const double long_lines = estimate_us(arch::limits(kSm90), input);
  input.plain_line_bytes = 128;
  EXPECT_LT(by_tma, long_lines);
  EXPECT_LT(long_lines, estimate_us(arch::limits(kSm90), input));
}

TEST(Cost, IsPositiveAndFiniteForPlansThatCanRun) {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {64, 64, 64}, {1000, 3, 77}, {8192, 8192, 8192}, {16, 16, 0}}) {
    for (const CostInput& input : inputs(m, n, k)) {
      const double us = estimate_us(arch::limits(kSm90), input);
      EXPECT_TRUE(std::isfinite(us));
      EXPECT_GE(us, arch::limits(kSm90).launch_us);
    }
  }
}

TEST(Cost, GrowsWithK) {
  for (const int size : {64, 512, 4096}) {
    std::vector<double> before;
    for (const int k : {64, 128, 1024, 16384}) {
      std::vector<double> now;
      for (const CostInput& input : inputs(size, size, k)) now.push_back(estimate_us(arch::limits(kSm90), input));
      for (std::size_t i = 0; i < before.size(); ++i)
        EXPECT_GT(now[i], before[i]) << size << " k " << k << " plan " << i;
      before = now;
    }
  }
}

TEST(Cost, GrowsWithTheOutput) {
  std::vector<double> before;
  for (const int size : {2048, 4096, 8192}) {
    std::vector<double> now;
    for (const CostInput& input : inputs(size, size, 1024)) now.push_back(estimate_us(arch::limits(kSm90), input));
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_GT(now[i], before[i]) << size << " plan " << i;
    before = now;
  }
}

TEST(Cost, MoreMultiprocessorsAreNotSlower) {
  for (const int size : {64, 700, 4096}) {
    for (const CostInput& input : inputs(size, size, 1024)) {
      double before = INFINITY;
      for (const int sm_count : {1, 8, 66, 108, 132, 264}) {
        arch::ArchLimits limits = arch::limits(kSm90);
        limits.sm_count = sm_count;
        const double us = estimate_us(limits, input);
        EXPECT_LE(us, before) << size << " on " << sm_count;
        before = us;
      }
    }
  }
}

TEST(Cost, IsInfiniteWhereNothingFits) {
  const arch::ArchLimits& limits = arch::limits(kSm80);
  const CostInput good = inputs(1024, 1024, 1024).front();
  ASSERT_TRUE(std::isfinite(estimate_us(arch::limits(kSm90), good)));
  CostInput input = good;
  input.smem_bytes = limits.smem_per_block_bytes + 1;
  EXPECT_EQ(estimate_us(limits, input), INFINITY);
  input = good;
  input.registers = 300;
  EXPECT_EQ(estimate_us(limits, input), INFINITY);
  input = good;
  input.threads = 2048;
  EXPECT_EQ(estimate_us(limits, input), INFINITY);
  input = good;
  input.fma_per_clock = 0;
  EXPECT_EQ(estimate_us(limits, input), INFINITY) << "a unit without the instruction";
}

TEST(Cost, ReadsTheProblemTheWayItIsComputed) {
  const op::Gemm gemm = problem(kF16, 100, 2000, 64, {kRow, kColumn, kRow, kColumn});
  const op::GemmSignature description = op::describe(gemm);
  const auto plan = plan_sm80_gemm(description, sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {2, 2}}));
  ASSERT_TRUE(plan);
  const CostInput input = cost_input(*plan, op::view(gemm));
  EXPECT_EQ(input.m, 2000);
  EXPECT_EQ(input.n, 100);
  EXPECT_EQ(input.k, 64);
  EXPECT_EQ(input.tile, (TileShape{64, 128, 32}));
}

TEST(Cost, ABatchCountsItsTilesAndItsDistinctMatrices) {
  op::Gemm gemm = problem(kF16, 100, 2000, 64, {kRow, kColumn, kRow, kColumn});
  gemm.a = op::batched(gemm.a, 40, 0);
  gemm.b = op::batched(gemm.b, 40);
  gemm.d = op::batched(gemm.d, 40);
  const op::GemmSignature description = op::describe(gemm);
  const auto plan = plan_sm80_gemm(description, sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {2, 2}}));
  ASSERT_TRUE(plan);
  const CostInput input = cost_input(*plan, op::view(gemm));
  EXPECT_EQ(input.batch, 40);
  EXPECT_EQ(input.batch_a, 40) << "the transposed problem's A is B";
  EXPECT_EQ(input.batch_b, 1);
  const double one = estimate_us(arch::limits(kSm80), cost_input(*plan, op::view(op::slice(gemm, 0))));
  const double all = estimate_us(arch::limits(kSm80), input);
  EXPECT_GT(all, one);
  EXPECT_LT(all, 40 * one) << "one launch, and every multiprocessor has work";
  CostInput distinct = input;
  distinct.batch_b = 100000;
  EXPECT_GT(estimate_us(arch::limits(kSm80), distinct), all) << "other matrices come from DRAM";
}

// A batch of many small matrices has enough small tiles to fill the GPU; larger tiles would reach outside the matrices.
TEST(Cost, ABatchOfSmallMatricesGetsSmallTiles) {
  op::Gemm gemm = problem(kF16, 64, 64, 64);
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.d}) *tensor = op::batched(*tensor, 10000);
  EXPECT_LE(best_of(gemm, kSm90).tile.m, 64);
  EXPECT_LE(best_of(gemm, kSm90).tile.n, 64);
}

int area(const Best& best) { return best.tile.m * best.tile.n; }

// The large problem is a whole number of waves for every tile, so that no tile wins because its last wave is fuller.
TEST(Cost, BigProblemsGetBigTilesAndSmallOnesSmall) {
  for (const Target& target : {kSm80, kSm90}) {
    const int whole = 128 * arch::limits(target).sm_count;
    for (const TypeCase& types : type_cases()) {
      const Best big = best_of(problem(types, whole, whole, 4096), target);
      const Best small = best_of(problem(types, 96, 96, 512), target);
      ASSERT_TRUE(std::isfinite(big.us) && std::isfinite(small.us));
      EXPECT_GE(area(big), big.is_simt ? 64 * 64 : 64 * 128)
          << name(types.a) << " " << op::name(types.math) << " on " << target.name();
      EXPECT_LE(area(small), 64 * 64) << name(types.a) << " " << op::name(types.math) << " on " << target.name();
      EXPECT_LT(small.us, big.us);
    }
  }
}

// 109 tiles of 128x128 give each SM one CTA of four warps; they took 34.8 us, and those of 128x64 30.1 (H100).
TEST(Cost, OneWarpPerSchedulerOverlapsLessThanTwo) {
  const op::Gemm gemm = problem(kF16, 120, 13938, 1296);
  const op::GemmSignature signature = op::describe(gemm);
  const auto shortest = [&](TileShape tile) {
    double best = INFINITY;
    for (const Sm80GemmDesign& design : sm80_gemm_designs(signature, kSm90)) {
      const auto plan = plan_sm80_gemm(signature, design);
      if (plan && design.tile.m == tile.m && design.tile.n == tile.n)
        best = std::min(best, estimate_us(arch::limits(kSm90), cost_input(*plan, op::view(gemm))));
    }
    return best;
  };
  EXPECT_LT(shortest({128, 64, 64}), shortest({128, 128, 64}));
}

// CUDA cores read a column-major B in lines of 64 bytes, for which DRAM takes longer: 8x128 tiles with a split-K of 26
// took 172 us, and 81 us with skinny_gemm (H200, 2026-11-27).
TEST(Cost, ShortLinesAlongKCost) {
  const auto estimate = [](op::MatrixLayout layout_b) {
    const op::GemmSignature signature = describe_f32({kRow, layout_b});
    const SimtGemmDesign design{{kSm90, {8, 128, 16}, 4, 1, 4, {8}, 26}};
    const auto plan = plan_simt_gemm(signature, design);
    EXPECT_TRUE(plan) << plan.reason();
    return estimate_us(arch::limits(kSm90), cost_input(*plan, op::view(problem_of(signature, 6, 3840, 17280))));
  };
  EXPECT_GT(estimate(kColumn), 1.2 * estimate(kRow));
}

TEST(Cost, TensorCoresWinWhereTheyCanRun) {
  EXPECT_FALSE(best_of(problem(kF16, 4096, 4096, 4096), kSm80).is_simt);
  EXPECT_FALSE(best_of(problem(kF16, 4096, 4096, 4096), kSm90).is_simt);
  EXPECT_TRUE(best_of(problem(kF32, 4096, 4096, 4096), kSm90).is_simt);
}

// 8192 x 8192 x 8192 of f16 at mma.sync's peak on H200 takes 1.1e12 / (132 * 1270 * 1.755e9) s = 3.7 ms.
TEST(Cost, IsWithinReasonOfThePeak) {
  const Best best = best_of(problem(kF16, 8192, 8192, 8192), kSm90);
  EXPECT_GT(best.us, 1870);
  EXPECT_LT(best.us, 7500);
}

}  // namespace
}  // namespace tilewright::plan
