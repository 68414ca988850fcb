// The thread's number, where it must not occupy a register for long, and the barrier of all threads.
#pragma once

namespace tilewright::ptx {

/// threadIdx.x, read from the special register at this place.
__device__ __forceinline__ int thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/// __syncthreads() as an object.
struct Synchronize {
  __device__ __forceinline__ void operator()() const { __syncthreads(); }
};

}  // namespace tilewright::ptx
