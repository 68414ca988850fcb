// Convolutions: what is refused, their views, signatures and keys, and the reference against the definition.
#include "tilewright/op/conv2d.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/op/direct_convolution.hpp"
#include "tests/unit/op/tensor_elements.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// 3x3 with a padding of 1: y has the pixels of x.
Conv2d same_convolution(ConvPass pass) {
  Conv2d conv{.pass = pass,
              .x = packed_tensor(kApart, DType::f16, {2, 7, 5, 16}),
              .w = packed_tensor(2 * kApart, DType::f16, {24, 3, 3, 16}),
              .y = packed_tensor(3 * kApart, DType::f16, {2, 7, 5, 24}),
              .c = {},
              .padding = {1, 1}};
  conv.c = conv.written();
  return conv;
}

std::string reason(const Conv2d& conv) {
  const Support valid = validate(conv);
  return valid ? std::string() : valid.reason();
}

/// The tensors of a convolution on the host, with integers in the inputs.
class OnHost {
 public:
  explicit OnHost(const Conv2d& shape) : conv(shape) {
    std::uint64_t seed = 1;
    for (const Operand& operand : operands(conv)) {
      auto& memory = memory_.emplace_back(static_cast<std::size_t>(span_bytes(*operand.tensor)) + 16, std::byte{0xff});
      operand.tensor->address = reinterpret_cast<std::uint64_t>(memory.data());
      Tensor flat = *operand.tensor;
      const std::int64_t elements = span_bytes(flat) / bytes(flat.dtype);
      flat = matrix(flat.address, flat.dtype, 1, elements);
      if (!is_written(operand.access)) fill_integers(flat, -3, 3, seed++);
    }
  }
  Conv2d conv;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

TEST(Conv2d, NoChannelsGiveZerosWhateverTheStrides) {
  for (const Dims& stride : {Dims{0, 0, 0, 1}, Dims{0, 1, 5, 25}}) {
    Conv2d shape{.x = packed_tensor(0, DType::f32, {1, 5, 5, 0}),
                 .w = packed_tensor(0, DType::f32, {8, 3, 3, 0}),
                 .y = packed_tensor(0, DType::f32, {1, 3, 3, 8}),
                 .c = {}};
    shape.x.stride = shape.w.stride = stride;
    const OnHost host(shape);
    ASSERT_EQ(reason(host.conv), "");
    EXPECT_EQ(view(host.conv).k(), 0);
    EXPECT_TRUE(view_matrix(view(host.conv).a.tensor, "A"));
    EXPECT_TRUE(view_matrix(view(host.conv).b.tensor, "B"));
    reference(Problem(host.conv));
    for_each_element(host.conv.y,
                     [&](std::size_t, std::int64_t offset) { ASSERT_EQ(load_at(host.conv.y, offset), 0.0); });
  }
}

TEST(Conv2d, TheReferenceIsTheDefinition) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Conv2d shape = random_convolution(seed, seed % 2 == 0 ? DType::f32 : DType::s8);
    SCOPED_TRACE(fmt::format("seed {} {}", seed, to_string(shape)));
    ASSERT_EQ(reason(shape), "");
    const OnHost host(shape);
    const Conv2d& conv = host.conv;
    const std::vector<double> sums = direct_sums(conv);
    const Problem problem(conv);
    ASSERT_EQ(is_empty(problem), sums.empty());
    reference(problem);
    const Tensor& written = conv.written();
    for_each_element(written, [&](std::size_t index, std::int64_t offset) {
      const double expected = conv.alpha * sums[index] + (conv.beta == 0.0 ? 0.0 : conv.beta * load_at(conv.c, offset));
      ASSERT_EQ(load_at(written, offset), expected) << "element " << index;
      ++compared;
    });
  }
  EXPECT_GT(compared, 20000);
}

