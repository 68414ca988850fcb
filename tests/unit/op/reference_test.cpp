// The reference against sums computed by hand, and its error bound against injected errors.
#include "tilewright/op/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tilewright/base/float_format.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

// Four matrices and the problem over them.
class Problem {
 public:
  Problem(std::int64_t m, std::int64_t n, std::int64_t k, DType in, DType out) {
    gemm.a = allocate(in, m, k);
    gemm.b = allocate(in, k, n);
    gemm.c = allocate(out, m, n);
    gemm.d = allocate(out, m, n);
    gemm.accumulator = default_accumulator(in);
    gemm.epilogue = linear_combination(default_compute(gemm.accumulator, out));
  }

  void fill(std::int64_t low, std::int64_t high) {
    fill_integers(gemm.a, low, high, 1);
    fill_integers(gemm.b, low, high, 2);
    fill_integers(gemm.c, low, high, 3);
    fill_poison(gemm.d);
  }

  Gemm gemm;

 private:
  Tensor allocate(DType type, std::int64_t rows, std::int64_t columns) {
    memory_.emplace_back(static_cast<std::size_t>(rows * columns * bytes(type) + 16));
    return matrix(memory_.back().data(), type, rows, columns);
  }

  std::vector<std::vector<std::byte>> memory_;
};

// D has padding between its three matrices, and B is broadcast.
TEST(ReferenceGemm, ABatchEqualsItsMatrices) {
  Problem problem(30, 11, 7, DType::f32, DType::f32);
  Gemm gemm = problem.gemm;
  gemm.a = batched(matrix(gemm.a.address, DType::f32, 5, 7), 3, 2 * 35);
  gemm.c = batched(matrix(gemm.c.address, DType::f32, 5, 11), 3);
  gemm.d = batched(matrix(gemm.d.address, DType::f32, 5, 11), 3, 2 * 55);
  gemm.beta = -1.0;
  problem.fill(-8, 7);
  reference(gemm);
  EXPECT_EQ(compare(gemm).checked, 3 * 5 * 11);
  EXPECT_TRUE(compare(gemm).is_exact()) << to_string(compare(gemm));
  for (int index = 0; index < 3; ++index) {
    const Gemm one = slice(gemm, index);
    double sum = -load(one.c, 4, 10);
    for (int p = 0; p < 7; ++p) sum += load(one.a, 4, p) * load(one.b, p, 10);
    EXPECT_EQ(load(one.d, 4, 10), sum) << index;
    EXPECT_TRUE(std::isnan(load(one.d, 5, 0))) << "padding between matrices " << index;
  }
  store(slice(gemm.d, 2), 1, 3, 1000.0);
  EXPECT_NE(to_string(compare(gemm)).find("1 of 165 elements wrong; first: D[2,1,3] is 1000"), std::string::npos)
      << to_string(compare(gemm));
}

// With more than 2^31 products, elements are sampled from every matrix.
TEST(ReferenceGemm, ASampleIsDrawnFromTheWholeBatch) {
  Problem problem(1, 1, 1, DType::f32, DType::f32);
  Gemm gemm = problem.gemm;
  std::vector<float> a(300 * 300, 1.0F), d(100 * 300 * 300, 300.0F);
  gemm.a = gemm.b = matrix(a.data(), DType::f32, 300, 300);
  gemm.d = batched(matrix(d.data(), DType::f32, 300, 300), 100);
  EXPECT_TRUE(compare(gemm).is_exact()) << to_string(compare(gemm));
  EXPECT_EQ(compare(gemm).checked, 4096);
  EXPECT_EQ(compare(gemm).elements, 100 * 300 * 300);
  std::fill(d.begin() + 99 * 90000, d.end(), 0.0F);
  EXPECT_NE(to_string(compare(gemm)).find("first: D[99,"), std::string::npos) << to_string(compare(gemm));
}

TEST(ReferenceGemm, MatchesItsDefinitionForEveryLayout) {
  for (int layouts = 0; layouts < 8; ++layouts) {
    Problem problem(5, 11, 7, DType::f32, DType::f32);
    Gemm& gemm = problem.gemm;
    const auto layout = [&](int bit) {
      return (layouts >> bit & 1) != 0 ? MatrixLayout::column_major : MatrixLayout::row_major;
    };
    gemm.a = matrix(gemm.a.address, DType::f32, 5, 7, layout(0));
    gemm.b = matrix(gemm.b.address, DType::f32, 7, 11, layout(1));
    gemm.d = matrix(gemm.d.address, DType::f32, 5, 11, layout(2));
    problem.fill(-8, 7);
    gemm.alpha = 2.0;
    gemm.beta = -1.0;
    reference(gemm);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 11; ++j) {
        double sum = 0;
        for (int p = 0; p < 7; ++p) sum += load(gemm.a, i, p) * load(gemm.b, p, j);
        EXPECT_EQ(load(gemm.d, i, j), 2.0 * sum - load(gemm.c, i, j));
      }
    }
    EXPECT_TRUE(compare(gemm).is_exact()) << to_string(compare(gemm));
  }
}

