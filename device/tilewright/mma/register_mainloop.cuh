// The sum over K of one warpgroup's rows of a tile where wgmma cannot read A from shared memory as it lies there: A
// goes through registers.
#pragma once

#include "tilewright/mma/mn_major_fragments.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// As WarpgroupMainloop, but warps load by themselves and are readers of the ring each: that one of them waited for its
/// wgmma says nothing of the others' loads. OperandA is what MnMajorFragments asks for. Fragments are double buffered:
/// those of a step are loaded while the step before is multiplied, when the one before that no longer reads its
/// registers.
template <class Plan, int kAtoms>
class RegisterMainloop {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Fragments = MnMajorFragments<OperandA, kAtoms>;
  static constexpr int kSteps = Plan::kTileK / Wgmma::kK;
  static_assert(kSteps % 2 == 0, "each stage begins with the buffer that the last step of the one before leaves alone");

 public:
  using Accumulators = typename Wgmma::Accumulator[kAtoms][Wgmma::kRegisters];

  /// Begins the sum over k_tiles (at least one) stages from `at` on: the last step stays in flight. Returns the last
  /// stage, for finish().
  template <class Ring>
  static __device__ __forceinline__ int multiply(Accumulators& accumulators, const Ring& ring,
                                                 typename Ring::Position& at, int k_tiles, int first_atom, int thread) {
    const Fragments fragments(first_atom, thread);
    int previous = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      ring.begin_read(at);
      multiply_stage(accumulators, fragments, ring.stage(at.stage), k_tile != 0, [&] {
        if (k_tile != 0) ring.end_read(previous, thread % 32);
      });
      previous = at.stage;
      at.advance();
    }
    return previous;
  }

  /// Ends it: the accumulators hold the sum.
  template <class Ring>
  static __device__ __forceinline__ void finish(const Ring& ring, int last_stage, int thread) {
    ptx::wgmma_wait<0>();
    ring.end_read(last_stage, thread % 32);
  }

  /// Begins the sum over one stage, that finish() ends.
  static __device__ __forceinline__ void begin_sum(Accumulators& accumulators, uint32_t stage, int first_atom,
                                                   int thread) {
    multiply_stage(accumulators, Fragments(first_atom, thread), stage, false, [] {});
  }

 private:
  /// Adds one stage's products, or begins with them. Calls `previous_done` when the stage before has been read.
  template <class PreviousDone>
  static __device__ __forceinline__ void multiply_stage(Accumulators& accumulators, const Fragments& fragments,
                                                        uint32_t stage, bool adds, PreviousDone previous_done) {
    const uint64_t b = OperandB::kDescriptor | ((stage + OperandA::kTileBytes & 0x3FFFF) >> 4);
    typename Fragments::Fragment a[2];
    fragments.load(a[0], stage, 0);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      ptx::wgmma_fence();
#pragma unroll
      for (int i = 0; i < kAtoms; ++i) {
        Wgmma::fma(accumulators[i], a[k % 2][i], b + OperandB::descriptor_offset(0, k), adds || k != 0);
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();
      if (k == 0) previous_done();
      if (k + 1 < kSteps) fragments.load(a[(k + 1) % 2], stage, k + 1);
    }
  }
};

}  // namespace tilewright
