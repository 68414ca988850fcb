// Convolutions on copies of their tensors: the shapes of the copies, and what is refused.
#include "tilewright/op/repacked_conv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::op {
namespace {

using Method = ConvRepacking::Method;
using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40, kWorkspace = std::uint64_t{1} << 50;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// Filters of 3x3 with a padding of 1.
Conv2d convolution(ConvPass pass, std::int64_t channels, std::int64_t filters, std::int64_t stride = 1,
                   std::int64_t groups = 1) {
  constexpr std::int64_t kImage = 16;
  const std::int64_t positions = conv_positions(kImage, 1, 1, 3, stride, 1);
  Conv2d conv;
  conv.pass = pass;
  conv.padding = {1, 1};
  conv.stride = {stride, stride};
  conv.groups = groups;
  conv.x = packed_tensor(kApart, DType::f16, {2, kImage, kImage, channels});
  conv.w = packed_tensor(2 * kApart, DType::f16, {filters, 3, 3, channels / groups});
  conv.y = packed_tensor(3 * kApart, DType::f16, {2, positions, positions, filters});
  return conv;
}

RepackedConv repacked(const Conv2d& conv, const ConvRepacking& how) {
  return repack(conv, how, kWorkspace, kMaxBytes).value_or_throw();
}
std::string reason(const Conv2d& conv, const ConvRepacking& how) {
  return repack(conv, how, kWorkspace, kMaxBytes).reason();
}

/// "x w | " with the roles of the copies before and after the product.
std::string roles(const RepackedConv& repacked) {
  std::string text;
  for (const ConvCopy& copy : repacked.before) text += std::string(copy.role) + " ";
  text += "|";
  for (const ConvCopy& copy : repacked.after) text += " " + std::string(copy.role);
  return text;
}

TEST(RepackedConv, ChannelsArePaddedToWholeVectors) {
  const ConvRepacking how{.method = Method::padded_channels, .unit = 8};
  const RepackedConv fprop = repacked(convolution(ConvPass::fprop, 13, 21), how);
  EXPECT_EQ(roles(fprop), "x w |") << "rows of y are stored whatever their length";
  EXPECT_EQ(fprop.inner.x.shape, (Dims{2, 16, 16, 16}));
  EXPECT_EQ(fprop.inner.w.shape, (Dims{21, 3, 3, 16}));
  EXPECT_EQ(fprop.inner.y, convolution(ConvPass::fprop, 13, 21).y);
  EXPECT_EQ(fprop.workspace_bytes, 2 * 16 * 16 * 16 * 2 + 6144) << "6048 bytes of w, rounded up to 256";

  const RepackedConv dgrad = repacked(convolution(ConvPass::dgrad, 13, 21), how);
  EXPECT_EQ(roles(dgrad), "y w |");
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{24, 3, 3, 13})) << "as many channels as x has";
  EXPECT_EQ(dgrad.inner.w.stride[2], 16);
  const RepackedConv strided = repacked(convolution(ConvPass::dgrad, 13, 24, 2), how);
  EXPECT_EQ(roles(strided), "w | x") << "TMA stores the classes of pixels";
  EXPECT_EQ(strided.inner.x.shape[3], 16);

  const RepackedConv wgrad = repacked(convolution(ConvPass::wgrad, 13, 21), how);
  EXPECT_EQ(roles(wgrad), "y x | w");
  EXPECT_EQ(wgrad.inner.y.shape[3], 21);
  EXPECT_EQ(wgrad.inner.y.stride[2], 24);
  EXPECT_EQ(wgrad.inner.w.shape[3], 16);
}

TEST(RepackedConv, BlocksOfPixelsHaveTheTapsThatMeetThem) {
  const RepackedConv dgrad =
      repacked(convolution(ConvPass::dgrad, 3, 24, 2), {.method = Method::pixel_blocks, .unit = 8, .block = {2, 4}});
  EXPECT_EQ(roles(dgrad), "w | x");
  EXPECT_EQ(dgrad.inner.pass, ConvPass::fprop);
  // Pixel 0 of a block meets tap 1 at pixel 0 of y, and pixel 1 taps 2 and 0 at pixels 0 and 1.
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{24, 2, 3, 24}));
  EXPECT_EQ(dgrad.inner.y.shape, (Dims{2, 8, 4, 24}));
  EXPECT_EQ(dgrad.inner.stride, (std::array<std::int64_t, 2>{1, 2}));
  EXPECT_EQ(dgrad.inner.padding, (std::array<std::int64_t, 2>{0, 0}));
}

