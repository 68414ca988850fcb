// Which elements of a 64-row tile a thread's accumulators of wgmma are.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Four accumulators for every 8 columns: thread t's lie in rows t/4%8 and 8 more (with kPairsRows: 2*(t/4%8) and the
/// next) of warp t/32's 16, columns 2*(t%4) and the next.
template <bool kPairsRows>
struct FragmentRows {
  static constexpr int kLaneRows = kPairsRows ? 2 : 1;  // from one group of four lanes to the next
  static constexpr int kOtherRow = kPairsRows ? 1 : 8;  // between the two of a thread

  static __device__ __forceinline__ int row(int thread) { return thread / 32 * 16 + thread % 32 / 4 * kLaneRows; }
  static __device__ __forceinline__ int column(int thread) { return thread % 4 * 2; }
};

}  // namespace tilewright
