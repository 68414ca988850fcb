// Tensors with red zones: detection of out-of-bounds writes and differing elements for every kind of layout.
#include "tilewright/tune/guarded_tensor.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/engine/host_problem.hpp"

namespace tilewright::tune {
namespace {

using namespace engine;  // for the shared fakes of the engine's tests

/// Outputs with all kinds of layouts, at a misaligned address.
std::vector<op::Tensor> outputs() {
  constexpr std::uint64_t kAddress = 4096 + 24;
  constexpr auto kRow = op::MatrixLayout::row_major, kColumn = op::MatrixLayout::column_major;
  const op::Tensor padded = op::matrix(kAddress, DType::f16, 3, 5, kRow, 9);
  const op::Tensor columns = op::matrix(kAddress, DType::f64, 3, 5, kColumn, 4);
  return {op::matrix(kAddress, DType::f32, 3, 5),
          padded,
          columns,
          op::batched(padded, 2),
          op::batched(columns, 3, 23),
          op::batched(op::matrix(kAddress, DType::f32, 3, 5, kColumn, 13), 4, 3),
          op::matrix(kAddress, DType::f32, 1, 5),
          op::matrix(kAddress, DType::f32, 3, 1),
          op::matrix(kAddress, DType::f32, 3, 1, kRow, 6),
          op::batched(op::matrix(kAddress, DType::f32, 1, 5), 2, 7),
          op::matrix(kAddress, DType::s8, 3, 64, op::MatrixLayout::column_interleaved, 100),
          op::batched(op::matrix(kAddress, DType::s32, 64, 2, op::MatrixLayout::row_interleaved), 2, 130),
          op::matrix(kAddress, DType::u8, 1, 1)};
}

/// The place of each element by its offset in bytes.
std::map<std::int64_t, op::Place> elements_of(const op::Tensor& tensor) {
  std::map<std::int64_t, op::Place> all;
  for (std::int64_t matrix = 0; matrix < tensor.batch(); ++matrix) {
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int64_t column = 0; column < tensor.columns(); ++column) {
        const std::int64_t element = matrix * tensor.batch_stride() + tensor.offset(row, column);
        all[element * bytes(tensor.dtype)] = {matrix, row, column};
      }
    }
  }
  return all;
}

class GuardedTensors : public testing::Test {
 protected:
  GuardedTensor place(const op::Tensor& shape) const { return {"aux", device_, shape, output_red_zone(shape)}; }
  void write(const GuardedTensor& placed, std::int64_t byte, int count) const {
    const std::vector<std::byte> ones(static_cast<std::size_t>(count), std::byte{1});
    device_->copy_in(placed.on_device().address + static_cast<std::uint64_t>(byte), ones.data(), ones.size(), nullptr);
  }
  void fetch(GuardedTensor& placed) const {
    placed.fetch();
    device_->synchronize(nullptr);
  }

  std::shared_ptr<runtime::Device> device_ = open_device(emulator_options());
};

TEST_F(GuardedTensors, AWriteOutsideTheElementsIsFound) {
  for (const op::Tensor& shape : outputs()) {
    const std::string of = to_string(shape.shape) + " " + to_string(shape.stride);
    GuardedTensor placed = place(shape);
    EXPECT_EQ(placed.on_device().address % kGuardedAlignment, shape.address % kGuardedAlignment);
    const std::map<std::int64_t, op::Place> elements = elements_of(shape);
    placed.poison();
    for (const auto& [byte, where] : elements) write(placed, byte, bytes(shape.dtype));
    fetch(placed);
    EXPECT_EQ(placed.find_out_of_bounds_write(), "") << of;

    const std::int64_t span = op::span_bytes(shape);
    const auto zone = static_cast<std::int64_t>(output_red_zone(shape));
    std::vector<std::int64_t> strays{-zone, -1, span, span + zone - 1};
    for (std::int64_t byte = 0; byte < span; ++byte) {
      const auto after = elements.upper_bound(byte);
      if (byte >= std::prev(after)->first + bytes(shape.dtype)) strays.push_back(byte);
    }
    for (const std::int64_t stray : strays) {
      placed.poison();
      for (const auto& [byte, where] : elements) write(placed, byte, bytes(shape.dtype));
      write(placed, stray, 1);
      fetch(placed);
      EXPECT_EQ(placed.find_out_of_bounds_write(),
                fmt::format("it wrote outside its output aux, which spans {} bytes, at byte {} from the first element",
                            span, stray))
          << of;
    }
  }
}

TEST_F(GuardedTensors, TheRedZoneOfOneImageIsAsThatOfMany) {
  const op::Tensor one = op::packed_tensor(0, DType::f16, {1, 64, 48, 32}),
                   many = op::packed_tensor(0, DType::f16, {9, 64, 48, 32});
  EXPECT_EQ(output_red_zone(one), output_red_zone(many));
  op::Tensor row = op::packed_tensor(0, DType::f16, {1, 64});
  row.stride = {512, 1};
  EXPECT_GE(output_red_zone(row), 512U * 512 * 2) << "a second row would begin behind the first";
}

TEST_F(GuardedTensors, ADifferingElementIsFound) {
  for (const op::Tensor& shape : outputs()) {
    GuardedTensor placed = place(shape);
    placed.poison();
    fetch(placed);
    const std::vector<std::byte> before(placed.image().begin(), placed.image().end());
    EXPECT_TRUE(placed.differing_elements(before).empty());
    for (const auto& [byte, where] : elements_of(shape)) {
      placed.poison();
      write(placed, byte + bytes(shape.dtype) - 1, 1);
      fetch(placed);
      EXPECT_EQ(placed.differing_elements(before), std::vector<op::Place>{where})
          << to_string(shape.shape) << " " << to_string(shape.stride) << " byte " << byte;
    }
  }
}

TEST_F(GuardedTensors, AnInputIsIntactUntilItOrItsRedZoneIsWritten) {
  const op::Tensor shape = op::matrix(std::uint64_t{512}, DType::f32, 3, 5, {}, 7);
  const GuardedTensor placed("A", device_, shape, 256);
  for (const std::int64_t byte : {std::int64_t{-256}, std::int64_t{0}, std::int64_t{24}, op::span_bytes(shape) + 255}) {
    placed.upload();
    EXPECT_TRUE(placed.is_intact());
    write(placed, byte, 1);
    EXPECT_FALSE(placed.is_intact()) << byte;
  }
}

}  // namespace
}  // namespace tilewright::tune
