// The reduction of split-K as a problem: checks, operands, signature, key and reference.
#include "tilewright/op/reduce_split_k.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

constexpr std::uint64_t kApart = 1 << 20;

/// Four parts of 6x8 in f32, and f16 matrices C and D.
ReduceSplitK reduction(std::int64_t count = 4, DType parts = DType::f32, DType d = DType::f16) {
  ReduceSplitK problem;
  problem.parts = batched(matrix(kApart, parts, 6, 8), count);
  problem.c = matrix(2 * kApart, d, 6, 8);
  problem.d = matrix(3 * kApart, d, 6, 8);
  problem.accumulator = sum_accumulator(parts);
  problem.epilogue = linear_combination(default_compute(problem.accumulator, d));
  return problem;
}

std::string reason(const ReduceSplitK& problem) { return validate(problem).reason(); }

TEST(ReduceSplitK, RefusesWithTheNumber) {
  EXPECT_TRUE(validate(reduction())) << reason(reduction());
  ReduceSplitK wrong = reduction();
  wrong.parts.dtype = DType::s8;
  EXPECT_EQ(reason(wrong), "parts are s8: must be f64, f32, f16, bf16 or s32");
  wrong = reduction();
  wrong.accumulator = DType::f16;
  EXPECT_EQ(reason(wrong), "f32 parts accumulate in f32, got f16");
  wrong = reduction();
  wrong.d = matrix(3 * kApart, DType::f16, 6, 9);
  EXPECT_EQ(reason(wrong), "D must be (6,8), got (6,9)");
  wrong = reduction();
  wrong.d = batched(wrong.d, 2);
  EXPECT_EQ(reason(wrong), "D must be a single matrix, got a batch of 2");
  wrong = reduction();
  wrong.d.dtype = DType::f64;
  EXPECT_EQ(reason(wrong), "D is f64, which is not supported with f32 operands");
  wrong = reduction();
  wrong.parts.address = 0;
  EXPECT_EQ(reason(wrong), "'parts' is a null pointer");
  wrong = reduction();
  wrong.parts.address = wrong.d.address;
  EXPECT_THAT(reason(wrong), testing::HasSubstr("overlaps 'parts'"));
  wrong = reduction();
  wrong.beta = 1.0;
  wrong.c = matrix(2 * kApart, DType::f16, 5, 8);
  EXPECT_EQ(reason(wrong), "shapes of C and D differ: (5,8) and (6,8)");
  wrong = reduction();
  wrong.parts.stride[2] = 2;
  EXPECT_FALSE(validate(wrong));
  wrong = reduction();
  wrong.epilogue = parse_epilogue("D = acc + row(bias)", DType::f32, {}).value_or_throw();
  EXPECT_EQ(reason(wrong), "the epilogue reads 'bias', but no tensor has that name");
}

TEST(ReduceSplitK, RefusesPointerArraysAndInterleavedMatrices) {
  ReduceSplitK wrong = reduction();
  wrong.parts = pointer_array(matrix(kApart, DType::f32, 6, 8), kApart, 4);
  EXPECT_EQ(reason(wrong), "'parts' is an array of pointers, which reduce_split_k does not take");
  wrong = reduction();
  wrong.d = pointer_array(matrix(kApart, DType::f16, 6, 8), 3 * kApart, 1);
  EXPECT_EQ(reason(wrong), "D is an array of pointers, which reduce_split_k does not take");
  wrong = reduction();
  wrong.c = pointer_array(wrong.c, 2 * kApart, 1);
  EXPECT_TRUE(validate(wrong)) << "C is not read: " << reason(wrong);
  wrong.beta = 1.0;
  EXPECT_EQ(reason(wrong), "C is an array of pointers, which reduce_split_k does not take");

  const auto interleaved = [](DType type, std::uint64_t address) {
    return matrix(address, type, 6, 64, MatrixLayout::column_interleaved);
  };
  ReduceSplitK wide = reduction(4, DType::s32, DType::s8);
  wide.parts = batched(matrix(kApart, DType::s32, 6, 64), 4);
  wide.d = interleaved(DType::s8, 3 * kApart);
  EXPECT_EQ(reason(wide), "D is interleaved, but reduce_split_k takes only row-major and column-major matrices");
  wide.d = matrix(3 * kApart, DType::s8, 6, 64);
  wide.parts = batched(interleaved(DType::s32, kApart), 4);
  EXPECT_EQ(reason(wide), "'parts' is interleaved, but reduce_split_k takes only row-major and column-major matrices");

  ReduceSplitKSignature signature = describe(reduction());
  signature.d.is_pointer_array = true;
  EXPECT_EQ(validate(signature).reason(),
            "D is f16:row:8:pointers: reduce_split_k takes only row-major and column-major matrices");
  signature = describe(reduction());
  signature.parts.layout = MatrixLayout::row_interleaved;
  EXPECT_EQ(validate(signature).reason(),
            "'parts' is f32:row_interleaved_32:4: reduce_split_k takes only row-major and column-major matrices");
}