TEST(RepackedConv, BlocksOfGroupsAreGroups) {
  const ConvRepacking blocks{.method = Method::pixel_blocks, .unit = 8, .block = {2, 2}};
  const RepackedConv dgrad = repacked(convolution(ConvPass::dgrad, 12, 32, 2, 4), blocks);
  EXPECT_EQ(roles(dgrad), "w | x");
  EXPECT_EQ(dgrad.inner.groups, 4);
  // Each group has 3 channels of 4 pixels, and four filters of zeros so that rows are multiples of 16 bytes.
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{64, 2, 2, 8}));
  EXPECT_EQ(dgrad.inner.y.shape, (Dims{2, 8, 8, 64}));
  const auto& pixels = std::get<PixelBlocks>(dgrad.after.front().copy);
  EXPECT_EQ(pixels.groups, 4);
  EXPECT_EQ(pixels.row_bytes, 3 * 2);
  EXPECT_EQ(pixels.group_bytes, 16 * 2);
  const RepackedConv padded = repacked(convolution(ConvPass::dgrad, 12, 20, 2, 4), blocks);
  EXPECT_EQ(roles(padded), "y w | x");
  const auto& rows = std::get<RowCopy>(padded.before.front().copy);
  EXPECT_EQ(rows.row_bytes, 5 * 2) << "of each group";
  EXPECT_EQ(rows.to_bytes, 8 * 2);
  EXPECT_EQ(padded.inner.x.shape[3], 4 * 8);
}

TEST(RepackedConv, ABlockOfOnePixelKeepsTheDilationAndTheOutput) {
  Conv2d conv = convolution(ConvPass::dgrad, 16, 32, 1, 4);
  conv.dilation = {3, 1};
  conv.x.shape[1] += 4;
  conv.x = packed_tensor(conv.x.address, DType::f16, conv.x.shape);
  const RepackedConv dgrad = repacked(conv, {.method = Method::pixel_blocks, .unit = 8});
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{16, 3, 3, 8}));
  EXPECT_EQ(dgrad.inner.dilation, conv.dilation);
  EXPECT_EQ(dgrad.inner.padding, (std::array<std::int64_t, 2>{5, 1}));
  EXPECT_EQ(dgrad.inner.y, conv.x);
  EXPECT_EQ(roles(dgrad), "w |");
}

TEST(RepackedConv, GroupsOfBlocksMayBeMerged) {
  const RepackedConv dgrad = repacked(convolution(ConvPass::dgrad, 12, 20, 2, 4),
                                      {.method = Method::pixel_blocks, .unit = 8, .block = {2, 2}, .merged = 4});
  EXPECT_EQ(dgrad.inner.groups, 1);
  EXPECT_EQ(roles(dgrad), "y w | x") << "20 channels are padded to 24";
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{64, 2, 2, 24}));
  EXPECT_EQ(dgrad.inner.x.shape[3], 24);
}

TEST(RepackedConv, BlocksOfTheOutputMeetMoreTaps) {
  const RepackedConv fprop =
      repacked(convolution(ConvPass::fprop, 16, 3), {.method = Method::pixel_blocks, .unit = 8, .block = {2, 4}});
  EXPECT_EQ(roles(fprop), "w | y");
  EXPECT_EQ(fprop.inner.w.shape, (Dims{24, 4, 6, 16}));
  EXPECT_EQ(fprop.inner.y.shape, (Dims{2, 8, 4, 24}));
  EXPECT_EQ(fprop.inner.stride, (std::array<std::int64_t, 2>{2, 4}));
  EXPECT_EQ(fprop.inner.padding, (std::array<std::int64_t, 2>{1, 1}));
}

TEST(RepackedConv, BlocksOfAdjacentPixelsAreStoredInPlace) {
  Conv2d conv = convolution(ConvPass::dgrad, 3, 24);
  conv.c = conv.x;
  conv.c.address = 4 * kApart;
  conv.beta = 1;
  const ConvRepacking how{.method = Method::pixel_blocks, .unit = 8, .block = {1, 4}};
  const RepackedConv dgrad = repacked(conv, how);
  EXPECT_EQ(roles(dgrad), "w |");
  EXPECT_EQ(dgrad.inner.y.address, conv.x.address);
  EXPECT_EQ(dgrad.inner.y.shape, (Dims{2, 16, 4, 12}));
  EXPECT_EQ(dgrad.inner.c.address, conv.c.address);
  EXPECT_EQ(dgrad.inner.w.shape, (Dims{12, 3, 6, 24}));
  EXPECT_EQ(dgrad.inner.padding, (std::array<std::int64_t, 2>{1, 1}));
  conv.x = packed_tensor(kApart, DType::f16, {2, 16, 15, 3});
  conv.y = packed_tensor(3 * kApart, DType::f16, {2, 16, 15, 24});
  conv.beta = 0;
  EXPECT_EQ(roles(repacked(conv, how)), "w | x") << "the last block of a line has three pixels";
}

