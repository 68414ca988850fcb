// The ring of shared-memory stages between the producer and the consumer warpgroups. The producer is one thread that
// issues TMA loads, or the warps that load operands with plain loads.
//
// Each stage has two mbarriers: `full` completes when the stage's bytes have arrived, `empty` when every consumer in
// every CTA that the loads reach has finished reading it.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/mbarrier.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The current stage of a producer or consumer, and the phase parity of its barriers.
template <int kStages>
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    ++stage;
    if (stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }

  /// Advances by `stages` stages, which another warpgroup reads.
  __device__ __forceinline__ void skip(int stages) {
    const int to = stage + stages;
    parity ^= to / kStages & 1;
    stage = to % kStages;
  }
};

/// A cluster has kClusterCtas CTAs, whose loads reach each other's stages. The arrival counts: a `full` barrier
/// completes after kProducerArrivals arrivals and the announced bytes, an `empty` one after kConsumerArrivals from each
/// CTA of the cluster. Stages are kStageBytes apart.
template <int kStages, int kStageBytes, int kConsumerArrivals, int kClusterCtas, int kProducerArrivals>
class TmaRing {
 public:
  using Position = RingPosition<kStages>;
  static constexpr int kBarrierBytes = 2 * kStages * ptx::kMbarrierBytes;

  /// `stages` is the shared address of stage 0, `barriers` that of kBarrierBytes for the barriers.
  __device__ __forceinline__ TmaRing(uint32_t stages, uint32_t barriers) : stages_(stages), barriers_(barriers) {}

  /// Must be called by one thread before any other use. ptx::fence_mbarrier_init and a barrier of the cluster must
  /// follow.
  __device__ __forceinline__ void initialise() const {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(full(stage), kProducerArrivals);
      ptx::mbarrier_init(empty(stage), kConsumerArrivals * kClusterCtas);
    }
  }

  __device__ __forceinline__ uint32_t stage(int index) const { return stages_ + index * kStageBytes; }
  __device__ __forceinline__ uint32_t full(int index) const { return barriers_ + index * ptx::kMbarrierBytes; }

  /// Waits until the stage may be overwritten, and announces that `bytes` will arrive.
  __device__ __forceinline__ void begin_write(const Position& at, uint32_t bytes) const {
    wait_for_readers(at);
    ptx::mbarrier_arrive_expect(full(at.stage), bytes);
  }

  /// Must be called by a whole warp: makes what it stored in the stage visible to the asynchronous proxy, and arrives.
  __device__ __forceinline__ void end_write(int stage) const {
    ptx::fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(full(stage));
  }

  /// Waits until all consumers have finished reading the stage.
  __device__ __forceinline__ void wait_for_readers(const Position& at) const {
    ptx::mbarrier_wait(empty(at.stage), at.parity ^ 1);
  }

  /// Waits until all consumers have finished reading all stages. `at` is the position after the last write. A CTA of a
  /// cluster may end only then, because the consumers of other CTAs arrive at its barriers. No load is in flight then,
  /// because consumers have read the stages of all loads.
  __device__ __forceinline__ void wait_for_all_readers(Position at) const {
#pragma unroll 1
    for (int i = 0; i < kStages; ++i, at.advance()) wait_for_readers(at);
  }

  __device__ __forceinline__ void begin_read(const Position& at) const {
    ptx::mbarrier_wait(full(at.stage), at.parity);
  }

  /// Must be called by all threads of the warpgroup or warp that makes one arrival; `thread` is the thread's index
  /// among them. The stage may be overwritten afterwards.
  __device__ __forceinline__ void end_read(int stage, int thread) const {
    if constexpr (kClusterCtas > 1) {
      if (thread < kClusterCtas) ptx::mbarrier_arrive_at(empty(stage), static_cast<uint32_t>(thread));
    } else {
      if (thread == 0) ptx::mbarrier_arrive(empty(stage));
    }
  }

 private:
  __device__ __forceinline__ uint32_t empty(int index) const {
    return barriers_ + (kStages + index) * ptx::kMbarrierBytes;
  }

  uint32_t stages_;
  uint32_t barriers_;
};

}  // namespace tilewright
