// NumPy's .npy files with a matrix or a batch of matrices: format versions 1.0 to 3.0, C order, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::cli {

struct NpyHeader {
  DType dtype = DType::f32;      // f64, f32, f16, s8, u8 or s32
  op::Dims shape;                // (rows, columns) or (batch, rows, columns)
  std::int64_t data_offset = 0;  // bytes from the start of the file
  bool is_vector = false;        // the file has one dimension; shape is (1, columns)

  bool operator==(const NpyHeader&) const = default;
};

/// Reads the header at the beginning of a file; `file` need not contain the data. Refuses other formats and versions,
/// headers that are truncated or longer than a matrix needs, other types, big endian, Fortran order, ranks other than 2
/// and 3, and shapes whose size in bytes overflows. The reason names the NumPy call that corrects the file, if there is
/// one. With `takes_vectors`, files of one dimension are accepted too.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file, bool takes_vectors = false);

/// A matrix or a batch of matrices, packed and row-major.
struct NpyMatrix {
  DType dtype = DType::f32;
  op::Dims shape;
  std::vector<std::byte> data;
  bool is_vector = false;  // the file has one dimension; shape is (1, columns)

  /// A tensor that refers to `data`. It is valid as long as this object is.
  op::Tensor tensor() const;
};

/// @throws InvalidArgument, naming the file, if it is not a regular file that can be opened (a FIFO is refused, not
/// waited for), if parse_npy_header() refuses it, or if it has fewer bytes than its shape needs.
NpyMatrix read_npy(const std::string& path, bool takes_vectors = false);

/// The bytes of a .npy file, format version 1.0. @pre .npy has the type: it is not bf16, tf32 or an 8-bit float
std::vector<std::byte> npy_bytes(const NpyMatrix& matrix);

/// An array of any number of dimensions and any little-endian type of numbers, packed and row-major.
struct NpyArray {
  std::string descr;  // of the type, as in the file: "<f4"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  std::int64_t elements() const;
};

/// @throws InvalidArgument, naming the file, for one that cannot be opened, is damaged or truncated, has another kind
/// of elements, or is in Fortran order
NpyArray read_npy_array(const std::string& path);

/// The bytes of a .npy file, format version 1.0.
std::vector<std::byte> npy_bytes(const NpyArray& array);

}  // namespace tilewright::cli
