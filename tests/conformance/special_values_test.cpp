// Epilogues on NaN, infinities, zeros and subnormal numbers; and reductions, whose bits must not depend on the order in
// which CTAs finish.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::conformance {
namespace {

class SpecialValues : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  /// Calls check(engine, kernel, problem) for a kernel of each family. D and tensors are f32.
  template <class Check>
  void for_each_family(const op::Epilogue& epilogue, const std::array<std::int64_t, 3>& extents,
                       const Check& check) const {
    engine::Engine& engine = engine_of(GetParam());
    const auto [m, n, k] = extents;
    op::Gemm gemm = plan::problem_of(plan::describe({DType::bf16, DType::bf16, DType::f32, DType::f32}, {}), m, n, k);
    gemm.epilogue = epilogue;
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
      gemm.tensors.push_back(
          {std::string(wanted.label), op::matrix(std::uint64_t{1} << 50, DType::f32, wanted.broadcast.along_m ? m : 1,
                                                 wanted.broadcast.along_n ? n : 1)});
    }
    GuardedProblem guarded(engine.device(), gemm, Placement{});
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine, guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine, kernels)) {
      SCOPED_TRACE(kernel->name());
      check(engine, kernel, guarded);
    }
  }
};

std::vector<double> values_of(const op::Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < tensor.columns(); ++column) values.push_back(op::load(tensor, row, column));
  }
  return values;
}

TEST_P(SpecialValues, SumsAreReproducible) {
  const op::Epilogue epilogue = op::parse_epilogue(
                                    "D = acc; row(of_columns) = sum(acc); column(of_rows) = sum_of_squares(acc);"
                                    "of_all = sum(acc)",
                                    DType::f32)
                                    .value_or_throw();
  for_each_family(epilogue, {300, 392, 64},
                  [](engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& guarded) {
                    fill_randomly(guarded.host());
                    std::vector<std::vector<double>> first;
                    for (int round = 0; round < 3; ++round) {
                      ASSERT_TRUE(run_once(engine, kernel, guarded).is_within_bound());
                      std::vector<std::vector<double>> results;
                      for (const op::EpilogueOutput& output : guarded.host().epilogue.outputs)
                        results.push_back(values_of(guarded.host().tensor(output.label)));
                      if (round == 0) first = results;
                      EXPECT_EQ(results, first);
                    }
                  });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<double, 12> kSpecials{std::numeric_limits<double>::quiet_NaN(),
                                           kInfinity,
                                           -kInfinity,
                                           0.0,
                                           -0.0,
                                           1.0,
                                           -1.0,
                                           0x1p127,
                                           -0x1p127,
                                           0x1p-126,
                                           100.0,
                                           -100.0};

void fill_specials(const op::Tensor& tensor, std::size_t step) {
  std::size_t number = 0;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < tensor.columns(); ++column)
      op::store(tensor, row, column, kSpecials[number++ / step % kSpecials.size()]);
  }
}

/// All functions but the gated ones. An epilogue has the results of several functions, because a kernel takes longer to
/// compile than to run.
std::vector<op::Epilogue> epilogues_of_functions() {
  constexpr std::size_t kResults = 8;
  const std::vector<op::Expression> inputs{op::full("x"), op::full("y"), op::row("z")};
  std::vector<op::NamedOutput> values;
  for (const op::NamedFunction& function : op::functions()) {
    const op::Expression value = function.apply(std::span(inputs).first(static_cast<std::size_t>(function.arity)));
    if (op::make_epilogue("function", DType::f32, value).value_or_throw().is_gated()) continue;
    values.push_back({fmt::format("result_of_{}", function.name), value});
  }
  std::vector<op::Epilogue> epilogues;
  for (std::size_t begin = 0; begin < values.size(); begin += kResults) {
    const auto results = std::span(values).subspan(begin, std::min(kResults, values.size() - begin));
    const auto others = results.subspan(1);
    epilogues.push_back(
        op::make_epilogue("specials", DType::f32, results[0].value, {others.begin(), others.end()}).value_or_throw());
  }
  return epilogues;
}

/// Every function of every pair of special values.
TEST_P(SpecialValues, GiveTheFormulasResultsInFunctions) {
  for (const op::Epilogue& epilogue : epilogues_of_functions()) {
    SCOPED_TRACE(op::signature(epilogue));
    for_each_family(epilogue, {12, 24, 16},
                    [](engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& guarded) {
                      fill_exactly(guarded.host());
                      for (const op::NamedTensor& each : guarded.host().tensors)
                        fill_specials(each.tensor, each.name == "y" ? kSpecials.size() : 1);
                      const op::Comparison comparison = run_once(engine, kernel, guarded);
                      EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
                    });
  }
}

/// A reduction with a NaN is NaN; infinities are handled as numbers; the sum of infinities of both signs is NaN.
TEST_P(SpecialValues, GiveTheReferencesResultsInReductions) {
  const op::Epilogue epilogue =
      op::parse_epilogue(
          "D = x; row(a) = sum(x); row(b) = max(x); row(c) = min(x); row(d) = absmax(x); column(e) = sum(x);"
          "column(f) = max(x); column(g) = min(x); h = sum(x); single(i) = max(x); single(j) = min(x); k = absmax(x)",
          DType::f32)
          .value_or_throw();
  struct Planted {
    std::int64_t row, column;
    double value;
  };
  const std::vector<Planted> cases[] = {
      {}, {{3, 5, kSpecials[0]}}, {{3, 5, kInfinity}}, {{3, 5, kInfinity}, {70, 5, -kInfinity}, {3, 131, -kInfinity}}};
  for_each_family(epilogue, {100, 136, 16},
                  [&](engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& guarded) {
                    for (const std::vector<Planted>& planted : cases) {
                      fill_exactly(guarded.host());
                      const op::Tensor& x = guarded.host().tensor("x");
                      for (const Planted& each : planted) op::store(x, each.row, each.column, each.value);
                      const op::Comparison comparison = run_once(engine, kernel, guarded);
                      EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
                    }
                  });
}

INSTANTIATE_TEST_SUITE_P(Devices, SpecialValues, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });

}  // namespace
}  // namespace tilewright::conformance
