// A barrier between CTAs of a cooperative launch, in global memory.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// `arrivals` CTAs meet, round after round; of each, one thread uses this. What CTAs wrote before they arrived is
/// visible to who has waited. The counter's top bit turns when a round is complete, and its other bits are zero again:
/// kernels find it as others left it, and zero at first.
class GridBarrier {
  static constexpr uint32_t kTurn = 0x80000000U;

 public:
  static constexpr int kCounterStep = 32;  // bytes from one counter to the next: a sector of L2 each

  /// Before this CTA first arrives. `number` of the CTA among those that meet.
  __device__ __forceinline__ GridBarrier(uint32_t* counter, int number, int arrivals)
      : counter_(counter),
        arrival_(number == 0 ? kTurn - static_cast<uint32_t>(arrivals - 1) : 1),
        turn_(ptx::load_relaxed(counter)) {}

  __device__ __forceinline__ void arrive() const { ptx::add_release(counter_, arrival_); }

  /// For the round of the last arrive().
  __device__ __forceinline__ void wait() {
    while (((ptx::load_acquire(counter_) ^ turn_) & kTurn) == 0) {
    }
    turn_ ^= kTurn;
  }

 private:
  uint32_t* counter_;
  uint32_t arrival_;
  uint32_t turn_;  // the counter's top bit before the round
};

}  // namespace tilewright
