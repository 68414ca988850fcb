// Lines of images with few channels in shared memory. The taps of one row of a window are adjacent in memory, and so
// are the pixels that they multiply, so that a kernel reads the elements of a window from lines of the image: no im2col
// matrix is formed.
#pragma once

#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Divides the output into blocks of kRows rows with kPositions adjacent positions each, and copies the lines of the
/// image that the windows of a block meet. A window has kTaps rows; the window of a position begins kStep elements
/// after that of the position before. A line in shared memory has kLine elements.
///
/// Before the elements of a row of the window there may be one more, the lead, so that pairs of elements are aligned.
/// If kStep is not even, the windows of every other position begin at an odd element, and there is no lead.
template <class Element, int kRows, int kPositions, int kTaps, int kStep, int kLine, int kThreads>
class ImageLines {
  static constexpr int kBytes = 2;
  static_assert(sizeof(Element) == kBytes && kLine % 8 == 0);

 public:
  static constexpr bool kPairsAreAligned = kStep % 2 == 0;

  /// A block of output pixels, and where its lines begin.
  struct Block {
    int image, first_row, first_position;
    int first_y;  // row of the image of the first line
    int first_x;  // element of an image's line at which the lines begin, a multiple of the vectors of the copy
    int shift;    // from there to the window of the first position
  };

  __device__ __forceinline__ ImageLines(const Im2colMatrix<false>& matrix, const void* images)
      : matrix_(matrix), images_(static_cast<const Element*>(images)) {
    const Im2colAxis &h = matrix.h, &w = matrix.w;
    window_y_ = h.offset - (h.tap_step < 0 ? kTaps - 1 : 0);
    window_x_ = (w.offset - (w.tap_step < 0 ? w.taps - 1 : 0)) * matrix.channels;
    lead_ = kPairsAreAligned ? window_x_ & 1 : 0;
    lines_ = (kRows - 1) * h.step + kTaps;
    blocks_w_ = ceil_div(w.positions, kPositions);
    blocks_h_ = ceil_div(h.positions, kRows);
    const uint64_t bits =
        reinterpret_cast<uint64_t>(images) | static_cast<uint64_t>((h.stride | matrix.image_stride) * kBytes);
    copy_vector_ = (bits & 15) == 0 ? 8 : (bits & 7) == 0 ? 4 : (bits & 3) == 0 ? 2 : 1;
  }

  __device__ __forceinline__ int lead() const { return lead_; }
  __device__ __forceinline__ int blocks_of_image() const { return blocks_h_ * blocks_w_; }
  /// Bytes of the lines of one block.
  __device__ __forceinline__ uint32_t bytes() const { return static_cast<uint32_t>(lines_ * kLine * kBytes); }

  __device__ __forceinline__ Block block(int number) const {
    const int row_of_blocks = number / blocks_w_, image = row_of_blocks / blocks_h_;
    Block block;
    block.image = image;
    block.first_row = (row_of_blocks - image * blocks_h_) * kRows;
    block.first_position = (number - row_of_blocks * blocks_w_) * kPositions;
    block.first_y = block.first_row * matrix_.h.step + window_y_;
    const int window = block.first_position * kStep + window_x_ - lead_;
    block.first_x = window & -copy_vector_;
    block.shift = window - block.first_x;
    return block;
  }

  /// Begins to copy the lines of a block to shared memory, with zeros outside the image and for an image that is not
  /// `read`. Complete after cp.async.wait_group and a barrier of the CTA; lines that begin at any element are stored by
  /// plain stores before this function returns.
  __device__ __forceinline__ void copy(const Block& block, uint32_t to, bool read) const {
    if (copy_vector_ == 8) {
      copy<8>(block, to, read);
    } else if (copy_vector_ == 4) {
      copy<4>(block, to, read);
    } else if (copy_vector_ == 2) {
      copy<2>(block, to, read);
    } else {
      copy_from_anywhere(block, to, read);
    }
  }

