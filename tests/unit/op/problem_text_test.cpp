// op::problem_text: problems that differ in what a kernel is chosen by have different texts.
#include "tilewright/op/problem_text.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tilewright/op/named_epilogue.hpp"

namespace tilewright::op {
namespace {

Gemm gemm_of(MatrixLayout b = MatrixLayout::row_major, std::int64_t ld = 0) {
  Gemm gemm;
  gemm.a = matrix(std::uint64_t{0x10000}, DType::f16, 64, 32);
  gemm.b = matrix(std::uint64_t{0x20000}, DType::f16, 32, 48, b, ld);
  gemm.d = matrix(std::uint64_t{0x30000}, DType::f16, 64, 48);
  return gemm;
}

TEST(ProblemText, HasTheStridesOfTensorsThatAreNotPacked) {
  EXPECT_EQ(problem_text(gemm_of()), "gemm A(64,32):f16 B(32,48):f16 D(64,48):f16");
  EXPECT_EQ(problem_text(gemm_of(MatrixLayout::column_major)), "gemm A(64,32):f16 B(32,48):(1,32):f16 D(64,48):f16");
  EXPECT_EQ(problem_text(gemm_of(MatrixLayout::row_major, 56)), "gemm A(64,32):f16 B(32,48):(56,1):f16 D(64,48):f16");
  Gemm batch = gemm_of();
  batch.a = pointer_array(batch.a, 0x40000, 3);
  batch.b = batched(batch.b, 3, 0);
  batch.d = batched(batch.d, 3);
  EXPECT_EQ(problem_text(batch), "gemm A(3,64,32):f16* B(3,32,48):(0,48,1):f16 D(3,64,48):f16");
}

TEST(ProblemText, IgnoresStridesThatAddressNothing) {
  Gemm gemm;
  gemm.a = matrix(std::uint64_t{0x10000}, DType::f32, 1, 32, MatrixLayout::row_major, 40);
  gemm.b = matrix(std::uint64_t{0x20000}, DType::f32, 32, 0, MatrixLayout::column_major);
  gemm.d = matrix(std::uint64_t{0x30000}, DType::f32, 1, 0);
  EXPECT_EQ(problem_text(gemm), "gemm A(1,32):f32 B(32,0):f32 D(1,0):f32");
}

TEST(ProblemText, HasInterleavedLayouts) {
  Gemm gemm;
  gemm.a = matrix(std::uint64_t{0x10000}, DType::s8, 40, 96, MatrixLayout::column_interleaved);
  gemm.b = matrix(std::uint64_t{0x20000}, DType::s8, 96, 64, MatrixLayout::row_interleaved);
  gemm.d = matrix(std::uint64_t{0x30000}, DType::s32, 40, 64);
  gemm.accumulator = DType::s32;
  gemm.epilogue = linear_combination(DType::s32);
  EXPECT_EQ(problem_text(gemm), "gemm A(40,96):column_interleaved_32:s8 B(96,64):row_interleaved_32:s8 D(40,64):s32");
}

TEST(ProblemText, HasWhatIsNoDefault) {
  Gemm gemm = gemm_of();
  gemm.accumulator = DType::f16;
  gemm.epilogue = linear_combination_generic(Activation::relu);
  EXPECT_EQ(problem_text(gemm),
            "gemm A(64,32):f16 B(32,48):f16 D(64,48):f16, accumulated in f16, linear_combination_relu");
  gemm = gemm_of();
  for (Tensor* const each : {&gemm.a, &gemm.b, &gemm.d}) each->dtype = DType::f32;
  gemm.math = MathOperation::multiply_add_tf32;
  EXPECT_EQ(problem_text(gemm), "gemm A(64,32):f32 B(32,48):f32 D(64,48):f32, multiply_add_tf32");
}

TEST(ProblemText, HasThePassAndTheWindowOfAConvolution) {
  const auto tensor = [](const Dims& shape) { return packed_tensor(0x10000, DType::f16, shape); };
  Conv2d conv{.x = tensor({2, 8, 8, 16}), .w = tensor({32, 3, 3, 16}), .y = tensor({2, 6, 6, 32}), .c = {}};
  EXPECT_EQ(problem_text(conv), "conv2d fprop x(2,8,8,16):f16 w(32,3,3,16):f16 y(2,6,6,32):f16");
  conv = {.pass = ConvPass::dgrad,
          .x = tensor({2, 8, 8, 16}),
          .w = tensor({32, 3, 3, 8}),
          .y = tensor({2, 4, 8, 32}),
          .c = {},
          .padding = {1, 1},
          .stride = {2, 1},
          .groups = 2,
          .mode = ConvMode::convolution};
  const std::string text = problem_text(conv);
  EXPECT_EQ(text.substr(0, 13), "conv2d dgrad ");
  EXPECT_EQ(text.substr(text.find(',', text.rfind("f16"))), ", stride 2x1, padding 1x1, 2 groups, convolution");
}

TEST(ProblemText, HasTheModesOfContractionsAndGroups) {
  const auto tensor = [](const Dims& shape) { return packed_tensor(0x10000, DType::f32, shape); };
  const Contraction sums{.a = tensor({8, 16}),
                         .b = tensor({16, 3}),
                         .c = {},
                         .d = tensor({8, 3}),
                         .modes_a = "ak",
                         .modes_b = "kb",
                         .modes_d = "ab"};
  EXPECT_EQ(problem_text(sums), "contraction ak,kb->ab A(8,16):f32 B(16,3):f32 D(8,3):f32");
  GroupedGemm grouped;
  grouped.gemm = gemm_of();
  grouped.gemm.b = batched(grouped.gemm.b, 3);
  grouped.ends = group_ends(0x50000, 3);
  EXPECT_EQ(problem_text(grouped), "grouped_gemm ragged_m A(64,32):f16 B(3,32,48):f16 D(64,48):f16 offsets(3):s32");
}

}  // namespace
}  // namespace tilewright::op
