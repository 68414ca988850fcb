// How the elements of a matrix lie in global memory.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Each layout has kRowsAreContiguous, whether elements that are adjacent in a row are adjacent in memory, and
/// offset(row, column, ld) of an element, with the leading dimension `ld`, in elements.
struct RowMajor {
  static constexpr bool kRowsAreContiguous = true;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) { return row * ld + column; }
};

struct ColumnMajor {
  static constexpr bool kRowsAreContiguous = false;
  static __device__ __forceinline__ int64_t offset(int row, int column, int64_t ld) { return row + column * ld; }
};

}  // namespace tilewright
