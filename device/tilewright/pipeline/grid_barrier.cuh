// A barrier between CTAs of a cooperative launch, in global memory.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A barrier of `arrivals` CTAs that can be used repeatedly; one thread of each CTA calls the functions. Writes of a
/// CTA before its arrival are visible to every CTA that has waited. When a round is complete, the counter's top bit
/// flips and its other bits are zero again, so the next kernel can use the counter without resetting it. The counter
/// must be zeroed before its first use.
class GridBarrier {
  static constexpr uint32_t kTurn = 0x80000000U;

 public:
  static constexpr int kCounterStep = 32;  // bytes from one counter to the next, so that each has its own L2 sector

  /// Must be constructed before this CTA first arrives. `number` is the CTA's index among the `arrivals` CTAs.
  __device__ __forceinline__ GridBarrier(uint32_t* counter, int number, int arrivals)
      : counter_(counter),
        arrival_(number == 0 ? kTurn - static_cast<uint32_t>(arrivals - 1) : 1),
        turn_(ptx::load_relaxed(counter)) {}

  __device__ __forceinline__ void arrive() const { ptx::add_release(counter_, arrival_); }

  /// Waits for the round of the last arrive() to be complete.
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
