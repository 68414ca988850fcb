// The verifier, on results that the tests construct.
#include "bench/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewright/base/float_format.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Operands of small integers in their memory layout, and their exact product as D of plain(problem).
struct Example {
  Problem problem;
  Sources sources;
  Output d;
};

using Store = void (*)(std::vector<std::byte>&, std::int64_t index, double value);

void store_f32(std::vector<std::byte>& bytes, std::int64_t index, double value) {
  const auto narrow = static_cast<float>(value);
  std::memcpy(bytes.data() + index * 4, &narrow, 4);
}

void store_nothing(std::vector<std::byte>& /*bytes*/, std::int64_t /*index*/, double /*value*/) {}

void store_e4m3(std::vector<std::byte>& bytes, std::int64_t index, double value) {
  bytes[static_cast<std::size_t>(index)] = std::byte{f64_to_e4m3(value)};
}

double element_of_a(std::int64_t matrix, std::int64_t row, std::int64_t k) {
  return static_cast<double>((matrix + 3 * row + k) % 7 - 3);
}
double element_of_b(std::int64_t matrix, std::int64_t k, std::int64_t column) {
  return static_cast<double>((matrix + k + 3 * column) % 5 - 2);
}

Example make_example(const std::string& line, Store store, Store store_d = store_f32) {
  Example example{*parse_problem(line), {}, {}};
  const Problem& problem = example.problem;
  const StoredMatrix a = stored_a(problem), b = stored_b(problem), d = stored_d(plain(problem));
  example.sources.a.resize(a.bytes(), std::byte{0x7f});  // the gaps between rows are NaN or huge numbers
  example.sources.b.resize(b.bytes(), std::byte{0x7f});
  example.d.bytes.resize(d.bytes());
  for (std::int64_t matrix = 0; matrix < problem.batch; ++matrix) {
    for (std::int64_t k = 0; k < problem.k; ++k) {
      for (std::int64_t row = 0; row < problem.m; ++row)
        store(example.sources.a, a.index(matrix, row, k), element_of_a(matrix, row, k));
      for (std::int64_t column = 0; column < problem.n; ++column)
        store(example.sources.b, b.index(matrix, k, column), element_of_b(matrix, k, column));
    }
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < problem.k; ++k)
          sum += element_of_a(matrix, row, k) * element_of_b(matrix, k, column);
        store_d(example.d.bytes, d.index(matrix, row, column), sum);
      }
    }
  }
  return example;
}

constexpr const char* kBatched = "dtype=f32 batch=3 m=4 n=5 k=6 b=col d=col lda=9 ldb=8 ldd=7";

TEST(Verify, TheExactProductIsAcceptedInEveryMatrixOfABatch) {
  const Example example = make_example(kBatched, store_f32);
  const Verifier verifier(example.problem, example.sources);
  const Verdict verdict = verifier.against_exact(example.d);
  EXPECT_TRUE(verdict.right) << verdict.reason;
  EXPECT_EQ(verdict.max_error, 0.0);
  EXPECT_EQ(verifier.disagreement(example.d, example.d), "");
}

TEST(Verify, OneWrongElementIsNamed) {
  const Example example = make_example(kBatched, store_f32);
  const Verifier verifier(example.problem, example.sources);
  Output wrong = example.d;
  store_f32(wrong.bytes, stored_d(example.problem).index(2, 3, 4), 1000.0);
  EXPECT_THAT(verifier.against_exact(wrong).reason, StartsWith("D[2,3,4] is 1000"));
  EXPECT_THAT(verifier.disagreement(wrong, example.d), StartsWith("D[2,3,4] is 1000"));
  store_f32(wrong.bytes, stored_d(example.problem).index(1, 0, 1), 500.0);
  EXPECT_THAT(verifier.disagreement(wrong, example.d), StartsWith("D[1,0,1] is 500"));
}

TEST(Verify, ElementsThatWereNotWrittenAreWrong) {
  const Example example = make_example(kBatched, store_f32);
  const Output poisoned{std::vector<std::byte>(example.d.bytes.size(), std::byte{0xff})};
  EXPECT_THAT(Verifier(example.problem, example.sources).against_exact(poisoned).reason, HasSubstr("nan"));
}

