// sm80_gemm's plans: the integers of known designs, and what is refused.
#include "tilewright/plan/sm80_gemm.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::plan {
namespace {

using layout::Swizzle;

Sm80GemmPlan planned(const op::GemmSignature& description, const Sm80GemmDesign& design) {
  Result<Sm80GemmPlan> plan = plan_sm80_gemm(description, design);
  EXPECT_TRUE(plan) << (plan ? "" : plan.reason());
  return *std::move(plan);
}

const TypeCase kTf32{DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32};
const TypeCase kF64{DType::f64, DType::f64, DType::f64, DType::f64};
const TypeCase kS8{DType::s8, DType::s8, DType::s32, DType::s32};

TEST(Sm80Gemm, PinsTheIntegersOfF16AlongK) {
  const op::GemmSignature description = describe_f16();
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 16}));
  EXPECT_EQ(plan.atom->name, "mma_m16n8k16_f32_f16_f16");
  EXPECT_EQ(plan.threads(), 128);
  EXPECT_EQ(plan.warp_tile_m(), 64);
  EXPECT_EQ(plan.warp_tile_n(), 64);
  const SmemOperand expected{DType::f16, true, 128, 32, 64, 16, true, Swizzle(2, 4, 3)};
  EXPECT_EQ(plan.a, expected);
  EXPECT_EQ(plan.b, expected);
  EXPECT_EQ(plan.stage_bytes(), 2 * 128 * 32 * 2);
  EXPECT_EQ(plan.smem_bytes(), 4 * 16384);
  EXPECT_EQ(plan.band_line(), 136);
  EXPECT_EQ(plan.band_bytes(), 2 * 16 * 136 * 4);
  EXPECT_EQ(plan.registers(), 4 * 8 * 4 + 64 + 40);
  EXPECT_FALSE(plan.promotes_accumulators);
  EXPECT_EQ(to_string(smem_layout(plan.a)), "Sw<2,4,3> o 0 o (128,(32,1)):(64,(2,8192))");
}

TEST(Sm80Gemm, WideLinesAreCutIntoPanels) {
  const op::GemmSignature description = describe_f16({kColumn, kRow, kRow, kRow});
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 16}));
  const SmemOperand expected{DType::f16, false, 32, 128, 128, 16, true, Swizzle(3, 4, 3)};
  EXPECT_EQ(plan.a, expected);
  EXPECT_EQ(plan.b, expected);
  EXPECT_EQ(to_string(smem_layout(plan.a)), "Sw<3,4,3> o 0 o (32,(64,2)):(128,(2,4096))");
}

TEST(Sm80Gemm, WordsAreLoadedByMatrixAlongKOnly) {
  const Tile tile{{128, 64, 16}, 3, {2, 2}};
  const op::GemmSignature description = describe(kTf32, {kRow, kRow, kRow, kRow});
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 8}, tile));
  EXPECT_EQ(plan.a, (SmemOperand{DType::f32, true, 128, 16, 64, 16, true, Swizzle(2, 4, 3)}));
  EXPECT_EQ(plan.b, (SmemOperand{DType::f32, false, 16, 64, 128, 16, false, Swizzle(2, 5, 2)}));
}

TEST(Sm80Gemm, DoublesAreNeverLoadedByMatrix) {
  const Tile tile{{64, 64, 16}, 3, {2, 2}};
  const op::GemmSignature description = describe(kF64);
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 8}, tile, kSm90));
  const SmemOperand expected{DType::f64, true, 64, 16, 128, 16, false, Swizzle(2, 5, 2)};
  EXPECT_EQ(plan.a, expected);
  EXPECT_EQ(plan.b, expected);
  EXPECT_EQ(plan.registers(), 2 * 4 * 4 * 2 + 2 * (32 + 32) * 8 * 8 / 128 + 40);
}

TEST(Sm80Gemm, CopiesAreAsWideAsTheAlignmentAllows) {
  for (const int alignment_bytes : {4, 8, 16, 64, 1 << 30}) {
    const op::GemmSignature description = describe_f16({}, alignment_bytes);
    const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 16}));
    EXPECT_EQ(plan.a.alignment_bytes, std::min(alignment_bytes, 16));
  }
}

