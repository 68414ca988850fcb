// Tuning of user-defined operations: kernels are checked on copies of the operands, against the operation's reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "tests/unit/engine/host_problem.hpp"
#include "tests/unit/engine/stencil.hpp"
#include "tilewright/op/product_operation.hpp"
#include "tilewright/tune/tune.hpp"
#include "tilewright/tune/tuning_operands.hpp"

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

TEST(Operations, ConvolutionsAreComparedWithTheReference) {
  engine::Engine engine(engine::emulator_options());
  for (const op::ConvPass pass : {op::ConvPass::fprop, op::ConvPass::wgrad}) {
    op::Conv2d conv{.pass = pass,
                    .x = op::packed_tensor(std::uint64_t{1} << 30, DType::f16, {2, 5, 6, 16}),
                    .w = op::packed_tensor(std::uint64_t{2} << 30, DType::f16, {24, 3, 3, 16}),
                    .y = op::packed_tensor(std::uint64_t{3} << 30, DType::f16, {2, 5, 6, 24}),
                    .c = {},
                    .padding = {1, 1},
                    .beta = 0.0};
    conv.c = conv.written();
    const TuningReport report = tune(engine, conv, {.top = 2, .checks_only = true});
    ASSERT_EQ(report.candidates.size(), 2U);
    for (const CandidateReport& candidate : report.candidates)
      EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
  }
}

TEST(Operations, AWrongConvolutionIsFound) {
  engine::Engine engine(engine::emulator_options());
  op::Conv2d conv{.x = op::packed_tensor(std::uint64_t{1} << 30, DType::f16, {1, 4, 4, 8}),
                  .w = op::packed_tensor(std::uint64_t{2} << 30, DType::f16, {8, 1, 1, 8}),
                  .y = op::packed_tensor(std::uint64_t{3} << 30, DType::f16, {1, 4, 4, 8}),
                  .c = {},
                  .beta = 0.0};
  conv.c = conv.written();
  TuningOperands operands(engine.device(), conv);
  operands.poison_outputs();
  operands.fetch_outputs();
  const OutputImages poisoned = operands.output_images();
  EXPECT_NE(operands.find_wrong_element({}), "") << "no kernel has run";
  EXPECT_EQ(operands.find_wrong_element(poisoned), "") << "all bits are those of a correct kernel";
  OutputImages others = poisoned;
  for (std::byte& each : others[0]) each ^= std::byte{1};
  EXPECT_NE(operands.find_wrong_element(others), "");
}

TEST(Operations, ContractionsAreComparedWithTheReference) {
  engine::Engine engine(engine::emulator_options());
  op::Contraction sums{.a = op::packed_tensor(std::uint64_t{1} << 30, DType::f32, {5, 7, 6}),
                       .b = op::packed_tensor(std::uint64_t{2} << 30, DType::f32, {6, 4, 5}),
                       .c = {},
                       .d = op::packed_tensor(std::uint64_t{3} << 30, DType::f32, {4, 7}),
                       .modes_a = "imk",
                       .modes_b = "kni",
                       .modes_d = "nm"};
  const TuningReport report = tune(engine, sums, {.top = 2, .checks_only = true});
  ASSERT_FALSE(report.candidates.empty());
  for (const CandidateReport& candidate : report.candidates)
    EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
}

TEST(Operations, GroupsHaveTheSizesOfTheCall) {
  engine::Engine engine(engine::emulator_options());
  std::array<std::int32_t, 4> ends{3, 3, 40, 70};  // of 80 rows
  op::GroupedGemm grouped{.gemm = {.a = shaped(1, DType::f16, 80, 32),
                                   .b = op::packed_tensor(std::uint64_t{2} << 30, DType::f16, {4, 32, 24}),
                                   .c = shaped(3, DType::f16, 80, 24),
                                   .d = shaped(3, DType::f16, 80, 24),
                                   .beta = 0.0},
                          .ends = op::group_ends(reinterpret_cast<std::uint64_t>(ends.data()), 4)};
  const TuningReport report = tune(engine, grouped, {.top = 2, .checks_only = true});
  ASSERT_EQ(report.candidates.size(), 2U);
  for (const CandidateReport& candidate : report.candidates)
    EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;

  const TuningOperands operands(engine.device(), grouped);
  const op::Tensor& copied = std::get<op::GroupedGemm>(operands.on_host()).ends;
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(copied.address), ends.data(), sizeof ends), 0);
}

/// The second group has leading dimensions that exceed those of the capacity; lines of the others lie between its
/// lines.
TEST(Operations, ListsHaveTheExtentsAndLeadingDimensionsOfTheCall) {
  engine::Engine engine(engine::emulator_options());
  const std::array<std::int32_t, 9> extents{33, 24, 16, 8, 40, 32, 0, 8, 8};
  const std::array<std::int32_t, 12> lds{16, 24, 0, 24, 64, 48, 0, 56, 8, 8, 0, 8};
  const auto array = [](std::uint64_t number, std::int64_t rows, std::int64_t columns) {
    return op::pointer_array(shaped(0, DType::f16, rows, columns), number << 30, 3, 16);
  };
  const op::GroupedGemm grouped{
      .gemm = {.a = array(1, 33, 32), .b = array(2, 32, 40), .c = {}, .d = array(3, 33, 40)},
      .mode = op::GroupedMode::independent,
      .ends = op::group_extents(reinterpret_cast<std::uint64_t>(extents.data()), 3),
      .leading_dimensions = op::group_leading_dimensions(reinterpret_cast<std::uint64_t>(lds.data()), 3)};
  const TuningReport report = tune(engine, grouped, {.top = 2, .checks_only = true});
  ASSERT_EQ(report.candidates.size(), 2U);
  for (const CandidateReport& candidate : report.candidates)
    EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
}

}  // namespace
}  // namespace tilewright::tune
