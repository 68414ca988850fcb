// Split-K in turn: the CTAs that compute the parts of a tile add their accumulators one after another, in the order of
// K, so that the result does not depend on which of them was first.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Adds the parts of tiles. Plan: kSplitK, kCounterBytes (of the workspace), kTurnCounters (offset in the workspace of
/// a counter for each tile, which is zero before a launch and after it). `kCount` accumulators of each of the kThreads
/// threads are a tile.
template <class Plan, class Accumulator, int kCount, int kThreads>
class SplitKInTurn {
  static constexpr int kVector = 16 / static_cast<int>(sizeof(Accumulator));
  static constexpr int kVectors = kCount / kVector;
  static constexpr int kInFlight = minimum(kVectors, 4);  // vectors loaded at once
  static_assert(kCount % kVector == 0, "a thread has whole vectors");
  using Sums = Vector<Accumulator, kVector>;

 public:
  __device__ __forceinline__ explicit SplitKInTurn(char* workspace) : workspace_(workspace) {}

  /// Waits for the sum of the parts before `part`, and adds it. If `part` is not the last one, stores the sum for the
  /// next; returns whether it is. All threads must call it.
  __device__ __forceinline__ bool add(int tile, int part, Accumulator* accumulators) const {
    uint32_t* const counter = reinterpret_cast<uint32_t*>(workspace_ + Plan::kTurnCounters) + tile;
    char* const sums = workspace_ + Plan::kCounterBytes +
                       static_cast<int64_t>(tile) * (kCount * kThreads) * static_cast<int>(sizeof(Accumulator)) +
                       ptx::thread() * 16;
    const bool is_last = part == Plan::kSplitK - 1;
    if (part > 0) {
      if (ptx::thread() == 0) {
        while (ptx::load_acquire(counter) != static_cast<uint32_t>(part)) {
        }
      }
      __syncthreads();
#pragma unroll
      for (int first = 0; first < kVectors; first += kInFlight) {
        Sums loaded[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
          if (first + i < kVectors) loaded[i] = ptx::load_global<Sums>(sums + (first + i) * kThreads * 16);
        }
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
#pragma unroll
          for (int v = 0; v < kVector; ++v) {
            if (first + i >= kVectors) continue;
            Accumulator& sum = accumulators[(first + i) * kVector + v];
            sum = loaded[i].element[v] + sum;
          }
        }
      }
    }
    if (!is_last) {
#pragma unroll
      for (int vector = 0; vector < kVectors; ++vector) {
        Sums stored;
        // 0 + -0 is 0, so that the sum has the bits of that of SplitKTile.
#pragma unroll
        for (int v = 0; v < kVector; ++v) stored.element[v] = Accumulator{} + accumulators[vector * kVector + v];
        ptx::store_global(sums + vector * kThreads * 16, stored);
      }
    }
    __syncthreads();
    if (ptx::thread() == 0) ptx::increment_to(counter, Plan::kSplitK - 1);
    return is_last;
  }

 private:
  char* workspace_;
};

}  // namespace tilewright
