// User-defined operations in the engine: they are discovered by name, checked, cached, run and prepared like a GEMM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

#include "tests/unit/engine/host_problem.hpp"
#include "tests/unit/engine/stencil.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/op/product_operation.hpp"

namespace tilewright::engine {
namespace {

using testing::HasSubstr;

op::Tensor packed(const std::vector<float>& values, op::Dims shape) {
  op::Tensor tensor{reinterpret_cast<std::uint64_t>(values.data()), DType::f32, shape, shape, {}};
  std::int64_t stride = 1;
  for (int mode = shape.rank() - 1; mode >= 0; --mode) {
    tensor.stride[mode] = stride;
    stride *= shape[mode];
  }
  return tensor;
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7 % 11) - 5.0F;
  return values;
}

/// A 20 x 70 problem on the host, whose output is NaN before the run.
struct StencilProblem {
  std::vector<float> x = numbers(20 * 70);
  std::vector<float> out = std::vector<float>(20 * 70, std::nanf(""));
  op::Problem problem =
      op::Custom::make(std::make_shared<stencil::Stencil>(),
                       {{"x", packed(x, {20, 70})}, {"out", packed(out, {20, 70})}}, {{"weight", 0.125}});
};

TEST(Operations, KernelsAreFoundByNameAndRun) {
  Engine engine(emulator_options());
  engine.registry().add(std::make_shared<stencil::StencilProvider>()).or_throw();
  const StencilProblem stencil;
  const Explanation found = engine.explain(stencil.problem);
  ASSERT_EQ(found.kernels.size(), 1U);
  EXPECT_EQ(found.kernels[0].kernel->metadata().signature.operation, "stencil");
  const auto simt = std::ranges::find(found.refused, "simt_gemm", &registry::RefusedKernel::name);
  ASSERT_NE(simt, found.refused.end());
  EXPECT_EQ(simt->reason(), "computes only GEMMs: stencil is not computed as a GEMM");
  EXPECT_EQ(simt->refusal.code, RefusalCode::operation);
  engine.run(stencil.problem);
  const op::Comparison comparison = op::compare(stencil.problem);
  EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
  EXPECT_EQ(comparison.checked, 20 * 70);
}

TEST(Operations, KernelsOfOtherOperationsAreRefused) {
  Engine engine(emulator_options());
  engine.registry().add(std::make_shared<stencil::StencilProvider>()).or_throw();
  HostProblem gemm(20, 70, 8);
  const Explanation found = engine.explain(gemm.gemm);
  EXPECT_THAT(found.kernels.front().kernel->metadata().signature.operation, "gemm");
  const auto refused = std::ranges::find(found.refused, "stencil_0", &registry::RefusedKernel::name);
  ASSERT_NE(refused, found.refused.end());
  EXPECT_EQ(refused->reason(), "the kernel computes stencil, but the problem is a gemm");
}

TEST(Operations, WithoutAKernelTheErrorNamesNoFamiliesOfOtherOperations) {
  Engine engine(emulator_options());
  const StencilProblem stencil;
  EXPECT_THAT([&] { engine.run(stencil.problem); },
              testing::ThrowsMessage<InvalidArgument>(
                  "no kernel for this stencil on sm_80: no registered provider has kernels of this operation"));
}

TEST(Operations, KernelsAreCachedAndPrepared) {
  Options options = emulator_options();
  options.cache_on_disk = true;
  options.cache_dir = testing::TempDir() + "operations_cache";
  std::filesystem::remove_all(options.cache_dir);
  const StencilProblem stencil;
  for (const std::int64_t compiles : {1, 0}) {
    Engine engine(options);
    engine.registry().add(std::make_shared<stencil::StencilProvider>()).or_throw();
    engine.run(stencil.problem);
    EXPECT_EQ(engine.cache().counters().compiles, compiles);
  }
  std::filesystem::remove_all(options.cache_dir);
}

TEST(Operations, UserDefinedConditionsAreChecked) {
  Engine engine(emulator_options());
  std::vector<float> x(70), out(70);
  const op::Problem flat = op::Custom::make(std::make_shared<stencil::Stencil>(),
                                            {{"x", packed(x, {1, 70})}, {"out", packed(out, {1, 70})}});
  EXPECT_THAT([&] { engine.run(flat); },
              testing::ThrowsMessage<InvalidArgument>("a stencil needs 2 x 2 elements, got 1 x 70"));
}

// D is (n, m); the operation's GEMM view makes GEMM kernels applicable.
TEST(Operations, AGemmWithATransposedResultIsComputedByTheGemmFamilies) {
  Engine engine(emulator_options());
  const auto operation = std::make_shared<op::ProductOperation>(
      "transposed_gemm",
      std::vector<op::OperandDeclaration>{{"a", {"m", "k"}}, {"b", {"k", "n"}}, {"out", {"n", "m"}, op::Access::write}},
      std::array<std::string, 3>{"a", "b", "out"}, std::vector<op::NamedScalar>{{"alpha", 1.0}});
  const std::vector<float> a = numbers(33 * 17), b = numbers(17 * 40);
  std::vector<float> out(40 * 33, std::nanf(""));
  const op::Problem problem = op::Custom::make(
      operation, {{"a", packed(a, {33, 17})}, {"b", packed(b, {17, 40})}, {"out", packed(out, {40, 33})}},
      {{"alpha", 2.0}});
  engine.run(problem);
  for (std::size_t m = 0; m < 33; ++m) {
    for (std::size_t n = 0; n < 40; ++n) {
      float sum = 0.0F;
      for (std::size_t k = 0; k < 17; ++k) sum += a[m * 17 + k] * b[k * 40 + n];
      ASSERT_EQ(out[n * 33 + m], 2.0F * sum) << m << ',' << n;
    }
  }
  EXPECT_TRUE(op::compare(problem).is_exact());
}

class Failing final : public registry::Provider {
 public:
  std::string family() const override { return "failing"; }
  void discover(const op::Problem&, const Target&, registry::Discovery&) const override {
    throw std::runtime_error("its table is missing");
  }
};

TEST(Operations, AProviderThatThrowsLosesOnlyItsOwnKernels) {
  Engine engine(emulator_options());
  engine.registry().add(std::make_shared<Failing>()).or_throw();
  HostProblem gemm(20, 30, 8);
  const Explanation found = engine.explain(gemm.gemm);
  EXPECT_FALSE(found.kernels.empty());
  const auto refused = std::ranges::find(found.refused, "failing", &registry::RefusedKernel::name);
  ASSERT_NE(refused, found.refused.end());
  EXPECT_EQ(refused->reason(), "failed: its table is missing");
  EXPECT_EQ(refused->refusal.code, RefusalCode::provider);
  const std::vector<std::string> named{"failing"};
  EXPECT_THAT([&] { engine.find_kernels(gemm.gemm, {}, {}, named); },
              testing::ThrowsMessage<std::runtime_error>("its table is missing"));
}

}  // namespace
}  // namespace tilewright::engine
