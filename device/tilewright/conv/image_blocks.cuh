// Blocks of output pixels, and the pixels of the images that their windows meet, in shared memory.
#pragma once

#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Begins to copy a line of `pixels` pixels, of kVectors adjacent vectors of 8 elements each, to multiples of kPixel
/// bytes in shared memory. The lanes of a warp take vectors in turn. Pixel 0 is at `from`, and the next one `stride`
/// elements behind it. Only the `count` pixels from number `begin` on are read; the others are zeros.
template <int kVectors, int kPixel, class Element>
__device__ __forceinline__ void copy_pixel_line(const Element* from, int64_t stride, int pixels, int begin, int count,
                                                uint32_t to) {
  constexpr int kLanes = 32, kStep = kLanes / kVectors, kRest = kLanes % kVectors;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  int pixel = lane / kVectors, vector = lane % kVectors;
  from += pixel * stride + vector * 8;
  to += static_cast<uint32_t>(pixel * kPixel + vector * 16);
  const int64_t step = kStep * stride + kRest * 8, next_pixel = stride - kVectors * 8;
#pragma unroll 1
  for (; pixel < pixels; pixel += kStep) {
    const bool is_read = static_cast<uint32_t>(pixel - begin) < static_cast<uint32_t>(count);
    ptx::cp_async_or_zeros<16>(to, from, is_read);
    from += step;
    to += static_cast<uint32_t>(kStep * kPixel + kRest * 16);
    if constexpr (kRest > 0) {
      vector += kRest;
      if (vector < kVectors) continue;
      vector -= kVectors;
      ++pixel;
      from += next_pixel;
      to += static_cast<uint32_t>(kPixel - kVectors * 16);
    }
  }
}

/// Divides the output into blocks of kRows rows with kPositions adjacent positions each, and copies the pixels that the
/// windows of a block meet: kChannels adjacent channels of each, a multiple of 8, at multiples of kPixel bytes.
template <class Element, int kRows, int kPositions, int kChannels, int kPixel, int kWarps>
class ImageBlocks {
  static_assert(sizeof(Element) == 2 && kChannels % 8 == 0 && kPixel >= kChannels * 2);

 public:
  struct Block {
    int image, first_row, first_position;
    int first_y, first_x;  // the first pixel of the first line
  };

  __device__ __forceinline__ ImageBlocks(const Im2colMatrix<false>& matrix, const void* images)
      : matrix_(matrix), images_(static_cast<const Element*>(images)) {
    const Im2colAxis &h = matrix.h, &w = matrix.w;
    const int reach_h = (h.taps - 1) * h.tap_step, reach_w = (w.taps - 1) * w.tap_step;
    before_h_ = minimum(reach_h, 0);
    before_w_ = minimum(reach_w, 0);
    lines_ = (kRows - 1) * h.step + maximum(reach_h, -reach_h) + 1;
    pixels_ = (kPositions - 1) * w.step + maximum(reach_w, -reach_w) + 1;
    blocks_w_ = ceil_div(w.positions, kPositions);
    blocks_h_ = ceil_div(h.positions, kRows);
  }

  __device__ __forceinline__ int blocks_of_image() const { return blocks_h_ * blocks_w_; }
  /// Bytes of the pixels of one block.
  __device__ __forceinline__ uint32_t bytes() const { return static_cast<uint32_t>(lines_ * pixels_ * kPixel); }

  __device__ __forceinline__ Block block(int number) const {
    const int row_of_blocks = number / blocks_w_, image = row_of_blocks / blocks_h_;
    Block block;
    block.image = image;
    block.first_row = (row_of_blocks - image * blocks_h_) * kRows;
    block.first_position = (number - row_of_blocks * blocks_w_) * kPositions;
    block.first_y = block.first_row * matrix_.h.step + matrix_.h.offset + before_h_;
    block.first_x = block.first_position * matrix_.w.step + matrix_.w.offset + before_w_;
    return block;
  }

  /// Bytes from the first pixel of a block to that of the window of a position.
  __device__ __forceinline__ uint32_t window_offset(int row, int position) const {
    return static_cast<uint32_t>((row * matrix_.h.step * pixels_ + position * matrix_.w.step) * kPixel);
  }

  /// Bytes from the first pixel of a window to that of tap number `tap`.
  __device__ __forceinline__ uint32_t tap_offset(int tap) const {
    const int row = tap / matrix_.w.taps;
    const int y = row * matrix_.h.tap_step - before_h_;
    const int x = (tap - row * matrix_.w.taps) * matrix_.w.tap_step - before_w_;
    return static_cast<uint32_t>((y * pixels_ + x) * kPixel);
  }

  /// Lines of a block's pixels.
  __device__ __forceinline__ int lines() const { return lines_; }

  /// Begins to copy a line of the pixels of a block, from channel `first_channel` on, with zeros outside the image and
  /// for an image that is not `read`. All lanes of a warp must call this together.
  __device__ __forceinline__ void copy_line(const Block& block, int line, int first_channel, uint32_t to,
                                            bool read) const {
    const int y = block.first_y + line;
    const bool has_line = read && static_cast<uint32_t>(y) < static_cast<uint32_t>(matrix_.h.extent);
    const Element* const from = images_ + block.image * matrix_.image_stride + y * matrix_.h.stride +
                                block.first_x * matrix_.w.stride + first_channel;
    copy_pixel_line<kChannels / 8, kPixel>(from, matrix_.w.stride, pixels_, -block.first_x,
                                           has_line ? matrix_.w.extent : 0,
                                           to + static_cast<uint32_t>(line * pixels_ * kPixel));
  }

  /// The same for all lines; each warp copies some of them.
  __device__ __forceinline__ void copy(const Block& block, int first_channel, uint32_t to, bool read) const {
#pragma unroll 1
    for (int line = static_cast<int>(threadIdx.x) / 32; line < lines_; line += kWarps)
      copy_line(block, line, first_channel, to, read);
  }

 private:
  const Im2colMatrix<false>& matrix_;
  const Element* images_;
  int before_h_, before_w_;  // pixels of a window before that of its first tap, at most 0
  int lines_, pixels_;       // lines of a block, and pixels of each
  int blocks_h_, blocks_w_;  // of an image
};

}  // namespace tilewright