TEST(ReferenceGemm, IntegersSaturateAndWrap) {
  Problem problem(1, 1, 4, DType::s8, DType::s8);
  problem.fill(127, 127);
  reference(problem.gemm);
  EXPECT_EQ(load(problem.gemm.d, 0, 0), 127.0);
  // 4 * 127 * 127 / 1000 = 64.516, nearest 65
  problem.gemm.alpha = 0.001;
  reference(problem.gemm);
  EXPECT_EQ(load(problem.gemm.d, 0, 0), 65.0);

  constexpr std::int64_t kLong = 140000;  // 140000 * 127 * 127 = 2258060000 > 2^31
  Problem wrapping(1, 1, kLong, DType::s8, DType::s32);
  wrapping.fill(127, 127);
  reference(wrapping.gemm);
  EXPECT_EQ(load(wrapping.gemm.d, 0, 0), 2258060000.0 - 4294967296.0);
}

TEST(ReferenceGemm, ZeroScalarsAndZeroKReadNothing) {
  Problem problem(3, 4, 5, DType::f32, DType::f32);
  problem.fill(-4, 4);
  fill_poison(problem.gemm.c);
  reference(problem.gemm);
  EXPECT_FALSE(std::isnan(load(problem.gemm.d, 2, 3)));

  problem.fill(-4, 4);
  fill_poison(problem.gemm.a);
  problem.gemm.alpha = 0.0;
  problem.gemm.beta = 3.0;
  reference(problem.gemm);
  EXPECT_EQ(load(problem.gemm.d, 1, 1), 3.0 * load(problem.gemm.c, 1, 1));
  EXPECT_TRUE(compare(problem.gemm).is_exact());

  Problem empty(3, 4, 0, DType::f16, DType::f16);
  empty.fill(-4, 4);
  empty.gemm.beta = 2.0;
  empty.gemm.a.address = empty.gemm.b.address = 0;
  reference(empty.gemm);
  EXPECT_EQ(load(empty.gemm.d, 2, 0), 2.0 * load(empty.gemm.c, 2, 0));
}

TEST(ReferenceGemm, FastMathRoundsTheOperandsTo16Bits) {
  Problem problem(1, 1, 1, DType::f32, DType::f32);
  const float x = 1.0F + 0x1p-12F;
  store(problem.gemm.a, 0, 0, x);
  store(problem.gemm.b, 0, 0, 1.0);
  const auto result = [&](MathOperation math) {
    problem.gemm.math = math;
    reference(problem.gemm);
    return load(problem.gemm.d, 0, 0);
  };
  EXPECT_EQ(result(MathOperation::multiply_add), x);
  EXPECT_EQ(result(MathOperation::multiply_add_fast_f32), x);
  EXPECT_EQ(result(MathOperation::multiply_add_tf32), x) << "the rounding to tf32 is part of the error bound";
  EXPECT_EQ(result(MathOperation::multiply_add_fast_f16), 1.0);
  EXPECT_EQ(result(MathOperation::multiply_add_fast_bf16), 1.0);
}

TEST(ReferenceGemm, NanAndInfinityPropagate) {
  Problem problem(2, 2, 2, DType::f16, DType::f16);
  problem.fill(1, 1);
  store(problem.gemm.a, 0, 0, std::numeric_limits<double>::infinity());
  store(problem.gemm.a, 1, 1, std::numeric_limits<double>::quiet_NaN());
  reference(problem.gemm);
  EXPECT_TRUE(std::isinf(load(problem.gemm.d, 0, 1)));
  EXPECT_TRUE(std::isnan(load(problem.gemm.d, 1, 0)));
  EXPECT_TRUE(compare(problem.gemm).is_exact());
  store(problem.gemm.d, 0, 1, 5.0);  // finite where infinity is expected
  store(problem.gemm.d, 1, 0, 5.0);  // a number where NaN is expected
  EXPECT_EQ(compare(problem.gemm).outside, 2);
}

