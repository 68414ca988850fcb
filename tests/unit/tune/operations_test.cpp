// Tuning of user-defined operations: kernels are checked on copies of the operands, against the operation's reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/unit/engine/host_problem.hpp"
#include "tests/unit/engine/stencil.hpp"
#include "tilewright/op/product_operation.hpp"
#include "tilewright/tune/tune.hpp"

namespace tilewright::tune {
namespace {

// The address is a placeholder, since tuning uses only shapes.
op::Tensor shaped(std::uint64_t number, DType type, std::int64_t rows, std::int64_t columns) {
  return op::matrix(number << 30, type, rows, columns);
}

TEST(Operations, ACheckFindsWrongKernels) {
  engine::Engine engine(engine::emulator_options());
  engine.registry().add(std::make_shared<stencil::StencilProvider>(std::vector{0.0F, 1.0F})).or_throw();
  const op::Problem problem = op::Custom::make(
      std::make_shared<stencil::Stencil>(),
      {{"x", shaped(1, DType::f32, 20, 70)}, {"out", shaped(2, DType::f32, 20, 70)}}, {{"weight", 0.125}});
  const TuningReport report = tune(engine, problem, {.checks_only = true});
  ASSERT_EQ(report.candidates.size(), 2U);
  EXPECT_EQ(report.candidates[0].status, CandidateStatus::sound) << report.candidates[0].reason;
  EXPECT_EQ(report.candidates[1].status, CandidateStatus::wrong);
  EXPECT_THAT(report.candidates[1].reason, testing::HasSubstr("out[0,0] is "));
}

TEST(Operations, AProductIsComparedWithTheReference) {
  engine::Engine engine(engine::emulator_options());
  const auto operation = std::make_shared<op::ProductOperation>(
      "transposed_gemm",
      std::vector<op::OperandDeclaration>{{"a", {"m", "k"}}, {"b", {"k", "n"}}, {"out", {"n", "m"}, op::Access::write}},
      std::array<std::string, 3>{"a", "b", "out"});
  const op::Problem problem = op::Custom::make(operation, {{"a", shaped(1, DType::f16, 33, 16)},
                                                           {"b", shaped(2, DType::f16, 16, 40)},
                                                           {"out", shaped(3, DType::f32, 40, 33)}});
  const TuningReport report = tune(engine, problem, {.top = 2, .checks_only = true});
  ASSERT_EQ(report.candidates.size(), 2U);
  for (const CandidateReport& candidate : report.candidates)
    EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
}

}  // namespace
}  // namespace tilewright::tune
