// The plans of stem_conv: the windows and designs of a convolution, the layout of the filters, the launch, refusals.
#include "tilewright/plan/stem_conv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/plan/image_lines.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// 7x7 with a stride of 2 and a padding of 3, from 3 channels to 64.
op::Conv2d stem() {
  return {.x = op::packed_tensor(kApart, DType::bf16, {2, 28, 224, 3}),
          .w = op::packed_tensor(2 * kApart, DType::bf16, {64, 7, 7, 3}),
          .y = op::packed_tensor(3 * kApart, DType::bf16, {2, 14, 112, 64}),
          .c = {},
          .padding = {3, 3},
          .stride = {2, 2}};
}

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::view(conv)); }
std::vector<FlatDesign> designs_of(const op::Conv2d& conv) {
  return stem_conv_designs(op::view(conv), signature_of(conv), kSm80);
}
StemConvPlan plan_of(const op::Conv2d& conv, std::size_t number = 0) {
  return plan_stem_conv(signature_of(conv), designs_of(conv).at(number)).value_or_throw();
}

TEST(StemConv, FillsUpTheRowsOfAWindow) {
  const StemConvPlan plan = plan_of(stem());
  EXPECT_EQ(plan.row_k, 24);  // 21 elements and one before them, because windows begin at odd elements
  EXPECT_EQ(plan.taps(), 7);
  EXPECT_EQ(plan.step, 6);
  EXPECT_EQ(plan.positions(), 112);
  EXPECT_EQ(plan.steps(), 11);
  EXPECT_EQ(plan.line(), (111 * 6 + 24 + 7 + 7) / 8 * 8);
  EXPECT_EQ(to_string(sum_order(plan, op::view(stem()))), "mma.sync 16x8x16 over 176 in rows of 24 from 1");
  op::Conv2d even = stem();
  even.padding = {3, 2};
  EXPECT_EQ(to_string(sum_order(plan, op::view(even))), "mma.sync 16x8x16 over 176 in rows of 24 from 0");
}

TEST(StemConv, BlocksOfARowAreLongUnlessTheyWasteMoreThanATileEach) {
  EXPECT_EQ(image_lines::block_positions(361, 128), 128) << "three blocks instead of 23 of 16 positions";
  EXPECT_EQ(image_lines::block_positions(112, 128), 112);
  EXPECT_EQ(image_lines::block_positions(112, 64), 64);
  EXPECT_EQ(image_lines::block_positions(5, 64), 16);
}

TEST(StemConv, EachLaneHasEightAdjacentColumns) {
  const StemConvPlan plan = plan_of(stem());
  const layout::Layout filters = filter_layout(plan);
  const int line = plan.filter_line_bytes();
  EXPECT_EQ(line, (11 * 16 + 8) * 2);
  std::set<std::int64_t> lines;
  for (int filter = 0; filter < plan.tile.n; ++filter) {
    const std::int64_t place = filters({filter, 0});
    ASSERT_EQ(place % line, 0);
    lines.insert(place / line);
    // Instruction and column of the accumulators; lane t of four has columns 2t and 2t + 1.
    const std::int64_t column = place / line % 8;
    EXPECT_EQ(column / 2, filter % 32 / 8);
    EXPECT_EQ(place / line / 32, filter / 32);
    EXPECT_EQ(filters({filter, 5}), place + 10);
  }
  EXPECT_EQ(lines.size(), 64U);
  EXPECT_EQ(*lines.rbegin(), 63);
}

TEST(StemConv, FragmentsAreTheFiltersOfTwoInstructions) {
  const StemConvPlan plan = plan_of(stem());
  const layout::Layout fragments = filter_fragments(plan);
  const int line = plan.filter_line_bytes();
  // Lane 8 * i + j addresses row j of matrix i.
  EXPECT_EQ(fragments({3, 0, 0}), 3 * line);
  EXPECT_EQ(fragments({8 + 3, 0, 0}), 3 * line + 16);
  EXPECT_EQ(fragments({16 + 3, 0, 0}), 11 * line);
  EXPECT_EQ(fragments({0, 1, 2}), 16 * line + 64);
  EXPECT_EQ(layout::size(fragments.mode(1)), 4);
  EXPECT_EQ(layout::size(fragments.mode(2)), 11);
}

