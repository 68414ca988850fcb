// Tensors, their layouts and strides, and the functions that fill and access them.
#include "tilewright/op/tensor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

constexpr MatrixLayout kRow = MatrixLayout::row_major;
constexpr MatrixLayout kColumn = MatrixLayout::column_major;

Tensor strided(Dims shape, Dims stride) { return {0, DType::f32, shape, stride, {}}; }

TEST(ViewMatrix, PackedAndPaddedMatrices) {
  EXPECT_EQ(*view_matrix(matrix(nullptr, DType::f16, 3, 5), "A"), (MatrixView{kRow, 5}));
  EXPECT_EQ(*view_matrix(matrix(nullptr, DType::f16, 3, 5, kColumn), "A"), (MatrixView{kColumn, 3}));
  EXPECT_EQ(*view_matrix(matrix(nullptr, DType::f16, 3, 5, kRow, 8), "A"), (MatrixView{kRow, 8}));
  EXPECT_EQ(*view_matrix(matrix(nullptr, DType::f16, 3, 5, kColumn, 7), "A"), (MatrixView{kColumn, 7}));
}

TEST(ViewMatrix, DegenerateExtentsHaveALayout) {
  for (const Dims& shape : {Dims{1, 1}, Dims{0, 0}, Dims{0, 5}, Dims{5, 0}, Dims{1, 7}, Dims{7, 1}}) {
    for (const MatrixLayout layout : {kRow, kColumn}) {
      const Result<MatrixView> view = view_matrix(matrix(nullptr, DType::f32, shape[0], shape[1], layout), "A");
      ASSERT_TRUE(view) << to_string(shape);
      EXPECT_GE(view->ld, 1);
    }
  }
  EXPECT_TRUE(view_matrix(strided({1, 4}, {77, 1}), "A"));
  EXPECT_TRUE(view_matrix(strided({4, 1}, {3, 99}), "A"));
}

// The caller's layout of a single row or column is kept, because a kernel may be declared for it.
TEST(ViewMatrix, StridesOfASingleLineDecideItsLayout) {
  for (const Dims& shape : {Dims{1, 7}, Dims{7, 1}}) {
    for (const MatrixLayout layout : {kRow, kColumn}) {
      const Tensor given = matrix(nullptr, DType::f32, shape[0], shape[1], layout);
      EXPECT_EQ(view_matrix(given, "A")->layout, layout) << to_string(given.stride);
      for (const MatrixLayout other : {kRow, kColumn}) {
        const Tensor other_strides = with_layout(given, other);
        EXPECT_EQ(view_matrix(other_strides, "A")->layout, other) << to_string(other_strides.stride);
        EXPECT_EQ(with_layout(other_strides, layout), with_layout(given, layout));
        for (std::int64_t i = 0; i < 7; ++i) {
          const bool is_row = shape[0] == 1;
          EXPECT_EQ(other_strides.offset(is_row ? 0 : i, is_row ? i : 0), i);
        }
      }
    }
  }
  EXPECT_EQ(*view_matrix(strided({4, 1}, {3, 1}), "A"), (MatrixView{kRow, 3}));
  EXPECT_EQ(with_layout(strided({4, 1}, {3, 1}), kColumn), strided({4, 1}, {3, 1})) << "its elements are not adjacent";
  EXPECT_EQ(with_layout(strided({4, 3}, {3, 1}), kColumn), strided({4, 3}, {3, 1}));
}

TEST(WithLongestLines, OfASingleColumnAreColumns) {
  EXPECT_EQ(*view_matrix(with_longest_lines(strided({7, 1}, {1, 1})), "B"), (MatrixView{kColumn, 7}));
  EXPECT_EQ(*view_matrix(with_longest_lines(strided({1, 7}, {1, 1})), "A"), (MatrixView{kRow, 7}));
  const Tensor batch = batched(matrix(nullptr, DType::f16, 1032, 1), 3);
  const Tensor columns = with_longest_lines(batch);
  EXPECT_EQ(view_matrix(columns, "B")->layout, kColumn);
  EXPECT_EQ(columns.batch_stride(), 1032);
  EXPECT_EQ(with_longest_lines(strided({1, 1}, {1, 1})), strided({1, 1}, {1, 1}));
}