TEST(Sm80Gemm, ColumnMajorOutputExchangesTheOperands) {
  op::GemmSignature description = describe_f16({kColumn, kColumn, kRow, kColumn});
  description.a.alignment = 4;
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {4, 1}}));
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_EQ(plan.tile, (TileShape{64, 128, 32}));
  EXPECT_EQ(plan.warps_m, 1);
  EXPECT_EQ(plan.warps_n, 4);
  EXPECT_EQ(plan.a, (SmemOperand{DType::f16, true, 64, 32, 64, 16, true, Swizzle(2, 4, 3)})) << "the caller's B";
  EXPECT_EQ(plan.b, (SmemOperand{DType::f16, false, 32, 128, 128, 8, true, Swizzle(3, 4, 3)})) << "the caller's A";
}

TEST(Sm80Gemm, OutputThroughSharedMemoryMayNeedMoreThanTheStages) {
  const op::GemmSignature description = describe(kS8);
  const Sm80GemmPlan plan = planned(description, sm80_design({16, 8, 16}, {{64, 128, 32}, 2, {2, 2}}));
  EXPECT_EQ(plan.stages * plan.stage_bytes(), 12288);
  EXPECT_EQ(plan.band_bytes(), 2 * 16 * 136 * 4);
  EXPECT_EQ(plan.smem_bytes(), 17408);
}

TEST(Sm80Gemm, SplitProductsKeepASecondSetOfSums) {
  TypeCase types = kTf32;
  const Tile tile{{64, 64, 16}, 3, {2, 2}};
  const op::GemmSignature once = describe(types);
  types.math = op::MathOperation::multiply_add_fast_f32;
  const op::GemmSignature split = describe(types);
  const Sm80GemmPlan plain = planned(once, sm80_design({16, 8, 8}, tile));
  const Sm80GemmPlan promoted = planned(split, sm80_design({16, 8, 8}, tile));
  EXPECT_FALSE(plain.promotes_accumulators);
  EXPECT_TRUE(promoted.promotes_accumulators);
  EXPECT_EQ(promoted.registers() - plain.registers(), 2 * 4 * 4);
}

TEST(Sm80Gemm, FastMathTakesTheInstructionOfTheRoundedType) {
  for (const auto& [math, instruction] :
       {std::pair{op::MathOperation::multiply_add_fast_f16, "mma_m16n8k16_f32_f16_f16"},
        {op::MathOperation::multiply_add_fast_bf16, "mma_m16n8k16_f32_bf16_bf16"}}) {
    TypeCase types = kTf32;
    types.math = math;
    const op::GemmSignature description = describe(types);
    const Sm80GemmDesign design = sm80_design({16, 8, 16}, {{64, 64, 32}, 3, {2, 2}});
    EXPECT_EQ(planned(description, design).atom->name, instruction);
  }
}

struct BadDesign {
  std::string name;
  op::GemmSignature description;
  Sm80GemmDesign design;
  std::string reason;
};
std::ostream& operator<<(std::ostream& out, const BadDesign& bad) { return out << bad.name; }

class Sm80Refusal : public testing::TestWithParam<BadDesign> {};

TEST_P(Sm80Refusal, StatesTheNumber) {
  const Result<Sm80GemmPlan> plan = plan_sm80_gemm(GetParam().description, GetParam().design);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.reason(), GetParam().reason);
}

BadDesign bad(std::string name, const op::GemmSignature& description, const Tile& tile, std::string reason,
              const TileShape& instruction = {16, 8, 16}, const Target& target = kSm80) {
  return {std::move(name), description, sm80_design(instruction, tile, target), std::move(reason)};
}