TEST(Verify, EightBitFloatsMayHaveTheTensorCoresTruncationError) {
  const Example example = make_example("dtype=e4m3 out=f32 m=16 n=16 k=64 b=col", store_e4m3);
  const Verifier verifier(example.problem, example.sources);
  EXPECT_EQ(verifier.against_exact(example.d).max_error, 0.0);
  const StoredMatrix d = stored_d(example.problem);
  Output off = example.d;
  float first = 0.0F;
  std::memcpy(&first, off.bytes.data(), sizeof first);
  store_f32(off.bytes, d.index(0, 0, 0), first + 4 * 64 * 0x1p-13);
  EXPECT_TRUE(verifier.against_exact(off).right);
  store_f32(off.bytes, d.index(0, 0, 0), first + 4 * 64 * 0x1p-12);
  EXPECT_FALSE(verifier.against_exact(off).right);
}

/// D[0,0] of all-ones operands with K of 16384, too small by `error`.
Verdict verdict_of_a_large_sum(const std::string& dtype, double error) {
  constexpr double kSum = 16384;
  Example example = make_example("dtype=" + dtype + " out=f32 m=8 n=8 k=16384 b=col", store_nothing);
  const auto ones = [&](std::vector<std::byte>& bytes) {
    if (dtype == "f16") {
      for (std::size_t i = 0; i < bytes.size(); i += 2) bytes[i] = std::byte{0x00}, bytes[i + 1] = std::byte{0x3c};
    } else {
      for (std::size_t i = 0; i < bytes.size() / 4; ++i) store_f32(bytes, static_cast<std::int64_t>(i), 1.0);
    }
  };
  ones(example.sources.a);
  ones(example.sources.b);
  for (std::int64_t i = 0; i < 64; ++i) store_f32(example.d.bytes, i, kSum);
  store_f32(example.d.bytes, 0, kSum - error);
  return Verifier(example.problem, example.sources).against_exact(example.d);
}

TEST(Verify, TensorCoresMayTruncateALargeSum) {
  constexpr double kAllowed = 16384.0 / 16 * 0x1p-24 * 16384;  // 1024 additions lose half a unit each
  EXPECT_TRUE(verdict_of_a_large_sum("f16", 0.9 * kAllowed).right);
  EXPECT_FALSE(verdict_of_a_large_sum("f16", 1.1 * kAllowed).right);
  EXPECT_FALSE(verdict_of_a_large_sum("f32", 0.1 * kAllowed).right) << "CUDA cores round";
}

TEST(Verify, WrongElementsAreCounted) {
  const Example example = make_example(kBatched, store_f32);
  const Verifier verifier(example.problem, example.sources);
  EXPECT_EQ(verifier.against_exact(example.d).wrong, 0);
  EXPECT_EQ(verifier.against_exact(example.d).compared, 512);
  const Output poisoned{std::vector<std::byte>(example.d.bytes.size(), std::byte{0xff})};
  const Verdict verdict = verifier.against_exact(poisoned);
  EXPECT_EQ(verdict.wrong, 512);
  EXPECT_THAT(verdict.reason, HasSubstr("(512 of 512 compared elements are wrong)"));
}

/// A sum that cancels has the errors of its partial sums, which are larger than one unit of the sum.
TEST(Verify, RoundedPartialSumsExplainSmallErrorsOnly) {
  const Example example = make_example("dtype=f32 out=f16 m=16 n=16 k=64 b=col", store_f32,
                                       [](std::vector<std::byte>& bytes, std::int64_t index, double value) {
                                         const std::uint16_t half = f32_to_f16(static_cast<float>(value));
                                         std::memcpy(bytes.data() + index * 2, &half, 2);
                                       });
  const Verifier verifier(example.problem, example.sources);
  const auto first_off_by = [&](double error) {
    Output off = example.d;
    std::uint16_t half = 0;
    std::memcpy(&half, off.bytes.data(), 2);
    half = f32_to_f16(f16_to_f32(half) + static_cast<float>(error));
    std::memcpy(off.bytes.data(), &half, 2);
    return off;
  };
  const double of_parts = 2 * 3 * 0x1p-11 * 8 * 8;  // three parts, each at most 8 * sqrt(64)
  EXPECT_TRUE(verifier.is_sum_of_rounded_parts(example.d, 3));
  EXPECT_FALSE(verifier.against_exact(first_off_by(0.9 * of_parts)).right);
  EXPECT_TRUE(verifier.is_sum_of_rounded_parts(first_off_by(0.9 * of_parts), 3));
  EXPECT_FALSE(verifier.is_sum_of_rounded_parts(first_off_by(2.0 * of_parts), 3));
}

