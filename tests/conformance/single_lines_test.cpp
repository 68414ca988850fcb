// Matrices of one row or one column, whose layout is the caller's choice: row-major and column-major strides address
// the same elements. Discovered kernels use the layout with the better alignment, and kernels of either layout are
// accepted.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/search.hpp"

namespace tilewright::conformance {
namespace {

constexpr plan::TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
constexpr plan::TypeCase kF32{DType::f32, DType::f32, DType::f32, DType::f32};

struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents kExtents[] = {{72, 1, 96}, {1, 72, 96}, {1, 1, 96}, {72, 40, 1}};

class SingleLines : public testing::TestWithParam<std::tuple<std::string, Extents>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }

  static engine::Engine& engine() { return engine_of(std::get<0>(GetParam())); }
  /// The problem of the parameter's extents whose operands have strides of these layouts.
  static op::Gemm problem(const plan::TypeCase& types, op::MatrixLayout ab, op::MatrixLayout d) {
    const Extents& extents = std::get<1>(GetParam());
    op::Gemm gemm = plan::problem_of(plan::describe(types, {ab, ab, d, d}), extents.m, extents.n, extents.k);
    gemm.beta = -1.0;
    return gemm;
  }
};

TEST_P(SingleLines, AreExactInEveryFamily) {
  for (const plan::TypeCase& types : {kF16, kF32}) {
    for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
      for (const std::int64_t batch : {1, 3}) {
        GuardedProblem guarded(engine().device(), batch_of(problem(types, layout, layout), batch),
                               Placements{Placement{}});
        const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
        EXPECT_FALSE(kernels.empty());
        for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels))
          expect_exact(engine(), kernel, guarded);
      }
    }
  }
}

/// The first design of each family for this signature.
std::vector<plan::Design> first_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                        const Target& target) {
  std::vector<plan::Design> designs;
  const auto add_first_of = [&](const auto& all) {
    if (!all.empty()) designs.emplace_back(all.front());
  };
  add_first_of(plan::simt_gemm_designs(signature, target));
  add_first_of(plan::sm80_gemm_designs(signature, target));
  add_first_of(plan::sm90_gemm_designs(view, signature, target));
  return designs;
}

// A kernel declared for the layouts of the caller's strides computes the call, and so does the one that is discovered,
// whose layout is that of the longest lines.
TEST_P(SingleLines, AreAcceptedByKernelsOfEitherLayout) {
  const Target target = engine().device()->properties().target;
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    GuardedProblem guarded(engine().device(), problem(kF32, layout, layout), Placements{Placement{}});
    const op::GemmView view = op::view(guarded.on_device());
    const op::GemmSignature declared = op::describe(view);
    EXPECT_EQ(engine().find_kernels(guarded.on_device()).front().kernel->metadata().operands().b,
              op::describe(op::with_longest_lines(view)).b);
    for (const plan::Design& design : first_designs(view, declared, target))
      expect_exact(engine(), engine().make_kernel(declared, design), guarded);
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<std::string, Extents>>& info) {
  const auto& [device, extents] = info.param;
  return fmt::format("{}_{}x{}x{}", identifier(device), extents.m, extents.n, extents.k);
}
INSTANTIATE_TEST_SUITE_P(Devices, SingleLines,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kExtents)), case_name);

}  // namespace
}  // namespace tilewright::conformance
