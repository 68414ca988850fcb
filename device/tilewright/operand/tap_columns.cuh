// A D whose columns are computed in another order than they are stored, or with others between them.
#pragma once

#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A filter gradient, row by row, whose columns are the channels of one tap after another; see op/tap_columns.hpp. The
/// columns of tiles come in blocks of kBlock channels, the last of which a tap may fill in part. If kTaps > 1, the taps
/// of a row of the window share pixels: their blocks of the same channels follow each other, those of the last tap
/// first if kReverses. plan/sm90/launch writes these fields; `row` is the distance of rows in elements, and `blocks`
/// the blocks of a tap.
template <int kBlock, int kTaps, bool kReverses>
struct TapColumns {
  const void* address;
  int64_t row;
  int channels, blocks;
  Divisor by_blocks;

  /// The column of D at which a vector of adjacent channels is stored that begins at `column` of the tiles; -1 if it
  /// lies behind the channels of its tap. Vectors must not cross the end of a block or of the channels.
  __device__ __forceinline__ int place(int column) const {
    const int number = column / kBlock;
    const int of_taps = number / kTaps;
    const int row_of_window = by_blocks.quotient(of_taps);
    const int channel = (of_taps - row_of_window * blocks) * kBlock + column % kBlock;
    const int in_row = kReverses ? kTaps - 1 - number % kTaps : number % kTaps;
    return channel < channels ? (row_of_window * kTaps + in_row) * channels + channel : -1;
  }

  /// The column of the im2col matrix `pixels` at which the pixels begin that a tile's taps share.
  static __device__ __forceinline__ int column_of_pixels(const TmaIm2col& pixels, int column) {
    if constexpr (kTaps == 1) {
      return column;
    } else {
      const int block_of_row = column / kTaps;
      const int row_of_window = pixels.by_columns_of_tap.quotient(block_of_row);
      const int first_tap = row_of_window * (kTaps - 1) + (kReverses ? kTaps - 1 : 0);
      return block_of_row + first_tap * pixels.columns_of_tap;
    }
  }
};

template <class Output>
inline constexpr bool kIsTapColumns = false;
template <int kBlock, int kTaps, bool kReverses>
inline constexpr bool kIsTapColumns<TapColumns<kBlock, kTaps, kReverses>> = true;

}  // namespace tilewright
