// The order of sums of each family: which choices of a design are part of it, and that it does not depend on M.
#include "tilewright/plan/sum_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::plan {
namespace {

constexpr std::int64_t kM = 333, kN = 512, kK = 1000;
constexpr TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
constexpr TypeCase kTf32{DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32};
constexpr TypeCase kE4m3{DType::e4m3, DType::e4m3, DType::bf16, DType::f32};

SumOrder order_of(const op::GemmSignature& signature, const SimtGemmDesign& design, std::int64_t k = kK) {
  const op::Gemm gemm = problem_of(signature, kM, kN, k);
  return sum_order(plan_simt_gemm(signature, design).value_or_throw(), op::view(gemm));
}
SumOrder order_of(const op::GemmSignature& signature, const Sm80GemmDesign& design, std::int64_t k = kK) {
  const op::Gemm gemm = problem_of(signature, kM, kN, k);
  return sum_order(plan_sm80_gemm(signature, design).value_or_throw(), op::view(gemm));
}
SumOrder order_of(const op::GemmSignature& signature, const Sm90GemmDesign& design, std::int64_t k = kK) {
  const op::Gemm gemm = problem_of(signature, kM, kN, k);
  return sum_order(sketch_sm90_gemm(signature, design).value_or_throw(), op::view(gemm));
}

TEST(SumOrder, OfSimtGemmDependsOnThePaddingOfKAndSplitK) {
  const op::GemmSignature signature = describe_f32();
  const SumOrder order = order_of(signature, simt_design());
  EXPECT_EQ(to_string(order), "fma 1x1x1 over 1000");
  EXPECT_EQ(order, order_of(signature, simt_design({{64, 64, 8}, 3, {2, 1}})));
  EXPECT_EQ(order, order_of(describe_f32({kColumn, kRow, kRow, kColumn}), simt_design()));
  EXPECT_EQ(to_string(order_of(signature, simt_design({{32, 32, 16}, 3, {1, 1}}))), "fma 1x1x1 over 1008");
  EXPECT_EQ(order_of(signature, simt_design(), 992), order_of(signature, simt_design({{32, 32, 16}, 3, {1, 1}}), 992));
  SimtGemmDesign split = simt_design();
  split.split_k = 3;
  EXPECT_EQ(to_string(order_of(signature, split)), "fma 1x1x1 over 1000, split_k 3 by 8 in 1 group");
}

TEST(SumOrder, OfSm80GemmDependsOnTheInstructionAndTheOrientation) {
  const op::GemmSignature signature = describe_f16();
  const TileShape k16{16, 8, 16};
  const SumOrder order = order_of(signature, sm80_design(k16));
  EXPECT_EQ(to_string(order), "mma.sync 16x8x16 over 1024");
  EXPECT_EQ(order, order_of(signature, sm80_design(k16, {{64, 64, 32}, 3, {2, 2}})));
  EXPECT_NE(order, order_of(signature, sm80_design({16, 8, 8})));
  EXPECT_EQ(to_string(order_of(describe_f16({kRow, kColumn, kRow, kColumn}), sm80_design(k16))),
            "mma.sync 16x8x16 over 1024, operands exchanged");
  Sm80GemmDesign split = sm80_design(k16, {{64, 64, 32}, 3, {2, 2}});
  split.split_k = 2;
  EXPECT_EQ(to_string(order_of(signature, split)), "mma.sync 16x8x16 over 1024, split_k 2 by 32 in 1 group");
}

TEST(SumOrder, OfSm80GemmDependsOnRoundingAndPromotion) {
  EXPECT_EQ(to_string(order_of(describe(kTf32), sm80_design({16, 8, 8}))),
            "mma.sync 16x8x8 over 1024, tf32 scaled and scaled");
  TypeCase split = kTf32;
  split.math = op::MathOperation::multiply_add_fast_f32;
  EXPECT_EQ(to_string(order_of(describe(split), sm80_design({16, 8, 8}, {{64, 64, 32}, 3, {2, 2}}))),
            "mma.sync 16x8x8 over 1024, promoted every 32");
}

TEST(SumOrder, OfSm90GemmDoesNotDependOnTileStagesClusterAndSchedule) {
  const op::GemmSignature signature = describe_f16();
  const SumOrder order = order_of(signature, sm90_design({{128, 128, 64}, 4, {8, 1}}));
  EXPECT_EQ(to_string(order), "wgmma 64x0x16 over 1024");
  EXPECT_EQ(order, order_of(signature, sm90_design({{64, 256, 64}, 3, {4, 1}})));
  EXPECT_EQ(order, order_of(signature, sm90_design({{128, 128, 64}, 3, {8, 1}}, {2, 1})));
  Sm90GemmDesign ping_pong = sm90_design({{64, 128, 64}, 4, {8, 1}});
  ping_pong.schedule = Schedule::ping_pong;
  EXPECT_EQ(order, order_of(signature, ping_pong));
  // The padding of K differs, unless K is a multiple of both tiles.
  EXPECT_EQ(order, order_of(signature, sm90_design({{64, 64, 128}, 4, {4, 1}})));
  EXPECT_NE(order_of(signature, sm90_design({{64, 64, 64}, 4, {4, 1}}), 960),
            order_of(signature, sm90_design({{64, 64, 128}, 4, {4, 1}}), 960));
}

TEST(SumOrder, OfSm90GemmDependsOnOrientationSplitKAndPromotion) {
  const op::GemmSignature signature = describe_f16();
  Sm90GemmDesign swapped = transposed(sm90_design({{64, 16, 64}, 4, {4, 1}}));
  swapped.swaps_operands = true;
  EXPECT_EQ(to_string(order_of(signature, swapped)), "wgmma 64x0x16 over 1024, operands exchanged");
  Sm90GemmDesign split = sm90_design({{64, 8, 64}, 4, {4, 1}});
  split.split_k = 4;
  EXPECT_EQ(to_string(order_of(signature, split)), "wgmma 64x0x16 over 1024, split_k 4 by 64 in 4 groups");
  EXPECT_EQ(to_string(order_of(describe(kE4m3), sm90_design({{128, 128, 128}, 4, {8, 1}}))),
            "wgmma 64x0x32 over 1024, promoted every 128");
  TypeCase fast = kE4m3;
  fast.math = op::MathOperation::multiply_add_fast_accumulate;
  EXPECT_EQ(to_string(order_of(describe(fast), sm90_design({{128, 128, 128}, 4, {8, 1}}))), "wgmma 64x0x32 over 1024");
}

// TMA rounds to tf32 in another way than plain loads do.
TEST(SumOrder, OfTf32DependsOnTheOperandPath) {
  const Sm90GemmDesign design = sm90_design({{128, 128, 32}, 4, {8, 1}});
  EXPECT_EQ(to_string(order_of(describe(kTf32), design)), "wgmma 64x0x8 over 1024, tf32 nearest and nearest");
  op::GemmSignature unaligned = describe(kTf32);
  unaligned.a.alignment = 1;
  EXPECT_EQ(to_string(order_of(unaligned, design)), "wgmma 64x0x8 over 1024, tf32 scaled and nearest");
  Sm90GemmDesign repacking = design;
  repacking.repacks_operands = true;
  EXPECT_EQ(order_of(unaligned, repacking), order_of(describe(kTf32), design));
}

TEST(SumOrder, OfSplitKGroupsFollowsTheDeviceCode) {
  EXPECT_EQ(split_k_sum_groups(8, 4), 4);    // 128 quads: a share of 32, so that 4 threads share a quad
  EXPECT_EQ(split_k_sum_groups(8, 3), 2);    // a share of 43
  EXPECT_EQ(split_k_sum_groups(64, 8), 1);   // a share of 128
  EXPECT_EQ(split_k_sum_groups(64, 66), 8);  // a share of 16
}

TEST(SumOrder, IsExactForIntegersAndWithoutAProduct) {
  const TypeCase s8{DType::s8, DType::s8, DType::s32, DType::s32};
  Sm90GemmDesign split = sm90_design({{64, 64, 128}, 4, {4, 1}});
  split.split_k = 2;
  EXPECT_EQ(order_of(describe(s8), split), exact_order());
  EXPECT_EQ(to_string(exact_order()), "exact");
  EXPECT_EQ(order_of(describe_f32(), simt_design(), 0), exact_order());
  op::Gemm gemm = problem_of(describe_f32(), kM, kN, kK);
  gemm.alpha = 0;
  EXPECT_EQ(sum_order(plan_simt_gemm(describe_f32(), simt_design()).value_or_throw(), op::view(gemm)), exact_order());
}

TEST(SumOrder, RefusesAnotherOneWithBoth) {
  const SumOrder required = order_of(describe_f32(), simt_design());
  EXPECT_TRUE(check_order(required, required));
  const Support refused = check_order(exact_order(), required);
  EXPECT_EQ(refused.reason(),
            "sums in the order [exact], but batch_invariant requires [fma 1x1x1 over 1000] for every M");
  EXPECT_EQ(refused.refusal().code, RefusalCode::promises);
}

TEST(SumOrder, OfTheEpilogueIsRefusedIfItSumsFloats) {
  const auto check = [](const char* text, DType compute) {
    return check_order_of_epilogue(op::parse_epilogue(text, compute).value_or_throw());
  };
  EXPECT_TRUE(check("D = alpha * acc; row(m) = max(acc)", DType::f32));
  EXPECT_THAT(check("D = acc; column(s) = sum(acc)", DType::f32).reason(), testing::HasSubstr("'s' sums along N"));
  EXPECT_THAT(check("D = acc; row(s) = sum(acc)", DType::f32).reason(), testing::HasSubstr("'s' sums along M"));
  EXPECT_TRUE(check("D = acc; column(s) = sum(acc)", DType::s32));
}

TEST(SignatureForEveryM, LeavesOutAlignmentsThatDependOnM) {
  const auto a_of = [](std::int64_t m, op::MatrixLayout layout, std::int64_t k = 96) {
    const op::Gemm gemm = problem_of(describe_f16({layout, kColumn, kRow, kRow}), m, 64, k);
    return signature_for_every_m(op::view(gemm)).a;
  };
  for (const std::int64_t m : {1, 2, 3, 8, 64}) {
    EXPECT_EQ(a_of(m, kColumn), (op::TensorSignature{DType::f16, kColumn, 1})) << m;
    EXPECT_EQ(a_of(m, kRow), (op::TensorSignature{DType::f16, kRow, 8})) << m;
    EXPECT_EQ(a_of(m, kRow, 97).alignment, 1) << m;
  }
  op::Gemm slice = problem_of(describe_f16(), 5, 64, 96);
  slice.a.address += 2;
  EXPECT_EQ(signature_for_every_m(op::view(slice)).a.alignment, 8);
}

class InvariantDesigns : public testing::TestWithParam<TypeCase> {};

// Every design that the search offers for the order has it, whatever M is.
TEST_P(InvariantDesigns, OfSm90GemmAreFoundForEveryM) {
  for (const Layouts& layouts : all_layouts()) {
    std::optional<SumOrder> first;
    for (const std::int64_t m : {1, 3, 8, 40, 64, 200, 700, 4096}) {
      const op::Gemm gemm = problem_of(describe(GetParam(), layouts), m, 96, 1072);
      const op::GemmView view = op::view(gemm);
      const op::GemmSignature general = signature_for_every_m(view);
      const auto design = invariant_sm90_gemm_design(general, kSm90);
      if (!design) GTEST_SKIP() << "no wgmma";
      const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(general, *design);
      if (!sketch && GetParam().accumulator == DType::f16) GTEST_SKIP() << sketch.reason();
      ASSERT_TRUE(sketch) << sketch.reason();
      const SumOrder order = sum_order(*sketch, view);
      if (!first && m > 1) first = order;
      if (m > 1) {
        EXPECT_EQ(order, *first) << m;
      }
      const op::GemmSignature signature = op::describe(view);
      const std::vector<Sm90GemmDesign> designs = sm90_gemm_designs(view, signature, kSm90, order);
      EXPECT_FALSE(designs.empty()) << m << " " << to_string(signature);
      for (const Sm90GemmDesign& each : designs) {
        EXPECT_EQ(sum_order(sketch_sm90_gemm(signature, each).value_or_throw(), view), order)
            << m << " " << to_string(signature) << " " << to_string(Design(each));
      }
    }
  }
}

// The same for N of 1, where the layouts of B and D do not depend on M.
TEST_P(InvariantDesigns, OfSm90GemmAreFoundForOneColumn) {
  std::optional<SumOrder> first;
  for (const std::int64_t m : {1, 2, 40, 700}) {
    const op::Gemm gemm = problem_of(describe(GetParam(), {kRow, kRow, kRow, kRow}), m, 1, 1072);
    const op::GemmView view = op::view(gemm);
    const op::GemmSignature general = signature_for_every_m(view);
    EXPECT_EQ(general.b.layout, kColumn);
    EXPECT_EQ(general.d.layout, kColumn);
    const auto design = invariant_sm90_gemm_design(general, kSm90);
    if (!design) GTEST_SKIP() << "no wgmma";
    const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(general, *design);
    if (!sketch) GTEST_SKIP() << sketch.reason();
    const SumOrder order = sum_order(*sketch, view);
    if (!first) first = order;
    EXPECT_EQ(order, *first) << m;
    const op::GemmView lines = op::with_longest_lines(view);
    EXPECT_FALSE(sm90_gemm_designs(lines, op::describe(lines), kSm90, order).empty()) << m;
  }
}

// A gated epilogue is never transposed, whatever the layout of D.
TEST(InvariantDesignsOfGatedEpilogues, DoNotDependOnTheLayoutOfD) {
  std::optional<SumOrder> first;
  for (const auto d_layout : {kRow, kColumn}) {
    op::Gemm gemm = problem_of(describe_f16({kRow, kColumn, kRow, d_layout}), 40, 96, 256);
    gemm.epilogue = op::parse_epilogue("D = swiglu(acc)", DType::f32).value_or_throw();
    gemm.d = op::matrix(gemm.d.address, DType::f16, 40, 48, d_layout);
    const op::GemmSignature general = signature_for_every_m(op::view(gemm));
    const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(general, invariant_sm90_gemm_design(general, kSm90).value());
    ASSERT_TRUE(sketch) << sketch.reason();
    const SumOrder order = sum_order(*sketch, op::view(gemm));
    if (!first) first = order;
    EXPECT_EQ(order, *first);
    EXPECT_FALSE(sm90_gemm_designs(op::view(gemm), op::describe(gemm), kSm90, order).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InvariantDesigns, testing::ValuesIn(type_cases()),
                         [](const auto& each) { return fmt::format("case_{}", each.index); });

}  // namespace
}  // namespace tilewright::plan
