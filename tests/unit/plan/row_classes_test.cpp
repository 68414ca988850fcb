#include "tilewright/plan/sm90/row_classes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::plan {
namespace {

struct Shape {
  std::int64_t h, w, c, k, r, s, stride_h, stride_w, dilation_h, dilation_w, padding;
  op::ConvMode mode = op::ConvMode::cross_correlation;
};

op::Conv2d gradient(const Shape& of) {
  const auto positions = [&](std::int64_t extent, std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
    return std::max<std::int64_t>((extent + 2 * of.padding - (taps - 1) * dilation - 1) / stride + 1, 1);
  };
  op::Conv2d conv{.pass = op::ConvPass::dgrad,
                  .x = op::packed_tensor(std::uint64_t{1} << 40, DType::f16, {2, of.h, of.w, of.c}),
                  .w = op::packed_tensor(std::uint64_t{2} << 40, DType::f16, {of.k, of.r, of.s, of.c}),
                  .y = op::packed_tensor(std::uint64_t{3} << 40, DType::f16,
                                         {2, positions(of.h, of.r, of.stride_h, of.dilation_h),
                                          positions(of.w, of.s, of.stride_w, of.dilation_w), of.k}),
                  .c = {},
                  .padding = {of.padding, of.padding},
                  .stride = {of.stride_h, of.stride_w},
                  .dilation = {of.dilation_h, of.dilation_w},
                  .mode = of.mode,
                  .beta = 0};
  conv.c = conv.written();
  return conv;
}

/// The distance of an element of an im2col operand from `base`, in elements; nothing if it is outside the images.
std::optional<std::int64_t> place(const op::OperandView& operand, std::uint64_t base, std::int64_t row,
                                  std::int64_t column) {
  const std::optional<std::int64_t> offset = operand.im2col.offset(row, column);
  if (!offset) return std::nullopt;
  return static_cast<std::int64_t>(operand.tensor.address - base) / 2 + *offset;
}

/// Every product of the gradient is one of a class, with the same elements of A, B and D, and the others have a zero.
void expect_same_products(const op::Conv2d& conv) {
  const op::GemmView view = op::view(conv);
  const std::uint64_t base_a = view.a.tensor.address, base_b = view.b.tensor.address, base_d = view.d.tensor.address;
  const op::Tensor& d = view.d.tensor;
  const std::int64_t ld = d.stride[d.shape.rank() - 2];
  std::vector<int> written(static_cast<std::size_t>(view.m()), 0);
  std::int64_t products = 0;
  for (const RowClass& own : row_classes(view)) {
    ASSERT_EQ(own.b.im2col.rows(), own.k());
    for (std::int64_t row = 0; row < own.m(); ++row) {
      const std::optional<std::int64_t> of_d = place(own.d, base_d, row, 0);
      ASSERT_TRUE(of_d);
      ASSERT_EQ(*of_d % ld, 0);
      const std::int64_t pixel = *of_d / ld;
      ++written.at(static_cast<std::size_t>(pixel));
      for (std::int64_t column = 0; column < own.k(); ++column) {
        const std::optional<std::int64_t> a = place(own.a, base_a, row, column);
        const std::optional<std::int64_t> b = place(own.b, base_b, column, 0);
        ASSERT_TRUE(b);
        const std::int64_t filter = *b / conv.w.stride[0], tap = *b % conv.w.stride[0] / conv.w.shape[3];
        const std::int64_t whole_column = tap * view.a.im2col.channels + filter;
        ASSERT_EQ(a, view.a.im2col.offset(pixel, whole_column)) << "pixel " << pixel << " column " << whole_column;
        products += a ? 1 : 0;
      }
    }
  }
  for (const int count : written) EXPECT_EQ(count, 1);
  std::int64_t all = 0;
  for (std::int64_t row = 0; row < view.m(); ++row) {
    for (std::int64_t column = 0; column < view.k(); ++column) all += view.a.im2col.offset(row, column) ? 1 : 0;
  }
  EXPECT_EQ(products, all) << "the products left out have a zero";
}

TEST(RowClasses, AStrideOfTwoHasFourClasses) {
  const op::Conv2d conv = gradient({8, 6, 8, 8, 3, 3, 2, 2, 1, 1, 1});
  const std::vector<RowClass> classes = row_classes(op::view(conv));
  ASSERT_EQ(classes.size(), 4U);
  EXPECT_EQ(row_class_count(op::view(conv).a), 4);
  std::vector<std::int64_t> taps;
  for (const RowClass& own : classes) taps.push_back(own.a.im2col.taps());
  EXPECT_EQ(taps, (std::vector<std::int64_t>{4, 2, 2, 1})) << "those with the most products come first";
  EXPECT_EQ(classes[0].m(), 2 * 4 * 3);
}

TEST(RowClasses, PixelsBetweenTheTapsHaveNoProducts) {
  const op::Conv2d conv = gradient({7, 7, 8, 8, 1, 1, 2, 2, 1, 1, 0});
  const std::vector<RowClass> classes = row_classes(op::view(conv));
  ASSERT_EQ(classes.size(), 4U);
  EXPECT_EQ(classes[0].k(), 8);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(classes[i].k(), 0);
  expect_same_products(conv);
}

TEST(RowClasses, HaveTheProductsOfTheGradient) {
  std::mt19937 random(7);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<std::int64_t>(from, to)(random); };
  for (int i = 0; i < 200; ++i) {
    const Shape shape{
        draw(1, 9), draw(1, 9), draw(1, 2),
        draw(1, 3), draw(1, 4), draw(1, 4),
        draw(1, 3), draw(2, 4), draw(1, 3),
        draw(1, 3), draw(0, 3), draw(0, 1) == 0 ? op::ConvMode::cross_correlation : op::ConvMode::convolution};
    SCOPED_TRACE(i);
    expect_same_products(gradient(shape));
  }
}

// The columns of B of a class in a copy whose lines are those of the filter's channels.
TEST(RowClasses, HaveTheirTapsOfARepackedFilter) {
  const op::Conv2d conv = gradient({9, 8, 5, 8, 3, 4, 2, 2, 1, 1, 1});
  const op::GemmView view = op::view(conv);
  const RepackedCopy copy{.contiguous = view.k(), .lines = view.n(), .pitch = 256};
  for (const RowClass& own : row_classes(view)) {
    const op::OperandView of_copy = class_of_copy(own, view, copy, 4096);
    ASSERT_EQ(of_copy.im2col.rows(), view.n());
    ASSERT_EQ(of_copy.im2col.columns(), own.k());
    for (std::int64_t n = 0; n < view.n(); ++n) {
      for (std::int64_t k = 0; k < own.k(); ++k) {
        const std::int64_t in_filter = *place(own.b, view.b.tensor.address, k, n);
        const std::int64_t filter = in_filter / conv.w.stride[0], tap = in_filter % conv.w.stride[0] / conv.w.stride[2];
        EXPECT_EQ(place(of_copy, 4096, n, k), n * copy.pitch / 2 + tap * conv.w.shape[0] + filter);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::plan
