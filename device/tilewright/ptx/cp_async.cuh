// cp.async (sm_80): asynchronous copies of 4, 8 or 16 bytes per thread from global to shared memory, with zero fill.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Copies the first `valid_bytes` of kBytes bytes from `from` and fills the rest with zeros. With valid_bytes 0 it
/// reads nothing. Copies of 16 bytes bypass L1 (.cg) unless kKeepsInL1 (.ca); narrower ones only exist with L1.
template <int kBytes, bool kKeepsInL1 = false>
__device__ __forceinline__ void cp_async_zfill(uint32_t to_shared, const void* from, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async moves 4, 8 or 16 bytes");
  if constexpr (kBytes == 16 && !kKeepsInL1) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to_shared), "l"(from), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to_shared), "l"(from), "n"(kBytes),
                 "r"(valid_bytes)
                 : "memory");
  }
}

/// If `is_copied`, copies kBytes bytes from `from`, or if it is not inside, fills them with zeros and reads nothing.
/// This takes fewer instructions than cp_async_zfill(), whose number of bytes becomes part of the address. There is no
/// branch, from which ptxas would move less out of loops.
template <int kBytes, bool kKeepsInL1 = false>
__device__ __forceinline__ void cp_async_or_zeros(uint32_t to_shared, const void* from, bool is_inside,
                                                  bool is_copied = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async moves 4, 8 or 16 bytes");
  const auto reads = static_cast<uint32_t>(is_inside), copies = static_cast<uint32_t>(is_copied);
  if constexpr (kBytes == 16 && !kKeepsInL1) {
    asm volatile(
        "{\n\t.reg .pred ignores, copies;\n\tsetp.eq.u32 ignores, %2, 0;\n\tsetp.ne.u32 copies, %3, 0;\n\t"
        "@copies cp.async.cg.shared.global.L2::128B [%0], [%1], 16, ignores;\n\t}" ::"r"(to_shared),
        "l"(from), "r"(reads), "r"(copies)
        : "memory");
  } else {
    asm volatile(
        "{\n\t.reg .pred ignores, copies;\n\tsetp.eq.u32 ignores, %3, 0;\n\tsetp.ne.u32 copies, %4, 0;\n\t"
        "@copies cp.async.ca.shared.global [%0], [%1], %2, ignores;\n\t}" ::"r"(to_shared),
        "l"(from), "n"(kBytes), "r"(reads), "r"(copies)
        : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the kPending latest commit groups of this thread are pending.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tilewright::ptx