TEST(ReduceSplitK, PartsMayLieInAnyOrder) {
  ReduceSplitK problem = reduction();
  problem.parts = batched(matrix(kApart, DType::f32, 6, 8, MatrixLayout::column_major), 4, 1024);
  EXPECT_TRUE(validate(problem)) << reason(problem);
  problem.parts = batched(matrix(kApart, DType::f32, 6, 8, MatrixLayout::row_major, 8 * 4), 4, 8);
  EXPECT_TRUE(validate(problem)) << "parts may interleave";
  problem.parts = matrix(kApart, DType::f32, 6, 8);
  EXPECT_TRUE(validate(problem)) << "a matrix is one part";
  EXPECT_EQ(problem.count(), 1);
}

TEST(ReduceSplitK, OperandsThatAreNotReadMayBeNull) {
  ReduceSplitK problem = reduction(0);
  problem.parts.address = 0;
  problem.c = {};
  EXPECT_TRUE(validate(problem)) << "there are no parts, and beta is 0: " << reason(problem);
  EXPECT_FALSE(reads_parts(problem));
  problem = reduction();
  problem.alpha = 0.0;
  problem.parts.address = 0;
  EXPECT_TRUE(validate(problem)) << reason(problem);
}

TEST(ReduceSplitK, IsAProblem) {
  Problem problem = reduction();
  EXPECT_EQ(operation_name(problem), "reduce_split_k");
  std::vector<std::string> names;
  for (const Operand& operand : operands(problem))
    names.push_back(fmt::format("{}:{}{}", operand.name, name(operand.access), operand.is_used ? "" : ":unused"));
  EXPECT_THAT(names, testing::ElementsAre("parts:read", "C:read:unused", "D:write"));
  EXPECT_EQ(view(problem).reason(), "reduce_split_k is not computed as a GEMM");
  EXPECT_EQ(problem_class(problem),
            "4 parts of 6x8 reduce_split_k parts=f32:row:4 c=f16:row:8 d=f16:row:8 has_c=yes accumulator=f32 "
            "epilogue=linear_combination f32 add(mul($alpha,acc),mul($beta,c)) [alpha,beta] tensors=");
  EXPECT_EQ(operations(problem), 4 * 6 * 8);
  EXPECT_TRUE(has_reference(problem));
  EXPECT_EQ(largest_exact_input(problem), 8);
  EXPECT_FALSE(is_empty(problem));
}

TEST(ReduceSplitK, KeysDependOnCodeExtentsAndStrides) {
  const Problem one = reduction();
  ReduceSplitK moved = reduction();
  moved.parts.address += 4096;
  EXPECT_EQ(key(one), key(moved));
  EXPECT_EQ(ProblemKeyHash()(key(one)), ProblemKeyHash()(key(moved)));
  EXPECT_EQ(check_same_extents(key(one), key(reduction(5))).reason(), "prepared for the number of parts = 4, got 5");
  EXPECT_FALSE(key(one) == key(reduction(4, DType::f16)));
}

