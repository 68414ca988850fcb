// The order of consumer warpgroups that take turns (ping-pong): each reads all stages of one tile before the next one
// reads those of another.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"

namespace tilewright {

/// kTeams warpgroups use as many named barriers from kFirstBarrier on. A warpgroup waits for a stage by the parity of
/// the phase of its barrier. It must not begin before the warpgroup whose turn it was has seen all of its own stages: a
/// ring that is one phase behind has the same parity as one that is a phase ahead.
template <int kTeams, int kFirstBarrier>
class ConsumerTurns {
  static constexpr int kThreads = 256;  // the warpgroup that waits and the one that releases it

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
