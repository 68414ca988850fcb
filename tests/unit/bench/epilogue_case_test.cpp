// The table of epilogue cases: every text parses, every row names the tensors of its text, and the cuBLASLt epilogue
// matches it.
#include "bench/epilogue_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/problem.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/named_epilogue.hpp"

namespace tilewright::bench {
namespace {

using testing::UnorderedElementsAreArray;

TEST(EpilogueCases, HaveUniqueNamesAndTextsThatParse) {
  std::set<std::string_view> names;
  for (const EpilogueCase& one : epilogue_cases()) {
    EXPECT_TRUE(is_identifier(one.name)) << one.name;
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(find_epilogue_case(one.name), &one);
    EXPECT_TRUE(op::validate(graph(one, DType::f32))) << one.name;
  }
  EXPECT_EQ(find_epilogue_case("bias_softmax"), nullptr);
}

TEST(EpilogueCases, HaveARowForEveryTensorOfTheirTexts) {
  for (const EpilogueCase& one : epilogue_cases()) {
    const op::Epilogue epilogue = graph(one, DType::f32);
    std::vector<std::string_view> labels, in_text;
    for (const CaseTensor& tensor : one.tensors) labels.push_back(tensor.label);
    for (const op::EpilogueTensor& tensor : op::epilogue_tensors(epilogue)) in_text.push_back(tensor.label);
    EXPECT_THAT(labels, UnorderedElementsAreArray(in_text)) << one.name;
    EXPECT_LE(labels.size(), kMaxCaseTensors) << one.name;
    EXPECT_EQ(epilogue.reads_source(), one.beta != 0.0) << one.name;
  }
}

TEST(EpilogueCases, GiveCublasLtTheTensorsOfItsEpilogue) {
  constexpr auto kBias = static_cast<std::uint32_t>(CublasLtEpilogue::bias);
  constexpr auto kAux =
      static_cast<std::uint32_t>(CublasLtEpilogue::gelu_aux) - static_cast<std::uint32_t>(CublasLtEpilogue::gelu);
  for (const EpilogueCase& one : epilogue_cases()) {
    if (one.cublaslt == CublasLtEpilogue::none) continue;
    const auto has = [&](CublasLtRole role) {
      return std::ranges::find(one.tensors, role, &CaseTensor::role) != one.tensors.end();
    };
    const auto flags = static_cast<std::uint32_t>(one.cublaslt);
    EXPECT_EQ((flags & kBias) != 0, has(CublasLtRole::bias)) << one.name;
    EXPECT_EQ((flags & kAux) != 0, has(CublasLtRole::aux)) << one.name;
    EXPECT_FALSE(has(CublasLtRole::none)) << one.name;
    EXPECT_EQ(!graph(one, DType::f32).outputs.empty(), has(CublasLtRole::aux) || has(CublasLtRole::amax_of_d))
        << one.name;
  }
}

TEST(EpilogueCases, ResidualIsTheLinearCombination) {
  EXPECT_TRUE(
      op::same_code(graph(*find_epilogue_case("residual"), DType::f32), op::linear_combination()) ||
      op::signature(graph(*find_epilogue_case("residual"), DType::f32)).ends_with("add(mul($alpha,acc),mul($beta,c))"));
}

TEST(EpilogueCases, DerivativesOfGatedEpiloguesAreThoseOfTheTexts) {
  for (const EpilogueCase& one : epilogue_cases()) {
    const op::Epilogue epilogue = graph(one, DType::f32);
    EXPECT_EQ(one.factors, epilogue.columns_per_element()) << one.name;
    if (!epilogue.is_gated()) continue;
    const auto d = [&](double first, double second) {
      return op::evaluate_pair(
          epilogue,
          {{{.accumulator = first}, {.accumulator = second}}})[0][static_cast<std::size_t>(epilogue.node_of_d())];
    };
    constexpr double kStep = 0x1p-10;
    double steepest = 0.0;
    for (double x = -16.0; x < 16.0; x += kStep) {
      steepest = std::max(steepest, std::abs(d(x + kStep, 1.0) - d(x, 1.0)) / kStep);
      EXPECT_LE(std::abs(d(x, 1.0 + kStep) - d(x, 1.0)) / kStep, one.steepest * std::abs(x)) << one.name;
    }
    EXPECT_LE(steepest, one.steepest) << one.name;
    EXPECT_GT(steepest, 0.9 * one.steepest) << one.name;
  }
}

TEST(StoredTensors, HaveTheShapesOfTheTextAndTypesByD) {
  const Problem narrow = *parse_problem("dtype=e4m3 m=32 n=64 k=16 b=col epilogue=bias_gelu_aux");
  const std::vector<StoredTensor> tensors = stored_tensors(narrow);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].row.label, "bias");
  EXPECT_EQ(tensors[0].stored.dtype, DType::bf16);
  EXPECT_EQ(tensors[0].stored.bytes(), 64u * 2);
  EXPECT_FALSE(tensors[0].is_written);
  EXPECT_EQ(tensors[1].stored.dtype, DType::e4m3);
  EXPECT_EQ(tensors[1].stored.bytes(), 32u * 64);
  EXPECT_TRUE(tensors[1].is_written);
  EXPECT_FALSE(tensors[1].is_reduced);

