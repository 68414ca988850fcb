// D at every alignment, in every family: rows or columns that begin anywhere and end anywhere, alone and in batches,
// with C and further tensors at other alignments. Results must be equal bit for bit, and the bytes around every line of
// D must not change.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {
namespace {

/// Elements of 1, 2, 4 and 8 bytes.
constexpr plan::TypeCase kTypes[] = {{DType::s8, DType::s8, DType::s8, DType::s32},
                                     {DType::f16, DType::f16, DType::f16, DType::f32},
                                     {DType::f32, DType::f32, DType::f32, DType::f32},
                                     {DType::f64, DType::f64, DType::f64, DType::f64}};
constexpr std::array kAlignments{1, 2, 4, 8};

/// A problem of K-major operands. K is so short that no kernel splits it.
op::Gemm problem(const plan::TypeCase& types, op::MatrixLayout d, std::int64_t m = 75, std::int64_t n = 203) {
  op::Gemm gemm = plan::problem_of(plan::describe(types, {plan::kRow, plan::kColumn, d, d}), m, n, 32);
  gemm.alpha = 2.0;
  return gemm;
}

/// Operands at aligned addresses, except for D, whose lines begin at multiples of `alignment` elements and no more.
Placements placements(const op::Gemm& gemm, int alignment) {
  Placements all{Placement{}};
  const auto line = static_cast<int>(gemm.d.row_stride() == 1 ? gemm.m() : gemm.n());
  const int padding = (alignment - line % (2 * alignment) + 2 * alignment) % (2 * alignment);
  all.d = {.padding = padding, .batch_padding = 3 * alignment, .offset_elements = alignment};
  all.c = {.padding = 3, .batch_padding = 1, .offset_elements = 1};
  all.tensors = {.padding = 2, .offset_elements = 2};
  return all;
}

class OutputAlignment : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(std::get<0>(GetParam())); }
  static int alignment() { return std::get<1>(GetParam()); }

  void expect_exact_in_every_family(const op::Gemm& gemm) const {
    expect_exact_in_every_family(gemm, placements(gemm, alignment()));
  }
  void expect_exact_in_every_family(const op::Gemm& gemm, const Placements& all) const {
    GuardedProblem guarded(engine().device(), gemm, all);
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels)) {
      EXPECT_LE(kernel->metadata().operands().d.alignment, alignment());
      expect_exact(engine(), kernel, guarded);
    }
  }
};

TEST_P(OutputAlignment, OfEveryType) {
  for (const plan::TypeCase& types : kTypes) {
    for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn})
      expect_exact_in_every_family(problem(types, layout));
  }
}

// Wide and narrow tiles, clusters and both schedules.
TEST_P(OutputAlignment, InEveryRankedKernel) {
  const op::Gemm gemm = problem(kTypes[1], plan::kRow, 150, 301);
  GuardedProblem guarded(engine().device(), gemm, placements(gemm, alignment()));
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& ranked : engine().find_kernels(guarded.on_device()))
    kernels.push_back(ranked.kernel);
  kernels = without_kernels_of_sm80(engine(), kernels);
  engine().compile(kernels);
  for (const registry::KernelPtr& kernel : kernels) expect_exact(engine(), kernel, guarded);
}

TEST_P(OutputAlignment, WithAnotherAlignmentOfC) {
  for (const plan::TypeCase& types : kTypes) {
    op::Gemm gemm = problem(types, plan::kRow);
    gemm.beta = -1.0;
    expect_exact_in_every_family(gemm);
  }
  op::Gemm gemm = problem(kTypes[1], plan::kColumn);
  gemm.beta = -1.0;
  gemm.c.dtype = DType::f32;
  expect_exact_in_every_family(gemm);
}

TEST_P(OutputAlignment, OfBatchesAndPointerArrays) {
  op::Gemm gemm = batch_of(problem(kTypes[1], plan::kRow), 3);
  gemm.beta = -1.0;
  expect_exact_in_every_family(gemm);
  Placements all = placements(gemm, alignment());
  all.c = all.d;  // both declare the same alignment
  expect_exact_in_every_family(with_pointer_arrays(gemm, "CD", 2 * alignment()), all);
}

TEST_P(OutputAlignment, WithFurtherOutputsAndReductions) {
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    op::Gemm gemm = problem(kTypes[1], layout);
    gemm.epilogue = op::parse_epilogue(
                        "D = alpha * acc + beta * C + row(bias) - residual; aux = acc; turned = residual * row(bias);"
                        "row(total) = sum(acc); column(totals) = sum(acc); all = sum(residual); amax = absmax(acc)",
                        DType::f32)
                        .value_or_throw();
    gemm.beta = -1.0;
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
      gemm.tensors.push_back(
          {std::string(wanted.label),
           op::matrix(std::uint64_t{1} << 50, DType::f32, wanted.broadcast.along_m ? gemm.m() : 1,
                      wanted.broadcast.along_n ? gemm.n() : 1, wanted.label == "turned" ? plan::kColumn : plan::kRow)});
    }
    expect_exact_in_every_family(gemm);
  }
}

TEST_P(OutputAlignment, OfGatedEpilogues) {
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    op::Gemm gemm = problem(kTypes[1], layout, 75, 206);
    gemm.epilogue = op::parse_epilogue("D = even(acc) - 2 * odd(acc)", DType::f32).value_or_throw();
    gemm.d = op::matrix(gemm.d.address, gemm.d.dtype, gemm.m(), gemm.d_columns(), layout);
    gemm.c = op::matrix(gemm.c.address, gemm.d.dtype, gemm.m(), gemm.d_columns(), op::transposed(layout));
    expect_exact_in_every_family(gemm);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OutputAlignment,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kAlignments)),
                         [](const auto& tested) {
                           return identifier(
                               fmt::format("{}_{}", std::get<0>(tested.param), std::get<1>(tested.param)));
                         });

}  // namespace
}  // namespace tilewright::conformance