TEST(ReferenceGemm, EightBitFloatsSaturateAndKeepNan) {
  Problem problem(1, 2, 64, DType::e4m3, DType::e4m3);
  problem.fill(4, 4);  // 1024, past 448
  for (int p = 0; p < 64; ++p) store(problem.gemm.b, p, 1, p == 0 ? std::nan("") : 1.0);
  reference(problem.gemm);
  EXPECT_EQ(load(problem.gemm.d, 0, 0), 448.0);
  EXPECT_TRUE(std::isnan(load(problem.gemm.d, 0, 1)));
  EXPECT_TRUE(compare(problem.gemm).is_exact());
  store(problem.gemm.d, 0, 0, 384.0);
  EXPECT_EQ(compare(problem.gemm).outside, 1);
}

// k = 1024: without promotion after every 128 products, the bound is about eight times larger.
TEST(Compare, FastAccumulationHasALargerBound) {
  Problem problem(1, 1, 1024, DType::e5m2, DType::f32);
  problem.fill(1, 1);
  store(problem.gemm.d, 0, 0, 1024.0 - 64.0);
  EXPECT_EQ(compare(problem.gemm).outside, 1);
  problem.gemm.math = MathOperation::multiply_add_fast_accumulate;
  EXPECT_EQ(compare(problem.gemm).outside, 0);
  store(problem.gemm.d, 0, 0, 1024.0 - 256.0);
  EXPECT_EQ(compare(problem.gemm).outside, 1);
}

TEST(Compare, FindsOneWrongElement) {
  Problem problem(33, 17, 9, DType::f32, DType::f32);
  problem.fill(-8, 7);
  reference(problem.gemm);
  EXPECT_EQ(compare(problem.gemm).equal, 33 * 17);
  store(problem.gemm.d, 31, 16, load(problem.gemm.d, 31, 16) + 1.0);
  const Comparison comparison = compare(problem.gemm);
  EXPECT_EQ(comparison.outside, 1);
  EXPECT_EQ(comparison.equal, 33 * 17 - 1);
  EXPECT_EQ(comparison.worst.row, 31);
  EXPECT_EQ(comparison.worst.column, 16);
  EXPECT_NE(to_string(comparison).find("D[31,16]"), std::string::npos) << to_string(comparison);
}

// The indices of a place are those in the whole batch.
TEST(Compare, ChecksTheGivenPlaces) {
  Problem problem(30, 11, 7, DType::f32, DType::f32);
  Gemm& gemm = problem.gemm;
  problem.fill(-8, 7);
  gemm.a = batched(matrix(gemm.a.address, DType::f32, 10, 7), 3);
  gemm.d = batched(matrix(gemm.d.address, DType::f32, 10, 11), 3);
  std::vector<float> bias(11, 5.0F), aux(3 * 10 * 11);
  const Expression t = acc() + row("bias") + 100.0 * row_index() + 10000.0 * column_index();
  gemm.epilogue = make_epilogue("graph", DType::f32, t, {{"aux", -t}}).value_or_throw();
  gemm.tensors = {{"bias", matrix(bias.data(), DType::f32, 1, 11)},
                  {"aux", batched(matrix(aux.data(), DType::f32, 10, 11), 3)}};
  reference(gemm);
  const std::vector<Place> places{{0, 0, 0}, {2, 9, 10}, {1, 4, 7}};
  const Comparison right = compare_at(view(gemm), places);
  EXPECT_EQ(right.checked, 2 * 3);
  EXPECT_EQ(right.elements, 2 * 3 * 10 * 11);
  EXPECT_TRUE(right.is_exact()) << to_string(right);

  store(slice(gemm.tensors[1].tensor, 1), 4, 8, 0.0);
  EXPECT_TRUE(compare_at(view(gemm), places).is_exact()) << "the wrong element is not among the places";
  store(slice(gemm.tensors[1].tensor, 1), 4, 7, 0.0);
  const Comparison wrong = compare_at(view(gemm), places);
  EXPECT_EQ(wrong.outside, 1);
  EXPECT_TRUE(describe_worst(wrong).starts_with("aux[1,4,7] is 0, expected -7")) << describe_worst(wrong);
  EXPECT_TRUE(compare_at(view(gemm), {}).is_within_bound());
}

TEST(Compare, PoisonIsNeverAccepted) {
  for (const DType out : {DType::f16, DType::f32, DType::e4m3, DType::e5m2, DType::s32, DType::s8}) {
    const DType in = is_float(out) ? out : DType::s8;
    Problem problem(4, 4, 4, in, out);
    problem.fill(1, 2);
    EXPECT_EQ(compare(problem.gemm).outside, 16) << name(out);
  }
}

