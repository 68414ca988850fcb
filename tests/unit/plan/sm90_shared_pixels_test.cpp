// Taps of a row of the window that share pixels, as parts of K or as columns: the views, the plan of a stage, and what
// is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/plan/convolution_case.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/op/tap_columns.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/sm90/gemm.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/launch.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

Sm90GemmDesign design_of(int m, int n, int k) { return sm90_design({{m, n, k}, 3, {4, 1}}); }

TEST(Sm90SharedPixels, LinesHaveAsManyMorePositionsAsTheWindowIsWide) {
  op::Conv2d conv = convolution(op::ConvPass::fprop);
  const op::GemmView view = op::with_shared_pixels(op::view(conv));
  EXPECT_EQ(view.a.im2col.w.positions, 32);
  EXPECT_EQ(view.m(), 2 * 28 * 32);
  EXPECT_EQ(op::stored_width(view.a.im2col), 30);
  EXPECT_EQ(view.d.rows.offset(29), 29 * 64);
  EXPECT_EQ(view.d.rows.offset(32), 30 * 64) << "the next line";
  EXPECT_EQ(op::describe(view).a.shared_taps, 3);
  EXPECT_EQ(op::describe(view).a.shared_step, 1);
  const op::GemmView again = op::with_layouts(op::view(conv), op::describe(view));
  EXPECT_EQ(op::describe(again), op::describe(view));
  conv = convolution(op::ConvPass::dgrad);
  conv.dilation = {1, 2};
  conv.y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 28, 64});
  EXPECT_EQ(op::describe(op::with_shared_pixels(op::view(conv))).a.shared_step, -2);
}

TEST(Sm90SharedPixels, AStageHasThePixelsOnceAndTheFilterForEachTap) {
  const op::Conv2d conv = convolution(op::ConvPass::fprop);  // the view refers to its epilogue
  const op::GemmView view = op::with_shared_pixels(op::view(conv));
  const Sm90GemmPlan plan = plan_sm90_gemm(op::describe(view), design_of(64, 32, 192)).value_or_throw();
  EXPECT_EQ(plan.a.map.box[1], 72U) << "64 positions and two more, in whole patterns of the swizzle";
  EXPECT_EQ(plan.a.tile_bytes(), 72 * 128);
  EXPECT_EQ(plan.b.tile_bytes(), 3 * 32 * 128);
  EXPECT_EQ(plan.stage_bytes(), (72 + 3 * 32) * 128);
  // Instruction k is number k % 4 of tap k / 4. Offsets are in units of 16 bytes.
  constexpr int kRow = 8;
  for (int k = 0; k < 12; ++k) {
    EXPECT_EQ(plan.a.wgmma.offset(0, k), k % 4 * 2 + k / 4 * kRow) << k;
    EXPECT_EQ(plan.b.wgmma.offset(0, k), k % 4 * 2 + k / 4 * 32 * kRow) << k;
  }
}

TEST(Sm90SharedPixels, TheOrderOfTheSumIsThatOfTheTaps) {
  const auto order = [](op::ConvPass pass) {
    const op::Conv2d conv = convolution(pass);
    const op::GemmView view = op::with_shared_pixels(op::view(conv));
    return sum_order(sketch_sm90_gemm(op::describe(view), design_of(64, 64, 192)).value_or_throw(), view);
  };
  EXPECT_EQ(order(op::ConvPass::fprop).channels_of_taps, 64);
  EXPECT_FALSE(order(op::ConvPass::fprop).reverses_rows);
  EXPECT_EQ(order(op::ConvPass::dgrad).channels_of_taps, 0) << "64 filters are all channels of a tap";
  EXPECT_TRUE(order(op::ConvPass::dgrad).reverses_rows);
  EXPECT_THAT(to_string(order(op::ConvPass::dgrad)), HasSubstr("reversed rows of taps"));
}

