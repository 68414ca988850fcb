// A non-owning view of the caller's tensor: address, element type, shape, strides, device.
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

/// Up to eight extents, or strides in elements, stored inline.
class Dims {
 public:
  static constexpr int kMaxRank = 8;

  Dims() = default;
  /// @pre values.size() <= kMaxRank
  Dims(std::initializer_list<std::int64_t> values);

  int rank() const { return rank_; }
  /// Appends a mode. @pre rank() < kMaxRank
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

/// The device that holds a tensor's memory. The ordinal counts devices of one kind.
struct MemoryDevice {
  enum class Kind : std::uint8_t { host, cuda, emulator, shape };  // shape: no memory; only for planning and compiling
  Kind kind = Kind::host;
  int ordinal = 0;
  bool operator==(const MemoryDevice&) const = default;
};

/// "host", "cuda:0", "emulator", "shape"
std::string to_string(const MemoryDevice& device);

/// Number of adjacent elements that an interleaved layout stores together.
constexpr std::int64_t kInterleaved = 32;

/// The interleaved layouts are CUTLASS's RowMajorInterleaved<32> and ColumnMajorInterleaved<32>: with leading dimension
/// ld, element (r, c) of a column-interleaved matrix is at c / 32 * ld + r * 32 + c % 32, and that of a row-interleaved
/// one, which is its transpose, at r / 32 * ld + c * 32 + r % 32.
enum class MatrixLayout : std::uint8_t { row_major, column_major, row_interleaved, column_interleaved };
constexpr std::array<MatrixLayout, 4> kMatrixLayouts{MatrixLayout::row_major, MatrixLayout::column_major,
                                                     MatrixLayout::row_interleaved, MatrixLayout::column_interleaved};

std::string_view name(MatrixLayout layout);  // "row", "column", "row_interleaved_32", "column_interleaved_32"
std::optional<MatrixLayout> parse_matrix_layout(std::string_view text);
/// The layout of the transposed matrix in the same memory.
MatrixLayout transposed(MatrixLayout layout);
constexpr bool is_interleaved(MatrixLayout layout) {
  return layout == MatrixLayout::row_interleaved || layout == MatrixLayout::column_interleaved;
}
/// Whether adjacent elements of a row are adjacent in memory, which of a column-interleaved matrix are 32 at a time.
constexpr bool has_contiguous_rows(MatrixLayout layout) {
  return layout == MatrixLayout::row_major || layout == MatrixLayout::column_interleaved;
}

/// The mode of a tensor whose elements are stored in blocks of kInterleaved: its coordinate i is at offset i % 32 of
/// block i / 32, and its stride is the distance of two blocks. The stride of the matrix's other mode is kInterleaved.
enum class InterleavedMode : std::uint8_t { none, rows, columns };

/// A matrix (rows, columns), or a batch of matrices (batch, rows, columns). The matrices of a batch have one stride, or
/// they lie anywhere and an array has their addresses: a pointer array.
struct Tensor {
  std::uint64_t address = 0;  // host pointer or device address; 0: none. Of a pointer array: that of the array
  DType dtype = DType::f32;
  Dims shape;
  Dims stride;  // elements
  MemoryDevice device;
  InterleavedMode interleaved = InterleavedMode::none;  // only for GEMM operands: A, B, C and D
  /// Nonzero for a pointer array: shape[0] addresses of 64 bits, one for each matrix, in the memory of `device`, where
  /// the matrices are too. Every address must be a multiple of this number of bytes, a power of two, because code is
  /// selected by it and the host cannot read the array; a matrix that is less aligned is the caller's error. The
  /// matrices have the same extents and the same strides of rows and columns; stride[0] is 0.
  int pointer_alignment = 0;

  bool is_pointer_array() const { return pointer_alignment != 0; }
  std::int64_t rows() const { return shape[row_mode()]; }
  std::int64_t columns() const { return shape[row_mode() + 1]; }
  std::int64_t row_stride() const { return stride[row_mode()]; }
  std::int64_t column_stride() const { return stride[row_mode() + 1]; }
  /// The number of matrices; 1 without a batch mode.
  std::int64_t batch() const { return shape.rank() == 3 ? shape[0] : 1; }
  /// Elements from one matrix to the next; 0 for a single matrix. Has no meaning, and is 0, for a pointer array.
  std::int64_t batch_stride() const { return batch() == 1 ? 0 : stride[0]; }
  /// The number of matrices with memory of their own: 1 if one matrix is broadcast over the batch.
  std::int64_t distinct_matrices() const {
    return batch_stride() == 0 && !is_pointer_array() && batch() > 1 ? 1 : batch();
  }
  /// Whether any extent is 0.
  bool is_empty() const;
  /// The offset in elements of an element of the first matrix.
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    if (interleaved == InterleavedMode::none) return row * row_stride() + column * column_stride();
    const std::int64_t blocked = interleaved == InterleavedMode::rows ? row : column;
    const std::int64_t other = interleaved == InterleavedMode::rows ? column : row;
    const std::int64_t ld = interleaved == InterleavedMode::rows ? row_stride() : column_stride();
    return blocked / kInterleaved * ld + other * kInterleaved + blocked % kInterleaved;
  }

  bool operator==(const Tensor&) const = default;

