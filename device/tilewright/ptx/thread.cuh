// The thread index, and __syncthreads() as a function object.
#pragma once

namespace tilewright::ptx {

/// threadIdx.x, read from the special register at each call, so that it occupies no register in between.
__device__ __forceinline__ int thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/// __syncthreads() as a function object.
struct Synchronize {
  __device__ __forceinline__ void operator()() const { __syncthreads(); }
};

}  // namespace tilewright::ptx
