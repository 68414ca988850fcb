// Split-K: several CTAs compute one tile, each over a part of K, and this sums their accumulators. The CTAs store their
// accumulators to a workspace in global memory and wait for each other; then each CTA sums an equal share of the tile.
// The order of the sum depends on the shape alone, so the result does not depend on which CTA was first.
#pragma once

#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Sums the accumulators of one warpgroup, kRegisters per thread, over the same warpgroup of kSplitK CTAs, which must
/// all be resident. A quad is four accumulators of one thread: quad q belongs to thread q % 128 and begins at its
/// accumulator 4 * (q / 128).
template <class Accumulator, int kSplitK, int kRegisters>
class SplitKSum {
 public:
  using Quad = Vector<Accumulator, 4>;

 private:
  static_assert(sizeof(Quad) == 16, "accumulators are words");
  static constexpr int kThreads = 128;
  static constexpr int kQuads = kRegisters / 4 * kThreads;
  static constexpr int kPartialBytes = kQuads * static_cast<int>(sizeof(Quad));
  static constexpr int kShare = ceil_div(kQuads, kSplitK);  // quads that a CTA sums, at most
  static constexpr int kInFlight = 16;                      // loads that a thread has in flight

  static __device__ constexpr int threads_for(int quads) {
    int threads = 1;
    while (threads < quads && threads < kThreads) threads *= 2;
    return threads;
  }
  // kLanes threads reduce one quad each. If these are fewer than all threads, kParts threads share a quad, and each
  // sums the partial sums of some of the CTAs.
  static constexpr int kLanes = threads_for(kShare);
  static constexpr int kParts = kThreads / kLanes;
  static constexpr int kAtOnce =
      minimum(kInFlight, ceil_div(kSplitK, kParts));  // partial sums of a quad that a thread loads at once

 public:
  static constexpr int kShareGroups = ceil_div(kShare, kThreads) + 1;  // groups of kThreads quads that a share overlaps

  /// Bytes of the workspace. Double buffering is safe: a CTA writes round i+1 only after all partial sums of round i
  /// have arrived, and each CTA stores those of round i only after it has read round i-1.
  static constexpr int kBytes = 2 * kSplitK * kPartialBytes;
  static constexpr int kSharedBytes = kThreads * static_cast<int>(sizeof(Quad));

  /// `partials` has kBytes and `counter` belongs to a GridBarrier; all CTAs of the tile pass the same two. `k_part` is
  /// this CTA's part of K, from 0 to kSplitK - 1. `shared` is the shared address of kSharedBytes, `barrier` this
  /// warpgroup's named barrier.
  __device__ __forceinline__ SplitKSum(char* partials, uint32_t* counter, int k_part, uint32_t shared, int thread,
                                       int barrier)
      : partials_(partials),
        shared_(shared),
        k_part_(k_part),
        thread_(thread),
        barrier_(barrier),
        all_(counter, k_part, kSplitK) {}

  /// The CTA's part of K, and the first quad of the share that it sums.
  __device__ __forceinline__ int k_part() const { return k_part_; }
  __device__ __forceinline__ int first_quad() const { return kQuads * k_part_ / kSplitK; }

  /// Publishes this CTA's accumulators, and calls store(sums, quad) for the quads of its share.
  template <class Store>
  __device__ __forceinline__ void exchange(const Accumulator (&accumulators)[kRegisters], const Store& store) {
    char* const partials = partials_ + (is_odd_round_ ? kBytes / 2 : 0);
    is_odd_round_ = !is_odd_round_;
    char* const own = partials + k_part_ * kPartialBytes + thread_ * static_cast<int>(sizeof(Quad));
#pragma unroll
    for (int i = 0; i < kRegisters; i += 4) {
      ptx::store_global(own + i / 4 * kThreads * static_cast<int>(sizeof(Quad)),
                        Quad{accumulators[i], accumulators[i + 1], accumulators[i + 2], accumulators[i + 3]});
    }
    ptx::named_barrier(barrier_, kThreads);
    if (thread_ == 0) {
      all_.arrive();
      all_.wait();
    }
    ptx::named_barrier(barrier_, kThreads);
    const int first = first_quad();
    const int end = kQuads * (k_part_ + 1) / kSplitK;
    if constexpr (kParts == 1) {
      add_all(partials, first, end, store);
    } else {
      add_parts(partials, first, end, store);
    }
  }

 private:
  /// Each thread sums one quad after another, kTogether of them at once.
  template <class Store>
  __device__ __forceinline__ void add_all(const char* partials, int first, int end, const Store& store) const {
    constexpr int kTogether = minimum(kInFlight / kAtOnce, ceil_div(kShare, kThreads));
#pragma unroll 1
    for (int quad = first + thread_; quad < end; quad += kTogether * kThreads) {
      Quad sums[kTogether];
      add(sums, partials, quad, end, 0, kSplitK);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (quad + i * kThreads < end) store(sums[i], quad + i * kThreads);
      }
    }
  }

  /// Each thread sums the partial sums of some of the CTAs for one quad; the results are combined in shared memory.
  template <class Store>
  __device__ __forceinline__ void add_parts(const char* partials, int first, int end, const Store& store) const {
    const int part = thread_ / kLanes;
    const int quad = first + thread_ % kLanes;
    Quad sums[1];
    add(sums, partials, quad, end, kSplitK * part / kParts, kSplitK * (part + 1) / kParts);
    ptx::store_shared(shared_ + thread_ * static_cast<int>(sizeof(Quad)), sums[0]);
    ptx::named_barrier(barrier_, kThreads);
    if (part != 0 || quad >= end) return;
#pragma unroll
    for (int i = 1; i < kParts; ++i) {
      const auto more = ptx::load_shared<Quad>(shared_ + (thread_ + i * kLanes) * static_cast<int>(sizeof(Quad)));
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[0].element[j] += more.element[j];
    }
    store(sums[0], quad);
  }

  /// Sums the partial sums of parts `k_part` to `last` - 1, in this order, for quads that are kThreads apart, from
  /// `quad` to before `end`.
  template <int kTogether>
  static __device__ __forceinline__ void add(Quad (&sums)[kTogether], const char* partials, int quad, int end,
                                             int k_part, int last) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) sums[i] = Quad{};
#pragma unroll 1
    for (; k_part < last; k_part += kAtOnce) {
      const char* const from = partials + k_part * kPartialBytes + quad * static_cast<int>(sizeof(Quad));
      Quad parts[kTogether][kAtOnce];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          parts[i][j] = Quad{};
          if (quad + i * kThreads < end && k_part + j < last) {
            parts[i][j] =
                ptx::load_global<Quad>(from + j * kPartialBytes + i * kThreads * static_cast<int>(sizeof(Quad)));
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
          for (int k = 0; k < 4; ++k) sums[i].element[k] += parts[i][j].element[k];
        }
      }
    }
  }

  char* partials_;
  uint32_t shared_;
  int k_part_, thread_, barrier_;
  bool is_odd_round_ = false;
  GridBarrier all_;  // used by thread 0
};

}  // namespace tilewright