TEST(Sm90SharedPixels, EveryOfferedDesignHasAPlan) {
  for (const std::int64_t taps : {2, 3}) {
    for (const op::ConvPass pass : {op::ConvPass::fprop, op::ConvPass::dgrad}) {
      op::Conv2d conv = convolution(pass);
      conv.w = op::packed_tensor(2 * kApart, DType::f16, {64, 3, taps, 128});
      conv.y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 33 - taps, 64});
      const op::GemmView view = op::with_shared_pixels(op::view(conv));
      const op::GemmSignature signature = op::describe(view);
      std::set<std::string> offered;
      for (const Sm90GemmDesign& design : sm90_gemm_designs(view, signature, kSm90a)) {
        const Result<Sm90GemmPlan> plan = plan_sm90_gemm(signature, design);
        ASSERT_TRUE(plan) << to_string(Design{design}) << ": " << plan.reason();
        EXPECT_EQ(design.tile.k, 64 * taps);
        EXPECT_TRUE(offered.insert(to_string(Design{design})).second) << to_string(Design{design});
      }
      EXPECT_GT(offered.size(), 5U);
    }
  }
}

TEST(Sm90SharedPixels, WholeVectorsOfDAreStored) {
  op::Conv2d conv = convolution(op::ConvPass::fprop);
  conv.w = op::packed_tensor(2 * kApart, DType::f16, {36, 3, 3, 128});
  conv.y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 30, 40});
  conv.y.shape[3] = 36;  // four elements lie between two pixels
  const op::GemmSignature signature = op::describe(op::with_shared_pixels(op::view(conv)));
  EXPECT_EQ(signature.d.alignment, 4);
  EXPECT_FALSE(check_shared_pixels(signature));
}

TEST(Sm90SharedPixels, FiltersThatAreRepackedAreRefused) {
  op::Conv2d conv = convolution(op::ConvPass::dgrad);
  conv.math = op::MathOperation::multiply_add_tf32;
  for (op::Tensor* const tensor : {&conv.x, &conv.w, &conv.y}) tensor->dtype = DType::f32;
  const op::GemmView view = op::with_shared_pixels(op::view(conv));
  EXPECT_THAT(check_shared_pixels(op::describe(view)).reason(), HasSubstr("without repacking"));
  EXPECT_TRUE(sm90_gemm_designs(view, op::describe(view), kSm90a).empty());
}

TEST(Sm90SharedPixels, OtherConvolutionsDoNotShare) {
  op::Conv2d strided = convolution(op::ConvPass::fprop);
  strided.stride = {1, 2};
  strided.y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 15, 64});
  EXPECT_FALSE(op::can_share_pixels(op::view(strided)));
  strided.stride = {2, 1};
  strided.y = op::packed_tensor(3 * kApart, DType::f16, {2, 14, 30, 64});
  EXPECT_TRUE(op::can_share_pixels(op::view(strided))) << "a stride along the height";
  op::Conv2d with_c = convolution(op::ConvPass::fprop);
  with_c.c = with_c.y;
  with_c.beta = 1;
  EXPECT_FALSE(op::can_share_pixels(op::view(with_c)));
  EXPECT_FALSE(op::can_share_pixels(op::view(convolution(op::ConvPass::wgrad)))) << "see op/tap_columns.hpp";
  op::Conv2d column = convolution(op::ConvPass::fprop);
  column.w = op::packed_tensor(2 * kApart, DType::f16, {64, 3, 1, 128});
  column.padding = {1, 0};
  EXPECT_TRUE(op::can_share_pixels(op::view(column))) << "the axes exchange their roles";
  column.stride = {2, 1};
  column.y = op::packed_tensor(3 * kApart, DType::f16, {2, 14, 30, 64});
  EXPECT_FALSE(op::can_share_pixels(op::view(column)));
  op::Conv2d narrow = convolution(op::ConvPass::fprop);
  narrow.x = op::packed_tensor(kApart, DType::f16, {2, 28, 30, 48});
  narrow.w = op::packed_tensor(2 * kApart, DType::f16, {64, 3, 3, 48});
  EXPECT_FALSE(shares_pixels(op::view(narrow))) << "rows of 32 bytes, unless the taps are padded";
}

