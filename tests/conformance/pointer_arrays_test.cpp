// Batches whose matrices lie at the addresses in an array, in one launch.
#include <gtest/gtest.h>

#include "tests/conformance/gemm_checks.hpp"

namespace tilewright::conformance {
namespace {

class PointerArrays : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  static op::Gemm problem(std::string_view text) { return shape_of(bench::parse_problem(text).value_or_throw()); }

  void expect_exact_in_every_family(const op::Gemm& gemm, const Placement& placement = {}) const {
    GuardedProblem guarded(engine().device(), gemm, placement);
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : kernels) {
      SCOPED_TRACE(kernel->name());
      expect_exact(engine(), kernel, guarded);
    }
  }
};

TEST_P(PointerArrays, EveryOperandMayBeOne) {
  for (const char* const letters : {"ABCD", "A", "B", "C", "D", "AB", "CD"}) {
    SCOPED_TRACE(letters);
    op::Gemm gemm = batch_of(problem("dtype=f16 m=40 n=48 k=32 a=row b=col"), 5);
    gemm.beta = 2.0;
    expect_exact_in_every_family(with_pointer_arrays(gemm, letters));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PointerArrays, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

}  // namespace
}  // namespace tilewright::conformance
