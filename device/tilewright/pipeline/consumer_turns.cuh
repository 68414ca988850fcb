// The order of the consumer warpgroups in the ping-pong schedule: each reads all stages of its tile before the next
// warpgroup reads the stages of the next tile.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"

namespace tilewright {

/// kTeams warpgroups use as many named barriers from kFirstBarrier on. A warpgroup waits for a stage by the phase
/// parity of the stage's mbarrier, and parity cannot distinguish one phase behind from one phase ahead. A warpgroup
/// must therefore not begin before the previous warpgroup has waited for all of its own stages.
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
