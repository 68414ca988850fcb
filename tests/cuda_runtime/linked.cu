// A program of two files, compiled with -rdc=true: this one uses functions and variables that linked_part.cu defines,
// and both have a static function of the same name.
#include <cstdio>

#include "linked_part.hpp"

static __device__ __noinline__ int local(int x) { return x + 1; }
extern __device__ int counter;
extern __constant__ int factor;
__device__ int scaled(int x);

__global__ void first(int* x) {
  x[threadIdx.x] = scaled(local(x[threadIdx.x])) * factor;
  if (threadIdx.x == 0) ++counter;
}

int main() {
  int *x = nullptr, host[32];
  cudaMalloc(&x, sizeof(host));
  for (int i = 0; i < 32; ++i) host[i] = i;
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  first<<<1, 32>>>(x);
  launch_second(x);
  cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) {
    if (host[i] != 2 * (3 * 2 * (i + 1)) + 6) return 1;
  }
  std::printf("%s\n", counter_value() == 6 ? "all right" : "counter");
}
