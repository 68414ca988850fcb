// simt_gemm's plans: the integers of known designs, and what is refused.
#include "tilewright/plan/simt_gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/arch/smem_layout.hpp"

namespace tilewright::plan {
namespace {

SimtGemmPlan planned(const op::GemmSignature& description, const SimtGemmDesign& design) {
  Result<SimtGemmPlan> plan = plan_simt_gemm(description, design);
  EXPECT_TRUE(plan) << (plan ? "" : plan.reason());
  return *std::move(plan);
}

// The design has tiles of 128x128x8, 4 stages and 2x4x1 warps; rows of A and B are aligned to one element.
TEST(SimtGemm, PinsTheIntegersOfTheClassicDesign) {
  const op::GemmSignature description = describe_f32({kRow, kRow, kRow, kRow}, 4);
  const SimtGemmPlan plan = planned(description, simt_design());
  EXPECT_EQ(plan.threads(), 256);
  EXPECT_EQ(plan.stored, DType::f32);
  EXPECT_EQ(plan.a, (PanelOperand{DType::f32, true, 1, 132, PanelCopy::registers, false, 8}))
      << "lines of k are transposed: 16 bytes of padding";
  EXPECT_EQ(plan.b, (PanelOperand{DType::f32, false, 1, 128, PanelCopy::async, false, 128}));
  EXPECT_EQ(plan.warp_tile_m(), 64);
  EXPECT_EQ(plan.warp_tile_n(), 32);
  EXPECT_EQ(plan.lanes_m, 8);
  EXPECT_EQ(plan.lanes_n, 4);
  EXPECT_EQ(plan.vector_m, 4);
  EXPECT_EQ(plan.vector_n, 4);
  EXPECT_EQ(plan.thread_m(), 8);
  EXPECT_EQ(plan.thread_n(), 8);
  EXPECT_EQ(plan.stage_bytes(), (132 + 128) * 8 * 4);
  EXPECT_EQ(plan.smem_bytes(), 33280);
  EXPECT_EQ(plan.register_passes(), 4) << "of A; B is copied by cp.async";
  EXPECT_EQ(plan.copy_phases, 2) << "half a tile is 4 * 64 multiply-adds of a thread";
  EXPECT_EQ(plan.registers(), 128) << "64 sums, 2 * 16 fragments, 2 copied elements, and what two CTAs leave";
}

TEST(SimtGemm, VectorsAreAsWideAsTheAlignmentAllows) {
  // This holds for both majors: a K-major vector goes through registers, whose elements are stored one by one.
  for (const auto& [alignment_bytes, vector] : {std::pair{4, 1}, {8, 2}, {16, 4}}) {
    const op::GemmSignature description = describe_f32({kRow, kRow, kRow, kRow}, alignment_bytes);
    const SimtGemmPlan plan = planned(description, simt_design());
    EXPECT_EQ(plan.b.vector, vector) << alignment_bytes;
    EXPECT_EQ(plan.a.vector, vector) << alignment_bytes;
  }
  const op::GemmSignature wide = describe_f32({kColumn, kRow, kRow, kRow}, 64);
  EXPECT_EQ(planned(wide, simt_design()).a.vector, 4) << "no load is wider than 16 bytes";
}

TEST(SimtGemm, StagesRowsOfDThatAllowOnlyShortVectors) {
  op::GemmSignature description = describe_f32({kRow, kRow, kRow, kRow}, 16);
  const SimtGemmPlan whole = planned(description, simt_design());
  EXPECT_FALSE(whole.stages_rows());
  EXPECT_EQ(whole.band_bytes(), 0);
  for (const int alignment : {1, 2}) {
    description.d.alignment = alignment;
    const SimtGemmPlan plan = planned(description, simt_design());
    EXPECT_TRUE(plan.stages_rows()) << alignment;
    EXPECT_FALSE(plan.realigns_rows()) << alignment;
    EXPECT_EQ(plan.band_bytes(), 2 * 8 * (128 + 8) * 4) << "two warps of eight lanes along M";
  }
  SimtGemmDesign split = simt_design();
  split.split_k = 2;
  EXPECT_FALSE(planned(description, split).stages_rows()) << "the CTAs of a tile share its rows";
}

// Small tiles stage K-major vectors of 16 bytes in shared memory; large ones keep them in registers, for two of their
// four phases if both operands are copied so.
TEST(SimtGemm, KMajorVectorsOfSmallTilesAreStaged) {
  const auto plan_of = [](const Tile& tile, int alignment_bytes) {
    return planned(describe_f32({kRow, kColumn, kRow, kRow}, alignment_bytes), simt_design(tile));
  };
  const SimtGemmPlan small = plan_of({{64, 64, 16}, 3, {2, 2}}, 16);
  EXPECT_EQ(small.a.copy, PanelCopy::staged);
  EXPECT_EQ(small.b.copy, PanelCopy::staged);
  EXPECT_EQ(small.staged_bytes(), (64 + 64) * 16 * 4);
  EXPECT_EQ(small.smem_bytes(), 3 * (small.stage_bytes() + small.staged_bytes()));
  const SimtGemmPlan short_vectors = plan_of({{64, 64, 16}, 3, {2, 2}}, 8);
  EXPECT_EQ(short_vectors.a.copy, PanelCopy::registers) << "a cp.async of 8 bytes takes as long as one of 16";
  EXPECT_EQ(short_vectors.staged_bytes(), 0);
  const SimtGemmPlan large = plan_of({{128, 128, 16}, 3, {2, 4}}, 16);
  EXPECT_EQ(large.a.copy, PanelCopy::registers);
  EXPECT_EQ(large.copy_phases, 4);
  EXPECT_EQ(large.copy_lag, 2);
  EXPECT_EQ(plan_of({{128, 128, 16}, 2, {2, 4}}, 16).copy_lag, 1) << "the stage before is still read";
  EXPECT_EQ(plan_of({{128, 128, 16}, 3, {2, 4}}, 8).copy_lag, 1);
}

TEST(SimtGemm, NarrowTypesAreWidenedInSharedMemory) {
  const op::GemmSignature half = describe_f16({kRow, kRow, kRow, kRow});
  const SimtGemmPlan f16 = planned(half, simt_design());
  EXPECT_EQ(f16.stored, DType::f32);
  EXPECT_EQ(f16.a, (PanelOperand{DType::f16, true, 8, 132, PanelCopy::registers, false, 8}));
  EXPECT_EQ(f16.b, (PanelOperand{DType::f16, false, 8, 128, PanelCopy::registers, false, 128}));
  const op::GemmSignature byte = describe({DType::s8, DType::u8, DType::s32, DType::s32}, {kRow, kRow, kRow, kRow});
  const SimtGemmPlan s8 = planned(byte, simt_design());
  EXPECT_EQ(s8.stored, DType::s32);
  EXPECT_EQ(s8.a, (PanelOperand{DType::s8, true, 8, 132, PanelCopy::registers, false, 8}))
      << "a line has 8 elements of k";
  EXPECT_EQ(s8.b, (PanelOperand{DType::u8, false, 16, 128, PanelCopy::registers, false, 128}));
}

TEST(SimtGemm, DoublesTakeTwiceTheRoom) {
  const op::GemmSignature description =
      describe({DType::f64, DType::f64, DType::f64, DType::f64}, {kRow, kRow, kRow, kRow});
  const SimtGemmPlan plan = planned(description, simt_design());
  EXPECT_EQ(plan.stored, DType::f64);
  EXPECT_EQ(plan.a, (PanelOperand{DType::f64, true, 2, 130, PanelCopy::registers, false, 8}));
  EXPECT_EQ(plan.b, (PanelOperand{DType::f64, false, 2, 128, PanelCopy::async, false, 128}));
  EXPECT_EQ(plan.vector_m, 2);
  EXPECT_EQ(plan.stage_bytes(), (130 + 128) * 8 * 8);
  EXPECT_EQ(plan.registers(), (64 + 2 * 16) * 2 + 4 + 40);
}

TEST(SimtGemm, ColumnMajorOutputExchangesTheOperands) {
  const op::GemmSignature description = describe_f32({kRow, kRow, kRow, kColumn});
  const SimtGemmPlan plan = planned(description, simt_design({{128, 64, 8}, 3, {4, 1}}));
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_EQ(plan.tile, (TileShape{64, 128, 8}));
  EXPECT_EQ(plan.a, (PanelOperand{DType::f32, false, 4, 64, PanelCopy::async, false, 64})) << "the caller's B";
  EXPECT_EQ(plan.b, (PanelOperand{DType::f32, true, 4, 132, PanelCopy::registers, false, 8})) << "the caller's A";
}

TEST(SimtGemm, LanesDivideAWarpTileIntoNearlySquareParts) {
  struct Expected {
    int warp_m, warp_n, lanes_m, lanes_n, vector_m, vector_n;
  };
  for (const Expected& e : {Expected{32, 32, 8, 4, 4, 4},
                            {16, 64, 4, 8, 4, 4},
                            {64, 8, 16, 2, 4, 4},
                            {8, 4, 8, 4, 1, 1},
                            {32, 1, 32, 1, 1, 1},
                            {1, 32, 1, 32, 1, 1}}) {
    const op::GemmSignature description = describe_f32({kColumn, kRow, kRow, kRow});
    const SimtGemmPlan plan = planned(description, simt_design({{e.warp_m, e.warp_n, 16}, 2, {1, 1}}));
    EXPECT_EQ(plan.lanes_m, e.lanes_m) << e.warp_m << "x" << e.warp_n;
    EXPECT_EQ(plan.lanes_n, e.lanes_n) << e.warp_m << "x" << e.warp_n;
    EXPECT_EQ(plan.vector_m, e.vector_m) << e.warp_m << "x" << e.warp_n;
    EXPECT_EQ(plan.vector_n, e.vector_n) << e.warp_m << "x" << e.warp_n;
  }
}

/// Component `i` of a coordinate, which ends with the last component that its layout reaches.
std::int64_t component(const layout::IntTuple& at, int i) { return i < at.rank() ? at[i].value() : 0; }

/// Plans of every type, several tiles, and operands of both majors.
std::vector<SimtGemmPlan> plans_of_all_types() {
  std::vector<SimtGemmPlan> plans;
  for (const TypeCase& types : type_cases()) {
    if (types.math != op::MathOperation::multiply_add) continue;
    for (const Layouts& layouts : {Layouts{kRow, kRow, kRow, kRow}, Layouts{kColumn, kColumn, kRow, kRow}}) {
      for (const Tile& tile :
           {Tile{{128, 128, 8}, 2, {2, 4}}, Tile{{64, 64, 8}, 2, {2, 1}}, Tile{{32, 32, 8}, 2, {1, 1}}}) {
        const op::GemmSignature description = describe(types, layouts);
        plans.push_back(planned(description, simt_design(tile)));
      }
    }
  }
  return plans;
}

// A lane reads vectors of A at its rows, of B at its columns, one k after another:
// device/tilewright/gemm/simt_gemm.cuh.
TEST(SimtGemm, FragmentLoadsAreFreeOfBankConflicts) {
  for (const SimtGemmPlan& plan : plans_of_all_types()) {
    const SimtThreadTile tile = thread_tile(plan);
    for (int warp = 0; warp < plan.threads() / 32; ++warp) {
      std::vector<std::int64_t> a, b;
      for (int lane = 0; lane < 32; ++lane) {
        const layout::IntTuple at = layout::coordinate(tile.coordinates, {warp * 32 + lane, 0});
        const auto offset = [&](bool is_a, const layout::IntTuple& mn) {
          const layout::Layout smem = smem_layout(plan, is_a);
          return ((is_a ? plan.a : plan.b).is_k_major ? smem(mn.value(), 0) : smem(0, mn.value())) * bytes(plan.stored);
        };
        a.push_back(offset(true, at[0]));
        b.push_back(offset(false, at[1]));
      }
      EXPECT_EQ(arch::bank_conflicts(a, plan.vector_m * bytes(plan.stored)), 0) << to_string(plan.operands);
      EXPECT_EQ(arch::bank_conflicts(b, plan.vector_n * bytes(plan.stored)), 0) << to_string(plan.operands);
    }
  }
}

TEST(SimtGemm, ThreadsCoverTheTileOnce) {
  for (const SimtGemmPlan& plan : plans_of_all_types()) {
    const SimtThreadTile tile = thread_tile(plan);
    std::vector<int> covered(static_cast<std::size_t>(plan.tile.m * plan.tile.n));
    for (int thread = 0; thread < plan.threads(); ++thread) {
      for (int i = 0; i < plan.thread_m(); ++i) {
        for (int j = 0; j < plan.thread_n(); ++j) {
          const layout::IntTuple at = layout::coordinate(tile.coordinates, {thread, layout::IntTuple{i, j}});
          ++covered.at(static_cast<std::size_t>(at[0].value() * plan.tile.n + at[1].value()));
        }
      }
      const layout::IntTuple first = layout::coordinate(tile.coordinates, {thread, 0});
      ASSERT_EQ(tile.band(tile.band_row(thread)), first[0].value()) << to_string(plan.operands);
    }
    ASSERT_EQ(covered, std::vector<int>(covered.size(), 1)) << to_string(plan.operands);
  }
}

// A K-major operand's vectors are stored element by element: device/tilewright/copy/panel_copy.cuh.
TEST(SimtGemm, TransposingStoresAreFreeOfBankConflicts) {
  int checked = 0;
  for (const int alignment_bytes : {4, 8, 16}) {
    for (const Tile& tile :
         {Tile{{128, 128, 8}, 2, {2, 4}}, Tile{{128, 128, 16}, 2, {2, 4}}, Tile{{64, 64, 16}, 2, {2, 1}},
          Tile{{128, 32, 16}, 2, {4, 1}}, Tile{{32, 32, 16}, 2, {1, 1}}}) {
      for (const DType element : {DType::f32, DType::f64}) {
        op::GemmSignature signature = describe({element, element, element, element}, {kRow, kColumn, kRow, kRow});
        for (op::TensorSignature* operand : {&signature.a, &signature.b})
          operand->alignment = std::max(alignment_bytes / bytes(element), 1);
        const SimtGemmPlan plan = planned(signature, simt_design(tile));
        for (const bool is_a : {true, false}) {
          const PanelOperand& operand = is_a ? plan.a : plan.b;
          const TileCopy copy = tile_copy(plan, is_a);
          EXPECT_EQ(operand.segment, 8);
          for (int warp = 0; warp < copy.active_threads / 32; ++warp) {
            for (int i = 0; i < operand.vector; ++i) {
              std::vector<std::int64_t> offsets;
              for (int lane = 0; lane < 32; ++lane)
                offsets.push_back((copy.smem(warp * 32 + lane, 0) + i * smem_layout(plan, is_a)(0, 1)) *
                                  bytes(element));
              EXPECT_EQ(arch::bank_conflicts(offsets, bytes(element)), 0)
                  << to_string(signature) << " warp " << warp << " element " << i;
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 500);
}

// A phase of the mainloop holds its share of the vectors that are copied through registers.
TEST(SimtGemm, CopiesThroughRegistersArePhased) {
  struct Expected {
    Tile tile;
    Layouts layouts;
    int passes, phases;
  };
  const Layouts tn{kRow, kColumn, kRow, kRow}, nn{kRow, kRow, kRow, kRow}, nt{kColumn, kRow, kRow, kRow};
  for (const Expected& e : {Expected{{{128, 128, 16}, 3, {2, 4}}, tn, 4, 4},
                            {{{128, 128, 16}, 3, {2, 4}}, nn, 2, 2},
                            {{{128, 128, 16}, 3, {2, 4}}, nt, 0, 1},
                            {{{64, 64, 16}, 3, {2, 1}}, tn, 8, 4},
                            {{{64, 64, 16}, 3, {2, 2}}, tn, 4, 1},
                            {{{128, 32, 16}, 3, {4, 1}}, tn, 5, 1}}) {
    const SimtGemmPlan plan = planned(describe_f32(e.layouts, 16), simt_design(e.tile));
    EXPECT_EQ(plan.register_passes(), e.passes);
    EXPECT_EQ(plan.copy_phases, e.phases);
  }
}

TEST(SimtGemm, CopiesFillTheTileOnce) {
  for (const SimtGemmPlan& plan : plans_of_all_types()) {
    for (const bool is_a : {true, false}) {
      const layout::Layout smem = smem_layout(plan, is_a);
      const TileCopy copy = tile_copy(plan, is_a);
      std::vector<int> writes(static_cast<std::size_t>(layout::cosize(smem)));
      for (int pass = 0; pass < copy.passes; ++pass) {
        for (int thread = 0; thread < copy.active_threads; ++thread) {
          const layout::IntTuple at = layout::coordinate(copy.coordinates, {thread, pass});
          for (int i = 0; i < (is_a ? plan.a : plan.b).vector; ++i) {
            const std::int64_t offset = copy.smem(thread, 0) + copy.smem(0, pass) + i * smem(0, 1);
            ASSERT_EQ(offset, smem(component(at, 0), component(at, 1) + i)) << to_string(plan.operands);
            ++writes.at(static_cast<std::size_t>(offset));
          }
        }
      }
      ASSERT_EQ(std::count(writes.begin(), writes.end(), 1), layout::size(smem)) << to_string(plan.operands);
    }
  }
}

struct BadDesign {
  std::string name;
  Tile tile;
  std::function<void(op::GemmSignature&)> spoil;
  std::string reason;
};
std::ostream& operator<<(std::ostream& out, const BadDesign& bad) { return out << bad.name; }

class SimtRefusal : public testing::TestWithParam<BadDesign> {};

TEST_P(SimtRefusal, StatesTheNumber) {
  op::GemmSignature description = describe_f32({kColumn, kRow, kRow, kRow});
  const SimtGemmDesign design = simt_design(GetParam().tile);
  if (GetParam().spoil) GetParam().spoil(description);
  const Result<SimtGemmPlan> plan = plan_simt_gemm(description, design);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.reason(), GetParam().reason);
}

constexpr Tile kGood{{128, 128, 8}, 4, {2, 4}};

INSTANTIATE_TEST_SUITE_P(
    Designs, SimtRefusal,
    testing::Values(
        BadDesign{"TensorMath", kGood,
                  [](op::GemmSignature& signature) { signature.math = op::MathOperation::multiply_add_fast_f32; },
                  "multiply_add_fast_f32 needs tensor cores"},
        BadDesign{"SharedMemory",
                  {{128, 128, 32}, 6, {2, 4}},
                  nullptr,
                  "needs 196608 bytes of shared memory, more than the 166912 of a CTA on sm_80"},
        BadDesign{"Registers",
                  {{256, 256, 8}, 2, {1, 1}},
                  nullptr,
                  "a thread's 32x64 elements need about 2280 registers, of 255"},
        BadDesign{"RegistersOfManyThreads",
                  {{256, 256, 8}, 2, {4, 8}},
                  nullptr,
                  "a thread's 8x8 elements need about 128 registers, of 64"},
        BadDesign{"Lanes", {{4, 4, 8}, 2, {1, 1}}, nullptr, "a warp tile of 4x4 is not divisible by 32 lanes"},
        BadDesign{"CopyDoesNotDivide",
                  {{34, 32, 3}, 2, {1, 1}},
                  nullptr,
                  "32 threads copy lines of 17 vectors, 51 in a tile, which does not divide"},
        BadDesign{"OddPanel",
                  {{2, 32, 1}, 2, {1, 1}},
                  nullptr,
                  "an operand's 8 bytes of a stage must be a multiple of 16, for what follows it"},
        BadDesign{"OneStage",
                  {{128, 128, 8}, 1, {2, 4}},
                  nullptr,
                  "stages must be at least 2, so that one is loaded while another is read, got 1"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tilewright::plan
