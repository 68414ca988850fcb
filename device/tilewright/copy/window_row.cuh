// The loads of a stage that has all taps of a row of the window, and the pixels that they share once: see
// op/shared_pixels.hpp.
#pragma once

#include "tilewright/copy/tma_operand.cuh"
#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Where a stage begins: a row of the window and a channel. Channels of all rows come before the next channels.
template <int kChannels>
class WindowRow {
 public:
  __device__ __forceinline__ explicit WindowRow(int rows) : rows_(rows) {}
  __device__ __forceinline__ int row() const { return row_; }
  __device__ __forceinline__ int channel() const { return channel_; }
  __device__ __forceinline__ void advance() {
    if (++row_ < rows_) return;
    row_ = 0;
    channel_ += kChannels;
  }

 private:
  int rows_, row_ = 0, channel_ = 0;
};

/// The loads of one operand. Plan: kSharedTaps, kSharedStep. Operand: kIsKMajor, kLoadedTaps (1 for the pixels, else
/// kSharedTaps), kTapBytes, and those that TmaOperand uses. A box() of TmaIm2col divides; here all coordinates but
/// those of a tile's first pixel follow from the stage.
template <class Plan, class Operand>
class WindowRowOperand {
 public:
  static constexpr bool kHasPixels = Operand::kLoadedTaps == 1;

  /// `mn` is the first row of the tile.
  __device__ __forceinline__ WindowRowOperand(const TmaIm2col& matrix, int mn, const OperandShare& share,
                                              ptx::CachePolicy policy)
      : matrix_(matrix), share_(share), policy_(policy), mn_(mn) {
    if constexpr (kHasPixels) first_ = matrix.box(mn, 0, 0);
  }

  template <int kChannels>
  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, const WindowRow<kChannels>& stage) const {
    if constexpr (kHasPixels) {
      static_assert(Operand::kBoxes == 1 && Operand::kShares == 1, "the pixels of a tile are one box");
      ptx::Im2colBox box = first_;
      box.c = stage.channel();
      box.offset_w = 0;
      box.offset_h = static_cast<uint16_t>(matrix_.h.first_offset + stage.row() * matrix_.h.tap_step);
      ptx::tma_load(to, matrix_.map, barrier, box, policy_);
    } else {
#pragma unroll 1  // a producer has few registers
      for (int i = 0; i < Operand::kLoadedTaps; ++i) {
        // With a negative step, the last tap has the first pixels.
        const int tap = Plan::kSharedStep < 0 ? Plan::kSharedTaps - 1 - i : i;
        load_tap(to + i * Operand::kTapBytes, barrier, stage.row(), tap, stage.channel());
      }
    }
  }

 private:
  /// The filter is an im2col matrix. Along K, its images are the filters and its taps those of the window; along N, its
  /// images and lines are the rows and columns of the window, and its positions the channels.
  __device__ __forceinline__ void load_tap(uint32_t to, uint32_t barrier, int row, int tap, int channel) const {
#pragma unroll
    for (int i = 0; i < Operand::kBoxes; ++i) {
      const int x = share_.number * Operand::kShareContiguous + i * Operand::kBoxContiguous;
      const int y = share_.number * Operand::kShareStrided + i * Operand::kBoxStrided;
      ptx::Im2colBox box{};
      if constexpr (Operand::kIsKMajor) {
        box = {.c = channel + x,
               .w = matrix_.w.lower,
               .h = matrix_.h.lower,
               .n = mn_ + y,
               .offset_w = static_cast<uint16_t>(row * Plan::kSharedTaps + tap),
               .offset_h = 0};
      } else {
        box = {.c = mn_ + x,
               .w = matrix_.w.lower + channel + y,
               .h = matrix_.h.lower + tap,
               .n = row,
               .offset_w = 0,
               .offset_h = 0};
      }
      const uint32_t at = to + share_.number * Operand::kShareBytes + i * Operand::kBoxBytes;
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_multicast(at, matrix_.map, barrier, share_.ctas, box, policy_);
      } else {
        ptx::tma_load(at, matrix_.map, barrier, box, policy_);
      }
    }
  }

  const TmaIm2col& matrix_;
  OperandShare share_;
  ptx::CachePolicy policy_;
  int mn_;
  ptx::Im2colBox first_{};  // of the pixels
};

}  // namespace tilewright
