// How the elements of a matrix lie in global memory.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Number of adjacent elements that an interleaved layout stores together.
constexpr int kInterleaved = 32;

/// Each layout has kRowsAreContiguous, whether elements that are adjacent in a row are adjacent in memory, which of
/// ColumnInterleaved are kInterleaved at a time, and offset(row, column, ld) of an element, with the leading dimension
/// `ld`, in elements. Vectors of up to kInterleaved elements that begin at a multiple of their length are contiguous.
struct RowMajor {
  static constexpr bool kRowsAreContiguous = true;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) { return row * ld + column; }
};

struct ColumnMajor {
  static constexpr bool kRowsAreContiguous = false;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) { return row + column * ld; }
};

struct ColumnInterleaved {
  static constexpr bool kRowsAreContiguous = true;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) {
    return column / kInterleaved * ld + static_cast<int64_t>(row) * kInterleaved + column % kInterleaved;
  }
};

struct RowInterleaved {
  static constexpr bool kRowsAreContiguous = false;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) {
    return ColumnInterleaved::offset(column, row, ld);
  }
};

/// The offset in elements of element `k` of K from the first one, in an operand with leading dimension `ld`. Operand:
/// kIsKMajor, and kIsInterleaved, whether it is K-major in blocks of kInterleaved elements of K.
template <class Operand>
__device__ __forceinline__ int64_t along_k(int k, int64_t ld) {
  if constexpr (Operand::kIsInterleaved) return k / kInterleaved * ld + k % kInterleaved;
  return Operand::kIsKMajor ? k : k * ld;
}

/// The distance in elements of two lines of an operand: of its rows or columns along K if it is K-major.
template <class Operand>
__device__ __forceinline__ int64_t line_stride(int64_t ld) {
  return Operand::kIsInterleaved ? int64_t{kInterleaved} : ld;
}

}  // namespace tilewright