  const Problem scaled = *parse_problem("dtype=e4m3 m=32 n=64 k=16 b=col epilogue=quantise");
  EXPECT_EQ(stored_tensors(scaled).front().stored.bytes(), 4u);
  EXPECT_TRUE(stored_tensors(plain(scaled)).empty());
}

TEST(StoredTensors, ReductionsAreF32AndHaveFewerElements) {
  const StoredTensor amax = stored_tensors(*parse_problem("dtype=e4m3 m=32 n=64 k=16 b=col epilogue=quantise_amax"))[1];
  EXPECT_EQ(amax.row.label, "amax");
  EXPECT_EQ(amax.stored.dtype, DType::f32);
  EXPECT_EQ(amax.stored.bytes(), 4u);
  EXPECT_TRUE(amax.is_reduced);
  const StoredTensor sums = stored_tensors(*parse_problem("dtype=bf16 m=32 n=64 k=16 epilogue=row_sum"))[0];
  EXPECT_EQ(sums.stored.rows, 32);
  EXPECT_EQ(sums.stored.bytes(), 32u * 4);
  EXPECT_TRUE(sums.is_written);
  EXPECT_TRUE(sums.is_reduced);
}

TEST(StoredProduct, UsesTheMemoryOfDUnlessDIsAnEightBitFloat) {
  const Problem wide = *parse_problem("dtype=f16 m=32 n=64 k=16 ldd=72 epilogue=bias");
  EXPECT_TRUE(is_product_in_d(wide));
  EXPECT_EQ(stored_product(wide).dtype, DType::f16);
  EXPECT_EQ(stored_product(wide).ld, 72);
  const Problem narrow = *parse_problem("dtype=e4m3 m=32 n=64 k=16 ldd=80 epilogue=quantise");
  EXPECT_FALSE(is_product_in_d(narrow));
  EXPECT_EQ(stored_product(narrow).dtype, DType::bf16);
  EXPECT_EQ(stored_product(narrow).ld, 64);
  EXPECT_TRUE(is_plain_in_d(narrow));
}

TEST(StoredProduct, IsInASeparateBufferIfTheEpilogueIsGated) {
  const Problem paired = *parse_problem("dtype=bf16 m=32 n=64 k=16 ldd=48 epilogue=swiglu");
  const StoredMatrix d = stored_d(paired);
  EXPECT_EQ(d.columns, 32);
  EXPECT_EQ(d.ld, 48);
  EXPECT_EQ(d.bytes(), 32u * 48 * 2);
  EXPECT_FALSE(is_product_in_d(paired));
  EXPECT_FALSE(is_plain_in_d(paired));
  const StoredMatrix product = stored_product(paired), of_plain = stored_d(plain(paired));
  EXPECT_EQ(product.columns, 64);
  EXPECT_EQ(product.dtype, DType::bf16);
  EXPECT_EQ(product.bytes(), 32u * 64 * 2);
  EXPECT_EQ(of_plain.columns, 64);
  EXPECT_EQ(of_plain.ld, 64);
  EXPECT_TRUE(is_plain_in_d(plain(paired)));
  EXPECT_EQ(stored_product(*parse_problem("dtype=bf16 out=f32 m=32 n=64 k=16 epilogue=swiglu")).dtype, DType::f32);
}

}  // namespace
}  // namespace tilewright::bench