TEST(ViewMatrix, RefusesWithTheNumber) {
  const auto reason = [](const Tensor& tensor) {
    const Result<MatrixView> view = view_matrix(tensor, "B");
    return view ? std::string("accepted") : view.reason();
  };
  EXPECT_EQ(reason(strided({3, 5}, {4, 1})), "B of shape (3,5) needs a leading dimension of at least 5, got 4");
  EXPECT_EQ(reason(strided({-3, 5}, {5, 1})), "B has a negative extent -3");
  EXPECT_EQ(reason(strided({3, 5}, {-5, 1})), "B has a negative stride -5");
  EXPECT_EQ(reason(strided({3, 5}, {10, 2})), "B must have one stride of 1, got (10,2)");
  EXPECT_NE(reason(strided({3}, {1})).find("rank 2"), std::string::npos);
  EXPECT_NE(reason(strided({2, 3, 5, 7}, {105, 35, 7, 1})).find("rank 2, or 3"), std::string::npos);
  EXPECT_EQ(reason(strided({2, 3, 5}, {15, 4, 1})),
            "B of shape (2,3,5) needs a leading dimension of at least 5, got 4");
  EXPECT_EQ(reason(strided({2, 3, 5}, {-15, 5, 1})), "B has a negative stride -15");
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(reason(strided({huge, 1}, {1, 1})).find("2^63"), std::string::npos);
  EXPECT_NE(reason(strided({huge / 2, 8}, {8, 1})).find("2^63"), std::string::npos);
  EXPECT_NE(reason(strided({3, 4, 4}, {huge / 4, 4, 1})).find("2^63"), std::string::npos);
}

TEST(Batched, MatricesArePackedByDefault) {
  const Tensor padded = matrix(nullptr, DType::f16, 3, 5, kRow, 8);
  EXPECT_EQ(batched(padded, 4).shape, (Dims{4, 3, 5}));
  EXPECT_EQ(batched(padded, 4).stride, (Dims{24, 8, 1}));
  EXPECT_EQ(batched(matrix(nullptr, DType::f16, 3, 5, kColumn), 4).stride, (Dims{15, 1, 3}));
  EXPECT_EQ(batched(padded, 4, 100).stride, (Dims{100, 8, 1}));
  EXPECT_EQ(batched(padded, 4, 0).batch_stride(), 0);
  EXPECT_EQ(batched(padded, 1, 100).batch_stride(), 0) << "a single matrix has batch stride 0";
  EXPECT_EQ(padded.batch(), 1);
  EXPECT_EQ(*view_matrix(batched(padded, 4), "A"), (MatrixView{kRow, 8}));
  EXPECT_EQ(span_bytes(batched(padded, 4, 100)), (3 * 100 + 2 * 8 + 5) * 2);
  EXPECT_EQ(span_bytes(batched(padded, 4, 0)), span_bytes(padded));
  EXPECT_EQ(span_bytes(batched(padded, 0)), 0);
}

TEST(Batched, SlicesAreItsMatrices) {
  const Tensor tensor = batched(matrix(std::uint64_t{0x1000}, DType::f32, 3, 5), 4, 100);
  EXPECT_EQ(slice(tensor, 2), matrix(std::uint64_t{0x1000 + 2 * 100 * 4}, DType::f32, 3, 5));
  EXPECT_EQ(slice(batched(slice(tensor, 0), 4, 0), 3), slice(tensor, 0));
  EXPECT_EQ(slice(slice(tensor, 0), 3), slice(tensor, 0)) << "broadcast over the batch";
  EXPECT_EQ(transposed(tensor).shape, (Dims{4, 5, 3}));
  EXPECT_EQ(transposed(tensor).stride, (Dims{100, 1, 5}));
}

