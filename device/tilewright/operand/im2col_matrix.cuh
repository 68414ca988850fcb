// How a kernel reaches the elements of an im2col matrix in global memory: as pixels and taps of images.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// One spatial axis of an im2col matrix: position i and tap t meet at (i * step + t * tap_step + offset) / divisor. See
/// op::Im2colAxis.
struct Im2colAxis {
  int64_t stride;  // of the images, in elements
  int positions, taps, extent;
  int step, tap_step, offset;
  int divisor;
  Divisor by_positions, by_taps, by_divisor;
};

/// An im2col matrix: see op::Im2col. plan/im2col writes these fields. If kDivides is false, the divisors of both axes
/// are 1; if kHasBlocks is false, the channels are one block. Coordinates are from -2^30 to 2^30.
template <bool kDivides, bool kHasBlocks = false>
struct Im2colMatrix {
  int64_t image_stride, block_stride;  // elements
  Im2colAxis h, w;
  int channels;
  Divisor by_channels;

  // For GatheredVectors a line is a pixel, and the elements along it are taps and channels.
  /// A pixel as the sums to which a tap's are added, or a pixel outside the matrix.
  struct Line {
    int64_t image;  // offset in elements
    int h, w;
  };
  /// A tap, and the offset of a channel in elements.
  struct Along {
    int h, w;
    Select<kHasBlocks, int64_t, int> channel;
  };
  struct Element {
    int64_t offset;  // from the first element of the images, in elements; 0 if it is not inside
    bool is_inside;
  };

  /// @pre row >= 0
  __device__ __forceinline__ Line line(int row) const {
    const int image_row = w.by_positions.quotient(row);
    const int image = h.by_positions.quotient(image_row);
    return {image * image_stride, (image_row - image * h.positions) * h.step + h.offset,
            (row - image_row * w.positions) * w.step + w.offset};
  }
  /// A pixel at which all taps are outside.
  static __device__ __forceinline__ Line outside() { return {0, -(1 << 30), 0}; }

  /// @pre column >= 0
  __device__ __forceinline__ Along along(int column) const {
    const int tap = by_channels.quotient(column);
    const int row = w.by_taps.quotient(tap);
    const int w_tap = (tap - row * w.taps) * w.tap_step, channel = column - tap * channels;
    if constexpr (kHasBlocks) {
      const int block = h.by_taps.quotient(row);
      return {(row - block * h.taps) * h.tap_step, w_tap, block * block_stride + channel};
    } else {
      return {row * h.tap_step, w_tap, channel};
    }
  }

  __device__ __forceinline__ Element element(const Line& pixel, const Along& tap) const {
    int y = pixel.h + tap.h, x = pixel.w + tap.w;
    bool is_inside = true;
    if constexpr (kDivides) is_inside = divide(h, y) & divide(w, x);
    is_inside &= static_cast<uint32_t>(y) < static_cast<uint32_t>(h.extent) &
                 static_cast<uint32_t>(x) < static_cast<uint32_t>(w.extent);
    return {is_inside ? pixel.image + y * h.stride + x * w.stride + tap.channel : 0, is_inside};
  }

  /// Divides a coordinate of one axis if the matrix divides; returns whether it is inside the image.
  static __device__ __forceinline__ bool is_inside(const Im2colAxis& axis, int& coordinate) {
    bool is_whole = true;
    if constexpr (kDivides) is_whole = divide(axis, coordinate);
    return is_whole & (static_cast<uint32_t>(coordinate) < static_cast<uint32_t>(axis.extent));
  }

 private:
  /// Divides the coordinate; returns false if it is negative or leaves a remainder.
  static __device__ __forceinline__ bool divide(const Im2colAxis& axis, int& coordinate) {
    const int quotient = axis.by_divisor.quotient(coordinate & 0x7fffffff);
    const bool is_whole = coordinate >= 0 && quotient * axis.divisor == coordinate;
    coordinate = quotient;
    return is_whole;
  }
};

}  // namespace tilewright
