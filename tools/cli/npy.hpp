// NumPy's .npy files of matrices, and of batches of them: format versions 1.0 to 3.0, C order, little endian.
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
  bool is_vector = false;        // of one dimension: shape is (1, columns)

  bool operator==(const NpyHeader&) const = default;
};

/// Reads the header that the file begins with; `file` need not hold the data. Refuses, with what is wrong and where
/// there is one the NumPy call that mends it: another format or version, a header that is cut or longer than any
/// matrix needs, other types, big endian, Fortran order, ranks other than 2 and 3, and shapes whose bytes overflow.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
/// `takes_vectors`: files of one dimension are accepted too.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file, bool takes_vectors = false);

/// A matrix, or a batch, row by row, packed.
struct NpyMatrix {
  DType dtype = DType::f32;
  op::Dims shape;
  std::vector<std::byte> data;
  bool is_vector = false;  // the file has one dimension, shape (1, columns)

  /// What this object's memory holds.
  op::Tensor tensor() const;
};

/// @throws InvalidArgument naming the file when it is not a regular file that can be opened (a FIFO is never waited
/// for), is refused, or has fewer bytes than its shape.
NpyMatrix read_npy(const std::string& path, bool takes_vectors = false);

/// The file's bytes, format version 1.0. @pre the type is one that .npy has: not bf16, not tf32, no 8-bit float
std::vector<std::byte> npy_bytes(const NpyMatrix& matrix);

}  // namespace tilewright::cli
