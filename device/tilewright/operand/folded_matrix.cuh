// A matrix in global memory whose rows, columns or batch have several coordinates, each with a stride of its own.
#pragma once

#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One coordinate of a mode: its extent, and its stride in elements.
struct FoldedCoordinate {
  int64_t stride;
  int extent;
  Divisor by_extent;
};

/// A mode as up to kCount coordinates, fastest first; those that it lacks have extent 1 and stride 0. See op::Mode.
template <int kCount>
struct FoldedMode {
  FoldedCoordinate coordinate[kCount];

  /// The offset of `index` in elements. Indices beyond the mode's extent have the offset of some index inside it,
  /// unless the mode has kCount coordinates. @pre index >= 0
  __device__ __forceinline__ int64_t offset(int index) const {
    int64_t sum = 0;
#pragma unroll
    for (int i = 0; i < kCount - 1; ++i) {
      const int rest = coordinate[i].by_extent.quotient(index);
      sum += (index - rest * coordinate[i].extent) * coordinate[i].stride;
      index = rest;
    }
    return sum + index * coordinate[kCount - 1].stride;
  }
};

/// plan/folded writes these fields. Lines are those of the layout: the rows of a row-major matrix, the columns of a
/// column-major one. The elements along a line have stride 1 up to the end of the first coordinate if the alignment is
/// more than one element; vectors of the alignment do not cross that end.
template <int kCount>
struct FoldedMatrix {
  FoldedMode<kCount> lines, along_line, batch;

  // For GatheredVectors, offsets in elements.
  using Line = int64_t;
  using Along = int64_t;
  struct Element {
    int64_t offset;
    bool is_inside;
  };
  __device__ __forceinline__ Line line(int index) const { return lines.offset(index); }
  __device__ __forceinline__ Along along(int index) const { return along_line.offset(index); }
  static __device__ __forceinline__ Line outside() { return 0; }
  static __device__ __forceinline__ Element element(Line line, Along along) { return {line + along, true}; }
};

/// A folded D that threads store with plain stores.
template <int kCount>
struct FoldedOutput {
  const void* address;
  MatrixParameters<FoldedMatrix<kCount>, 'D'> modes;
};
template <class Output>
inline constexpr bool kIsFoldedOutput = false;
template <int kCount>
inline constexpr bool kIsFoldedOutput<FoldedOutput<kCount>> = true;

/// The offset in elements of matrix `index` of a batch, in addition to `index` times the batch stride.
template <class Matrix>
__device__ __forceinline__ int64_t folded_batch_offset(const Matrix& /*matrix*/, int /*index*/) {
  return 0;
}
template <int kCount>
__device__ __forceinline__ int64_t folded_batch_offset(const FoldedMatrix<kCount>& matrix, int index) {
  return matrix.batch.offset(index);
}

/// The offset in elements of (row, column) of a matrix with leading dimension `ld`. Layout: of
/// operand/matrix_layout.cuh.
template <class Layout>
__device__ __forceinline__ int64_t offset_in(const StridedMatrix& /*matrix*/, int row, int column, int64_t ld) {
  return Layout::offset(row, column, ld);
}
template <class Layout, int kCount>
__device__ __forceinline__ int64_t offset_in(const FoldedMatrix<kCount>& matrix, int row, int column, int64_t /*ld*/) {
  return Layout::kRowsAreContiguous ? matrix.line(row) + matrix.along(column) : matrix.line(column) + matrix.along(row);
}

}  // namespace tilewright
