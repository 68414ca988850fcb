// Plans of the copies of repacked convolutions: units, refusals and estimates.
#include "tilewright/plan/conv_copy.hpp"

#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::plan {
namespace {

/// The pixels of images of 3 channels of f16 from rows of blocks.
op::ConvCopy pixels_of(std::int64_t width, std::int64_t block) {
  return {"x", op::PixelBlocks{.images = 2,
                               .h = 8,
                               .w = width,
                               .row_bytes = 6,
                               .block_h = block,
                               .block_w = block,
                               .from_bytes = 96,
                               .image_bytes = 8 * width * 6,
                               .to_bytes = 6}};
}

TEST(ConvCopy, UnitsAreAsWideAsRowsOfABlockAllow) {
  EXPECT_EQ(plan_conv_copy(pixels_of(8, 1), kSm90).unit_bytes, 2);
  EXPECT_EQ(plan_conv_copy(pixels_of(8, 2), kSm90).unit_bytes, 4) << "two pixels follow each other";
  EXPECT_EQ(plan_conv_copy(pixels_of(8, 4), kSm90).unit_bytes, 8);
  EXPECT_EQ(plan_conv_copy(pixels_of(7, 4), kSm90).unit_bytes, 2) << "the last block has three";
  EXPECT_TRUE(check_arguments(plan_conv_copy(pixels_of(8, 1), kSm90), pixels_of(8, 4)));
  EXPECT_EQ(check_arguments(plan_conv_copy(pixels_of(8, 4), kSm90), pixels_of(7, 4)).reason(),
            "the copy stores 8 bytes, the alignment allows 2");
}

TEST(ConvCopy, OtherKindsAndTooManyVectorsAreRefused) {
  op::RowCopy rows{.lines = 10, .line_pitch = 26, .line_bytes = 26, .step = 26, .row_bytes = 26, .to_bytes = 32};
  const ConvCopyPlan plan = plan_conv_copy({"x", rows}, kSm90);
  EXPECT_EQ(to_string(plan), "rows, 16 bytes");
  EXPECT_EQ(check_arguments(plan, pixels_of(8, 1)).reason(), "the copy is one of another kind");
  rows.lines = std::int64_t{1} << 30;
  EXPECT_EQ(check_arguments(plan, {"x", rows}).reason(),
            "a copy has at most 1073741823 units of 16 bytes, got 2147483648");
}

TEST(ConvCopy, TheEstimateIsThatOfTheBytes) {
  const std::int64_t lines = 1 << 20;
  const op::RowCopy rows{
      .lines = lines, .line_pitch = 1014, .line_bytes = 1014, .step = 1014, .row_bytes = 1014, .to_bytes = 1024};
  const double us = estimate_us(plan_conv_copy({"x", rows}, kSm90), {"x", rows});
  const double bytes = 2038.0 * static_cast<double>(lines);
  EXPECT_GT(us, bytes / 4.8e6) << "not faster than DRAM";
  EXPECT_LT(us, bytes / 2.4e6);
}

TEST(ConvCopy, LaunchesWriteTheParametersOfTheirKind) {
  const op::RowCopy rows{.lines = 100, .line_pitch = 26, .line_bytes = 26, .step = 26, .row_bytes = 26, .to_bytes = 32};
  const op::FilterBlocks filter{.h = {.copied_taps = 2},
                                .w = {.block = 2, .copied_taps = 3},
                                .outputs = 40,
                                .inputs = 30,
                                .input_stride = 40,
                                .copied_rows = 80,
                                .copied_inputs = 32};
  for (const op::ConvCopy& copy : {op::ConvCopy{"x", rows}, {"w", filter}, pixels_of(8, 2)}) {
    const ConvCopyPlan plan = plan_conv_copy(copy, kSm90);
    EXPECT_EQ(plan::launch(plan, copy).parameters().size(), parameter_layout(plan).size);
  }
  EXPECT_EQ(plan::launch(plan_conv_copy({"w", filter}, kSm90), {"w", filter}).grid[0], 2U * 2 * 2)
      << "pixels, fours of six taps, and tiles of 32 outputs";
}

}  // namespace
}  // namespace tilewright::plan