TEST(StemConv, CtasTakeBlocksOfRows) {
  const op::Conv2d conv = stem();
  const StemConvPlan plan = plan_of(conv);
  EXPECT_EQ(plan.warps_m, 4);
  const Launch launched = launch(plan, op::view(conv));
  EXPECT_EQ(launched.grid[0], 2U * 4U);  // two images of 14 rows, in blocks of four
  EXPECT_EQ(launched.block[0], 128U);
  EXPECT_EQ(launched.dynamic_smem_bytes, static_cast<std::uint32_t>(64 * 368 + 2 * 13 * plan.line() * 2));
  EXPECT_EQ(launched.parameters().size(), gemm_parameter_layout(plan).size);
}

TEST(StemConv, OffersNoDesignForOtherProblems) {
  EXPECT_GE(designs_of(stem()).size(), 4U);
  op::Conv2d gradient = stem();
  gradient.pass = op::ConvPass::wgrad;
  EXPECT_TRUE(designs_of(gradient).empty());
  op::Conv2d channels = stem();
  channels.x = op::packed_tensor(kApart, DType::bf16, {2, 28, 224, 16});
  channels.w = op::packed_tensor(2 * kApart, DType::bf16, {64, 7, 7, 16});
  EXPECT_TRUE(designs_of(channels).empty());
}

TEST(StemConv, RefusesOtherWindowsThanThoseOfTheCode) {
  const StemConvPlan plan = plan_of(stem());
  const auto reason = [&](const auto& change) {
    op::Conv2d conv = stem();
    change(conv);
    return check_arguments(plan, op::view(conv)).reason();
  };
  EXPECT_TRUE(check_arguments(plan, op::view(stem())));
  EXPECT_EQ(reason([](op::Conv2d& conv) {
              conv.stride = {2, 1};
            }),
            "the code steps 6 elements from one position to the next, got 3");
  EXPECT_EQ(reason([](op::Conv2d& conv) { conv.dilation = {1, 2}; }), "the dilation along the width must be 1, got 2");
  EXPECT_EQ(reason([](op::Conv2d& conv) {
              conv.w = op::packed_tensor(2 * kApart, DType::bf16, {64, 5, 5, 3});
            }),
            "the code has 7 rows of 24 elements of a window, got 5 rows of 16");
  EXPECT_EQ(reason([](op::Conv2d& conv) { conv.x.stride[2] = 4; }),
            "the pixels of a row must follow each other: 3 channels, but 4 elements from one to the next");
  EXPECT_THAT(reason([](op::Conv2d& conv) { conv.stride = {100, 2}; }), HasSubstr("bytes of shared memory"));
}

TEST(StemConv, RefusesDesignsAndSignatures) {
  const auto reason = [&](const auto& change) {
    FlatDesign design = designs_of(stem()).front();
    op::GemmSignature signature = signature_of(stem());
    change(design, signature);
    return plan_stem_conv(signature, design).reason();
  };
  EXPECT_THAT(reason([](FlatDesign& design, auto&) { design.split_k = 2; }), HasSubstr("stem_conv offers a tile"));
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.tile.n = 40; }),
            "the filters of a CTA must be a multiple of 32 up to 128, got 40");
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.instruction.k = 20; }),
            "the row of a window must be a multiple of 8 up to 64, got 20");
  EXPECT_EQ(reason([](FlatDesign& design, auto&) { design.tile.k = 160; }),
            "the elements of a window must be a multiple of 24 up to 512, got 160");
  EXPECT_EQ(reason([](auto&, op::GemmSignature& signature) { signature.accumulator = DType::f16; }),
            "accumulates in f32, got f16");
  EXPECT_THAT(reason([](auto&, op::GemmSignature& signature) { signature.a.im2col = op::Im2colAccess::none; }),
              HasSubstr("computes an im2col matrix"));
}

}  // namespace
}  // namespace tilewright::plan