TEST(RepackedConv, MergedGroupsHaveZerosForTheOthers) {
  const ConvRepacking how{.method = Method::merged_groups, .merged = 2};
  const RepackedConv fprop = repacked(convolution(ConvPass::fprop, 16, 32, 1, 4), how);
  EXPECT_EQ(roles(fprop), "w |");
  EXPECT_EQ(fprop.inner.groups, 2);
  EXPECT_EQ(fprop.inner.w.shape, (Dims{32, 3, 3, 8}));
  EXPECT_EQ(roles(repacked(convolution(ConvPass::wgrad, 16, 32, 1, 4), how)), "| w") << "their blocks of the diagonal";
}

TEST(RepackedConv, RowsOfWindowsBecomeChannels) {
  const RepackedConv fprop =
      repacked(convolution(ConvPass::fprop, 3, 16, 2), {.method = Method::window_rows, .unit = 8});
  EXPECT_EQ(fprop.inner.x.shape, (Dims{2, 16, 8, 16})) << "9 elements for each of 8 positions";
  EXPECT_EQ(fprop.inner.w.shape, (Dims{16, 3, 1, 16}));
  EXPECT_EQ(fprop.inner.stride, (std::array<std::int64_t, 2>{2, 1}));
}

// Rows of w have 13 channels, of which those of the copy have 16: C and the row vector, too.
TEST(RepackedConv, CopiesCAndTheTensorsOfTheEpilogueAsTheOutput) {
  Conv2d conv = convolution(ConvPass::wgrad, 13, 24);
  conv.epilogue = *parse_epilogue("D = acc + beta * C + row(bias)", DType::f32);
  conv.beta = 1;
  conv.c = conv.w;
  conv.c.address = 4 * kApart;
  conv.tensors = {{"bias", packed_tensor(5 * kApart, DType::f32, {1, 3, 3, 13})}};
  const RepackedConv repacked =
      repack(conv, {.method = Method::padded_channels, .unit = 8}, kWorkspace, 1 << 30).value_or_throw();
  EXPECT_EQ(repacked.inner.c.shape, (Dims{24, 3, 3, 16}));
  EXPECT_EQ(repacked.inner.tensors[0].tensor.shape, (Dims{1, 3, 3, 16}));
  EXPECT_EQ(repacked.before.size(), 3U);  // x, C and the vector
}

TEST(RepackedConv, RefusalsSayWhy) {
  const ConvRepacking pad{.method = Method::padded_channels, .unit = 8};
  EXPECT_EQ(reason(convolution(ConvPass::fprop, 16, 21), pad), "no tensor changes");
  EXPECT_EQ(reason(convolution(ConvPass::wgrad, 16, 32, 1, 4), pad),
            "copies of pad8 for wgrad are made without groups, got 4");
  EXPECT_EQ(reason(convolution(ConvPass::fprop, 16, 32, 1, 4), {.method = Method::merged_groups, .merged = 3}),
            "4 groups cannot be merged to groups of 3");
  EXPECT_EQ(reason(convolution(ConvPass::fprop, 16, 32, 1, 4), {.method = Method::merged_groups}),
            "groups are merged to groups of 1, which they are");
  EXPECT_EQ(reason(convolution(ConvPass::dgrad, 3, 8, 2), {.method = Method::pixel_blocks, .unit = 8, .block = {3, 2}}),
            "blocks of 3 pixels are no multiple of the stride 2, or more than 64");
  EXPECT_EQ(repack(convolution(ConvPass::fprop, 13, 21), pad, kWorkspace, 1000).reason(),
            "copies of pad8 need 22528 bytes of workspace, at most 1000 are allowed");
  const ConvRepacking blocks{.method = Method::pixel_blocks, .unit = 8, .block = {2, 2}};
  Conv2d conv = convolution(ConvPass::dgrad, 3, 8, 2);
  conv.beta = 1;
  conv.c = conv.x;
  conv.c.address = 4 * kApart;
  EXPECT_EQ(reason(conv, blocks), "the output is copied, so that C cannot be read: beta must be 0, got 1");
  conv = convolution(ConvPass::wgrad, 13, 24);
  conv.epilogue = *parse_epilogue("D = acc + column_index", DType::f32);
  EXPECT_EQ(reason(conv, pad), "the output is another matrix, so that its epilogue can have neither indices nor pairs");
  conv = convolution(ConvPass::fprop, 13, 21);
  conv.x.stride[0] += 13;
  conv.x.stride[1] += 26;
  EXPECT_THAT(reason(conv, pad), HasSubstr("the rows of x have several strides"));
}

}  // namespace
}  // namespace tilewright::op