/// Adds the epilogue's tensors to the example: 1, 2, 3, ... Its outputs have the same values, which are wrong.
Example with_tensors(Example example) {
  for (const StoredTensor& tensor : stored_tensors(example.problem)) {
    std::vector<std::byte> bytes(tensor.stored.bytes());
    for (std::int64_t i = 0; i < tensor.stored.rows * tensor.stored.columns; ++i)
      store_f32(bytes, i, static_cast<double>(i + 1));
    example.sources.tensors.push_back(tensor.is_written ? std::vector<std::byte>() : bytes);
    example.d.tensors.push_back(tensor.is_written ? bytes : std::vector<std::byte>());
  }
  return example;
}

/// An example of small integers, whose product and epilogue are exact in f32.
Example with_epilogue(const std::string& epilogue) {
  return with_tensors(make_example("dtype=f32 m=4 n=5 k=6 b=col epilogue=" + epilogue, store_f32));
}

double load_f32(const std::vector<std::byte>& bytes, std::int64_t index) {
  float value = 0.0F;
  std::memcpy(&value, bytes.data() + index * 4, sizeof value);
  return value;
}

TEST(VerifyEpilogue, TheBiasOfEachColumnIsAdded) {
  Example example = with_epilogue("bias");
  const Verifier verifier(example.problem, example.sources);
  EXPECT_FALSE(verifier.against_exact(example.d).right);
  for (std::int64_t i = 0; i < 20; ++i)
    store_f32(example.d.bytes, i, load_f32(example.d.bytes, i) + static_cast<double>(i % 5 + 1));
  EXPECT_EQ(verifier.against_exact(example.d).max_error, 0.0);
  EXPECT_TRUE(Verifier(plain(example.problem), example.sources).against_exact(with_epilogue("bias").d).right);
}

TEST(VerifyEpilogue, CIsAdded) {
  Example example = with_epilogue("residual");
  example.sources.c = example.d.bytes;
  for (std::int64_t i = 0; i < 20; ++i) store_f32(example.d.bytes, i, 2.0 * load_f32(example.d.bytes, i));
  EXPECT_EQ(Verifier(example.problem, example.sources).against_exact(example.d).max_error, 0.0);
}

TEST(VerifyEpilogue, AuxiliaryOutputsAreChecked) {
  Example example = with_epilogue("bias_gelu_aux");
  const Verifier verifier(example.problem, example.sources);
  for (std::int64_t i = 0; i < 20; ++i) {
    const double t = load_f32(example.d.bytes, i) + static_cast<double>(i % 5 + 1);
    store_f32(example.d.tensors[1], i, t);
    store_f32(example.d.bytes, i,
              t / 2.0 * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (t + 0.044715 * t * t * t))));
  }
  EXPECT_TRUE(verifier.against_exact(example.d).right) << verifier.against_exact(example.d).reason;
  Output wrong = example.d;
  store_f32(wrong.tensors[1], 0, 1000.0);
  EXPECT_THAT(verifier.against_exact(wrong).reason, StartsWith("aux[0,0] is 1000"));
  EXPECT_THAT(verifier.disagreement(wrong, example.d), StartsWith("aux[0,0] is 1000"));
  EXPECT_EQ(verifier.disagreement(example.d, example.d), "");
}

TEST(VerifyEpilogue, AContenderMayRoundTheIntermediateProduct) {
  Example example = with_epilogue("bias");
  const Verifier verifier(example.problem, example.sources);
  for (std::int64_t i = 0; i < 20; ++i)
    store_f32(example.d.bytes, i, load_f32(example.d.bytes, i) * (1.0 + 0x1p-9) + static_cast<double>(i % 5 + 1));
  EXPECT_FALSE(verifier.against_exact(example.d).right);
  EXPECT_TRUE(verifier.against_exact(example.d, store_error(DType::bf16)).right);
}

/// silu(x) * y, where x and y are the product's columns first(j) and second(j) multiplied by `scale`.
template <class First, class Second>
Output gated(const Example& product, const First& first, const Second& second, double scale = 1.0) {
  Output d{std::vector<std::byte>(stored_d(product.problem).bytes())};
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t j = 0; j < 3; ++j) {
      const double x = scale * load_f32(product.d.bytes, row * 6 + first(j));
      const double y = scale * load_f32(product.d.bytes, row * 6 + second(j));
      store_f32(d.bytes, row * 3 + j, x / (1.0 + std::exp(-x)) * y);
    }
  }
  return d;
}