TEST(Conv2d, TheReferenceOfBlocksOfChannelsIsTheDefinition) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Conv2d shape = random_blocked_convolution(seed, DType::s32);
    SCOPED_TRACE(fmt::format("seed {} {}", seed, to_string(shape)));
    ASSERT_EQ(reason(shape), "");
    const OnHost host(shape);
    const Conv2d& conv = host.conv;
    const std::vector<double> sums = direct_sums(conv);
    reference(Problem(conv));
    for_each_element(conv.y, [&](std::size_t index, std::int64_t offset) {
      const double expected = conv.alpha * sums[index] + (conv.beta == 0.0 ? 0.0 : conv.beta * load_at(conv.c, offset));
      ASSERT_EQ(load_at(conv.y, offset), expected) << "element " << index;
      ++compared;
    });
  }
  EXPECT_GT(compared, 20000);
}

/// 3x3 with a padding of 1 of NC32HW32 tensors with 64 channels and 96 filters.
Conv2d blocked_convolution() {
  Conv2d conv{.x = packed_tensor(kApart, DType::s8, {2, 2, 7, 5, 32}),
              .w = packed_tensor(2 * kApart, DType::s8, {2, 3, 3, 96, 32}),
              .y = packed_tensor(3 * kApart, DType::s8, {2, 3, 7, 5, 32}),
              .c = {},
              .padding = {1, 1},
              .accumulator = DType::s32};
  conv.c = conv.y;
  return conv;
}

TEST(Conv2d, BlocksOfChannelsAreAnIm2colMatrixAndAnInterleavedOne) {
  const Conv2d conv = blocked_convolution();
  ASSERT_EQ(reason(conv), "");
  const GemmView gemm = view(conv);
  EXPECT_THAT((std::vector{gemm.m(), gemm.n(), gemm.k(), gemm.batch()}), ElementsAre(70, 96, 576, 1));
  EXPECT_EQ(gemm.a.access, OperandAccess::im2col);
  EXPECT_EQ(gemm.b.tensor, matrix(2 * kApart, DType::s8, 576, 96, MatrixLayout::row_interleaved));
  EXPECT_EQ(gemm.d.access, OperandAccess::folded);
  EXPECT_EQ(gemm.d.rows.shape, (Dims{35, 2}));
  EXPECT_EQ(gemm.d.columns.stride, (Dims{1, 7 * 5 * 32}));
  EXPECT_THAT(to_string(describe(Problem(conv))),
              HasSubstr("a=s8:row:16:im2col_blocks:32 b=s8:row_interleaved_32:16 c=s8:row:16:folded_2 "
                        "d=s8:row:16:folded_2"));
  Conv2d single = conv;  // one block is NHWC
  single.x = packed_tensor(kApart, DType::s8, {2, 1, 7, 5, 32});
  single.w = packed_tensor(2 * kApart, DType::s8, {1, 3, 3, 32, 32});
  single.y = single.c = packed_tensor(3 * kApart, DType::s8, {2, 1, 7, 5, 32});
  ASSERT_EQ(reason(single), "");
  EXPECT_THAT(to_string(describe(Problem(single))),
              HasSubstr("a=s8:row:16:im2col:32 b=s8:row_interleaved_32:16 c=s8:row:16 d=s8:row:16"));
}

