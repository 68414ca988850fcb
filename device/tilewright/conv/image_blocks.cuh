// Blocks of output pixels, and the pixels of the images that their windows meet, in shared memory.
#pragma once

#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

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

  /// Begins to copy the pixels of a block, from channel `first_channel` on, with zeros outside the image and for an
  /// image that is not `read`. Each warp copies lines.
  __device__ __forceinline__ void copy(const Block& block, int first_channel, uint32_t to, bool read) const {
    constexpr int kVectors = kChannels / 8;  // of a pixel
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const Element* const image = images_ + block.image * matrix_.image_stride + first_channel;
    const int extent = read ? matrix_.w.extent : 0;
#pragma unroll 1
    for (int line = warp; line < lines_; line += kWarps) {
      const int y = block.first_y + line;
      const bool has_line = static_cast<uint32_t>(y) < static_cast<uint32_t>(matrix_.h.extent);
      const Element* const from_line = image + y * matrix_.h.stride;
      const auto to_line = to + static_cast<uint32_t>(line * pixels_ * kPixel);
#pragma unroll 4
      for (int i = lane; i < pixels_ * kVectors; i += 32) {
        const int pixel = i / kVectors, vector = i % kVectors, x = block.first_x + pixel;
        const bool is_inside = has_line && static_cast<uint32_t>(x) < static_cast<uint32_t>(extent);
        const Element* const from = is_inside ? from_line + x * matrix_.w.stride + vector * 8 : images_;
        ptx::cp_async_zfill<16>(to_line + static_cast<uint32_t>(pixel * kPixel + vector * 16), from,
                                is_inside ? 16 : 0);
      }
    }
  }

 private:
  const Im2colMatrix<false>& matrix_;
  const Element* images_;
  int before_h_, before_w_;  // pixels of a window before that of its first tap, at most 0
  int lines_, pixels_;       // lines of a block, and pixels of each
  int blocks_h_, blocks_w_;  // of an image
};

}  // namespace tilewright
