// How a GEMM is split into parts along K.
#include "tilewright/op/split_k.hpp"

#include <gtest/gtest.h>

#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

constexpr std::uint64_t kApart = 1 << 20;

Gemm f16_gemm(std::int64_t k, MatrixLayout a = MatrixLayout::row_major, MatrixLayout b = MatrixLayout::column_major,
              int padding = 0) {
  Gemm gemm;
  gemm.a = matrix(kApart, DType::f16, 64, k, a, (a == MatrixLayout::row_major ? k : 64) + padding);
  gemm.b = matrix(2 * kApart, DType::f16, k, 48, b, (b == MatrixLayout::row_major ? 48 : k) + padding);
  gemm.d = matrix(3 * kApart, DType::f16, 64, 48);
  return gemm;
}

TEST(SplitK, KeepsTheAlignmentOfOperandsThatAreContiguousAlongK) {
  EXPECT_EQ(split_k(f16_gemm(96), 4), (KParts{4, 24, 24}));
  EXPECT_EQ(split_k(f16_gemm(104), 4), (KParts{4, 32, 8})) << "26 is rounded up to 16 bytes";
  EXPECT_EQ(split_k(f16_gemm(24), 4), (KParts{3, 8, 8})) << "fewer parts than asked for";
  EXPECT_EQ(split_k(f16_gemm(8), 100), (KParts{1, 8, 8}));
  EXPECT_EQ(split_k(f16_gemm(104, MatrixLayout::column_major, MatrixLayout::row_major), 4), (KParts{4, 26, 26}))
      << "neither operand is contiguous along K";
  EXPECT_EQ(split_k(f16_gemm(101), 4), (KParts{4, 26, 23})) << "the operands are not aligned";
  EXPECT_EQ(split_k(f16_gemm(96), 1), (KParts{1, 96, 96}));
  EXPECT_EQ(split_k(f16_gemm(0), 4), KParts{}) << "the product is not read";
}

TEST(SplitK, EqualPartsAreOneBatch) {
  const Gemm gemm = f16_gemm(96);
  const SplitK split = split_k(gemm, 4, 4 * kApart).value_or_throw();
  EXPECT_EQ(split.k_part, 24);
  EXPECT_EQ(split.workspace_bytes(), 4 * 64 * 48 * 4);
  ASSERT_EQ(split.gemms.size(), 1U);
  const Gemm& parts = split.gemms.front();
  EXPECT_TRUE(validate(parts)) << validate(parts).reason();
  EXPECT_EQ(parts.a.shape, (Dims{4, 64, 24}));
  EXPECT_EQ(parts.a.stride, (Dims{24, 96, 1}));
  EXPECT_EQ(parts.b.shape, (Dims{4, 24, 48}));
  EXPECT_EQ(parts.b.stride, (Dims{24, 1, 96}));
  EXPECT_EQ(parts.d, split.reduction.parts);
  EXPECT_EQ(parts.d.dtype, DType::f32);
  EXPECT_EQ(describe(parts).a.alignment, 8);
  EXPECT_TRUE(validate(split.reduction)) << validate(split.reduction).reason();
  EXPECT_EQ(split.reduction.d, gemm.d);
}

TEST(SplitK, AShorterLastPartIsAGemmOfItsOwn) {
  const SplitK split = split_k(f16_gemm(104), 4, 4 * kApart).value_or_throw();
  ASSERT_EQ(split.gemms.size(), 2U);
  EXPECT_EQ(split.gemms[0].d.batch(), 3);
  const Gemm& last = split.gemms[1];
  EXPECT_TRUE(validate(last)) << validate(last).reason();
  EXPECT_EQ(last.k(), 8);
  EXPECT_EQ(last.a.address, kApart + 96 * 2);
  EXPECT_EQ(last.b.address, 2 * kApart + 96 * 2);
  EXPECT_EQ(last.d.address, 4 * kApart + 3 * 64 * 48 * 4);
  EXPECT_EQ(last.d.shape, (Dims{64, 48}));
}

TEST(SplitK, PartsHaveTheLayoutOfDAndTheTypeOfTheAccumulator) {
  Gemm gemm = f16_gemm(96);
  gemm.d = matrix(3 * kApart, DType::f16, 64, 48, MatrixLayout::column_major);
  gemm.accumulator = DType::f16;
  const SplitK split = split_k(gemm, 2, 4 * kApart).value_or_throw();
  EXPECT_EQ(split.reduction.parts.dtype, DType::f16);
  EXPECT_EQ(split.reduction.accumulator, DType::f32);
  EXPECT_EQ(split.reduction.parts.stride, (Dims{64 * 48, 1, 64}));
  EXPECT_TRUE(validate(split.reduction)) << validate(split.reduction).reason();
  EXPECT_TRUE(validate(split.gemms[0])) << validate(split.gemms[0]).reason();
}

TEST(SplitK, AProductThatIsNotReadHasNoParts) {
  Gemm gemm = f16_gemm(96);
  gemm.alpha = 0.0;
  const SplitK split = split_k(gemm, 4, 0).value_or_throw();
  EXPECT_TRUE(split.gemms.empty());
  EXPECT_EQ(split.reduction.count(), 0);
  EXPECT_EQ(split.workspace_bytes(), 0);
  EXPECT_TRUE(validate(split.reduction)) << validate(split.reduction).reason();
}

TEST(SplitK, RefusesPointerArraysAndInterleavedMatrices) {
  Gemm gemm = f16_gemm(96);
  gemm.b = pointer_array(gemm.b, 2 * kApart, 1);
  EXPECT_EQ(split_k(gemm, 4, 4 * kApart).reason(),
            "B is an array of pointers, but split-K in parallel mode needs single matrices");
  gemm = f16_gemm(96);
  gemm.a = matrix(kApart, DType::s8, 64, 96, MatrixLayout::column_interleaved);
  EXPECT_EQ(split_k(gemm, 4, 4 * kApart).reason(),
            "A is interleaved, but split-K in parallel mode needs row-major or column-major matrices");
}

TEST(SplitK, RefusesWithTheNumber) {
  EXPECT_EQ(split_k(f16_gemm(96), 0, 0).reason(), "K must be split into at least 1 part, got 0");
  Gemm batch = f16_gemm(96);
  batch.d = batched(batch.d, 3);
  EXPECT_EQ(split_k(batch, 4, 0).reason(), "split-K in parallel mode needs single matrices, got a batch of 3");
}

}  // namespace
}  // namespace tilewright::op
