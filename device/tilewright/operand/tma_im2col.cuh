// An im2col matrix that TMA loads: the pixels of a convolution, at one filter tap after another.
#pragma once

#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/operand/tma_batch.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The coordinates of a box along one spatial axis: position i is at coordinate lower + i * step of the bounding box,
/// and tap t adds the offset first_offset + t * tap_step, which is from 0 to 255.
struct TmaIm2colAxis {
  int positions, taps;
  int lower, step;
  int first_offset, tap_step;
  Divisor by_positions, by_taps;
};

/// A tensor map of the modes C, W, H, N in im2col mode, and how the rows and columns of op::Im2col lie in it.
/// plan/sm90/im2col writes these fields. A box has channels of one tap. If the taps are padded, the last box of each
/// begins before the last channel of the map and is filled with zeros.
struct TmaIm2col {
  TmaMatrix map;
  TmaIm2colAxis h, w;
  int columns_of_tap, taps;  // of a matrix of the batch; matrix i begins at channel i * columns_of_tap
  int walked_taps;           // `taps` if the same channels of all taps are loaded before the next ones; else 1
  int channel_behind_all;    // of the tensor map
  Divisor by_columns_of_tap;

  /// The arguments of a copy that begins at a row and a column of im2col matrix number `matrix`. Behind the last column
  /// are zeros, as behind the last channel of the map; behind the last row is an image that does not exist, whose
  /// pixels are zeros, too.
  __device__ __forceinline__ ptx::Im2colBox box(int row, int column, int matrix) const {
    const int tap_or_end = by_columns_of_tap.quotient(column);
    const bool is_inside = tap_or_end < taps;
    const int tap = is_inside ? tap_or_end : 0;
    const int r = w.by_taps.quotient(tap);
    const int line = w.by_positions.quotient(row);
    const int image = h.by_positions.quotient(line);
    return {.c = is_inside ? (matrix - tap) * columns_of_tap + column : channel_behind_all,
            .w = w.lower + (row - line * w.positions) * w.step,
            .h = h.lower + (line - image * h.positions) * h.step,
            .n = image,
            .offset_w = static_cast<uint16_t>(w.first_offset + (tap - r * w.taps) * w.tap_step),
            .offset_h = static_cast<uint16_t>(h.first_offset + r * h.tap_step)};
  }
};

/// One im2col matrix for each class of rows; see ClassTiles.
template <int kClasses>
struct TmaIm2colClasses {
  TmaIm2col of[kClasses];
};

/// The same for a filter that is repacked first: the im2col matrices are those of the copy, whose columns are K. The
/// other fields are those of RepackedMatrix.
template <int kClasses>
struct RepackedClasses {
  TmaIm2col of[kClasses];
  GlobalMatrix from;
  int64_t offset, pitch;
  int pieces;
};
template <int kClasses>
inline constexpr bool kIsRepacked<RepackedClasses<kClasses>> = true;

template <class Source>
inline constexpr bool kIsTmaIm2col = false;
template <>
inline constexpr bool kIsTmaIm2col<TmaIm2col> = true;
template <int kClasses>
inline constexpr bool kIsTmaIm2col<TmaIm2colClasses<kClasses>> = true;

__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaIm2col& matrix) { return matrix.map; }
/// The tensor map of the class whose tiles come first.
template <int kClasses>
__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaIm2colClasses<kClasses>& matrices) {
  return matrices.of[0].map;
}

template <int kClasses>
__device__ __forceinline__ const TmaMatrix& tma_matrix(const RepackedClasses<kClasses>& matrices) {
  return matrices.of[0].map;
}

/// One tensor map has all matrices, which differ in the channel at which they begin; or there is one matrix for each
/// class.
template <class Source>
class TmaIm2colBatch {
 public:
  static constexpr bool kMakesMaps = false;

  __device__ __forceinline__ TmaIm2colBatch(const Source& source, int step, uint32_t /*shared*/, char* /*workspace*/)
      : source_(source), step_(step) {}

  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& /*tile*/) const {}
  __device__ __forceinline__ void publish() const {}
  __device__ __forceinline__ void acquire() const {}
  __device__ __forceinline__ const TmaIm2col& map([[maybe_unused]] int batch) const {
    if constexpr (is_same<Source, TmaIm2col>) {
      return source_;
    } else {
      return source_.of[batch];
    }
  }
  /// The number of matrix `batch` in its map().
  __device__ __forceinline__ int coordinate([[maybe_unused]] int batch) const {
    return is_same<Source, TmaIm2col> ? batch * step_ : 0;
  }

 private:
  const Source& source_;
  int step_;
};

template <int kSlots>
class TmaBatch<TmaIm2col, kSlots> : public TmaIm2colBatch<TmaIm2col> {
  using TmaIm2colBatch<TmaIm2col>::TmaIm2colBatch;
};
template <int kClasses, int kSlots>
class TmaBatch<TmaIm2colClasses<kClasses>, kSlots> : public TmaIm2colBatch<TmaIm2colClasses<kClasses>> {
  using TmaIm2colBatch<TmaIm2colClasses<kClasses>>::TmaIm2colBatch;
};

template <int kClasses, int kSlots>
class TmaBatch<RepackedClasses<kClasses>, kSlots> : public TmaIm2colBatch<RepackedClasses<kClasses>> {
  using TmaIm2colBatch<RepackedClasses<kClasses>>::TmaIm2colBatch;
};

}  // namespace tilewright
