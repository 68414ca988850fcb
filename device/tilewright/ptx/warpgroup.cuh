// Warpgroup operations (sm_90): ordering of wgmma, register reallocation, elect, named barriers. wgmma.mma_async itself
// has up to 128 accumulator registers; lower/cuda/wgmma emits the ones that a kernel uses.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Orders earlier accesses to the registers of accumulators and A before the warpgroup's next wgmma.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most the kPending latest wgmma groups are pending.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Releases registers of this warpgroup to the CTA, down to kRegisters per thread.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
/// Requests registers from the CTA, up to kRegisters per thread, and waits until enough have been released.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// True in one lane; all 32 lanes must call it.
__device__ __forceinline__ bool elect() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

/// Waits at named barrier `id` for `threads` threads. 0 is the barrier of __syncthreads(); 1 to 15 are free.
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Arrives at the named barrier without waiting.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace tilewright::ptx