TEST(SpanBytes, ReachesPastTheLastElementOnly) {
  EXPECT_EQ(span_bytes(matrix(nullptr, DType::f32, 3, 5, kRow, 8)), (2 * 8 + 5) * 4);
  EXPECT_EQ(span_bytes(matrix(nullptr, DType::u8, 3, 5, kColumn, 4)), 4 * 4 + 3);
  EXPECT_EQ(span_bytes(matrix(nullptr, DType::f64, 0, 5)), 0);
}

TEST(Transposed, SharesTheMemory) {
  std::int8_t values[15] = {};
  for (int i = 0; i < 15; ++i) values[i] = static_cast<std::int8_t>(i);
  const Tensor a = matrix(values, DType::s8, 3, 5);
  const Tensor t = transposed(a);
  EXPECT_EQ(t.shape, (Dims{5, 3}));
  EXPECT_EQ(transposed(t), a);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_EQ(load(a, i, j), load(t, j, i));
  }
}

TEST(Store, RoundsOnceAndSaturates) {
  EXPECT_EQ(round_to(DType::s8, 300.0), 127.0);
  EXPECT_EQ(round_to(DType::s8, -300.0), -128.0);
  EXPECT_EQ(round_to(DType::u8, -1.0), 0.0);
  EXPECT_EQ(round_to(DType::u8, 255.5), 255.0);
  EXPECT_EQ(round_to(DType::s8, 2.5), 2.0);
  EXPECT_EQ(round_to(DType::s8, 3.5), 4.0);
  EXPECT_EQ(round_to(DType::s32, 1e10), 2147483647.0);
  EXPECT_EQ(round_to(DType::s32, std::numeric_limits<double>::quiet_NaN()), 0.0);
  EXPECT_EQ(round_to(DType::f16, 65520.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_to(DType::bf16, 257.0), 256.0);
  EXPECT_EQ(round_to(DType::f64, 0.1), 0.1);
}

TEST(Fill, IsDeterministicAndWithinTheBounds) {
  float x[64] = {}, y[64] = {};
  const Tensor a = matrix(x, DType::f32, 8, 8), b = matrix(y, DType::f32, 8, 8);
  fill_integers(a, -3, 2, 7);
  fill_integers(b, -3, 2, 7);
  bool low = false, high = false;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(x[i], y[i]);
    EXPECT_GE(x[i], -3);
    EXPECT_LE(x[i], 2);
    EXPECT_EQ(x[i], std::trunc(x[i]));
    low |= x[i] == -3;
    high |= x[i] == 2;
  }
  EXPECT_TRUE(low && high);
  fill_integers(b, -3, 2, 8);
  EXPECT_NE(0, std::memcmp(x, y, sizeof x));
}

TEST(Fill, NormalHasItsMoments) {
  std::vector<double> values(10000);
  fill_normal(matrix(values.data(), DType::f64, 100, 100), 3.0, 1);
  double sum = 0, squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / 10000, 0.0, 0.15);
  EXPECT_NEAR(std::sqrt(squares / 10000), 3.0, 0.1);
}

TEST(Fill, PoisonIsNanAndStaysInTheSpan) {
  float values[10] = {};
  fill_poison(matrix(values, DType::f32, 2, 3, kRow, 5));
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_TRUE(std::isnan(values[7]));
  EXPECT_EQ(values[8], 0.0F);
}

