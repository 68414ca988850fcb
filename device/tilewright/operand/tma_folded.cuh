// A folded matrix that TMA loads: rows, columns and batch share the five modes of a tensor map.
#pragma once

#include "tilewright/operand/tma_batch.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The part of the matrix whose coordinate a mode of a tensor map has.
enum class TmaFoldedSource : int { along_line, lines, batch };

/// One of the modes 2 to 4 of the tensor map: the next coordinate of its source. A mode that is not used has extent 1
/// and takes what is left of the batch, which is 0.
struct TmaFoldedMode {
  TmaFoldedSource source;
  int extent;  // the last coordinate of a source has the largest int, so that indices behind the end stay behind it
  Divisor by_extent;
};

/// A tensor map of five modes: the first coordinate along a line, the first of the lines, and three others. plan/sm90/
/// folded writes these fields. If a mode has several coordinates, boxes do not cross the end of the first.
struct TmaFolded {
  TmaMatrix map;
  int along_line, lines;  // extents of the first coordinates, or the largest int if there are no others
  Divisor by_along_line, by_lines;
  TmaFoldedMode more[3];

  /// The coordinates of a box that begins at a line, a place along it, and a matrix of the batch. Behind the last
  /// place or line, one coordinate is behind its extent, so that TMA writes zeros.
  __device__ __forceinline__ ptx::BoxOfFive box(int line, int along, int batch) const {
    int rest_along = by_along_line.quotient(along), rest_line = by_lines.quotient(line);
    ptx::BoxOfFive box{.x = {along - rest_along * along_line, line - rest_line * lines}};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const TmaFoldedMode& mode = more[i];
      const int index = mode.source == TmaFoldedSource::along_line ? rest_along
                        : mode.source == TmaFoldedSource::lines    ? rest_line
                                                                   : batch;
      const int rest = mode.by_extent.quotient(index);
      box.x[2 + i] = index - rest * mode.extent;
      if (mode.source == TmaFoldedSource::along_line) rest_along = rest;
      if (mode.source == TmaFoldedSource::lines) rest_line = rest;
      if (mode.source == TmaFoldedSource::batch) batch = rest;
    }
    return box;
  }
};

__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaFolded& matrix) { return matrix.map; }

/// One tensor map has all matrices.
template <int kSlots>
class TmaBatch<TmaFolded, kSlots> {
 public:
  static constexpr bool kMakesMaps = false;

  __device__ __forceinline__ TmaBatch(const TmaFolded& matrix, int /*step*/, uint32_t /*shared*/, char* /*workspace*/)
      : matrix_(matrix) {}

  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& /*tile*/) const {}
  __device__ __forceinline__ void publish() const {}
  __device__ __forceinline__ void acquire() const {}
  __device__ __forceinline__ const TmaFolded& map(int /*batch*/) const { return matrix_; }
  __device__ __forceinline__ int coordinate(int batch) const { return batch; }

 private:
  const TmaFolded& matrix_;
};

}  // namespace tilewright
