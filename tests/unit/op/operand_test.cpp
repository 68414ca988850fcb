// Operands that share memory: which are refused, and which are only next to each other.
#include "tilewright/op/operand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tilewright::op {
namespace {

Support check_two(const Tensor& input, const Tensor& output) {
  return check_memory({{.name = "x", .tensor = &input}, {.name = "y", .tensor = &output, .access = Access::write}});
}

std::set<std::uint64_t> bytes_of(const Tensor& tensor) {
  std::set<std::uint64_t> all;
  const std::int64_t element = bytes(tensor.dtype);
  for (std::int64_t i = 0; i < tensor.batch(); ++i) {
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int64_t column = 0; column < tensor.columns(); ++column) {
        const std::int64_t offset = i * tensor.batch_stride() + tensor.offset(row, column);
        for (std::int64_t byte = 0; byte < element; ++byte)
          all.insert(tensor.address + static_cast<std::uint64_t>(offset * element + byte));
      }
    }
  }
  return all;
}

bool share_a_byte(const Tensor& x, const Tensor& y) {
  const std::set<std::uint64_t> of_x = bytes_of(x), of_y = bytes_of(y);
  return std::ranges::any_of(of_x, [&](std::uint64_t byte) { return of_y.contains(byte); });
}

TEST(CheckMemory, SlicesOfOneArrayMayBeInputsAndOutputs) {
  constexpr std::uint64_t kArray = 0x10000;
  const Tensor left = matrix(kArray, DType::f32, 8, 16, MatrixLayout::row_major, 40);
  const Tensor right = matrix(kArray + 24 * 4, DType::f32, 8, 16, MatrixLayout::row_major, 40);
  EXPECT_TRUE(check_two(left, right)) << check_two(left, right).reason();
  EXPECT_TRUE(check_two(right, left)) << check_two(right, left).reason();
  const Tensor from_15 = matrix(kArray + 15 * 4, DType::f32, 8, 16, MatrixLayout::row_major, 40);
  EXPECT_EQ(check_two(left, from_15).reason(), "'y' [0x1003c, 0x104dc) overlaps 'x' [0x10000, 0x104a0)");
  const Tensor to_the_next_row = matrix(kArray + 25 * 4, DType::f32, 8, 16, MatrixLayout::row_major, 40);
  EXPECT_FALSE(check_two(left, to_the_next_row)) << "its last column is the first of the next row";
  const Tensor every_other_row = matrix(kArray + 24 * 4, DType::f16, 4, 32, MatrixLayout::row_major, 160);
  EXPECT_TRUE(check_two(left, every_other_row)) << "another element type and another stride";
  EXPECT_FALSE(check_two(left, matrix(kArray + 24 * 4, DType::f16, 4, 34, MatrixLayout::row_major, 160)));
  EXPECT_TRUE(check_two(batched(left, 5, 400), batched(right, 5, 400)));
  EXPECT_FALSE(check_two(batched(left, 5, 410), batched(right, 5, 400)));
}

TEST(CheckMemory, NeverAcceptsTensorsThatShareAByte) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const auto draw_tensor = [&] {
    Tensor tensor = matrix(0x1000 + static_cast<std::uint64_t>(draw(0, 40) * 4),
                           draw(0, 1) == 0 ? DType::f32 : DType::f16, draw(1, 4), draw(1, 4));
    tensor.stride = {draw(0, 1) == 0 ? 12 : draw(0, 30), draw(0, 2) == 0 ? draw(0, 6) : 1};
    return draw(0, 2) == 0 ? batched(tensor, draw(1, 3), draw(0, 1) == 0 ? 48 : draw(0, 60)) : tensor;
  };
  int apart = 0, accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const Tensor x = draw_tensor(), y = draw_tensor();
    const bool is_accepted = bool(check_two(x, y));
    ASSERT_FALSE(is_accepted && share_a_byte(x, y)) << to_string(x.stride) << to_string(y.stride);
    const Interval of_x = interval(x), of_y = interval(y);
    if (of_x.begin >= of_y.end || of_y.begin >= of_x.end || share_a_byte(x, y)) continue;
    ++apart;
    if (is_accepted) ++accepted;
  }
  EXPECT_GT(accepted, apart / 2) << apart;
}

}  // namespace
}  // namespace tilewright::op