TEST(PointerArray, HasTheShapeOfItsMatricesAndNoBatchStride) {
  std::vector<float> first(15, 1.0F), second(15, 2.0F);
  std::vector<std::uint64_t> addresses;
  for (const auto* each : {&second, &first}) addresses.push_back(reinterpret_cast<std::uint64_t>(each->data()));
  const Tensor like = matrix(nullptr, DType::f32, 3, 5);
  const Tensor tensor = pointer_array(like, reinterpret_cast<std::uint64_t>(addresses.data()), 2);
  EXPECT_TRUE(check_strides(tensor, "A"));
  EXPECT_EQ(tensor.shape, (Dims{2, 3, 5}));
  EXPECT_EQ(tensor.batch_stride(), 0);
  EXPECT_EQ(tensor.distinct_matrices(), 2);
  EXPECT_EQ(batched(like, 2, 0).distinct_matrices(), 1);
  EXPECT_EQ(span_bytes(tensor), 2 * 8) << "those of the addresses";
  EXPECT_EQ(slice(tensor, 0), matrix(second.data(), DType::f32, 3, 5));
  EXPECT_EQ(slice(tensor, 1), matrix(first.data(), DType::f32, 3, 5));
  EXPECT_EQ(slice(transposed(tensor), 1), transposed(slice(tensor, 1)));
  EXPECT_EQ(load(tensor, 2, 4), 2.0) << "of the first matrix";
  fill_integers(tensor, 3, 3, 1);
  EXPECT_EQ(first, std::vector<float>(15, 3.0F));
  fill_poison(tensor);
  EXPECT_NE(second[14], second[14]);
  EXPECT_EQ(slice(pointer_array(like, 0, 2), 1).address, 0U) << "a shape without memory";
}

TEST(PointerArray, MatricesMayBeInterleaved) {
  std::vector<std::int8_t> first(2 * 32 * 8), second(2 * 32 * 8);
  const std::array<std::uint64_t, 2> addresses{reinterpret_cast<std::uint64_t>(first.data()),
                                               reinterpret_cast<std::uint64_t>(second.data())};
  const Tensor like = matrix(nullptr, DType::s8, 8, 64, MatrixLayout::column_interleaved);
  const Tensor tensor = pointer_array(like, reinterpret_cast<std::uint64_t>(addresses.data()), 2);
  ASSERT_TRUE(view_matrix(tensor, "A")) << view_matrix(tensor, "A").reason();
  EXPECT_EQ(view_matrix(tensor, "A")->layout, MatrixLayout::column_interleaved);
  EXPECT_EQ(span_bytes(tensor), 2 * 8) << "those of the addresses";
  store(slice(tensor, 1), 3, 40, 5.0);
  EXPECT_EQ(second[32 * 8 + 3 * 32 + 8], 5);
}

TEST(PointerArray, TheDeclaredAlignmentStandsForTheAddresses) {
  const Tensor like = matrix(nullptr, DType::f16, 4, 24);
  for (const int alignment : {2, 4, 8, 16, 256})
    EXPECT_EQ(shared_alignment(pointer_array(like, 8, 3, alignment), {24}), std::min(alignment, 16) / 2);
  EXPECT_EQ(shared_alignment(pointer_array(like, 0x1000, 3), {12}), 4);
}

TEST(PointerArray, RefusesWhatIsNoArrayOfPointers) {
  const auto reason = [](const Tensor& tensor) { return std::string(check_strides(tensor, "B").reason()); };
  const Tensor good = pointer_array(matrix(nullptr, DType::f32, 3, 5), 0x1000, 2);
  Tensor bad = good;
  bad.shape = {3, 5};
  bad.stride = {5, 1};
  EXPECT_EQ(reason(bad),
            "B is an array of pointers to matrices, so that its shape must be (batch, rows, columns), got (3,5)");
  for (const int alignment : {-16, 2, 3, 12, 17}) {
    bad = good;
    bad.pointer_alignment = alignment;
    EXPECT_EQ(reason(bad),
              fmt::format("the declared alignment of the matrices of B must be a power of two of at least 4 "
                          "bytes, the size of an element, got {}",
                          alignment));
  }
  bad = good;
  bad.stride[0] = 15;
  EXPECT_EQ(reason(bad), "B is an array of pointers, so that its batch stride must be 0, got 15");
  EXPECT_FALSE(check_strides(
      pointer_array(matrix(nullptr, DType::f32, std::int64_t{1} << 40, std::int64_t{1} << 40), 8, 2), "B"));
}

}  // namespace
}  // namespace tilewright::op