constexpr const char* kSwiglu = "dtype=f32 m=4 n=6 k=6 b=col epilogue=swiglu";
std::int64_t even(std::int64_t j) { return 2 * j; }
std::int64_t odd(std::int64_t j) { return 2 * j + 1; }

TEST(VerifyPairs, EachElementDependsOnAdjacentColumns) {
  const Example example = make_example(kSwiglu, store_f32);
  const Verifier verifier(example.problem, example.sources);
  const Output d = gated(example, even, odd);
  EXPECT_TRUE(verifier.against_exact(d).right) << verifier.against_exact(d).reason;
  EXPECT_LT(verifier.against_exact(d).max_error, 1e-4);
  EXPECT_THAT(verifier.against_exact(gated(example, odd, even)).reason, StartsWith("D["));
  EXPECT_THAT(verifier
                  .against_exact(gated(
                      example, [](auto j) { return j; }, [](auto j) { return j + 3; }))
                  .reason,
              StartsWith("D["));
}

TEST(VerifyPairs, EveryElementIsSampledAndComparedAtItsOwnPlace) {
  const Example example = make_example(kSwiglu, store_f32);
  const Verifier verifier(example.problem, example.sources);
  const Output d = gated(example, even, odd);
  EXPECT_EQ(verifier.disagreement(d, d), "");
  for (std::int64_t i = 0; i < 12; ++i) {
    Output wrong = d;
    store_f32(wrong.bytes, i, load_f32(d.bytes, i) + 0x1p-8);
    const std::string name = fmt::format("D[{},{}] is ", i / 3, i % 3);
    EXPECT_THAT(verifier.against_exact(wrong).reason, StartsWith(name));
    EXPECT_THAT(verifier.disagreement(wrong, d), StartsWith(name));
  }
}

TEST(VerifyPairs, BothElementsMayBeRounded) {
  const Example example = make_example(kSwiglu, store_f32);
  const Verifier verifier(example.problem, example.sources);
  const double rounding = store_error(DType::bf16);
  const Output rounded = gated(example, even, odd, 1.0 + rounding);
  EXPECT_FALSE(verifier.against_exact(rounded).right);
  EXPECT_TRUE(verifier.against_exact(rounded, rounding).right) << verifier.against_exact(rounded, rounding).reason;
  EXPECT_FALSE(verifier.against_exact(gated(example, even, odd, 1.1), rounding).right);
}

TEST(VerifyPairs, RoundingOfBothElementsAddsUpIfTheyAreLarge) {
  const Example example = make_example(kSwiglu, [](auto& bytes, auto index, double) { store_f32(bytes, index, 8.0); });
  const Verifier verifier(example.problem, example.sources);
  const double rounding = store_error(DType::bf16);
  Output d{std::vector<std::byte>(stored_d(example.problem).bytes())};
  const auto store_all = [&](double product) {
    for (std::int64_t i = 0; i < 12; ++i) store_f32(d.bytes, i, product * product);
  };
  store_all(6 * 64 * (1.0 + rounding));
  EXPECT_TRUE(verifier.against_exact(d, rounding).right) << verifier.against_exact(d, rounding).reason;
  store_all(6 * 64 * (1.0 + 2.0 * rounding));
  EXPECT_FALSE(verifier.against_exact(d, rounding).right);
}

TEST(VerifyPairs, ThePlainProductHasAllColumns) {
  const Example example = make_example(kSwiglu, store_f32);
  EXPECT_TRUE(Verifier(plain(example.problem), example.sources).against_exact(example.d).right);
}

TEST(Verify, ABoundAsLargeAsTheElementsIsReported) {
  const Example example = make_example(kSwiglu, store_f32);
  const Verifier verifier(example.problem, example.sources);
  EXPECT_THAT(verifier.against_exact(gated(example, even, odd), 1.0).reason, StartsWith("D cannot be verified: its"));
}

Example with_row_sums() {
  Example example = with_epilogue("row_sum");
  for (std::int64_t row = 0; row < 4; ++row) {
    double sum = 0.0;
    for (std::int64_t column = 0; column < 5; ++column) sum += load_f32(example.d.bytes, row * 5 + column);
    store_f32(example.d.tensors[0], row, sum);
  }
  return example;
}

