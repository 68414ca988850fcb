// Plans of copies to another order of modes: vectors, refusals and estimates.
#include "tilewright/plan/permute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::plan {
namespace {

op::Permutation permutation_of(DType type, const op::Dims& shape, const op::Dims& from, const op::Dims& to) {
  op::Permutation permutation;
  for (op::Tensor* const tensor : {&permutation.from, &permutation.to}) {
    tensor->dtype = type;
    tensor->shape = shape;
    tensor->address = std::uint64_t{1} << 40;
  }
  permutation.from.stride = from;
  permutation.to.stride = to;
  return permutation;
}

std::string planned(const op::Permutation& permutation) { return to_string(plan_permute(permutation, kSm90)); }

TEST(Permute, ModesThatFollowEachOtherInBothTensorsAreMerged) {
  const auto modes =
      op::permuted_modes(permutation_of(DType::f16, {4, 1, 5, 6, 7}, {1, 99, 4, 20, 0}, {6, 5, 24, 1, 0}));
  EXPECT_THAT(modes, testing::ElementsAre(op::PermutedMode{6, 20, 1}, op::PermutedMode{20, 1, 6}))
      << "the mode of stride 0 repeats and is not copied";
}

TEST(Permute, VectorsAreAsWideAsBothTensorsAllow) {
  EXPECT_EQ(planned(permutation_of(DType::f16, {64, 48}, {1, 64}, {48, 1})), "16-bit 8x8 transposed");
  EXPECT_EQ(planned(permutation_of(DType::s8, {64, 48}, {1, 64}, {48, 1})), "8-bit 8x8 transposed");
  EXPECT_EQ(planned(permutation_of(DType::f32, {64, 48}, {1, 64}, {48, 1})), "32-bit 4x4 transposed");
  EXPECT_EQ(planned(permutation_of(DType::f64, {64, 48}, {1, 64}, {48, 1})), "64-bit 2x2 transposed");
  EXPECT_EQ(planned(permutation_of(DType::f16, {63, 48}, {1, 63}, {48, 1})), "16-bit 1x8 transposed") << "lines of 63";
  EXPECT_EQ(planned(permutation_of(DType::f16, {63, 45}, {1, 64}, {48, 1})), "16-bit 8x8 transposed")
      << "the end of an axis is no limit";
  EXPECT_EQ(planned(permutation_of(DType::f16, {64, 45}, {1, 64}, {45, 1})), "16-bit 8x1 transposed");
  EXPECT_EQ(planned(permutation_of(DType::f16, {24, 5, 4}, {1, 24, 120}, {1, 96, 24})), "16-bit 1x8");
  EXPECT_EQ(planned(permutation_of(DType::f16, {21, 5, 8}, {1, 21, 105}, {1, 168, 21})), "16-bit 1x8 transposed")
      << "single loads, since rows of 21 elements are not aligned in the source";
  op::Permutation odd = permutation_of(DType::f16, {64, 48}, {1, 64}, {48, 1});
  odd.from.address += 4;
  EXPECT_EQ(planned(odd), "16-bit 2x8 transposed");
}

TEST(Permute, ArgumentsThatAPlanCannotCopyAreRefused) {
  const op::Permutation wide = permutation_of(DType::f16, {64, 48}, {1, 64}, {48, 1});
  const op::Permutation narrow = permutation_of(DType::f16, {63, 48}, {1, 63}, {48, 1});
  EXPECT_EQ(check_arguments(plan_permute(wide, kSm90), narrow).reason(),
            "the copy moves blocks of 16-bit 8x8 transposed, but strides and addresses allow 1x8 transposed");
  EXPECT_TRUE(check_arguments(plan_permute(narrow, kSm90), wide)) << "single elements lie anywhere";
  op::Permutation floats = wide;
  floats.from.dtype = floats.to.dtype = DType::f32;
  EXPECT_EQ(check_arguments(plan_permute(wide, kSm90), floats).reason(), "copies elements of 2 bytes, got 4");
}

TEST(Permute, TheEstimateIsThatOfTheBytes) {
  const std::int64_t m = 8192, n = 8192;
  const op::Permutation even = permutation_of(DType::bf16, {m, n}, {1, m}, {n, 1});
  const op::Permutation odd = permutation_of(DType::bf16, {m - 1, n - 1}, {1, m - 1}, {n - 1, 1});
  const double even_us = estimate_us(plan_permute(even, kSm90), even);
  EXPECT_GT(even_us, 2.0 * 2 * m * n / 4.8e6) << "not faster than DRAM";
  EXPECT_LT(even_us, 2.0 * 2 * m * n / 2.4e6);
  EXPECT_GT(estimate_us(plan_permute(odd, kSm90), odd), even_us) << "single elements take more instructions";
}

TEST(Permute, ALaunchHasOneCtaForEachTile) {
  const op::Permutation permutation = permutation_of(DType::f16, {640, 480}, {1, 640}, {480, 1});
  const PermutePlan plan = plan_permute(permutation, kSm90);
  const Launch launch = plan::launch(plan, permutation);
  EXPECT_EQ(launch.block[0], 256U);
  EXPECT_EQ(launch.grid[0], 20U) << "tiles of 128 lines and 128 elements";
  EXPECT_EQ(launch.parameters().size(), parameter_layout(plan).size);
}

}  // namespace
}  // namespace tilewright::plan
