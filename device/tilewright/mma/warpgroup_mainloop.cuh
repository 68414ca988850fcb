// The mainloop of one warpgroup: wgmma reads both operands from the stages of a ring.
#pragma once

#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A warpgroup has kAtoms instructions along M. Plan: Wgmma, kTileK, and OperandA and OperandB with kTileBytes,
/// kDescriptor and descriptor_offset(mn, k), which an instruction adds to the descriptor of its stage.
template <class Plan, int kAtoms>
class WarpgroupMainloop {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  static constexpr int kSteps = Plan::kTileK / Wgmma::kK;

 public:
  using Accumulators = typename Wgmma::Accumulator[kAtoms][Wgmma::kRegisters];

  /// Sums over `k_tiles` stages, at least one, from `at` on, for the instructions along M from `first_atom` on. One
  /// stage's instructions stay in flight while the next stage's are issued; a stage is released when its instructions
  /// have finished. Returns the last stage, for finish().
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

  /// Waits for the instructions that multiply() left in flight; the accumulators then hold the sum.
  template <class Ring>
  static __device__ __forceinline__ void finish(const Ring& ring, int last_stage, int thread) {
    ptx::wgmma_wait<0>();
    ring.end_read(last_stage, thread);
  }

  /// Issues the instructions of one stage, which finish() waits for.
  static __device__ __forceinline__ void begin_sum(Accumulators& accumulators, uint32_t stage, int first_atom,
                                                   int /*thread*/) {
    multiply_stage(accumulators, stage, first_atom, false);
  }

 private:
  /// Issues the instructions of one stage, which add to the accumulators or, without `adds`, overwrite them. The code
  /// has one copy of the instructions, because they take most of a kernel's compile time.
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
