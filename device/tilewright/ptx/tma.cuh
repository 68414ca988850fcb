// TMA (sm_90): copies of boxes between a tensor in global memory, which a tensor map describes, and shared memory.
// Coordinates are in elements, for three modes, innermost first: contiguous, strided, batch.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// The opaque result of cuTensorMapEncodeTiled.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

__device__ __forceinline__ void tma_prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// An L2 cache policy, as encoded by createpolicy.
using CachePolicy = uint64_t;
inline constexpr CachePolicy kEvictNormal = 0x1000000000000000;

/// Starts the copy of one box to shared memory, which performs complete_tx on the mbarrier `barrier`.
__device__ __forceinline__ void tma_load(uint32_t to, const TensorMap& map, uint32_t barrier, int x, int y, int z,
                                         CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}

/// Multicast: copies the box to the same shared address in each CTA of the cluster whose bit is set in `ctas`, and
/// performs complete_tx on the mbarrier at the address `barrier` of that CTA.
__device__ __forceinline__ void tma_load_multicast(uint32_t to, const TensorMap& map, uint32_t barrier, uint16_t ctas,
                                                   int x, int y, int z, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6}], [%2], %3, %7;" ::"r"(to),
      "l"(&map), "r"(barrier), "h"(ctas), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}

/// The coordinates of a box of a tensor map of five modes, innermost first.
struct BoxOfFive {
  int x[5];
};
/// The same as tma_load() for a tensor map of five modes.
__device__ __forceinline__ void tma_load(uint32_t to, const TensorMap& map, uint32_t barrier, const BoxOfFive& box,
                                         CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(box.x[0]), "r"(box.x[1]), "r"(box.x[2]), "r"(box.x[3]), "r"(box.x[4]), "l"(policy)
      : "memory");
}
__device__ __forceinline__ void tma_load_multicast(uint32_t to, const TensorMap& map, uint32_t barrier, uint16_t ctas,
                                                   const BoxOfFive& box, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3, %9;" ::"r"(to),
      "l"(&map), "r"(barrier), "h"(ctas), "r"(box.x[0]), "r"(box.x[1]), "r"(box.x[2]), "r"(box.x[3]), "r"(box.x[4]),
      "l"(policy)
      : "memory");
}

/// The coordinates of the first pixel of a copy in im2col mode, and the offsets of a tap, of a tensor map of four
/// modes.
struct Im2colBox {
  int c, w, h, n;
  uint16_t offset_w, offset_h;
};

/// The same as tma_load() for a tensor map in im2col mode.
__device__ __forceinline__ void tma_load(uint32_t to, const TensorMap& map, uint32_t barrier, const Im2colBox& box,
                                         CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(box.c), "r"(box.w), "r"(box.h), "r"(box.n), "h"(box.offset_w), "h"(box.offset_h),
      "l"(policy)
      : "memory");
}
__device__ __forceinline__ void tma_load_multicast(uint32_t to, const TensorMap& map, uint32_t barrier, uint16_t ctas,
                                                   const Im2colBox& box, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%4, %5, %6, %7}], [%2], {%8, %9}, %3, %10;" ::"r"(to),
      "l"(&map), "r"(barrier), "h"(ctas), "r"(box.c), "r"(box.w), "r"(box.h), "r"(box.n), "h"(box.offset_w),
      "h"(box.offset_h), "l"(policy)
      : "memory");
}

/// Replaces the address of the tensor in a tensor map at the shared address `map`, a multiple of 128 (sm_90a).
__device__ __forceinline__ void tensor_map_replace_address(uint32_t map, const void* address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map), "l"(address)
               : "memory");
}

/// Replaces the extent of mode kMode of the tensor in such a tensor map.
template <int kMode>
__device__ __forceinline__ void tensor_map_replace_extent(uint32_t map, int extent) {
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map), "n"(kMode),
               "r"(extent)
               : "memory");
}

/// Replaces the stride of mode 1 of the tensor in such a tensor map by `bytes`, a multiple of 16. Compilers before CUDA
/// 12.5 take it in units of 16 bytes.
__device__ __forceinline__ void tensor_map_replace_stride(uint32_t map, int64_t bytes) {
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
  const int64_t stride = bytes;
#else
  const int64_t stride = bytes / 16;
#endif
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(map), "l"(stride)
               : "memory");
}

/// Copies a tensor map from the shared address `from` to global memory, and releases it to the TMA units of the GPU.
/// All 32 lanes must call it, with the same arguments; both addresses are multiples of 128.
__device__ __forceinline__ void tensor_map_publish(TensorMap* to, uint32_t from) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
          to),
      "r"(from)
      : "memory");
}

/// Must be called after tensor_map_publish() by each thread that passes the tensor map to TMA.
__device__ __forceinline__ void tensor_map_acquire(const TensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/// Starts the copy of one box from shared memory, in this thread's current bulk group. Elements outside the tensor are
/// not written.
__device__ __forceinline__ void tma_store(const TensorMap& map, uint32_t from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(from),
               "r"(x), "r"(y), "r"(z)
               : "memory");
}

/// The same for a tensor map of four modes in im2col mode. The offsets of `box` are not used.
__device__ __forceinline__ void tma_store(const TensorMap& map, uint32_t from, const Im2colBox& box) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
      "r"(from), "r"(box.c), "r"(box.w), "r"(box.h), "r"(box.n)
      : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until all but the kPending latest bulk groups of this thread have finished reading shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Orders this thread's earlier accesses to all memory before later accesses of the async proxy.
__device__ __forceinline__ void fence_proxy_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// Orders this thread's earlier accesses to shared memory before later accesses of the async proxy (TMA, wgmma).
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace tilewright::ptx
