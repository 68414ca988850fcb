// A tensor as the caller has it: pointer, element type, shape, strides, device. Never owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
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
  /// One more mode. @pre rank() < kMaxRank
  void append(std::int64_t value);
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
  enum class Kind : std::uint8_t { host, cuda, emulator, shape };  // shape: no memory, to plan and compile by
  Kind kind = Kind::host;
  int ordinal = 0;
  bool operator==(const MemoryDevice&) const = default;
};

/// "host", "cuda:0", "emulator", "shape"
std::string to_string(const MemoryDevice& device);

enum class MatrixLayout : std::uint8_t { row_major, column_major };

std::string_view name(MatrixLayout layout);  // "row", "column"
/// The layout of the transposed matrix over the same memory.
MatrixLayout transposed(MatrixLayout layout);

/// A matrix (rows, columns), or a batch of them (batch, rows, columns).
struct Tensor {
  std::uint64_t address = 0;  // host pointer or device address; 0 for none
  DType dtype = DType::f32;
  Dims shape;
  Dims stride;  // elements
  MemoryDevice device;

  std::int64_t rows() const { return shape[row_mode()]; }
  std::int64_t columns() const { return shape[row_mode() + 1]; }
  std::int64_t row_stride() const { return stride[row_mode()]; }
  std::int64_t column_stride() const { return stride[row_mode() + 1]; }
  /// Matrices; 1 without a batch mode.
  std::int64_t batch() const { return shape.rank() == 3 ? shape[0] : 1; }
  /// Elements from one matrix to the next; 0 where there is but one.
  std::int64_t batch_stride() const { return batch() == 1 ? 0 : stride[0]; }
  /// Whether an extent is 0, for any rank.
  bool is_empty() const;

  bool operator==(const Tensor&) const = default;

 private:
  int row_mode() const { return shape.rank() == 3 ? 1 : 0; }
};

/// A packed matrix, or one with leading dimension `ld` elements (0: packed).
Tensor matrix(std::uint64_t address, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0, MemoryDevice device = {});
Tensor matrix(const void* host_data, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0);

/// `batch` matrices, the first of them `matrix`; `stride` elements from one to the next: 0 is one matrix for all, and
/// none given lets the next begin where the last row or column, padded as the others, ends.
Tensor batched(const Tensor& matrix, std::int64_t batch, std::optional<std::int64_t> stride = {});

/// Matrix `index` of the batch, as a matrix; the only one where there is one for all. @pre rank 2 or 3
Tensor slice(const Tensor& tensor, std::int64_t index);

/// Every matrix seen transposed: rows and columns exchanged, same memory.
Tensor transposed(const Tensor& tensor);

/// One operand's matrices as a kernel sees them: which stride is 1, and the other one.
struct MatrixView {
  MatrixLayout layout = MatrixLayout::row_major;
  std::int64_t ld = 0;  // elements; at least the contiguous extent, or 1
  bool operator==(const MatrixView&) const = default;
};

/// Refuses elements that are not whole bytes, negative extents and strides, and extents whose last byte offset does not
/// fit 63 bits, for tensors of any rank. `role` names the tensor in the reason. @pre as many strides as extents
Support check_modes(const Tensor& tensor, std::string_view role);

/// Refuses ranks other than 2 and 3, and what check_modes refuses.
Support check_strides(const Tensor& tensor, std::string_view role);

/// Refuses what check_strides does, and matrices with two strides that are not 1 or with
/// overlapping rows. Matrices of a batch may lie anyhow.
Result<MatrixView> view_matrix(const Tensor& tensor, std::string_view role);

/// Bytes from the first to past the last element; 0 for an empty tensor. @pre check_strides accepted it
std::int64_t span_bytes(const Tensor& tensor);

/// Largest power of two of elements, up to 16 bytes, that divides the address and every one of `steps`, in elements.
int shared_alignment(const Tensor& tensor, std::span<const std::int64_t> steps);
inline int shared_alignment(const Tensor& tensor, std::initializer_list<std::int64_t> steps) {
  return shared_alignment(tensor, std::span(steps.begin(), steps.size()));
}

}  // namespace tilewright::op
