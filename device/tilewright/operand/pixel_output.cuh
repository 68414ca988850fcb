// A D of lines of pixels that threads store with plain stores.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// A D whose rows are the positions of lines of pixels, of which only the first `width` are stored; see
/// op/shared_pixels.hpp. Strides in elements.
struct PixelOutput {
  const void* address;
  int64_t pixel, line, image;
  int lines;             // of an image, or of all if they are one stride apart
  int positions, width;  // of a line
  Divisor by_positions, by_lines;
};

/// One row of a PixelOutput: its place in its line, and its offset in D.
class PixelPosition {
 public:
  __device__ __forceinline__ PixelPosition(const PixelOutput& d, int index) : index_(index) {
    const int line = d.by_positions.quotient(index);
    const int image = d.by_lines.quotient(line);
    in_line_ = index - line * d.positions;
    line_ = line - image * d.lines;
    offset_ = image * d.image + line_ * d.line + in_line_ * d.pixel;
  }
  __device__ __forceinline__ int64_t offset() const { return offset_; }
  /// Whether it is a pixel, of `end` positions.
  __device__ __forceinline__ bool is_stored(const PixelOutput& d, int end) const {
    return in_line_ < d.width && index_ < end;
  }
  __device__ __forceinline__ void advance(const PixelOutput& d, int count) {
    index_ += count;
    in_line_ += count;
    offset_ += count * d.pixel;
    while (in_line_ >= d.positions) {
      in_line_ -= d.positions;
      offset_ += d.line - d.positions * d.pixel;
      if (++line_ < d.lines) continue;
      line_ = 0;
      offset_ += d.image - d.lines * d.line;
    }
  }

 private:
  int index_, in_line_, line_;
  int64_t offset_;
};

}  // namespace tilewright
