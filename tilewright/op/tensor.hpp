// A tensor as the caller has it: pointer, element type, shape, strides, device. Never owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::op {

/// Up to five extents or strides, in elements, without allocation.
class Dims {
 public:
  static constexpr int kMaxRank = 5;

  Dims() = default;
  /// @pre values.size() <= kMaxRank
  Dims(std::initializer_list<std::int64_t> values);

  int rank() const { return rank_; }
  std::int64_t operator[](int mode) const { return values_[static_cast<std::size_t>(mode)]; }
  std::int64_t& operator[](int mode) { return values_[static_cast<std::size_t>(mode)]; }
  bool operator==(const Dims&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

/// "(128,64)"
std::string to_string(const Dims& dims);

/// Where memory lives. The ordinal counts devices of one kind.
struct MemoryDevice {
  enum class Kind : std::uint8_t { host, cuda, emulator };
  Kind kind = Kind::host;
  int ordinal = 0;
  bool operator==(const MemoryDevice&) const = default;
};

/// "host", "cuda:0", "emulator"
std::string to_string(const MemoryDevice& device);

enum class MatrixLayout : std::uint8_t { row_major, column_major };

std::string_view name(MatrixLayout layout);  // "row", "column"
/// The layout of the transposed matrix over the same memory.
MatrixLayout transposed(MatrixLayout layout);

struct Tensor {
  std::uint64_t address = 0;  // host pointer or device address; 0 for none
  DType dtype = DType::f32;
  Dims shape;
  Dims stride;  // elements
  MemoryDevice device;

  bool operator==(const Tensor&) const = default;
};

/// A packed matrix, or one with leading dimension `ld` elements (0: packed).
Tensor matrix(std::uint64_t address, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0, MemoryDevice device = {});
Tensor matrix(const void* host_data, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0);

/// The matrix seen transposed: shape and strides exchanged, same memory.
Tensor transposed(const Tensor& matrix);

/// One matrix operand as a kernel sees it: which stride is 1, and the other one.
struct MatrixView {
  MatrixLayout layout = MatrixLayout::row_major;
  std::int64_t ld = 0;  // elements; at least the contiguous extent, or 1
  bool operator==(const MatrixView&) const = default;
};

/// Refuses ranks other than 2, negative extents or strides, two strides that are not 1, overlapping rows, and extents
/// whose last byte offset does not fit 63 bits. `role` names the tensor in the reason.
Result<MatrixView> view_matrix(const Tensor& tensor, std::string_view role);

/// Bytes from the first to past the last element; 0 for an empty tensor. @pre view_matrix accepted it
std::int64_t span_bytes(const Tensor& tensor);

}  // namespace tilewright::op
