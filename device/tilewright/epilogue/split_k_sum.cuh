// The sum of what several CTAs computed of one tile, each over its own slice of K. They leave accumulators in a
// workspace in global memory and meet; then each adds up an equal share of the tile. Slices are added in an order that
// the shape alone decides, so the result does not depend on who came first.
#pragma once

#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One warpgroup's accumulators: kRegisters words a thread, summed with those of the same warpgroup of kSlices CTAs,
/// all of them resident. A quad is four accumulators of one thread; quad q of thread q % 128, its accumulators from
/// 4 * (q / 128) on.
template <class Accumulator, int kSlices, int kRegisters>
class SliceSum {
 public:
  using Quad = Vector<Accumulator, 4>;

 private:
  static_assert(sizeof(Quad) == 16, "accumulators are words");
  static constexpr int kThreads = 128;
  static constexpr int kQuads = kRegisters / 4 * kThreads;
  static constexpr int kSliceBytes = kQuads * static_cast<int>(sizeof(Quad));
  static constexpr int kShare = ceil_div(kQuads, kSlices);  // quads of a CTA, at most
  static constexpr int kInFlight = 16;                      // loads of a thread

  static __device__ constexpr int threads_for(int quads) {
    int threads = 1;
    while (threads < quads && threads < kThreads) threads *= 2;
    return threads;
  }
  // So many threads take a quad each; where they are not all, so many of them take a part of its slices each.
  static constexpr int kLanes = threads_for(kShare);
  static constexpr int kParts = kThreads / kLanes;
  static constexpr int kAtOnce = minimum(kInFlight, ceil_div(kSlices, kParts));  // slices of a quad

 public:
  static constexpr int kShareGroups = ceil_div(kShare, kThreads) + 1;  // of kThreads quads, that a share reaches into

  /// Of the workspace. Who writes the next round's has seen all partial sums of the last, so all were read of the one
  /// before.
  static constexpr int kBytes = 2 * kSlices * kSliceBytes;
  static constexpr int kSharedBytes = kThreads * static_cast<int>(sizeof(Quad));

  /// kBytes and the counter of a GridBarrier, the same for all slices; the shared address of kSharedBytes and a named
  /// barrier of this warpgroup alone.
  __device__ __forceinline__ SliceSum(char* partials, uint32_t* counter, int slice, uint32_t shared, int thread,
                                      int barrier)
      : partials_(partials),
        shared_(shared),
        slice_(slice),
        thread_(thread),
        barrier_(barrier),
        all_(counter, slice, kSlices) {}

  /// This CTA's, and the first quad of its share.
  __device__ __forceinline__ int slice() const { return slice_; }
  __device__ __forceinline__ int first_quad() const { return kQuads * slice_ / kSlices; }

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
    const int end = kQuads * (slice_ + 1) / kSlices;
    if constexpr (kParts == 1) {
      add_all(partials, first, end, store);
    } else {
      add_parts(partials, first, end, store);
    }
  }

 private:
  /// Each thread one quad after another, kTogether of them at once.
  template <class Store>
  __device__ __forceinline__ void add_all(const char* partials, int first, int end, const Store& store) const {
    constexpr int kTogether = minimum(kInFlight / kAtOnce, ceil_div(kShare, kThreads));
#pragma unroll 1
    for (int quad = first + thread_; quad < end; quad += kTogether * kThreads) {
      Quad sums[kTogether];
      add(sums, partials, quad, end, 0, kSlices);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (quad + i * kThreads < end) store(sums[i], quad + i * kThreads);
      }
    }
  }

  /// Each thread a part of the slices of one quad; the parts then meet in shared memory.
  template <class Store>
  __device__ __forceinline__ void add_parts(const char* partials, int first, int end, const Store& store) const {
    const int part = thread_ / kLanes;
    const int quad = first + thread_ % kLanes;
    Quad sums[1];
    add(sums, partials, quad, end, kSlices * part / kParts, kSlices * (part + 1) / kParts);
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

  /// Of quads kThreads apart, from `quad` to before `end`: slices from `slice` to before `last`, in their order.
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
  GridBarrier all_;  // of thread 0
};

}  // namespace tilewright
