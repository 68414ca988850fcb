// The order in which the stages of a tile walk along K.
#pragma once

#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The element of K at which a stage begins, and that of the stage after it.
template <int kTileK>
class KOrder {
 public:
  /// One stage after the other.
  __device__ __forceinline__ explicit KOrder(int begin_k) : channel_(begin_k) {}

  /// Along the rows of an im2col matrix, kTileK channels of all taps come before the next channels if its plan says so:
  /// see walks_taps() of plan/sm90/im2col. Where a stage does not divide the channels of a tap, or begins behind the
  /// matrix, stages follow each other. `begin_k` is the length of the stages before.
  __device__ __forceinline__ KOrder(const TmaIm2col& matrix, int begin_k)
      : channel_(begin_k),
        columns_of_tap_(matrix.columns_of_tap),
        taps_(columns_of_tap_ % kTileK == 0 && begin_k < columns_of_tap_ * matrix.taps ? matrix.walked_taps : 1) {
    if (taps_ > 1 && begin_k > 0) {
      const int stages = begin_k / kTileK;
      channel_ = stages / taps_ * kTileK;
      tap_ = stages % taps_;
    }
  }

  __device__ __forceinline__ int k() const { return tap_ * columns_of_tap_ + channel_; }

  __device__ __forceinline__ void advance() {
    if (++tap_ < taps_) return;
    tap_ = 0;
    channel_ += kTileK;
  }

 private:
  int channel_, columns_of_tap_ = 0;
  int tap_ = 0, taps_ = 1;
};

}  // namespace tilewright