 private:
  int row_mode() const { return shape.rank() == 3 ? 1 : 0; }
};

/// A matrix with leading dimension `ld` in elements; 0 means packed. An interleaved layout needs a multiple of 32 rows,
/// or columns, which view_matrix() checks.
Tensor matrix(std::uint64_t address, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0, MemoryDevice device = {});
Tensor matrix(const void* host_data, DType dtype, std::int64_t rows, std::int64_t columns,
              MatrixLayout layout = MatrixLayout::row_major, std::int64_t ld = 0);

/// A strided batch of `batch` matrices whose first is `matrix`. `stride` is in elements: 0 repeats one matrix, and the
/// default is the leading dimension times the number of rows (row-major), columns (column-major) or blocks of 32.
Tensor batched(const Tensor& matrix, std::int64_t batch, std::optional<std::int64_t> stride = {});

/// The alignment in bytes that every allocator of GPU memory gives, and the most that kernels make use of.
inline constexpr int kPointerAlignment = 16;
inline constexpr std::int64_t kPointerBytes = 8;

/// A batch of `batch` matrices like `matrix`, whose address is not used: the array at `addresses` has their addresses,
/// which are multiples of `alignment` bytes. `matrix.device` holds the array and the matrices.
Tensor pointer_array(const Tensor& matrix, std::uint64_t addresses, std::int64_t batch,
                     int alignment = kPointerAlignment);

/// One matrix of the batch, with rank 2, if it lies at `address`. @pre rank 2 or 3
Tensor matrix_at(const Tensor& tensor, std::uint64_t address);

/// Matrix `index` of the batch, with rank 2. A tensor without a batch mode is its own slice. The address in a pointer
/// array is read, so that its memory must be the host's. @pre rank 2 or 3
Tensor slice(const Tensor& tensor, std::int64_t index);

/// Exchanges the row and column modes; the memory is the same.
Tensor transposed(const Tensor& tensor);

/// The tensor's elements, in the same order of modes, with one stride per mode: an interleaved mode becomes two modes,
/// (blocks, 32), whose second is the last. Other tensors are returned as they are.
Tensor strided_modes(const Tensor& tensor);

/// Whether both tensors are the same elements at the same addresses, in the same order. Modes of extent 1 do not count:
/// a matrix, and a batch of one matrix, may be the same elements.
bool are_same_elements(const Tensor& x, const Tensor& y);

/// Layout and leading dimension of a matrix that has a stride of 1, or of an interleaved one.
struct MatrixView {
  MatrixLayout layout = MatrixLayout::row_major;
  std::int64_t ld = 0;  // leading dimension in elements; at least 1 and at least the contiguous extent

  /// The number of lines of `tensor`, which are `ld` elements apart, and the length of each in elements. The lines are
  /// its rows, its columns, or its blocks of 32 rows or columns.
  std::int64_t lines(const Tensor& tensor) const;
  std::int64_t line(const Tensor& tensor) const;
  bool operator==(const MatrixView&) const = default;
};

/// Refuses elements that are not whole bytes, negative extents and strides, and tensors whose size in bytes does not
/// fit 63 bits. The rank may be any. `role` names the tensor in the reason. @pre as many strides as extents
Support check_modes(const Tensor& tensor, std::string_view role);

/// Refuses ranks other than 2 and 3, pointer arrays without a batch mode or whose declared alignment is not a power of
/// two of at least the element size, and what check_modes refuses.
Support check_strides(const Tensor& tensor, std::string_view role);

/// Refuses what check_strides refuses, matrices without a stride of 1, leading dimensions below the contiguous extent,
/// and interleaved modes that are not a multiple of 32 elements. The batch stride may be any. If a matrix has one row
/// or one column, its strides decide the layout as those of a larger matrix would, and a row-major view is preferred if
/// they fit neither or both.
Result<MatrixView> view_matrix(const Tensor& tensor, std::string_view role);

/// A matrix of one row or one column whose elements are adjacent is both a row-major and a column-major matrix. The
/// result has the strides that make view_matrix() choose `layout`. Other tensors are returned as they are.
Tensor with_layout(const Tensor& tensor, MatrixLayout layout);

/// The tensor with the layout in which a matrix of one row or one column is a single line of all elements, rather than
/// lines of one element each: a column becomes column-major and a row row-major. The leading dimension of a single line
/// does not limit the alignment.
Tensor with_longest_lines(const Tensor& tensor);

/// Whether the tensor begins in the middle of a 32-byte sector of a GPU's memory, at an odd multiple of 16 bytes.
bool splits_sectors(const Tensor& tensor);

/// Bytes from the first element to one past the last; 0 for an empty tensor. The bytes of a pointer array are those of
/// its addresses. @pre check_strides accepted it
std::int64_t span_bytes(const Tensor& tensor);

/// The largest power of two in elements, of at most 16 bytes, that divides the address and each of `steps` (elements).
/// The declared alignment of a pointer array stands for the addresses of its matrices.
int shared_alignment(const Tensor& tensor, std::span<const std::int64_t> steps);
inline int shared_alignment(const Tensor& tensor, std::initializer_list<std::int64_t> steps) {
  return shared_alignment(tensor, std::span(steps.begin(), steps.size()));
}

}  // namespace tilewright::op
