// The thread's number, where it must not occupy a register for long.
#pragma once

namespace tilewright::ptx {

/// threadIdx.x, read from the special register at this place.
__device__ __forceinline__ int thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

}  // namespace tilewright::ptx