TEST(Sm80Gemm, OperandsThatCpAsyncDoesNotMoveGoThroughRegisters) {
  const Sm80GemmDesign design = sm80_design({16, 8, 16}, {{64, 64, 32}, 3, {2, 2}});
  op::GemmSignature description = describe_f16();
  const Sm80GemmPlan aligned = planned(description, design);
  description.a.alignment = 1;
  const Sm80GemmPlan plan = planned(description, design);
  EXPECT_EQ(plan.a.alignment_bytes, 2);
  EXPECT_FALSE(plan.a.is_async());
  EXPECT_TRUE(plan.b.is_async());
  EXPECT_EQ(plan.registers() - aligned.registers(), 64 * 32 / 128 * 5 / 4) << "the elements of a thread, and addresses";
  EXPECT_EQ(tile_copy(plan, plan.a).passes, 64 * 32 / 128);
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, Sm80Refusal,
    testing::Values(bad("NotInTheTable", describe_f16(), {},
                        "no instruction 16x16x16 of f16 and f16 accumulating in f32; there is: m16n8k8 f16, m16n8k8 "
                        "f32, m16n8k16 f16, "
                        "m16n8k16 f32",
                        {16, 16, 16}),
                    bad("PlainF32", describe_f32(), {},
                        "no instruction 16x8x8 of f32 and f32 accumulating in f32; there is: none", {16, 8, 8}),
                    bad("HopperShapeOnAmpere", describe(kF64), {{64, 64, 16}, 3, {2, 2}},
                        "instruction mma_m16n8k8_f64_f64_f64 needs sm_90, the target is sm_80", {16, 8, 8}),
                    bad("ByteShapeOfTuring", describe(kS8), {{128, 128, 64}, 3, {2, 2}},
                        "instruction mma_m8n8k16_s32_s8_s8 is sm_75's: from sm_80 on use m16n8k16 or m16n8k32",
                        {8, 8, 16}),
                    bad("KNotDivisible", describe_f16(), {{128, 128, 24}, 4, {2, 2}},
                        "tile k 24 is not divisible by the instruction's 16")),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Operands, Sm80Refusal,
    testing::Values(bad("PartsOfBlocks", describe(kS8, kInterleavedLayouts), {{64, 64, 48}, 3, {2, 2}},
                        "tile k must be a multiple of 32 for interleaved operands, got 48", {16, 8, 16}),
                    bad("BytesAcrossK", describe(kS8, {kColumn, kColumn, kRow, kRow}), {{128, 128, 64}, 3, {2, 2}},
                        "A is s8 with stride 1 along m: 8-bit mma.sync takes it along k only", {16, 8, 32}),
                    bad("BytesAcrossKInB", describe(kS8, {kRow, kRow, kRow, kRow}), {{128, 128, 64}, 3, {2, 2}},
                        "B is s8 with stride 1 along n: 8-bit mma.sync takes it along k only", {16, 8, 32}),
                    bad("BytesAcrossKTransposed", describe(kS8, {kColumn, kColumn, kRow, kColumn}),
                        {{128, 128, 64}, 3, {2, 2}},
                        "A is s8 with stride 1 along m: 8-bit mma.sync takes it along k only", {16, 8, 32}),
                    bad("OddPanel", describe_f16(), {{128, 128, 48}, 3, {2, 2}},
                        "A: rows of a panel must be a power of two from 16 to 128 bytes, got 96"),
                    bad("OddPanels", describe_f16(), {{128, 128, 96}, 3, {2, 2}},
                        "a line of A has 192 bytes in a tile, not a multiple of the panel's 128"),
                    bad("CopyDoesNotDivide", describe_f16(), {{96, 128, 32}, 3, {2, 4}},
                        "256 threads copy 64 lines of A at a time, which does not divide its 1 panels of 96 lines")),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Tiles, Sm80Refusal,
    testing::Values(bad("WarpsDoNotDivide", describe_f16(), {{127, 128, 32}, 3, {2, 2}},
                        "tile m 127 is not divisible by warp count m 2"),
                    bad("InstructionDoesNotDivide", describe_f16(), {{96, 128, 32}, 3, {4, 1}},
                        "warp tile m 24 is not divisible by the instruction's 16"),
                    bad("LdmatrixDoesNotDivide", describe_f16(), {{128, 96, 32}, 3, {1, 4}},
                        "warp tile n must be a multiple of 16, what one ldmatrix.x4 loads, got 24"),
                    bad("NotAPowerOfTwo", describe_f16({kColumn, kColumn, kRow, kRow}), {{192, 64, 32}, 3, {2, 2}},
                        "warp tile m must be a power of two where the operand's stride along it is 1, got 96"),
                    bad("SharedMemory", describe_f16(), {{128, 256, 64}, 4, {2, 4}},
                        "needs 196608 bytes of shared memory, more than the 166912 of a CTA on sm_80"),
                    bad("Registers", describe_f16(), {{256, 256, 32}, 4, {2, 2}},
                        "a warp tile of 128x128 needs about 680 registers a thread, of 255"),
                    bad("RegistersOfManyThreads", describe_f16(), {{256, 256, 32}, 3, {4, 8}},
                        "a warp tile of 64x32 needs about 152 registers a thread, of 64")),
    [](const auto& tested) { return tested.param.name; });

TEST(Sm80Gemm, SharedMemoryOfTheTargetDecides) {
  const op::GemmSignature description = describe_f16();
  const Tile tile{{128, 256, 64}, 4, {2, 4}};
  EXPECT_FALSE(plan_sm80_gemm(description, sm80_design({16, 8, 16}, tile, kSm80)));
  EXPECT_TRUE(plan_sm80_gemm(description, sm80_design({16, 8, 16}, tile, kSm90)));
}

}  // namespace
}  // namespace tilewright::plan
