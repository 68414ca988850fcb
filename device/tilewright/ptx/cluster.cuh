// Thread block clusters and programmatic dependent launch (sm_90).
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// This CTA's rank in its cluster: %cluster_ctarank.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for all threads of the cluster. Their earlier writes are visible afterwards.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Waits until the grids that this one depends on have finished and their writes are visible. Returns at once in a
/// launch without programmatic stream serialization.
__device__ __forceinline__ void wait_for_dependencies() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/// Allows the grids that depend on this one to start.
__device__ __forceinline__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace tilewright::ptx
