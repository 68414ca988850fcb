// What is right and what is wrong, on results made here.
#include "bench/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tilewright/base/float_format.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Operands of small integers as they lie in memory, and their exact product.
struct Example {
  Problem problem;
  std::vector<std::byte> a, b;
  Output d;
};

using Store = void (*)(std::vector<std::byte>&, std::int64_t index, double value);

void store_f32(std::vector<std::byte>& bytes, std::int64_t index, double value) {
  const auto narrow = static_cast<float>(value);
  std::memcpy(bytes.data() + index * 4, &narrow, 4);
}

void store_e4m3(std::vector<std::byte>& bytes, std::int64_t index, double value) {
  bytes[static_cast<std::size_t>(index)] = std::byte{f64_to_e4m3(value)};
}

double element_of_a(std::int64_t matrix, std::int64_t row, std::int64_t k) {
  return static_cast<double>((matrix + 3 * row + k) % 7 - 3);
}
double element_of_b(std::int64_t matrix, std::int64_t k, std::int64_t column) {
  return static_cast<double>((matrix + k + 5 * column) % 5 - 2);
}

Example make_example(const char* line, Store store) {
  Example example{*parse_problem(line), {}, {}, {}};
  const Problem& problem = example.problem;
  const StoredMatrix a = stored_a(problem), b = stored_b(problem), d = stored_d(problem);
  example.a.resize(a.bytes(), std::byte{0x7f});  // a NaN or a huge number between the rows
  example.b.resize(b.bytes(), std::byte{0x7f});
  example.d.bytes.resize(d.bytes());
  for (std::int64_t matrix = 0; matrix < problem.batch; ++matrix) {
    for (std::int64_t k = 0; k < problem.k; ++k) {
      for (std::int64_t row = 0; row < problem.m; ++row)
        store(example.a, a.index(matrix, row, k), element_of_a(matrix, row, k));
      for (std::int64_t column = 0; column < problem.n; ++column)
        store(example.b, b.index(matrix, k, column), element_of_b(matrix, k, column));
    }
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < problem.k; ++k)
          sum += element_of_a(matrix, row, k) * element_of_b(matrix, k, column);
        store_f32(example.d.bytes, d.index(matrix, row, column), sum);
      }
    }
  }
  return example;
}

constexpr const char* kBatched = "dtype=f32 batch=3 m=4 n=5 k=6 b=col d=col lda=9 ldb=8 ldd=7";

TEST(Verify, ExactProductIsRightInEveryMatrixOfABatch) {
  const Example example = make_example(kBatched, store_f32);
  const Verifier verifier(example.problem, example.a, example.b);
  const Verdict verdict = verifier.against_exact(example.d);
  EXPECT_TRUE(verdict.right) << verdict.reason;
  EXPECT_EQ(verdict.max_error, 0.0);
  EXPECT_EQ(verifier.disagreement(example.d, example.d), "");
}

TEST(Verify, OneWrongElementIsNamed) {
  const Example example = make_example(kBatched, store_f32);
  const Verifier verifier(example.problem, example.a, example.b);
  Output wrong = example.d;
  store_f32(wrong.bytes, stored_d(example.problem).index(2, 3, 4), 1000.0);
  EXPECT_THAT(verifier.against_exact(wrong).reason, StartsWith("D[2,3,4] is 1000"));
  EXPECT_THAT(verifier.disagreement(wrong, example.d), StartsWith("D[2,3,4] is 1000"));
  store_f32(wrong.bytes, stored_d(example.problem).index(1, 0, 1), 500.0);
  EXPECT_THAT(verifier.disagreement(wrong, example.d), StartsWith("D[1,0,1] is 500"));
}

TEST(Verify, WhatWasNeverWrittenIsWrong) {
  const Example example = make_example(kBatched, store_f32);
  const Output spoilt{std::vector<std::byte>(example.d.bytes.size(), std::byte{0xff})};
  EXPECT_THAT(Verifier(example.problem, example.a, example.b).against_exact(spoilt).reason, HasSubstr("nan"));
}

TEST(Verify, EightBitFloatsMayLoseWhatTheTensorCoreTruncates) {
  const Example example = make_example("dtype=e4m3 out=f32 m=16 n=16 k=64 b=col", store_e4m3);
  const Verifier verifier(example.problem, example.a, example.b);
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

}  // namespace
}  // namespace tilewright::bench
