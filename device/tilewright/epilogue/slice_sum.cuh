// The sum of what several CTAs computed of one tile, each over its own slice of K. They leave accumulators in a
// workspace in global memory, and the first of them, the owners, end up with the sums of a share of the tile's columns
// each. Slices are added in their order, so the result does not depend on who came first.
#pragma once

#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One warpgroup's accumulators: kRegisters words a thread, summed with those of the same warpgroup of kSlices CTAs,
/// all of them resident.
template <class Accumulator, int kSlices, int kOwners, int kRegisters>
class SliceSum {
  using Words = Vector<Accumulator, 4>;
  static_assert(sizeof(Words) == 16, "accumulators are words");
  static_assert(kOwners <= kSlices && kRegisters % (4 * kOwners) == 0, "shares are whole groups of 8 columns");
  static constexpr int kThreads = 128;
  static constexpr int kShare = kRegisters / kOwners;
  static constexpr int kGroupBytes = kThreads * 16;  // of four words of each thread
  static constexpr int kSliceBytes = kRegisters / 4 * kGroupBytes;
  // Words of slices on their way together.
  static constexpr int kBatch = kShare >= 64 ? 1 : 64 / kShare;

 public:
  using Share = Accumulator[kShare];
  /// Of the workspace. Who writes the next round's has seen all partial sums of the last, so all were read of the one
  /// before.
  static constexpr int kBytes = 2 * kSlices * kSliceBytes;

  /// kBytes and the counter of a GridBarrier, the same for all slices; a named barrier of this warpgroup alone.
  __device__ __forceinline__ SliceSum(char* partials, uint32_t* counter, int slice, int thread, int barrier)
      : partials_(partials + thread * 16),
        slice_(slice),
        thread_(thread),
        barrier_(barrier),
        all_(counter, slice, kSlices) {}

  /// Gives this CTA's accumulators to the owners. True for an owner, which gets the sums of share number `slice`.
  __device__ __forceinline__ bool exchange(const Accumulator (&accumulators)[kRegisters], Share& sums) {
    const bool is_owner = kOwners == kSlices || slice_ < kOwners;
    char* const partials = partials_ + (round_ % 2 == 0 ? 0 : kBytes / 2);
    if (!is_owner && round_ > 0) wait();
    ++round_;
#pragma unroll
    for (int i = 0; i < kRegisters; i += 4) {
      ptx::store_global(partials + slice_ * kSliceBytes + i / 4 * kGroupBytes,
                        Words{accumulators[i], accumulators[i + 1], accumulators[i + 2], accumulators[i + 3]});
    }
    ptx::named_barrier(barrier_, kThreads);
    if (thread_ == 0) all_.arrive();
    if (!is_owner) return false;
    wait();
    add(partials + slice_ * (kShare / 4 * kGroupBytes), sums);
    return true;
  }

 private:
  __device__ __forceinline__ void wait() {
    if (thread_ == 0) all_.wait();
    ptx::named_barrier(barrier_, kThreads);
  }

  static __device__ __forceinline__ void add(const char* from, Share& sums) {
#pragma unroll
    for (int i = 0; i < kShare; ++i) sums[i] = Accumulator(0);
#pragma unroll 1
    for (int first = 0; first < kSlices; first += kBatch) {
      Words parts[kBatch][kShare / 4];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
#pragma unroll
        for (int i = 0; i < kShare / 4; ++i) {
          parts[j][i] = Words{};
          if (kSlices % kBatch == 0 || first + j < kSlices) {
            parts[j][i] = ptx::load_global<Words>(from + j * kSliceBytes + i * kGroupBytes);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
#pragma unroll
        for (int i = 0; i < kShare; ++i) sums[i] += parts[j][i / 4].element[i % 4];
      }
      from += kBatch * kSliceBytes;
    }
  }

  char* partials_;
  int slice_, thread_, barrier_;
  int round_ = 0;
  GridBarrier all_;  // of thread 0
};

}  // namespace tilewright
