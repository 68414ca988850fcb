// Designs: each family's struct, the flat form that holds the choices of all families, and the conversions.
#include "tilewright/plan/design.hpp"

#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::plan {
namespace {

FlatDesign flat_simt() { return flatten(simt_design(), nullptr); }
FlatDesign flat_sm80() { return flatten(sm80_design({16, 8, 16}), nullptr); }
FlatDesign flat_sm90() {
  const op::GemmSignature signature = describe_f16();
  return flatten(sm90_design({{128, 256, 64}, 4, {8, 1}}), &signature);
}

TEST(FlatDesign, BecomesTheFamilysDesignAndBack) {
  const op::GemmSignature signature = describe_f16();
  EXPECT_EQ(simt_gemm_design(flat_simt(), signature).value_or_throw(), simt_design());
  Sm80GemmDesign split = sm80_design({16, 8, 16});
  split.split_k = 5;
  EXPECT_EQ(sm80_gemm_design(flat_sm80(), signature).value_or_throw(), sm80_design({16, 8, 16}));
  EXPECT_EQ(sm80_gemm_design(flatten(split, nullptr), signature).value_or_throw(), split);
  Sm90GemmDesign design = sm90_design({{128, 32, 64}, 4, {8, 1}}, {2, 1});
  design.schedule = Schedule::ping_pong;
  design.split_k = 3;
  design.repacks_operands = true;
  design.raster = {.width = 4, .along_n = true};
  for (const auto d_layout : {kRow, kColumn}) {
    for (const bool swaps_operands : {false, true}) {
      const op::GemmSignature given = describe_f16({kRow, kColumn, kRow, d_layout});
      Sm90GemmDesign tested = (d_layout == kColumn) != swaps_operands ? transposed(design) : design;
      tested.swaps_operands = swaps_operands;
      const FlatDesign flat = flatten(tested, &given);
      EXPECT_EQ(flat.instruction, (TileShape{64, 32, 16})) << "the instruction's n is that of the tile as computed";
      EXPECT_EQ(sm90_gemm_design(flat, given).value_or_throw(), tested);
    }
  }
}

TEST(FlatDesign, OfOneFamilyIsRefusedByTheOthers) {
  const op::GemmSignature signature = describe_f16();
  EXPECT_EQ(simt_gemm_design(flat_sm80(), signature).reason(), "needs a simt instruction, got tensor_op");
  EXPECT_EQ(sm80_gemm_design(flat_simt(), signature).reason(), "needs a tensor_op instruction, got simt");
  EXPECT_EQ(sm90_gemm_design(flat_sm80(), signature).reason(),
            "the instruction of this tile is 64x128x16, got 16x8x16");
  EXPECT_EQ(sm80_gemm_design(sm90_design({{128, 256, 64}, 4, {8, 1}}), signature).reason(),
            "the design is one of sm90_gemm");
  FlatDesign simt = flat_simt();
  simt.instruction = {16, 8, 16};
  EXPECT_EQ(simt_gemm_design(simt, signature).reason(), "the instruction of CUDA cores is 1x1x1, got 16x8x16");
}

TEST(FlatDesign, ChoicesThatAFamilyLacksAreRefusedByName) {
  const op::GemmSignature signature = describe_f16();
  const auto refusal = [&](auto set) {
    FlatDesign flat = flat_sm80();
    set(flat);
    return sm80_gemm_design(flat, signature).reason();
  };
  EXPECT_EQ(refusal([](FlatDesign& d) { d.warps_k = 2; }), "warp count k must be 1, got 2: warps do not split K");
  EXPECT_EQ(refusal([](FlatDesign& d) { d.cluster.m = 2; }), "only sm90_gemm and programs have clusters, got 2x1x1");
  EXPECT_EQ(refusal([](FlatDesign& d) { d.schedule = Schedule::ping_pong; }),
            "only sm90_gemm has schedules, got ping_pong");
  EXPECT_EQ(refusal([](FlatDesign& d) { d.swaps_operands = true; }), "only sm90_gemm swaps operands");
  EXPECT_EQ(refusal([](FlatDesign& d) { d.repacks_operands = true; }), "only sm90_gemm repacks operands");
  FlatDesign turns = flat_sm90();
  turns.splits_in_turn = true;
  EXPECT_EQ(sm90_gemm_design(turns, signature).reason(),
            "only simt_gemm and sm80_gemm add the parts of split-K in turn");
  FlatDesign cluster = flat_sm90();
  cluster.cluster.k = 2;
  EXPECT_EQ(sm90_gemm_design(cluster, signature).reason(),
            "cluster shape k must be 1, got 2: split_k splits K among CTAs");
}

TEST(Design, TextHasEveryChoice) {
  EXPECT_EQ(to_string(simt_design()), "sm_80 128x128x8 s4 w2x4 r1");
  Sm80GemmDesign sm80 = sm80_design({16, 8, 16}, {}, kSm90);
  sm80.raster.width = 8;
  EXPECT_EQ(to_string(sm80), "sm_90a 16x8x16 128x128x32 s4 w2x2 r8");
  sm80.split_k = 3;
  EXPECT_EQ(to_string(sm80), "sm_90a 16x8x16 128x128x32 s4 w2x2 r8 k3");
  sm80.splits_in_turn = true;
  EXPECT_EQ(to_string(sm80), "sm_90a 16x8x16 128x128x32 s4 w2x2 r8 k3 in turn");
  Sm90GemmDesign sm90 = sm90_design({{128, 256, 64}, 4, {8, 1}}, {2, 1});
  EXPECT_EQ(to_string(sm90), "sm_90a 128x256x64 s4 w8x1 r1 c2x1x1");
  sm90.raster.along_n = true;
  sm90.schedule = Schedule::ping_pong;
  sm90.swaps_operands = true;
  sm90.split_k = 3;
  sm90.repacks_operands = true;
  EXPECT_EQ(to_string(sm90), "sm_90a 128x256x64 s4 w8x1 r1rows c2x1x1 ping_pong swap k3 repack");
  FlatDesign flat;
  flat.target = kSm80;
  flat.warps_k = 2;
  EXPECT_EQ(to_string(flat), "sm_80 simt 1x1x1 128x128x8 s2 w2x4 r1 wk2");
}

}  // namespace
}  // namespace tilewright::plan
