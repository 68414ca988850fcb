// The tables of designs: every row gives a plan or a refusal, and every valid problem has a kernel.
#include "tilewright/plan/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/arch/limits.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"
#include "tilewright/plan/sm90/launch.hpp"

namespace tilewright::plan {
namespace {

template <class Check>
void for_each_description(Check&& check) {
  for (const TypeCase& types : type_cases()) {
    for (const Layouts& layouts : all_layouts()) {
      for (const int alignment_bytes : {1, 2, 4, 8, 16}) {
        for (const Target& target : {kSm80, Target{86}, kSm90}) {
          check(describe(types, layouts, alignment_bytes), target);
        }
      }
    }
  }
}

template <class Plan>
void expect_sound(const Plan& plan, const GemmTiling& design) {
  const arch::ArchLimits& limits = arch::limits(design.target);
  EXPECT_LE(plan.smem_bytes(), limits.smem_per_block_bytes);
  EXPECT_EQ(plan.threads(), 32 * design.warps_m * design.warps_n);
  EXPECT_LE(plan.threads() * plan.registers(), limits.registers_per_sm);
  EXPECT_EQ(plan.warp_tile_m() * plan.warps_m, plan.tile.m);
  EXPECT_EQ(plan.warp_tile_n() * plan.warps_n, plan.tile.n);
  EXPECT_EQ(plan.operands.d.layout, kRow);
  EXPECT_GE(arch::resident_blocks(limits, plan.threads(), plan.registers(), plan.smem_bytes()), 1);
}

std::size_t narrow_designs(std::int64_t m, std::int64_t n) {
  constexpr TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
  const op::Gemm gemm = problem_of(describe(kF16, {kRow, kColumn, kRow, kRow}), m, n, 4096);
  const auto designs = sm80_gemm_designs(op::view(gemm), op::describe(gemm), kSm90);
  return static_cast<std::size_t>(std::ranges::count_if(designs, [](const Sm80GemmDesign& design) {
    return std::min(design.tile.m, design.tile.n) == 16 && std::max(design.tile.m, design.tile.n) > 16;
  }));
}

TEST(Search, NarrowTilesAreForFewRowsOrColumns) {
  EXPECT_GT(narrow_designs(16, 4096), 0U);
  EXPECT_EQ(narrow_designs(17, 4096), 0U);
  EXPECT_GT(narrow_designs(4096, 1), 0U);
  EXPECT_GT(narrow_designs(16, 16), narrow_designs(16, 4096));
}

TEST(Search, ShortKIsWalkedAlongTheLinesOfALargeD) {
  const auto expect_rasters = [](const op::Gemm& gemm, const Raster& expected) {
    const op::GemmSignature signature = op::describe(gemm);
    for (const Sm80GemmDesign& design : sm80_gemm_designs(op::view(gemm), signature, kSm90))
      EXPECT_EQ(design.raster, expected);
    for (const SimtGemmDesign& design : simt_gemm_designs(op::view(gemm), signature, kSm90))
      EXPECT_EQ(design.raster, expected);
  };
  constexpr TypeCase kF64{DType::f64, DType::f64, DType::f64, DType::f64};
  const auto problem = [&](op::MatrixLayout d, std::int64_t m, std::int64_t n, std::int64_t k) {
    return problem_of(describe(kF64, {kRow, kColumn, d, d}), m, n, k);
  };
  expect_rasters(problem(kRow, 8192, 8192, 32), {1, true});
  expect_rasters(problem(kColumn, 8192, 8192, 32), {1, false});
  expect_rasters(problem(kRow, 8192, 8192, 128), {1, true});
  // K is longer than 1024 bytes; D has less than half of the bytes of L2; B is too large to stay in L2, and A is not.
  expect_rasters(problem(kRow, 8192, 8192, 136), {8, false});
  expect_rasters(problem(kRow, 1024, 2048, 32), {8, false});
  expect_rasters(problem(kRow, 4096, 32768, 64), {8, false});
}

TEST(Search, EveryDesignGivesAPlanOrARefusal) {
  int planned = 0;
  std::set<std::string> reasons;
  for_each_description([&](const op::GemmSignature& description, const Target& target) {
    for (const Sm80GemmDesign& design : sm80_gemm_designs(description, target)) {
      EXPECT_EQ(design.target, target);
      const Result<Sm80GemmPlan> plan = plan_sm80_gemm(description, design);
      if (plan) {
        ++planned;
        expect_sound(*plan, design);
      } else {
        ASSERT_FALSE(plan.reason().empty()) << to_string(description) << " " << to_string(design);
        reasons.insert(plan.reason());
      }
    }
  });
  EXPECT_GT(planned, 1000);
  EXPECT_GT(reasons.size(), 3U);
}

TEST(Search, CudaCoresServeEveryDescription) {
  for_each_description([&](const op::GemmSignature& description, const Target& target) {
    int planned = 0;
    for (const SimtGemmDesign& design : simt_gemm_designs(description, target)) {
      const Result<SimtGemmPlan> plan = plan_simt_gemm(description, design);
      if (!plan) {
        ASSERT_FALSE(plan.reason().empty());
        continue;
      }
      ++planned;
      expect_sound(*plan, design);
      EXPECT_EQ(plan->lanes_m * plan->lanes_n, 32);
      EXPECT_EQ(plan->thread_m() % plan->vector_m, 0);
      EXPECT_EQ(plan->thread_n() % plan->vector_n, 0);
    }
    const bool needs_tensor_cores =
        description.a.element == DType::f32 && description.math != op::MathOperation::multiply_add;
    ASSERT_EQ(planned > 0, !needs_tensor_cores) << to_string(description) << " on " << target.name();
  });
}

// The tables have a design for all operands that mma.sync and cp.async support: K-major and aligned to 4 bytes.
TEST(Search, TensorCoresServeEveryOperandTheySupport) {
  for (const TypeCase& types : type_cases()) {
    if (types.a == DType::f32 && types.math == op::MathOperation::multiply_add) continue;
    if (is_fp8(types.a)) continue;
    for (const Target& target : {kSm80, Target{86}, kSm90}) {
      for (const int alignment_bytes : {4, 8, 16}) {
        for (const Layouts& layouts : all_layouts()) {
          const bool is_along_k = layouts.a == kRow && layouts.b == kColumn;
          if (bytes(types.a) == 1 && !is_along_k) continue;
          const op::GemmSignature description = describe(types, layouts, alignment_bytes);
          int planned = 0;
          for (const Sm80GemmDesign& design : sm80_gemm_designs(description, target)) {
            planned += plan_sm80_gemm(description, design) ? 1 : 0;
          }
          EXPECT_GT(planned, 0) << to_string(description) << " on " << target.name();
        }
      }
    }
  }
}

// With few tiles, some parts of K are computed at the same time; with many, K is not split.
TEST(Search, SplitsKWhereTilesLeaveSmsIdle) {
  const auto splits = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    const op::GemmSignature signature = describe_f32();
    const op::Gemm gemm = problem_of(signature, m, n, k);
    std::vector<int> values;
    for (const SimtGemmDesign& design : simt_gemm_designs(op::view(gemm), signature, kSm90)) {
      if (design.split_k == 1) continue;
      const Result<SimtGemmPlan> plan = plan_simt_gemm(signature, design);
      EXPECT_TRUE(plan) << plan.reason();
      EXPECT_TRUE(check_arguments(*plan, op::view(gemm)));
      values.push_back(design.split_k);
    }
    return values;
  };
  EXPECT_GE(splits(64, 384, 3008).size(), 6U);
  EXPECT_TRUE(splits(16384, 16384, 4096).empty());
  EXPECT_TRUE(splits(64, 64, 8).empty()) << "there is one k tile";
}

// The SMs can hold 264 CTAs. 40 groups of six CTAs take one tile each and use 240 of them; 20 groups of 13 CTAs take
// two tiles each and use 260. The time fell from 1465 to 1372 us (H200, 2026-11-27).
TEST(Search, SplitsKSoThatGroupsTakeEqualNumbersOfTiles) {
  const op::GemmSignature signature = describe_f32({kRow, kColumn});
  const op::Gemm gemm = problem_of(signature, 5008, 128, 48668);
  int found = 0;
  for (const SimtGemmDesign& design : simt_gemm_designs(op::view(gemm), signature, kSm90)) {
    if (design.split_k == 1 || design.tile != TileShape{128, 128, 16}) continue;
    EXPECT_EQ(design.split_k, 13);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

// 287 tiles of 64x256 are more than the 264 CTAs that the SMs can hold, so that in the second round most would be idle.
// The parts of K of all tiles keep them busy: 2649 to 2424 us (H200, 2026-11-27).
TEST(Search, SplitsKInTurnWhereTheLastRoundLeavesCtasIdle) {
  const op::GemmSignature signature = describe_f32({kRow, kColumn});
  const auto parts = [&](std::int64_t m, std::int64_t n) {
    const op::Gemm gemm = problem_of(signature, m, n, 11520);
    std::vector<int> values;
    for (const SimtGemmDesign& design : simt_gemm_designs(op::view(gemm), signature, kSm90)) {
      if (design.splits_in_turn && design.tile == TileShape{64, 256, 16}) values.push_back(design.split_k);
    }
    return values;
  };
  EXPECT_EQ(parts(448, 10368), std::vector{9});
  EXPECT_TRUE(parts(448, 256).empty()) << "the CTAs of a tile would wait for each other";
}

// No other family can compute tensor-core math on f32.
TEST(Search, FastMathServesEveryAlignmentOfF32) {
  for (const TypeCase& types : type_cases()) {
    if (types.a != DType::f32 || types.math == op::MathOperation::multiply_add) continue;
    for (const Layouts& layouts : all_layouts()) {
      const op::GemmSignature description = describe(types, layouts, 4);
      bool is_served = false;
      for (const Sm80GemmDesign& design : sm80_gemm_designs(description, kSm80)) {
        is_served = is_served || plan_sm80_gemm(description, design);
      }
      EXPECT_TRUE(is_served) << to_string(description);
    }
  }
}

TEST(Search, PlainF32HasNoTensorDesigns) {
  EXPECT_TRUE(sm80_gemm_designs(describe_f32(), kSm80).empty());
  EXPECT_TRUE(sm80_gemm_designs(describe_f32(), kSm90).empty());
  EXPECT_FALSE(simt_gemm_designs(describe_f32(), kSm80).empty());
}

// There are large tiles with and without promotion, and no design is offered whose sums do not fit into registers.
TEST(Search, WgmmaServesEightBitFloatsAlongK) {
  for (const TypeCase& types : type_cases()) {
    if (!is_fp8(types.a)) continue;
    const op::GemmSignature description = describe(types);
    int large = 0;
    for (const Sm90GemmDesign& design :
         sm90_gemm_designs(op::view(problem_of(description, 4096, 4096, 4096)), description, kSm90)) {
      const Result<Sm90GemmPlan> plan = plan_sm90_gemm(description, design);
      ASSERT_TRUE(plan) << types << " " << to_string(design) << ": " << plan.reason();
      large += plan->tile.m * plan->tile.n >= 128 * 160 ? 1 : 0;
    }
    EXPECT_GE(large, 1) << types;
  }
  EXPECT_TRUE(sm80_gemm_designs(describe({DType::e4m3, DType::e5m2, DType::f32, DType::f32}), kSm90).empty());
}

TEST(Search, DesignsOfADescriptionDiffer) {
  for_each_description([](const op::GemmSignature& description, const Target& target) {
    std::set<std::string> names;
    std::vector<Design> designs;
    for (const Sm80GemmDesign& design : sm80_gemm_designs(description, target)) designs.emplace_back(design);
    for (const SimtGemmDesign& design : simt_gemm_designs(description, target)) designs.emplace_back(design);
    for (const Design& design : designs) EXPECT_TRUE(names.insert(to_string(design)).second) << to_string(design);
  });
}

TEST(Search, HopperDoublesUseItsLargerInstruction) {
  const op::GemmSignature description = describe({DType::f64, DType::f64, DType::f64, DType::f64});
  for (const Sm80GemmDesign& design : sm80_gemm_designs(description, kSm80)) {
    EXPECT_EQ(design.instruction, (TileShape{8, 8, 4}));
  }
  for (const Sm80GemmDesign& design : sm80_gemm_designs(description, kSm90)) {
    EXPECT_EQ(design.instruction.m, 16);
  }
}

}  // namespace
}  // namespace tilewright::plan