TEST(VerifyReduction, SumsOfSampledRowsAreExact) {
  const Example example = with_row_sums();
  const Verifier verifier(example.problem, example.sources);
  EXPECT_TRUE(verifier.against_exact(example.d).right) << verifier.against_exact(example.d).reason;
  for (const std::int64_t row : {0, 3}) {  // the first and the last row are always sampled
    Output off = example.d;
    store_f32(off.tensors[0], row, load_f32(off.tensors[0], row) + 0x1p-10);
    EXPECT_THAT(verifier.against_exact(off).reason, StartsWith(row == 0 ? "sums[0,0] is " : "sums[3,0] is "));
  }
}

TEST(VerifyReduction, EverySumIsComparedWithTheOtherResult) {
  const Example example = with_row_sums();
  const Verifier verifier(example.problem, example.sources);
  EXPECT_EQ(verifier.disagreement(example.d, example.d), "");
  for (std::int64_t row = 0; row < 4; ++row) {
    Output off = example.d;
    store_f32(off.tensors[0], row, load_f32(off.tensors[0], row) + 0x1p-10);
    EXPECT_THAT(verifier.disagreement(off, example.d), StartsWith(fmt::format("sums[{},0] is ", row)));
  }
}

TEST(VerifyReduction, ASumMayAddRoundedValues) {
  Example example = with_row_sums();
  const Verifier verifier(example.problem, example.sources);
  store_f32(example.d.tensors[0], 0, load_f32(example.d.tensors[0], 0) + 0x1p-6);
  EXPECT_FALSE(verifier.against_exact(example.d).right);
  EXPECT_TRUE(verifier.against_exact(example.d, store_error(DType::bf16)).right);
  store_f32(example.d.tensors[0], 0, load_f32(example.d.tensors[0], 0) + 16.0);
  EXPECT_FALSE(verifier.against_exact(example.d, store_error(DType::bf16)).right);
}

/// D is scaled and rounded; the largest magnitude is of the values before that.
TEST(VerifyReduction, TheLargestMagnitudeIsTakenWhereDIsLargest) {
  static constexpr char kProblem[] = "dtype=e4m3 out={} m=16 n=16 k=64 b=col{}";
  const Example product = make_example(fmt::format(kProblem, "f32", ""), store_e4m3);
  Example example =
      with_tensors(make_example(fmt::format(kProblem, "e4m3", " epilogue=quantise_amax"), store_e4m3, store_e4m3));
  constexpr double kScale = 1.1;
  store_f32(example.sources.tensors[0], 0, kScale);
  double largest = 0.0;
  for (std::int64_t i = 0; i < 256; ++i) {
    const double unscaled = load_f32(product.d.bytes, i);
    store_e4m3(example.d.bytes, i, kScale * unscaled);
    largest = std::max(largest, std::abs(unscaled));
  }
  const Verifier verifier(example.problem, example.sources);
  const auto reason = [&](double amax) {
    store_f32(example.d.tensors[1], 0, amax);
    return verifier.against_exact(example.d).reason;
  };
  EXPECT_EQ(reason(largest), "");
  EXPECT_THAT(reason(largest - 0.5), StartsWith("amax[0,0] is "));
  EXPECT_THAT(reason(kScale * largest), StartsWith("amax[0,0] is "));
  EXPECT_THAT(reason(-largest), StartsWith("amax[0,0] is "));
  EXPECT_THAT(reason(3.4e38), StartsWith("amax[0,0] is "));
  EXPECT_THAT(reason(std::nan("")), StartsWith("amax[0,0] is nan"));
}

TEST(VerifyReduction, TooManyElementsOfTheLargestMagnitudeAreNotVerified) {
  Example example = with_tensors(make_example("dtype=f32 m=80 n=80 k=1 b=col epilogue=quantise_amax",
                                              [](auto& bytes, auto index, double) { store_f32(bytes, index, 1.0); }));
  for (std::int64_t i = 0; i < 80 * 80; ++i) store_f32(example.d.bytes, i, 1.0);
  store_f32(example.d.tensors[1], 0, 1.0);
  EXPECT_THAT(Verifier(example.problem, example.sources).against_exact(example.d).reason,
              StartsWith("amax cannot be verified: more than 4096"));
}

}  // namespace
}  // namespace tilewright::bench
