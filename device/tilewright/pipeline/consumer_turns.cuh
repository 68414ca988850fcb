// Warpgroups that read a ring of stages in turn, each all stages of one tile.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"

namespace tilewright {

/// kTeams warpgroups, with as many named barriers from kFirstBarrier on. Who reads waits for stages by the parity of
/// their phase, so it must not begin before the reader before it has seen all of its own: a ring that is a phase behind
/// has the parity of one that is a phase ahead.
template <int kTeams, int kFirstBarrier>
class ConsumerTurns {
  static constexpr int kThreads = 256;  // those who wait, and those who let them go

 public:
  __device__ __forceinline__ explicit ConsumerTurns(int team) : team_(team), is_first_(team == 0) {}

  __device__ __forceinline__ void begin() {
    if constexpr (kTeams > 1) {
      if (!is_first_) ptx::named_barrier(kFirstBarrier + team_, kThreads);
      is_first_ = false;
    }
  }
  __device__ __forceinline__ void end() const {
    if constexpr (kTeams > 1) {
      ptx::named_barrier_arrive(kFirstBarrier + (team_ + 1 == kTeams ? 0 : team_ + 1), kThreads);
    }
  }

 private:
  int team_;
  bool is_first_;
};

}  // namespace tilewright
