// Copies of boxes of tensors between global and shared memory (TMA, sm_90). A tensor map describes the tensor in global
// memory; coordinates are in elements, innermost first, of three modes: contiguous, strided, batch.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// What cuTensorMapEncodeTiled makes; opaque.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

__device__ __forceinline__ void tma_prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// How long L2 keeps what is loaded: bits that createpolicy would give.
using CachePolicy = uint64_t;
inline constexpr CachePolicy kEvictNormal = 0x1000000000000000;

/// Begins the copy of one box to shared memory; `barrier` counts its bytes.
__device__ __forceinline__ void tma_load(uint32_t to, const TensorMap& map, uint32_t barrier, int x, int y, int z,
                                         CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}

/// The same box to the same offset in every CTA of the cluster whose bit is set in `ctas`; bytes are counted by the
/// barrier at the offset of `barrier` in each of them.
__device__ __forceinline__ void tma_load_multicast(uint32_t to, const TensorMap& map, uint32_t barrier, uint16_t ctas,
                                                   int x, int y, int z, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6}], [%2], %3, %7;" ::"r"(to),
      "l"(&map), "r"(barrier), "h"(ctas), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}

/// Begins the copy of one box from shared memory; what lies outside the tensor is not written. Part of this thread's
/// current bulk group.
__device__ __forceinline__ void tma_store(const TensorMap& map, uint32_t from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(from),
               "r"(x), "r"(y), "r"(z)
               : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until at most kPending of this thread's newest groups still read shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Orders this thread's earlier accesses to memory of any kind before later ones of the asynchronous proxy.
__device__ __forceinline__ void fence_proxy_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// Orders this thread's earlier accesses to shared memory before later ones of the asynchronous proxy (TMA, wgmma).
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace tilewright::ptx
