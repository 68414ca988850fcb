// Clusters of CTAs and dependent launches (sm_90).
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// This CTA's number within its cluster.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The address in CTA `rank` of the cluster of what is at `address` in this one.
__device__ __forceinline__ uint32_t map_to_rank(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// 16 bytes of a CTA of the cluster, by an address from map_to_rank.
template <class Value>
__device__ __forceinline__ Value load_cluster(uint32_t address) {
  static_assert(sizeof(Value) == 16, "16 bytes");
  Vector<uint32_t, 4> v;
  asm volatile("ld.shared::cluster.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.element[0]), "=r"(v.element[1]), "=r"(v.element[2]), "=r"(v.element[3])
               : "r"(address)
               : "memory");
  return __builtin_bit_cast(Value, v);
}

/// Waits for all threads of the cluster; what they wrote before is visible after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Waits until the grids that this one depends on have finished and their writes are visible. Returns at once in a
/// launch without programmatic serialization.
__device__ __forceinline__ void wait_for_dependencies() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/// Lets the grids that depend on this one begin.
__device__ __forceinline__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace tilewright::ptx