TEST(Conv2d, RefusesBlocksOfChannelsThatNoKernelHas) {
  const auto with = [](const auto& change) {
    Conv2d conv = blocked_convolution();
    change(conv);
    return reason(conv);
  };
  EXPECT_THAT(with([](Conv2d& conv) { conv.x.shape[4] = 16; }),
              HasSubstr("x has five modes (N, C/32, H, W, 32), so that the last must be 32, got (2,2,7,5,16)"));
  EXPECT_EQ(with([](Conv2d& conv) { conv.groups = 2; }),
            "y has blocks of 32 channels, which convolutions with groups do not have, got 2 groups");
  EXPECT_EQ(with([](Conv2d& conv) { conv.x.dtype = conv.w.dtype = DType::f16; }),
            "y has blocks of 32 channels, which are for s8 and u8 operands, but x is f16");
  EXPECT_THAT(with([](Conv2d& conv) {
                conv.w = packed_tensor(2 * kApart, DType::s8, {96, 3, 3, 64});
              }),
              HasSubstr("x and w must both have blocks of 32 channels"));
  EXPECT_EQ(with([](Conv2d& conv) {
              conv.w = packed_tensor(2 * kApart, DType::s8, {3, 3, 3, 96, 32});
            }),
            "w must have 64 channels, those of x in each of 1 groups, got 96");
  EXPECT_THAT(with([](Conv2d& conv) { conv.w.stride[3] = 64; }), HasSubstr("its filters must be 32 elements apart"));
  EXPECT_THAT(with([](Conv2d& conv) { conv.y.stride[2] = 16; }), HasSubstr("that of mode 2 must be at least 160"));
  EXPECT_EQ(with([](Conv2d& conv) { conv.y.stride[0] += 64; }), "") << "images of y may have gaps";
  const auto gradient = [](ConvPass pass) { return [pass](Conv2d& conv) { conv.pass = pass; }; };
  EXPECT_EQ(with(gradient(ConvPass::dgrad)), "y has blocks of 32 channels, which are for fprop, got dgrad");
  Conv2d conv = blocked_convolution();
  conv.epilogue = *parse_epilogue("D = relu(acc + row(bias))", DType::s32, {});
  conv.tensors = {{"bias", packed_tensor(5 * kApart, DType::s32, {1, 3, 1, 1, 32})}};
  EXPECT_EQ(reason(conv), "");
  EXPECT_EQ(view(conv).tensor("bias").shape, (Dims{1, 96}));
  conv.tensors = {{"bias", packed_tensor(5 * kApart, DType::s32, {1, 1, 1, 96})}};
  EXPECT_THAT(reason(conv), HasSubstr("'bias' must have five modes, as y has, got (1,1,1,96)"));
  conv.tensors = {{"bias", packed_tensor(5 * kApart, DType::s32, {2, 3, 7, 5, 32})}};
  EXPECT_THAT(reason(conv), HasSubstr("which with blocks of channels only C need not have"));
}

TEST(Conv2d, ViewsAreGemmsOfPixelsAndTaps) {
  const Conv2d fprop = same_convolution(ConvPass::fprop);
  ASSERT_EQ(reason(fprop), "");
  const GemmView forward = view(fprop);
  EXPECT_THAT((std::vector{forward.m(), forward.n(), forward.k(), forward.batch()}), ElementsAre(70, 24, 144, 1));
  EXPECT_EQ(forward.a.access, OperandAccess::im2col);
  EXPECT_EQ(forward.b.access, OperandAccess::strided);
  const Conv2d dgrad = same_convolution(ConvPass::dgrad);
  ASSERT_EQ(reason(dgrad), "");
  const GemmView backward = view(dgrad);
  EXPECT_THAT((std::vector{backward.m(), backward.n(), backward.k()}), ElementsAre(70, 16, 216));
  EXPECT_EQ(backward.b.access, OperandAccess::im2col) << "the rows of the filter have three strides";
  const Conv2d wgrad = same_convolution(ConvPass::wgrad);
  ASSERT_EQ(reason(wgrad), "");
  const GemmView weights = view(wgrad);
  EXPECT_THAT((std::vector{weights.m(), weights.n(), weights.k()}), ElementsAre(24, 144, 70));
  EXPECT_EQ(weights.a.access, OperandAccess::strided);
  EXPECT_EQ(weights.b.access, OperandAccess::im2col);
}

