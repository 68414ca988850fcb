// Split-K: the sum of the accumulators that several CTAs computed of one tile, each over its own slice of K. The CTAs
// store accumulators to a workspace in global memory and meet; then each sums an equal share of the tile. The order of
// the sum depends on the shape alone, so the result does not depend on which CTA was first.
#pragma once

#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A warpgroup has kRegisters accumulators a thread, which are summed with those of the same warpgroup of kSplitK CTAs;
/// all these CTAs are resident. A quad is four accumulators of one thread: quad q belongs to thread q % 128 and begins
/// at its accumulator 4 * (q / 128).
template <class Accumulator, int kSplitK, int kRegisters>
class SplitKSum {
 public:
  using Quad = Vector<Accumulator, 4>;

 private:
  static_assert(sizeof(Quad) == 16, "accumulators are words");
  static constexpr int kThreads = 128;
  static constexpr int kQuads = kRegisters / 4 * kThreads;
  static constexpr int kSliceBytes = kQuads * static_cast<int>(sizeof(Quad));
  static constexpr int kShare = ceil_div(kQuads, kSplitK);  // most quads of a CTA
  static constexpr int kInFlight = 16;                      // loads that a thread has in flight

  static __device__ constexpr int threads_for(int quads) {
    int threads = 1;
    while (threads < quads && threads < kThreads) threads *= 2;
    return threads;
  }
  // kLanes threads reduce one quad each. If these are fewer than all threads, kParts threads share a quad, and each
  // sums part of the split-K slices.
  static constexpr int kLanes = threads_for(kShare);
  static constexpr int kParts = kThreads / kLanes;
  static constexpr int kAtOnce =
      minimum(kInFlight, ceil_div(kSplitK, kParts));  // slices that a thread loads of a quad at once

 public:
  static constexpr int kShareGroups = ceil_div(kShare, kThreads) + 1;  // groups of kThreads quads that a share overlaps

  /// Bytes of the workspace. Double buffering is safe: a CTA writes round i+1 only after all partial sums of round i
  /// have arrived, and each CTA stores those of round i only after it has read round i-1.
  static constexpr int kBytes = 2 * kSplitK * kSliceBytes;
  static constexpr int kSharedBytes = kThreads * static_cast<int>(sizeof(Quad));

  /// `partials` are kBytes and `counter` is that of a GridBarrier; both are the same for all slices. `shared` is the
  /// shared address of kSharedBytes, `barrier` this warpgroup's named barrier.
  __device__ __forceinline__ SplitKSum(char* partials, uint32_t* counter, int slice, uint32_t shared, int thread,
                                       int barrier)
      : partials_(partials),
        shared_(shared),
        slice_(slice),
        thread_(thread),
        barrier_(barrier),
        all_(counter, slice, kSplitK) {}

  /// The slice of K of this CTA, and the first quad of the share that it sums.
  __device__ __forceinline__ int slice() const { return slice_; }
  __device__ __forceinline__ int first_quad() const { return kQuads * slice_ / kSplitK; }

  /// Adds this CTA's accumulators to those of the others, and calls store(sums, quad) for the quads of its share.
  template <class Store>
  __device__ __forceinline__ void exchange(const Accumulator (&accumulators)[kRegisters], const Store& store) {
    char* const partials = partials_ + (is_odd_round_ ? kBytes / 2 : 0);
    is_odd_round_ = !is_odd_round_;
    char* const own = partials + slice_ * kSliceBytes + thread_ * static_cast<int>(sizeof(Quad));
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
    const int end = kQuads * (slice_ + 1) / kSplitK;
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

  /// Each thread sums part of the slices of one quad; the parts are then combined in shared memory.
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

  /// Sums the slices from `slice` to before `last`, in their order, of quads that are kThreads apart, from `quad` to
  /// before `end`.
  template <int kTogether>
  static __device__ __forceinline__ void add(Quad (&sums)[kTogether], const char* partials, int quad, int end,
                                             int slice, int last) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) sums[i] = Quad{};
#pragma unroll 1
    for (; slice < last; slice += kAtOnce) {
      const char* const from = partials + slice * kSliceBytes + quad * static_cast<int>(sizeof(Quad));
      Quad parts[kTogether][kAtOnce];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          parts[i][j] = Quad{};
          if (quad + i * kThreads < end && slice + j < last) {
            parts[i][j] =
                ptx::load_global<Quad>(from + j * kSliceBytes + i * kThreads * static_cast<int>(sizeof(Quad)));
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
  int slice_, thread_, barrier_;
  bool is_odd_round_ = false;
  GridBarrier all_;  // used by thread 0
};

}  // namespace tilewright
