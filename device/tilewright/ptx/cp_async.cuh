// Asynchronous copies from global to shared memory (sm_80): 4, 8 or 16 bytes a thread, the missing tail zero-filled.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Copies `valid_bytes` of kBytes from `from`, and zeros for the rest. valid_bytes 0 reads nothing.
/// 16-byte copies bypass L1 (.cg); the narrower ones exist only through L1 (.ca).
template <int kBytes>
__device__ __forceinline__ void cp_async_zfill(uint32_t to_shared, const void* from, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async moves 4, 8 or 16 bytes");
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to_shared), "l"(from), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to_shared), "l"(from), "n"(kBytes),
                 "r"(valid_bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most kPending of this thread's newest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tilewright::ptx
