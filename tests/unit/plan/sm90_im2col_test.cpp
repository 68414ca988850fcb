// Tensor maps of im2col operands: corners of the bounding box, offsets of taps, and what TMA cannot load.
#include "tilewright/plan/sm90/im2col.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/convolution_case.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/sm90/gemm.hpp"
#include "tilewright/plan/sm90/operand.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

TensorMap map_of(const op::OperandView& operand) {
  TensorMap boxes;
  boxes.type = TensorMapType::f16;
  boxes.box = {64, 128};
  boxes.swizzle = TensorMapSwizzle::bytes_128;
  return im2col_map(boxes, operand, true);
}

TEST(Sm90Im2col, TheBoundingBoxHasThePixelsOfTheFirstTap) {
  op::Conv2d conv = convolution(op::ConvPass::fprop);
  const TensorMap same = map_of(op::view(conv).a);
  EXPECT_TRUE(check(same));
  EXPECT_EQ(same.im2col->lower_corner, (std::array<std::int32_t, 3>{-1, -1, 0}));
  EXPECT_EQ(same.im2col->upper_corner, (std::array<std::int32_t, 3>{-1, -1, 0})) << "as in the PTX ISA";
  EXPECT_EQ(same.extents, (std::array<std::uint64_t, 5>{128, 30, 28, 2, 0}));
  EXPECT_EQ(same.strides, (std::array<std::uint64_t, 5>{0, 256, 256 * 30, 256 * 30 * 28, 0}));
  conv.stride = {2, 1};
  conv.y = op::packed_tensor(conv.y.address, DType::f16, {2, 11, 30, 64});  // fewer than there could be
  const TensorMap strided = map_of(op::view(conv).a);
  EXPECT_EQ(strided.element_strides[2], 2U);
  EXPECT_EQ(strided.im2col->upper_corner[1], -1 + 10 * 2 + 1 - 28);
}

TEST(Sm90Im2col, GroupsBeginAtChannelsOfOneMap) {
  op::Conv2d conv = convolution(op::ConvPass::fprop);
  conv.groups = 2;
  conv.w.shape[3] = 64;
  const op::OperandView a = op::view(conv).a;
  EXPECT_TRUE(check_im2col(a, 64));
  EXPECT_EQ(map_of(a).extents[0], 128U) << "the channels of both groups";
  conv.pass = op::ConvPass::dgrad;
  const Support filter = check_im2col(op::view(conv).b, 64);
  ASSERT_FALSE(filter);
  EXPECT_THAT(filter.reason(), HasSubstr("follow each other along the"));
}

TEST(Sm90Im2col, ABoxBehindAllChannelsBeginsAtAMultipleOf16Bytes) {
  op::Conv2d conv = convolution(op::ConvPass::dgrad);
  for (const std::int64_t channels : {128, 129, 135, 136}) {
    conv.x.shape[3] = conv.w.shape[3] = channels;
    EXPECT_EQ(channel_behind_all(op::view(conv).b), channels == 128 ? 128 : 136) << channels;
  }
}

TEST(Sm90Im2col, BoxesFollowEachOtherInOneDirection) {
  EXPECT_FALSE(check_boxes(arch::Major::k, 64, 2, 384, 64)) << "two boxes of 192 lines, for each half of a line";
  EXPECT_TRUE(check_boxes(arch::Major::k, 64, 2, 384, 32));
  EXPECT_TRUE(check_boxes(arch::Major::k, 64, 2, 256, 64));
}

/// Plans all designs that are offered for a convolution, and returns their number.
int plan_all(const op::Conv2d& conv) {
  const op::GemmView view = op::view(conv);
  const op::GemmSignature signature = op::describe(view);
  const auto designs = sm90_gemm_designs(view, signature, kSm90a);
  for (const Sm90GemmDesign& design : designs) {
    const Result<Sm90GemmPlan> plan = plan_sm90_gemm(signature, design);
    EXPECT_TRUE(plan) << to_string(Design{design}) << ": " << plan.reason();
    if (!plan) continue;
    constexpr int kSwizzlePattern = 1024;
    EXPECT_EQ(plan->shared_memory().outputs_at() % kSwizzlePattern, 0) << to_string(Design{design});
  }
  return static_cast<int>(designs.size());
}

TEST(Sm90Im2col, EveryOfferedDesignHasAPlan) {
  int offered = 0;
  for (const op::ConvPass pass : {op::ConvPass::fprop, op::ConvPass::dgrad, op::ConvPass::wgrad}) {
    for (const std::int64_t channels : {8, 16, 24, 72, 192}) {
      for (const std::int64_t pixels : {1, 15, 200}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << pixels << " pixels");
        op::Conv2d conv = convolution(pass);
        conv.x = op::packed_tensor(conv.x.address, DType::f16, {1, 1, pixels + 2, channels});
        conv.w = op::packed_tensor(conv.w.address, DType::f16, {48, 1, 3, channels});
        conv.y = op::packed_tensor(conv.y.address, DType::f16, {1, 1, pixels, 48});
        conv.padding = {0, 0};
        offered += plan_all(conv);
      }
    }
  }
  EXPECT_GT(offered, 100);
}