TEST(Sm90SharedPixels, DesignsAndEpiloguesThatDoNotFitAreRefused) {
  const op::Conv2d conv = convolution(op::ConvPass::fprop);  // the view refers to its epilogue
  const op::GemmView view = op::with_shared_pixels(op::view(conv));
  op::GemmSignature signature = op::describe(view);
  EXPECT_THAT(sketch_sm90_gemm(signature, design_of(64, 64, 64)).reason(), HasSubstr("need a tile k of 192, got 64"));
  Sm90GemmDesign split = design_of(64, 64, 192);
  split.split_k = 2;
  EXPECT_FALSE(sketch_sm90_gemm(signature, split));
  Sm90GemmDesign shared = design_of(64, 64, 192);
  shared.cluster_n = 2;
  EXPECT_THAT(sketch_sm90_gemm(signature, shared).reason(), HasSubstr("are not multicast"));
  shared.cluster_n = 1;
  shared.cluster_m = 2;
  EXPECT_TRUE(sketch_sm90_gemm(signature, shared)) << "the filter is multicast";
  signature.epilogue = *op::parse_epilogue("D = acc + row(bias)", DType::f32);
  EXPECT_TRUE(check_shared_pixels(signature));
  for (const char* text : {"D = acc + residual", "D = acc + column(bias)", "D = relu(acc); aux = acc"}) {
    signature.epilogue = *op::parse_epilogue(text, DType::f32);
    EXPECT_FALSE(check_shared_pixels(signature)) << text;
  }
}

// Taps that are columns of a tile: filter gradients.

/// A filter gradient of two images of 28x30 pixels with this many channels, for 64 filters of 3x3.
op::Conv2d filter_gradient(std::int64_t channels) {
  op::Conv2d conv = convolution(op::ConvPass::wgrad);
  conv.x = op::packed_tensor(kApart, DType::f16, {2, 28, 30, channels});
  conv.w = op::packed_tensor(2 * kApart, DType::f16, {64, 3, 3, channels});
  return conv;
}

TEST(Sm90TapColumns, LinesOfKHaveAsManyMorePositionsAsTheWindowIsWide) {
  const op::Conv2d conv = filter_gradient(40);
  const op::GemmView view = op::with_shared_columns(op::with_padded_columns(op::view(conv), 32));
  EXPECT_EQ(view.k(), 2 * 28 * 32);
  EXPECT_EQ(view.n(), 9 * 64) << "40 channels in two rows of 32";
  EXPECT_EQ(view.d.columns.offset(64), 40) << "the next tap";
  // Behind the 30 positions of a line, y is zero; x is the pixel at the same place of the next positions.
  EXPECT_EQ(view.a.im2col.offset(29, 0), 29 * 64);
  EXPECT_EQ(view.a.im2col.offset(30, 0), std::nullopt);
  EXPECT_EQ(view.a.im2col.offset(32, 0), 30 * 64);
  const std::int64_t row = 28 + 32 * 5, tap = 64;
  EXPECT_EQ(view.b.im2col.offset(row, tap), view.b.im2col.offset(row + 1, 0));
  EXPECT_EQ(view.b.im2col.offset(row, 40), std::nullopt) << "behind the channels";
  const op::GemmSignature signature = op::describe(view);
  EXPECT_EQ(signature.b.shared_taps, 3);
  EXPECT_TRUE(signature.b.has_padded_taps);
  EXPECT_TRUE(has_tap_columns(signature));
  EXPECT_EQ(op::describe(op::with_layouts(op::view(conv), signature)), signature);
}

TEST(Sm90TapColumns, AnInstructionReadsAllTapsFromOneTileOfPixels) {
  const op::Conv2d conv = filter_gradient(64);
  const op::GemmView view = op::with_shared_columns(op::view(conv));
  const Sm90GemmPlan plan = plan_sm90_gemm(op::describe(view), design_of(64, 192, 64)).value_or_throw();
  EXPECT_EQ(plan.b.map.box[0], 64U);
  EXPECT_EQ(plan.b.map.box[1], 72U) << "64 positions and two more, in whole patterns of the swizzle";
  EXPECT_EQ(plan.b.wgmma.descriptor.leading_byte_offset, 128) << "one pixel";
  EXPECT_EQ(plan.stage_bytes(), (64 + 72) * 128);
  const Sm90GemmPlan narrow = plan_sm90_gemm(op::describe(view), design_of(64, 48, 64)).value_or_throw();
  EXPECT_EQ(narrow.b.wgmma.descriptor.leading_byte_offset, 32);
  EXPECT_EQ(narrow.tap_column_block(), 16);
}