// f32 sums in another order, like a kernel's, are within the bound; an error a few times larger is not.
TEST(Compare, BoundHoldsForReorderedSumsAndIsTight) {
  constexpr std::int64_t kExtent = 24, kDepth = 500;
  Problem problem(kExtent, kExtent, kDepth, DType::f32, DType::f32);
  Gemm& gemm = problem.gemm;
  fill_normal(gemm.a, 1.0, 1);
  fill_normal(gemm.b, 1.0, 2);
  for (std::int64_t i = 0; i < kExtent; ++i) {
    for (std::int64_t j = 0; j < kExtent; ++j) {
      float sum = 0;
      for (std::int64_t p = kDepth - 1; p >= 0; --p) {
        sum += static_cast<float>(load(gemm.a, i, p)) * static_cast<float>(load(gemm.b, p, j));
      }
      store(gemm.d, i, j, sum);
    }
  }
  const Comparison comparison = compare(gemm);
  EXPECT_TRUE(comparison.is_within_bound()) << to_string(comparison);
  EXPECT_FALSE(comparison.is_exact());
  store(gemm.d, 3, 4, load(gemm.d, 3, 4) + 0.1);  // a lost or doubled product changes D by about 1
  EXPECT_EQ(compare(gemm).outside, 1);
}

TEST(Compare, EveryActivationAgreesWithItselfInF32) {
  for (const Activation activation : {Activation::relu, Activation::leaky_relu, Activation::tanh, Activation::sigmoid,
                                      Activation::silu, Activation::hardswish, Activation::gelu}) {
    Problem problem(16, 16, 16, DType::f32, DType::f32);
    fill_normal(problem.gemm.a, 3.0, 1);
    fill_normal(problem.gemm.b, 3.0, 2);
    problem.gemm.epilogue = linear_combination_generic(activation);
    reference(problem.gemm);
    EXPECT_TRUE(compare(problem.gemm).is_exact()) << name(activation) << to_string(compare(problem.gemm));
    store(problem.gemm.d, 0, 0, load(problem.gemm.d, 0, 0) + 0.01);
    EXPECT_EQ(compare(problem.gemm).outside, 1) << name(activation);
  }
}

TEST(Compare, LargeProblemsAreSampled) {
  Problem problem(2048, 2048, 1024, DType::s8, DType::s32);
  problem.fill(0, 0);
  fill_integers(problem.gemm.d, 0, 0, 1);
  Problem larger(2048, 2048, 1025, DType::s8, DType::s32);
  larger.fill(0, 0);
  fill_integers(larger.gemm.d, 0, 0, 1);
  const Comparison comparison = compare(larger.gemm);
  EXPECT_EQ(comparison.elements, 2048 * 2048);
  EXPECT_EQ(comparison.checked, 4096);
  EXPECT_TRUE(comparison.is_exact());
  EXPECT_NE(to_string(comparison).find("4096 of 4194304"), std::string::npos);
}

TEST(Reference, ReadsTheMatricesOfPointerArrays) {
  constexpr std::int64_t kBatch = 3, kM = 4, kN = 5, kK = 6;
  std::vector<float> a(kBatch * kM * kK), b(kBatch * kK * kN), strided_d(kBatch * kM * kN), d(kBatch * kM * kN);
  Gemm strided;
  strided.a = batched(matrix(a.data(), DType::f32, kM, kK), kBatch);
  strided.b = batched(matrix(b.data(), DType::f32, kK, kN), kBatch);
  strided.d = batched(matrix(strided_d.data(), DType::f32, kM, kN), kBatch);
  fill_integers(strided.a, -3, 3, 1);
  fill_integers(strided.b, -3, 3, 2);
  reference(view(strided));
  // The matrices in the opposite order.
  std::array<std::vector<std::uint64_t>, 3> addresses;
  for (std::int64_t i = kBatch - 1; i >= 0; --i) {
    addresses[0].push_back(slice(strided.a, i).address);
    addresses[1].push_back(slice(strided.b, i).address);
    addresses[2].push_back(reinterpret_cast<std::uint64_t>(d.data() + i * kM * kN));
  }
  Gemm gemm = strided;
  for (const auto& [tensor, array] :
       {std::pair{&gemm.a, &addresses[0]}, {&gemm.b, &addresses[1]}, {&gemm.d, &addresses[2]}})
    *tensor = pointer_array(matrix_at(*tensor, 0), reinterpret_cast<std::uint64_t>(array->data()), kBatch);
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  reference(view(gemm));
  EXPECT_EQ(d, strided_d);
  EXPECT_TRUE(compare(view(gemm)).is_exact());
  d[7] += 1.0F;  // matrix 2 of the array
  EXPECT_EQ(describe_worst(compare(view(gemm))).find("D[2,1,2]"), 0U) << describe_worst(compare(view(gemm)));
}

}  // namespace
}  // namespace tilewright::op