 private:
  /// Stores the lines of a block that begin at any element. A vector of 16 bytes is shifted out of the aligned words
  /// that contain it.
  __device__ __forceinline__ void copy_from_anywhere(const Block& block, uint32_t to, bool read) const {
    constexpr int kWords = 4, kVectors = kLine / (2 * kWords);
    const Element* const image = images_ + block.image * matrix_.image_stride;
    const int extent = read ? matrix_.h.extent : 0, end = matrix_.w.extent * matrix_.channels;
    const int vectors = lines_ * kVectors;
#pragma unroll 2
    for (int i = ptx::thread(); i < vectors; i += kThreads) {
      const int line = i / kVectors, y = block.first_y + line;
      const int x = block.first_x + (i - line * kVectors) * 2 * kWords;
      const bool is_line = static_cast<uint32_t>(y) < static_cast<uint32_t>(extent);
      const Element* const from = image + y * matrix_.h.stride + x;
      const int odd = static_cast<int>(reinterpret_cast<uint64_t>(from) / kBytes & 1);
      uint32_t words[kWords + 1];
#pragma unroll
      for (int j = 0; j <= kWords; ++j)
        words[j] = load_word(from - odd + 2 * j, x - odd + 2 * j, is_line && (j < kWords || odd != 0) ? end : 0);
      Vector<uint32_t, kWords> vector;
#pragma unroll
      for (int j = 0; j < kWords; ++j) vector.element[j] = odd != 0 ? words[j] >> 16 | words[j + 1] << 16 : words[j];
      ptx::store_shared(to + static_cast<uint32_t>(i * 16), vector);
    }
  }

  /// Elements x and x + 1 of a line of `end` elements, with zeros for those outside, which are not read.
  static __device__ __forceinline__ uint32_t load_word(const Element* from, int x, int end) {
    const bool has_low = static_cast<uint32_t>(x) < static_cast<uint32_t>(end);
    const bool has_high = static_cast<uint32_t>(x + 1) < static_cast<uint32_t>(end);
    if (has_low && has_high) return *reinterpret_cast<const uint32_t*>(from);
    const auto* const halves = reinterpret_cast<const uint16_t*>(from);
    if (has_low) return halves[0];
    return has_high ? static_cast<uint32_t>(halves[1]) << 16 : 0;
  }

  /// Vectors begin at multiples of kCount elements of a line, so that none reaches across its beginning.
  template <int kCount>
  __device__ __forceinline__ void copy(const Block& block, uint32_t to, bool read) const {
    constexpr int kVectors = kLine / kCount;
    const Element* const image = images_ + block.image * matrix_.image_stride;
    const int end = read ? matrix_.w.extent * matrix_.channels : 0;
    const int vectors = lines_ * kVectors;
#pragma unroll 4
    for (int i = ptx::thread(); i < vectors; i += kThreads) {
      const int line = i / kVectors, at = (i - line * kVectors) * kCount;
      const int y = block.first_y + line, x = block.first_x + at;
      const bool is_inside = static_cast<uint32_t>(y) < static_cast<uint32_t>(matrix_.h.extent) && x >= 0 && x < end;
      const Element* const from = is_inside ? image + y * matrix_.h.stride + x : images_;
      const uint32_t place = to + static_cast<uint32_t>(i * kCount * kBytes);
      ptx::cp_async_zfill<kCount * kBytes>(place, from, is_inside ? minimum(end - x, kCount) * kBytes : 0);
    }
  }

  const Im2colMatrix<false>& matrix_;
  const Element* images_;
  int window_y_, window_x_;  // where the window of position (0, 0) begins: a row of the image, an element of its line
  int lead_;                 // elements of a row of the window before the first tap
  int lines_;                // of the images, for a block
  int blocks_h_, blocks_w_;  // of an image
  int copy_vector_;          // elements of one copy
};

}  // namespace tilewright