TEST(ReduceSplitK, SignatureDependsOnEveryField) {
  const ReduceSplitKSignature base = describe(reduction());
  EXPECT_TRUE(validate(base)) << validate(base).reason();
  std::vector<std::string> texts{to_string(Signature(base))};
  const auto expect_other = [&](auto change) {
    ReduceSplitKSignature changed = base;
    change(changed);
    EXPECT_FALSE(Signature(base) == Signature(changed));
    const std::string text = to_string(Signature(changed));
    EXPECT_THAT(texts, testing::Not(testing::Contains(text)));
    texts.push_back(text);
  };
  expect_other([](ReduceSplitKSignature& s) { s.parts.alignment = 1; });
  expect_other([](ReduceSplitKSignature& s) { s.c.layout = MatrixLayout::column_major; });
  expect_other([](ReduceSplitKSignature& s) { s.d.element = DType::bf16; });
  expect_other([](ReduceSplitKSignature& s) { s.has_c = !s.has_c; });
  expect_other([](ReduceSplitKSignature& s) { s.accumulator = DType::f64; });
  expect_other([](ReduceSplitKSignature& s) { s.epilogue = linear_combination_generic(Activation::relu); });
  expect_other([](ReduceSplitKSignature& s) { s.tensors = {{DType::f16, ContiguousMode::columns, 8}}; });
  ReduceSplitKSignature wrong = base;
  wrong.parts.alignment = 3;
  EXPECT_EQ(validate(wrong).reason(), "alignment of parts must be a power of two, got 3");
}

TEST(ReduceSplitK, MeasurableProblemsReadTheirParts) {
  ReduceSplitK problem = reduction();
  problem.alpha = 0.0;
  EXPECT_EQ(std::get<ReduceSplitK>(*measurable(problem)).alpha, 1.0);
  EXPECT_EQ(measurable(reduction(0)).reason(), "there is nothing to measure in a reduction of 0 parts of 6x8");
}

/// Three parts of 2x2 with the values 1, 10 and 100 times `row` + 2 `column` + 1.
class ReduceSplitKReference : public testing::Test {
 protected:
  ReduceSplitKReference() {
    for (std::size_t part = 0; part < 3; ++part) {
      const float scale[3] = {1, 10, 100};
      for (std::size_t i = 0; i < 4; ++i)
        parts_[part * 4 + i] = scale[part] * static_cast<float>(i / 2 + 2 * (i % 2) + 1);
    }
    problem_.parts = batched(matrix(parts_.data(), DType::f32, 2, 2), 3);
    problem_.c = matrix(c_.data(), DType::f32, 2, 2);
    problem_.d = matrix(d_.data(), DType::f32, 2, 2);
  }

  std::array<float, 12> parts_{};
  std::array<float, 4> c_{1, 2, 3, 4}, d_{};
  ReduceSplitK problem_;
};

TEST_F(ReduceSplitKReference, SumsThePartsAndAppliesTheEpilogue) {
  problem_.alpha = 2.0;
  problem_.beta = -1.0;
  reference(problem_);
  EXPECT_THAT(d_, testing::ElementsAre(2 * 111 - 1, 2 * 333 - 2, 2 * 222 - 3, 2 * 444 - 4));
  EXPECT_TRUE(compare(problem_).is_exact());
  d_[2] += 1.0F;
  const Comparison wrong = compare(problem_);
  EXPECT_EQ(wrong.outside, 1);
  EXPECT_EQ(describe_worst(wrong), "D[1,0] is 442, expected 441 within 0.00037");
}

TEST_F(ReduceSplitKReference, ReadsNothingThatItsScalarsExclude) {
  problem_.alpha = 0.0;
  problem_.beta = 1.0;
  parts_.fill(std::numeric_limits<float>::quiet_NaN());
  reference(Problem(problem_));
  EXPECT_EQ(d_, c_);
}

TEST_F(ReduceSplitKReference, PairsOfColumnsAndReductions) {
  std::array<float, 2> pairs{}, top{};
  problem_.epilogue = parse_epilogue("D = even(acc) - odd(acc)", DType::f32, {}).value_or_throw();
  problem_.d = matrix(pairs.data(), DType::f32, 2, 1);
  ASSERT_TRUE(validate(problem_)) << reason(problem_);
  reference(problem_);
  EXPECT_THAT(pairs, testing::ElementsAre(-222, -222));
  problem_.epilogue = parse_epilogue("D = acc; row(top) = max(acc)", DType::f32, {}).value_or_throw();
  problem_.d = matrix(d_.data(), DType::f32, 2, 2);
  problem_.tensors = {{"top", matrix(top.data(), DType::f32, 1, 2)}};
  reference(problem_);
  EXPECT_THAT(top, testing::ElementsAre(222, 444));
  EXPECT_TRUE(compare(problem_).is_exact());
}

}  // namespace
}  // namespace tilewright::op