TEST(Conv2d, MostElementsOfAnIm2colMatrixAreRepeated) {
  const Conv2d conv = same_convolution(ConvPass::fprop);
  EXPECT_DOUBLE_EQ(view(conv).a.distinct_share(), 1.0 / 9);
  EXPECT_EQ(view(conv).b.distinct_share(), 1.0);
  Conv2d sparse = conv;
  sparse.stride = {7, 5};
  sparse.y = packed_tensor(conv.y.address, DType::f16, {2, 1, 1, 24});
  EXPECT_EQ(view(sparse).a.distinct_share(), 1.0) << "fewer elements are read than there are";
}

TEST(Conv2d, SinglePixelsAreAPlainGemm) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    Conv2d conv = same_convolution(pass);
    conv.padding = {0, 0};
    conv.w = packed_tensor(conv.w.address, DType::f16, {24, 1, 1, 16});
    conv.c = conv.written();
    ASSERT_EQ(reason(conv), "");
    const GemmView gemm = view(conv);
    EXPECT_TRUE(gemm.check_strided("a family"));
    Conv2d strided = conv;
    strided.stride = {2, 1};
    EXPECT_FALSE(view(strided).check_strided("a family"));
    EXPECT_EQ(key(Problem(conv)).signature.operation, "gemm");
  }
}

TEST(Conv2d, GroupsAreABatch) {
  Conv2d conv = same_convolution(ConvPass::fprop);
  conv.groups = 4;
  conv.w = packed_tensor(conv.w.address, DType::f16, {24, 3, 3, 4});
  ASSERT_EQ(reason(conv), "");
  const GemmView gemm = view(conv);
  EXPECT_THAT((std::vector{gemm.m(), gemm.n(), gemm.k(), gemm.batch()}), ElementsAre(70, 6, 36, 4));
  EXPECT_EQ(gemm.a.tensor.batch_stride(), 4);
  EXPECT_EQ(gemm.d.tensor.batch_stride(), 6);
  EXPECT_EQ(describe(gemm).a.alignment, 4);
}

TEST(Conv2d, SignaturesSayWhatSelectsCode) {
  const auto text = [](const Conv2d& conv) { return to_string(describe(Problem(conv))); };
  EXPECT_THAT(text(same_convolution(ConvPass::fprop)), HasSubstr("a=f16:row:8:im2col:16 b=f16:column:8 "));
  EXPECT_THAT(text(same_convolution(ConvPass::wgrad)), HasSubstr("a=f16:column:8 b=f16:row:8:im2col:16 "));
  Conv2d dgrad = same_convolution(ConvPass::dgrad);
  EXPECT_THAT(text(dgrad), HasSubstr("a=f16:row:8:im2col:8 b=f16:row:8:im2col:64 "));
  dgrad.stride = {1, 2};
  EXPECT_THAT(text(dgrad), HasSubstr("a=f16:row:8:im2col_divided:8 b=f16:row:8:im2col:64 "));
  Conv2d odd = same_convolution(ConvPass::fprop);
  odd.x = packed_tensor(kApart, DType::f16, {2, 7, 5, 3});
  odd.w = packed_tensor(2 * kApart, DType::f16, {24, 3, 3, 3});
  EXPECT_THAT(text(odd), HasSubstr("a=f16:row:1:im2col:1 b=f16:column:1 "));
}

TEST(Conv2d, TapRowsDivideTheChannelsOfATap) {
  const auto tap_row = [](std::int64_t channels, std::int64_t taps) {
    Conv2d conv = same_convolution(ConvPass::fprop);
    conv.x = packed_tensor(kApart, DType::f16, {2, 7, 5, channels});
    conv.w = packed_tensor(2 * kApart, DType::f16, {24, taps, taps, channels});
    return describe(view(conv)).a.tap_row;
  };
  EXPECT_EQ(tap_row(192, 3), 64);
  EXPECT_EQ(tap_row(96, 3), 32);
  EXPECT_EQ(tap_row(48, 3), 16);
  EXPECT_EQ(tap_row(7, 3), 1);
  EXPECT_EQ(tap_row(40, 1), 64) << "a row of one tap ends where the matrix does";
}

