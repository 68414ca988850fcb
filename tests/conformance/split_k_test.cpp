// Split-K in simt_gemm and sm80_gemm: every type, layouts, uneven parts of K, more tiles than resident groups of CTAs,
// batches, and epilogues with tensors and reductions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/sm80_gemm.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;

engine::Engine& engine() { return engine_of(devices().front()); }

/// The smallest tiles of both families that support the problem, with `split_k` CTAs per tile, which share its sums or
/// add them in turn.
std::vector<plan::Design> designs_of(const op::Gemm& gemm, int split_k, bool in_turn) {
  const Target target = engine().device()->properties().target;
  const op::GemmSignature signature = op::describe(gemm);
  std::vector<plan::Design> designs;
  const auto add = [&](const auto& all) {
    if (all.empty()) return;
    auto design = all.back();
    design.split_k = split_k;
    design.splits_in_turn = in_turn;
    designs.emplace_back(design);
  };
  add(plan::simt_gemm_designs(signature, target));
  add(plan::sm80_gemm_designs(signature, target));
  return designs;
}

/// Runs the problem by each family that supports it, except for without_kernels_of_sm80(), and returns how many do.
int expect_sums(const op::Gemm& gemm, int split_k, const Placement& placement = {}, bool in_turn = false) {
  GuardedProblem guarded(engine().device(), gemm, placement);
  int runs = 0;
  for (const plan::Design& design : designs_of(guarded.on_device(), split_k, in_turn)) {
    registry::KernelPtr kernel;
    try {
      kernel = engine().make_kernel(op::describe(guarded.on_device()), design);
    } catch (const InvalidArgument&) {
      continue;  // the family does not compute these types, layouts or alignments
    }
    ++runs;
    if (without_kernels_of_sm80(engine(), {kernel}).empty()) continue;
    SCOPED_TRACE(kernel->name());
    expect_exact(engine(), kernel, guarded);
    expect_within_bound(engine(), kernel, guarded);
  }
  return runs;
}

class SplitK : public testing::TestWithParam<plan::TypeCase> {
 protected:
  void SetUp() override {
    if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(SplitK, SumsTheParts) {
  if (GetParam().accumulator == DType::f16) GTEST_SKIP() << "split-K does not accumulate in f16";
  const auto layouts = plan::all_layouts();
  // Parts of several tiles of K, of one, and of none.
  const std::pair<int, std::int64_t> cases[] = {{2, 328}, {7, 520}, {3, 136}, {16, 72}};
  const std::size_t number = static_cast<std::size_t>(GetParam().a) + static_cast<std::size_t>(GetParam().d) +
                             static_cast<std::size_t>(GetParam().math);
  for (const std::size_t i : {number, number + 1}) {
    const auto& [split_k, k] = cases[i % std::size(cases)];
    SCOPED_TRACE(fmt::format("{} parts of {}", split_k, k));
    op::Gemm gemm = plan::problem_of(plan::describe(GetParam(), layouts[i * 7 % layouts.size()]), 40, 72, k);
    gemm.alpha = 2.0;
    gemm.beta = -1.0;
    for (const bool in_turn : {false, true})
      EXPECT_GE(expect_sums(gemm, split_k, {.padding = i % 2 == 0 ? 0 : 16}, in_turn), 1);
  }
}

// There are more tiles than groups of CTAs, so each group computes several, in alternating parts of the workspace.
TEST(SplitKTiles, AreTakenInTurn) {
  if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
  for (const plan::TypeCase& types : {plan::TypeCase{DType::f32, DType::f32, DType::f32, DType::f32},
                                      plan::TypeCase{DType::f16, DType::f16, DType::f32, DType::f32}}) {
    for (const auto d_layout : {kRow, kColumn}) {
      op::Gemm gemm = plan::problem_of(plan::describe(types, {kRow, kColumn, kRow, d_layout}), 100, 65, 200);
      gemm.beta = 1.0;
      for (const bool in_turn : {false, true}) EXPECT_GE(expect_sums(batch_of(gemm, 3, "B"), 64, {}, in_turn), 1);
    }
  }
}

TEST(SplitKEpilogue, CombinesEachElementWithItsOwnTensorElementAndReduces) {
  if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
  constexpr std::int64_t kM = 72, kN = 88, kK = 300;
  for (const plan::TypeCase& types : {plan::TypeCase{DType::f32, DType::f32, DType::f32, DType::f32},
                                      plan::TypeCase{DType::bf16, DType::bf16, DType::f32, DType::f32},
                                      plan::TypeCase{DType::f64, DType::f64, DType::f64, DType::f64},
                                      plan::TypeCase{DType::s8, DType::s8, DType::f32, DType::s32}}) {
    op::Gemm gemm = plan::problem_of(plan::describe(types), kM, kN, kK);
    gemm.epilogue = op::parse_epilogue(
                        "D = alpha * acc + beta * C + row(bias) - column(scale) + residual;"
                        "aux = acc; row(total) = sum(acc); column(totals) = sum(acc); all = sum(residual);"
                        "amax = absmax(acc); row(top) = max(residual - row_index); column(least) = min(residual)",
                        op::default_compute(types.accumulator, types.d))
                        .value_or_throw();
    gemm.alpha = 2.0;
    gemm.beta = -1.0;
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
      const DType dtype = types.d == DType::f64 ? DType::f64 : DType::f32;
      gemm.tensors.push_back(
          {std::string(wanted.label), op::matrix(std::uint64_t{1} << 50, dtype, wanted.broadcast.along_m ? kM : 1,
                                                 wanted.broadcast.along_n ? kN : 1)});
    }
    for (const int split_k : {2, 5, 32}) EXPECT_EQ(expect_sums(gemm, split_k), types.a == DType::f32 ? 1 : 2);
    EXPECT_EQ(expect_sums(gemm, 2, {}, true), 0) << "reductions are not added in turn";
    std::erase_if(gemm.epilogue.outputs,
                  [](const op::EpilogueOutput& output) { return output.reduction != op::Reduction::none; });
    const auto wanted = op::epilogue_tensors(gemm.epilogue);
    std::erase_if(gemm.tensors, [&](const op::NamedTensor& tensor) {
      return std::ranges::none_of(wanted, [&](const op::EpilogueTensor& each) { return each.label == tensor.name; });
    });
    for (const int split_k : {2, 5}) EXPECT_EQ(expect_sums(gemm, split_k, {}, true), types.a == DType::f32 ? 1 : 2);
  }
}

TEST(SplitKRefusals, NameTheNumbers) {
  if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
  const op::GemmSignature halves = plan::describe({DType::f16, DType::f16, DType::f16, DType::f16});
  plan::Sm80GemmDesign design = plan::sm80_gemm_designs(halves, kSm80).back();
  design.split_k = 2;
  EXPECT_EQ(plan::plan_sm80_gemm(halves, design).reason(), "split-K accumulates in f32, f64 or s32, not in f16");
  design.split_k = 0;
  EXPECT_THAT(plan::plan_sm80_gemm(halves, design).reason(), testing::StartsWith("split_k must be from 1 to "));
}

INSTANTIATE_TEST_SUITE_P(Types, SplitK, testing::ValuesIn(plan::type_cases()), [](const auto& tested) {
  return identifier(fmt::format("{} {}", tested.index, testing::PrintToString(tested.param)));
});

}  // namespace
}  // namespace tilewright::conformance
