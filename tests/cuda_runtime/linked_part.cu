// The other file of the program in linked.cu.
#include "linked_part.hpp"

__device__ int counter = 5;
__constant__ int factor = 3;
static __device__ __noinline__ int local(int x) { return x * 2; }
__device__ int scaled(int x) { return local(x); }

__global__ void second(int* x) { x[threadIdx.x] = local(x[threadIdx.x]) + counter; }

void launch_second(int* x) { second<<<1, 32>>>(x); }

int counter_value() {
  int value = 0;
  cudaMemcpyFromSymbol(&value, counter, sizeof(value));
  return value;
}
