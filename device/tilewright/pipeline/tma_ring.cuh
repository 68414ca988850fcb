// A ring of shared-memory stages between the thread that loads them by TMA, or the warps that store them, and the
// warpgroups that multiply them.
//
// Each stage has two barriers: `full` completes when the stage's bytes have arrived, `empty` when every reader, in
// every CTA that the loads reach, is done with it.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/mbarrier.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Where in the ring one of its users is. The parity is that of the stage's current phase.
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

  /// By any number of stages that others use.
  __device__ __forceinline__ void skip(int stages) {
    const int to = stage + stages;
    parity ^= to / kStages & 1;
    stage = to % kStages;
  }
};

/// The loads of kSharers CTAs, the first of the cluster, reach each other's stages. kReaders warpgroups, or warps, of
/// each arrive once per stage at each of them, kWriters threads when they have filled it; stages are kStageBytes apart,
/// from `stages` on.
template <int kStages, int kStageBytes, int kReaders, int kSharers, int kWriters>
class TmaRing {
 public:
  using Position = RingPosition<kStages>;
  static constexpr int kBarrierBytes = 2 * kStages * ptx::kMbarrierBytes;

  /// Shared addresses: of stage 0, and of kBarrierBytes for the barriers.
  __device__ __forceinline__ TmaRing(uint32_t stages, uint32_t barriers) : stages_(stages), barriers_(barriers) {}

  /// By one thread, before any other use; ptx::fence_mbarrier_init and a cluster-wide barrier must follow.
  __device__ __forceinline__ void initialise() const {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(full(stage), kWriters);
      ptx::mbarrier_init(empty(stage), kReaders * kSharers);
    }
  }

  __device__ __forceinline__ uint32_t stage(int index) const { return stages_ + index * kStageBytes; }
  __device__ __forceinline__ uint32_t full(int index) const { return barriers_ + index * ptx::kMbarrierBytes; }

  /// Waits until the stage may be overwritten, and announces `bytes` to its readers.
  __device__ __forceinline__ void begin_write(const Position& at, uint32_t bytes) const {
    wait_for_readers(at);
    ptx::mbarrier_arrive_expect(full(at.stage), bytes);
  }

  /// By a whole warp: what it stored in the stage may be read through the asynchronous proxy.
  __device__ __forceinline__ void end_write(int stage) const {
    ptx::fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(full(stage));
  }

  /// Waits until all readers of the stage are done: of all that were ever written, when called for each stage in turn.
  __device__ __forceinline__ void wait_for_readers(const Position& at) const {
    ptx::mbarrier_wait(empty(at.stage), at.parity ^ 1);
  }

  __device__ __forceinline__ void begin_read(const Position& at) const {
    ptx::mbarrier_wait(full(at.stage), at.parity);
  }

  /// By all threads of a reader, `thread` of them: the stage may be overwritten.
  __device__ __forceinline__ void end_read(int stage, int thread) const {
    if constexpr (kSharers > 1) {
      if (thread < kSharers) ptx::mbarrier_arrive_at(empty(stage), static_cast<uint32_t>(thread));
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