TEST(Sm90Im2col, EveryOfferedDesignOfManyPixelsHasAPlan) {
  int offered = 0;
  for (const op::ConvPass pass : {op::ConvPass::fprop, op::ConvPass::dgrad, op::ConvPass::wgrad}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      for (const std::int64_t channels : {8, 16, 64}) {
        for (const std::int64_t filters : {8, 24, 64}) {
          SCOPED_TRACE(testing::Message() << channels << " channels, " << filters << " filters, stride " << stride);
          constexpr std::int64_t kImages = 45, kPixels = 28;
          op::Conv2d conv = convolution(pass);
          conv.x =
              op::packed_tensor(conv.x.address, DType::f16, {kImages, kPixels * stride, kPixels * stride, channels});
          conv.w = op::packed_tensor(conv.w.address, DType::f16, {filters, 5, 5, channels});
          conv.y = op::packed_tensor(conv.y.address, DType::f16, {kImages, kPixels, kPixels, filters});
          conv.stride = {stride, stride};
          conv.padding = {2, 2};
          offered += plan_all(conv);
        }
      }
    }
  }
  EXPECT_GT(offered, 500);
}

TEST(Sm90Im2col, TheOrderOfTheSumSaysHowStagesWalkAlongTheTaps) {
  const auto channels_of_taps = [](const op::Conv2d& conv, int k) {
    const op::GemmView view = op::view(conv);
    const Sm90GemmDesign design = sm90_design({{64, 64, k}, 3, {4, 1}});
    return sum_order(sketch_sm90_gemm(op::describe(view), design).value_or_throw(), view).channels_of_taps;
  };
  const op::Conv2d conv = convolution(op::ConvPass::fprop);
  EXPECT_EQ(channels_of_taps(conv, 64), 64);
  EXPECT_EQ(channels_of_taps(conv, 32), 0) << "half of a line of L2";
  EXPECT_EQ(channels_of_taps(conv, 128), 0) << "a stage has all channels of a tap";
  op::Conv2d odd = conv;
  odd.x = op::packed_tensor(conv.x.address, DType::f16, {2, 28, 30, 192});
  odd.w = op::packed_tensor(conv.w.address, DType::f16, {64, 3, 3, 192});
  EXPECT_EQ(channels_of_taps(odd, 128), 0) << "a stage does not divide the channels of a tap";
  EXPECT_EQ(channels_of_taps(convolution(op::ConvPass::wgrad), 64), 0) << "the sum is over pixels";
}

// The layers in docs/decisions/conv2d.md whose times are known in both orders (H100, 2026-11-26), with an L2 of 50 MB.
TEST(Sm90Im2col, StagesWalkAlongTheTapsWhereDramIsReadLess) {
  struct Layer {
    std::int64_t channels;
    int element_bytes;
    std::int64_t taps_h, taps_w, step_h, step_w, tap_step, positions;
    bool walks;
  };
  for (const Layer& layer :
       {Layer{704, 2, 5, 1, 1, 1, 1, 88, true},
        {512, 4, 7, 7, 1, 1, 1, 36, true},
        {256, 2, 3, 3, 1, 1, 1, 44, true},
        {712, 2, 1, 4, 1, 1, -1, 25, true},
        {128, 2, 3, 3, 1, 1, -1, 40, true},
        {64, 2, 3, 3, 1, 1, 1, 56, true},       // one stage has all channels of a tap
        {209, 4, 11, 11, 1, 1, 3, 3, false},    // no two taps meet a pixel
        {208, 2, 6, 8, 2, 4, 1, 11, false}}) {  // those that do are 4 taps apart, in odd parts of lines
    op::Im2col im2col;
    im2col.channels = layer.channels;
    im2col.h.taps = layer.taps_h;
    im2col.h.step = layer.step_h;
    im2col.w.taps = layer.taps_w;
    im2col.w.step = layer.step_w;
    im2col.h.tap_step = im2col.w.tap_step = layer.tap_step;
    im2col.h.positions = im2col.w.positions = layer.positions;
    im2col.w.stride = round_up(layer.channels, std::int64_t{8});
    EXPECT_EQ(walks_taps(im2col, layer.element_bytes, 128 / layer.element_bytes, 50'000'000), layer.walks)
        << layer.channels;
  }
}

TEST(Sm90Im2col, OffsetsOfGradientsBeginAtTheLastTap) {
  const op::Conv2d conv = convolution(op::ConvPass::dgrad);
  const op::OperandView a = op::view(conv).a;
  EXPECT_EQ(first_offset(a.im2col.h), 2) << "tap 0 is two pixels after tap 2";
  EXPECT_EQ(lower_corner(a.im2col.h), -1);
  EXPECT_TRUE(check_im2col(op::view(conv).b, 64)) << "the filter";
}

TEST(Sm90Im2col, RefusesWhatTmaCannotLoad) {
  const auto reason = [](const auto& change) {
    op::Conv2d conv = convolution(op::ConvPass::fprop);
    change(conv);
    const Support loads = check_im2col(op::view(conv).a, 64);
    return loads ? std::string() : loads.reason();
  };
  EXPECT_EQ(reason([](op::Conv2d&) {}), "");
  EXPECT_EQ(reason([](op::Conv2d& conv) { conv.x.shape[3] = conv.w.shape[3] = 96; }),
            "TMA loads boxes of 64 channels, which must divide the 96 of a tap");
  EXPECT_EQ(reason([](op::Conv2d& conv) {
              conv.dilation = {1, 128};
            }),
            "the last tap is 256 pixels from the first, TMA reaches 255");
  EXPECT_THAT(reason([](op::Conv2d& conv) { conv.padding = {129, 1}; }), HasSubstr("corner of mode 2"));
  EXPECT_THAT(reason([](op::Conv2d& conv) { conv.stride = {1, 9}; }), HasSubstr("TMA cannot load the im2col matrix"));
}

}  // namespace
}  // namespace tilewright::plan
