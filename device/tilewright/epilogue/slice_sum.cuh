// The sum of what the CTAs of a cluster computed of one tile, each over its own slice of K. They exchange accumulators
// through distributed shared memory, and each ends up with the sums of its share of the tile's columns. Slices are
// added in their order, so the result does not depend on who came first.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/mbarrier.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One warpgroup's accumulators: kRegisters words a thread, exchanged with the same warpgroup of kSlices CTAs.
template <class Accumulator, int kSlices, int kRegisters>
class SliceSum {
  using Words = Vector<Accumulator, 4>;
  static_assert(sizeof(Words) == 16, "accumulators are words");
  static constexpr int kThreads = 128;
  static constexpr int kShare = kRegisters / kSlices;
  static_assert(kSlices == 1 || kRegisters % (4 * kSlices) == 0, "shares are whole groups of 8 columns");

 public:
  using Share = Accumulator[kShare];
  static constexpr int kBytes = kThreads * kRegisters * 4;  // of shared memory
  static constexpr int kBarrierBytes = 2 * ptx::kMbarrierBytes;

  /// Shared addresses of kBytes and kBarrierBytes, the same in all CTAs; `rank` of this CTA among the slices; a named
  /// barrier of this warpgroup alone.
  __device__ __forceinline__ SliceSum(uint32_t partials, uint32_t barriers, uint32_t rank, int thread, int barrier)
      : partials_(partials + thread * 16), barriers_(barriers), rank_(rank), thread_(thread), barrier_(barrier) {}

  /// By one thread, before any other use; ptx::fence_mbarrier_init and a cluster-wide barrier must follow.
  static __device__ __forceinline__ void initialise(uint32_t barriers) {
    ptx::mbarrier_init(barriers, kSlices);
    ptx::mbarrier_init(barriers + ptx::kMbarrierBytes, kSlices);
  }

  /// Gives this CTA's accumulators to the others and returns the sums of its share.
  __device__ __forceinline__ void exchange(const Accumulator (&accumulators)[kRegisters], Share& sums) {
    ptx::mbarrier_acquire(consumed(), parity_ ^ 1);
#pragma unroll
    for (int i = 0; i < kRegisters; i += 4) {
      ptx::store_shared(partials_ + i / 4 * kThreads * 16,
                        Words{accumulators[i], accumulators[i + 1], accumulators[i + 2], accumulators[i + 3]});
    }
    signal(written());
    ptx::mbarrier_acquire(written(), parity_);
    const uint32_t share = partials_ + rank_ * (kShare / 4 * kThreads * 16);
#pragma unroll
    for (uint32_t slice = 0; slice < kSlices; ++slice) {
      const uint32_t from = ptx::map_to_rank(share, slice);
#pragma unroll
      for (int i = 0; i < kShare; i += 4) {
        const Words part = ptx::load_cluster<Words>(from + i / 4 * kThreads * 16);
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i + j] = slice == 0 ? part.element[j] : sums[i + j] + part.element[j];
      }
    }
    signal(consumed());
    parity_ ^= 1;
  }

 private:
  __device__ __forceinline__ uint32_t written() const { return barriers_; }
  __device__ __forceinline__ uint32_t consumed() const { return barriers_ + ptx::kMbarrierBytes; }

  /// Tells all CTAs that this warpgroup is done with what it did before.
  __device__ __forceinline__ void signal(uint32_t barrier) const {
    ptx::named_barrier(barrier_, kThreads);
    if (thread_ < kSlices) ptx::mbarrier_release_at(barrier, static_cast<uint32_t>(thread_));
  }

  uint32_t partials_, barriers_, rank_;
  uint32_t parity_ = 0;
  int thread_, barrier_;
};

}  // namespace tilewright
