// The mainloop of one warpgroup that loads A from shared memory to registers, because wgmma cannot read A's layout
// there.
#pragma once

#include "tilewright/mma/mn_major_fragments.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// As WarpgroupMainloop, but each warp loads its own fragments and releases stages by its own arrival. One arrival of
/// the warpgroup would not suffice, because other warps may still load fragments after one has waited for its wgmma.
/// OperandA has the members that MnMajorFragments uses. Fragments are double buffered: the fragments of a step are
/// loaded while the previous step is multiplied, once the step before it no longer reads these registers.
template <class Plan, int kAtoms>
class RegisterMainloop {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Fragments = MnMajorFragments<OperandA, kAtoms>;
  static constexpr int kSteps = Plan::kTileK / Wgmma::kK;
  static_assert(kSteps % 2 == 0, "a stage begins with the buffer that the previous stage's last step does not read");

 public:
  using Accumulators = typename Wgmma::Accumulator[kAtoms][Wgmma::kRegisters];

  /// Sums over `k_tiles` stages, at least one, from `at` on. The last step stays in flight. Returns the last stage, for
  /// finish().
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

  /// Waits for the instructions that multiply() left in flight; the accumulators then hold the sum.
  template <class Ring>
  static __device__ __forceinline__ void finish(const Ring& ring, int last_stage, int thread) {
    ptx::wgmma_wait<0>();
    ring.end_read(last_stage, thread % 32);
  }

  /// Issues the instructions of one stage, which finish() waits for.
  static __device__ __forceinline__ void begin_sum(Accumulators& accumulators, uint32_t stage, int first_atom,
                                                   int thread) {
    multiply_stage(accumulators, Fragments(first_atom, thread), stage, false, [] {});
  }

 private:
  /// Issues the instructions of one stage, which add to the accumulators or, without `adds`, overwrite them. Calls
  /// `previous_done` when the previous stage is no longer read.
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