TEST(Conv2d, KeysHaveAllNumbersOfTheConvolution) {
  const Conv2d conv = same_convolution(ConvPass::fprop);
  const auto differs = [&](const Conv2d& other) { return !(key(Problem(conv)) == key(Problem(other))); };
  EXPECT_FALSE(differs(conv));
  Conv2d other = conv;
  other.padding = {1, 2};
  EXPECT_TRUE(differs(other));
  EXPECT_FALSE(check_same_extents(key(Problem(conv)), key(Problem(other))));
  EXPECT_NE(problem_class(Problem(conv)), problem_class(Problem(other)));
  other = conv;
  other.mode = ConvMode::convolution;
  EXPECT_TRUE(differs(other));
  other = conv;
  other.x = packed_tensor(kApart, DType::f16, {2, 8, 5, 16});
  ASSERT_EQ(reason(other), "");
  EXPECT_TRUE(differs(other));
  Conv2d depthwise = conv;
  depthwise.groups = 16;
  depthwise.w = packed_tensor(2 * kApart, DType::f16, {16, 3, 3, 1});
  depthwise.y = depthwise.c = packed_tensor(3 * kApart, DType::f16, {2, 7, 5, 16});
  Conv2d elsewhere = depthwise;
  elsewhere.x.address += 32;
  EXPECT_EQ(key(Problem(depthwise)), key(Problem(elsewhere)));
  elsewhere.x.address += 2;
  EXPECT_FALSE(key(Problem(depthwise)) == key(Problem(elsewhere))) << "vectors of channels are misaligned";

  Conv2d odd = conv;
  odd.x = packed_tensor(conv.x.address, conv.x.dtype, {1, 9, 8, 3});
  odd.w = packed_tensor(conv.w.address, conv.w.dtype, {16, 3, 3, 3});
  odd.y = packed_tensor(conv.y.address, conv.y.dtype, {1, 9, 8, 16});
  odd.groups = 1;
  elsewhere = odd;
  elsewhere.x.address += 256;
  EXPECT_EQ(key(Problem(odd)), key(Problem(elsewhere)));
  elsewhere.x.address += 2;
  EXPECT_FALSE(key(Problem(odd)) == key(Problem(elsewhere))) << "pixels that are copied together are misaligned";
}

TEST(Conv2d, ListsItsOperandsByTheirNames) {
  const auto names = [](const Conv2d& conv) {
    std::vector<std::string> all;
    for (const ConstOperand& operand : operands(conv))
      all.push_back(std::string(operand.name) + ':' + std::string(name(operand.access)));
    return all;
  };
  EXPECT_THAT(names(same_convolution(ConvPass::fprop)), ElementsAre("x:read", "w:read", "C:read", "y:write"));
  EXPECT_THAT(names(same_convolution(ConvPass::dgrad)), ElementsAre("w:read", "y:read", "C:read", "x:write"));
  EXPECT_THAT(names(same_convolution(ConvPass::wgrad)), ElementsAre("x:read", "y:read", "C:read", "w:write"));
}

TEST(Conv2d, EpilogueTensorsHaveTheModesOfTheOutput) {
  Conv2d conv = same_convolution(ConvPass::fprop);
  conv.epilogue = *parse_epilogue("D = relu(alpha * acc + row(bias) + residual)", DType::f32, {});
  conv.tensors = {{"bias", packed_tensor(5 * kApart, DType::f16, {1, 1, 1, 24})},
                  {"residual", packed_tensor(6 * kApart, DType::f16, {2, 7, 5, 24})}};
  EXPECT_EQ(reason(conv), "");
  EXPECT_EQ(view(conv).tensor("bias").shape, (Dims{1, 24}));
  EXPECT_EQ(view(conv).tensor("residual").shape, (Dims{70, 24}));
  conv.tensors[0].tensor = packed_tensor(5 * kApart, DType::f16, {2, 1, 1, 24});
  EXPECT_THAT(reason(conv), HasSubstr("'bias' must be (2,7,5,24), or 1 in modes 0 to 2"));
  conv.tensors[0].tensor = packed_tensor(5 * kApart, DType::f16, {1, 1, 1, 23});
  EXPECT_THAT(reason(conv), HasSubstr("'bias' must have 24 channels, or 1, got 23"));
  conv.tensors.erase(conv.tensors.begin());
  EXPECT_THAT(reason(conv), HasSubstr("the epilogue reads 'bias', but no tensor has that name"));
}