TEST(Sm90TapColumns, EveryOfferedDesignHasAPlan) {
  for (const std::int64_t channels : {24, 64, 72, 136}) {
    const op::Conv2d conv = filter_gradient(channels);
    std::vector<op::GemmView> views{op::view(conv)};
    for (const std::int64_t row : padded_tap_rows(views[0])) views.push_back(op::with_padded_columns(views[0], row));
    for (const op::GemmView& view : std::vector(views)) {
      if (shares_pixels(view)) views.push_back(op::with_shared_columns(view));
    }
    std::size_t offered = 0;
    for (const op::GemmView& view : views) {
      const op::GemmSignature signature = op::describe(view);
      if (!has_tap_columns(signature)) continue;
      for (const Sm90GemmDesign& design : sm90_gemm_designs(view, signature, kSm90a)) {
        const Result<Sm90GemmPlan> plan = plan_sm90_gemm(signature, design);
        ASSERT_TRUE(plan) << to_string(Design{design}) << ": " << plan.reason();
        EXPECT_TRUE(check_arguments(*plan, view)) << to_string(Design{design});
        ++offered;
      }
    }
    EXPECT_GT(offered, 5U) << channels;
  }
}

TEST(Sm90TapColumns, DesignsAndEpiloguesThatDoNotFitAreRefused) {
  const op::Conv2d conv = filter_gradient(64);
  const op::GemmView view = op::with_shared_columns(op::view(conv));
  op::GemmSignature signature = op::describe(view);
  EXPECT_THAT(sketch_sm90_gemm(signature, design_of(64, 64, 64)).reason(), HasSubstr("16, 32 or 64 channels of each"));
  Sm90GemmDesign design = design_of(64, 192, 64);
  design.cluster_m = 2;
  EXPECT_THAT(sketch_sm90_gemm(signature, design).reason(), HasSubstr("are not multicast"));
  design.cluster_m = 1;
  design.cluster_n = 2;
  design.split_k = 2;
  EXPECT_TRUE(sketch_sm90_gemm(signature, design)) << "the gradient is multicast";
  Sm90GemmDesign swapped = sm90_design({{192, 64, 64}, 3, {1, 4}});
  swapped.swaps_operands = true;
  EXPECT_THAT(sketch_sm90_gemm(signature, swapped).reason(), HasSubstr("without swapped operands"));
  signature.epilogue = *op::parse_epilogue("D = acc + column(bias)", DType::f32);
  EXPECT_TRUE(check_tap_columns(signature));
  for (const char* text : {"D = acc + residual", "D = acc + row(bias)", "D = relu(acc); aux = acc"}) {
    signature.epilogue = *op::parse_epilogue(text, DType::f32);
    EXPECT_FALSE(check_tap_columns(signature)) << text;
  }
}

TEST(Sm90TapColumns, OtherConvolutionsHaveNone) {
  op::Conv2d with_c = filter_gradient(64);
  with_c.c = with_c.w;
  with_c.beta = 1;
  EXPECT_FALSE(op::can_pad_columns(op::view(with_c)));
  EXPECT_FALSE(op::can_pad_columns(op::view(convolution(op::ConvPass::fprop))));
  EXPECT_FALSE(op::can_pad_columns(op::view(convolution(op::ConvPass::dgrad))));
  op::Conv2d strided = filter_gradient(64);
  strided.stride = {1, 2};
  strided.y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 15, 64});
  EXPECT_TRUE(op::can_pad_columns(op::view(strided)));
  EXPECT_FALSE(op::can_share_columns(op::view(strided)));
}

}  // namespace
}  // namespace tilewright::plan
