// The sum over K of one warpgroup's rows of a tile: wgmma reads both operands from the stages of a ring.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// kAtoms instructions along M from the tile's `first_atom` on. Plan: Wgmma, OperandA and OperandB (with kTileBytes,
/// kDescriptor, descriptor_offset(mn, k): what one instruction adds to its stage's descriptor), kTileK.
template <class Plan, int kAtoms>
class WarpgroupMainloop {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  static constexpr int kSteps = Plan::kTileK / Wgmma::kK;

 public:
  using Accumulators = typename Wgmma::Accumulator[kAtoms][Wgmma::kRegisters];

  /// Begins the sum over k_tiles (at least one) stages from `at` on. One stage's instructions stay in flight while the
  /// next one's are issued; a stage is given back when its own have finished. Returns the last stage, for finish().
  template <class Ring>
  static __device__ __forceinline__ int multiply(Accumulators& accumulators, const Ring& ring,
                                                 typename Ring::Position& at, int k_tiles, int first_atom, int thread) {
    int previous = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      ring.begin_read(at);
      multiply_stage(accumulators, ring.stage(at.stage), first_atom, k_tile != 0);
      if (k_tile != 0) {
        ptx::wgmma_wait<1>();
        ring.end_read(previous, thread);
      }
      previous = at.stage;
      at.advance();
    }
    return previous;
  }

  /// Ends it: the accumulators hold the sum.
  template <class Ring>
  static __device__ __forceinline__ void finish(const Ring& ring, int last_stage, int thread) {
    ptx::wgmma_wait<0>();
    ring.end_read(last_stage, thread);
  }

  /// Begins the sum over one stage, that finish() ends.
  static __device__ __forceinline__ void begin_sum(Accumulators& accumulators, uint32_t stage, int first_atom,
                                                   int /*thread*/) {
    multiply_stage(accumulators, stage, first_atom, false);
  }

 private:
  /// Adds one stage's products, or begins with them. One copy of the instructions: they are most of a kernel's compile
  /// time.
  static __device__ __forceinline__ void multiply_stage(Accumulators& accumulators, uint32_t stage, int first_atom,
                                                        bool adds) {
    const uint64_t a = OperandA::kDescriptor | ((stage & 0x3FFFF) >> 4);
    const uint64_t b = OperandB::kDescriptor | ((stage + OperandA::kTileBytes & 0x3FFFF) >> 4);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < kAtoms; ++i) {
        Wgmma::fma(accumulators[i], a + OperandA::descriptor_offset(first_atom + i, k),
                   b + OperandB::descriptor_offset(0, k), adds || k != 0);
      }
    }
    ptx::wgmma_commit();
  }
};

}  // namespace tilewright