TEST(Conv2d, RefusesInTheWordsOfTheCaller) {
  const auto with = [](const auto& change) {
    Conv2d conv = same_convolution(ConvPass::fprop);
    change(conv);
    return reason(conv);
  };
  EXPECT_THAT(with([](Conv2d& conv) { conv.x.shape = {2, 7, 80}; }), HasSubstr("x must have four modes (N, H, W, C)"));
  EXPECT_EQ(with([](Conv2d& conv) { conv.stride = {1, 0}; }), "stride along the width must be at least 1, got 0");
  EXPECT_EQ(with([](Conv2d& conv) { conv.dilation = {0, 1}; }), "dilation along the height must be at least 1, got 0");
  EXPECT_EQ(with([](Conv2d& conv) { conv.padding = {-1, 0}; }), "padding along the height must be at least 0, got -1");
  EXPECT_EQ(with([](Conv2d& conv) { conv.groups = 5; }),
            "C, the channels of x, must be a multiple of 5 groups, got 16");
  EXPECT_EQ(with([](Conv2d& conv) { conv.groups = 2; }),
            "w must have 8 channels, those of x in each of 2 groups, got 16");
  EXPECT_EQ(with([](Conv2d& conv) { conv.y.shape[3] = 23; }),
            "y must have 24 channels, one for each filter of w, got 23");
  EXPECT_EQ(with([](Conv2d& conv) { conv.y.shape[0] = 3; }), "x and y differ in N: 2 and 3");
  EXPECT_THAT(with([](Conv2d& conv) { conv.x.stride[3] = 2; }), HasSubstr("x must have contiguous channels"));
  EXPECT_THAT(with([](Conv2d& conv) { conv.w.dtype = DType::bf16; }), HasSubstr("(A is x, B is w and D is y)"));
  EXPECT_THAT(with([](Conv2d& conv) { conv.w.stride[2] = 20; }), HasSubstr("w of shape (24,3,3,16) has strides"));
  EXPECT_THAT(with([](Conv2d& conv) { conv.y.stride[0] += 24; }), HasSubstr("its pixels must follow each other"));
  EXPECT_THAT(with([](Conv2d& conv) {
                conv.padding = {std::int64_t{1} << 31, 0};
              }),
              HasSubstr("+ padding 2147483648 + "));
  EXPECT_THAT(with([](Conv2d& conv) {
                conv.padding = {std::int64_t{1} << 31, 0};
              }),
              HasSubstr("pixels along the height must be at most 2^30"));
  EXPECT_THAT(with([](Conv2d& conv) { conv.x.address = 0; }), HasSubstr("'x' is a null pointer"));
  EXPECT_EQ(with([](Conv2d& conv) { conv.x.stride[0] += 160; }), "") << "x is gathered: its images may have gaps";
}

TEST(Conv2d, PositionsAreNoneIfTheFilterDoesNotFit) {
  EXPECT_EQ(conv_positions(224, 3, 3, 7, 2, 1), 112);
  EXPECT_EQ(conv_positions(5, 0, 0, 3, 1, 2), 1);
  EXPECT_EQ(conv_positions(4, 0, 0, 3, 2, 2), 0) << "the numerator is -1, which a truncating division takes for 0";
}

}  // namespace
}  // namespace tilewright::op
