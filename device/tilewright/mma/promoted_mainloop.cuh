// The mainloop with promotion, for 8-bit floats. The tensor core rounds their sums too coarsely for a long K, so each k
// tile is summed by itself and its sum is added to f32 registers.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One is the mainloop of a single instruction along M, whose sums are promoted: WarpgroupMainloop<Plan, 1> or
/// RegisterMainloop<Plan, 1>. Its accumulators need registers in addition to the sums, so a warpgroup's instructions
/// along M run one after the other; meanwhile other warpgroups keep the tensor cores busy.
template <class Plan, int kAtoms, class One>
class PromotedMainloop {
  using Wgmma = typename Plan::Wgmma;
  static_assert(is_same<typename Wgmma::Accumulator, float>, "sums are of f32");

 public:
  using Accumulators = float[kAtoms][Wgmma::kRegisters];

  /// Sums over `k_tiles` stages, at least one, from `at` on. A stage is released when its instructions have finished.
  /// Returns the last stage.
  template <class Ring>
  static __device__ __forceinline__ int multiply(Accumulators& sums, const Ring& ring, typename Ring::Position& at,
                                                 int k_tiles, int first_atom, int thread) {
#pragma unroll
    for (int i = 0; i < kAtoms; ++i) {
#pragma unroll
      for (int r = 0; r < Wgmma::kRegisters; ++r) sums[i][r] = 0.0F;
    }
    int last = at.stage;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      ring.begin_read(at);
      last = at.stage;
#pragma unroll
      for (int i = 0; i < kAtoms; ++i) {
        typename One::Accumulators tile_sums;
        One::begin_sum(tile_sums, ring.stage(at.stage), first_atom + i, thread);
        if (i + 1 == kAtoms) {
          One::finish(ring, at.stage, thread);
        } else {
          ptx::wgmma_wait<0>();
        }
#pragma unroll
        for (int r = 0; r < Wgmma::kRegisters; ++r) sums[i][r] += tile_sums[0][r];
      }
      at.advance();
    }
    return last;
  }

  /// Does nothing, because multiply() leaves no instructions in flight.
  template <class Ring>
  static __device__ __forceinline__ void finish(const Ring& /*ring*/, int /*last_stage*/, int /*thread*/) {}
};

}  // namespace tilewright
