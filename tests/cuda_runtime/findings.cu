// Kernels with one fault each; the argument chooses one. The line of each fault ends in the comment BUG.
#include <unistd.h>

#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cuda/barrier>

__global__ void past_the_end(float* out) {
  out[threadIdx.x + 1] = 1;  // BUG
}
__global__ void race(const float* x, float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  out[threadIdx.x] = s[63 - threadIdx.x];  // BUG
}
__global__ void uninitialised(const float* x, float* out) {
  out[threadIdx.x] = x[threadIdx.x];  // BUG
}
__global__ void first_half(float* out) {
  if (threadIdx.x < 32) out[threadIdx.x] = 1;
}
__global__ void failed_assertion(const float* x) {
  assert(x[threadIdx.x] == 1);  // BUG
}
__global__ void host_pointer(const float* x, float* out) {
  out[threadIdx.x] = x[threadIdx.x];  // BUG
}
__global__ void endless(volatile int* flag) {
  while (*flag == 0) {  // BUG
  }
}
__global__ void endless_after_a_finding(float* out, int* counter) {
  out[threadIdx.x + 1] = 1;  // BUG
  while (atomicAdd(counter, 1) != -5) {
  }
}
__global__ void uninitialised_mbarrier(float* out) {
  __shared__ unsigned long long barrier;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x != 0) return;
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at));  // BUG
  out[0] = 1;
}
__global__ void grid_barrier(int* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (*static_cast<volatile int*>(arrived) < static_cast<int>(gridDim.x)) {  // BUG
  }
}
__global__ void barrier_of_libcudacxx(float* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x + 1);
  __syncthreads();
  barrier.arrive_and_wait();  // BUG
  out[threadIdx.x] = 1;
}

int main(int, char** arguments) {
  const int which = std::atoi(arguments[1]);
  float *x, *out, host[64] = {};
  cudaMalloc(&x, sizeof(host));
  cudaMalloc(&out, sizeof(host));
  if (which != 2 && which != 3) cudaMemset(x, 0, sizeof(host));
  if (which == 0) past_the_end<<<1, 64>>>(out);
  if (which == 1) race<<<1, 64>>>(x, out);
  if (which == 2) uninitialised<<<1, 64>>>(x, out);
  if (which == 3) {  // the first half is written by another launch
    first_half<<<1, 64>>>(x);
    uninitialised<<<1, 64>>>(x, out);
  }
  if (which == 4) failed_assertion<<<1, 64>>>(x);
  if (which == 5) host_pointer<<<1, 64>>>(host, out);
  if (which == 6) endless<<<1, 1>>>(reinterpret_cast<int*>(x));
  if (which == 7) {  // calls that fail, and whose code no one reads
    first_half<<<1, 2048>>>(x);
    cudaMemcpy(host, x, 4 * sizeof(host), cudaMemcpyDeviceToHost);
    cudaMemcpy(nullptr, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaFree(out + 1);
    cudaFreeHost(out);
    cudaFree(out);
    cudaFree(out);
  }
  if (which == 8) {
    std::puts("launched");
    std::fflush(stdout);
    endless_after_a_finding<<<1, 64>>>(out, reinterpret_cast<int*>(x));
  }
  if (which == 10) uninitialised_mbarrier<<<1, 64>>>(out);
  if (which == 11) grid_barrier<<<64, 1024>>>(reinterpret_cast<int*>(x));
  if (which == 12) barrier_of_libcudacxx<<<1, 64>>>(out);
  if (which == 14) {  // calls that fail, each for another reason
    cudaMemset(out + 1000000, 0, 4);
    cudaMemset2D(x, 4, 0, 8, 2);
    cudaMemcpy2D(x, 16, out, 8, 16, 2, cudaMemcpyDeviceToDevice);
    race<<<1, 64, 1 << 20>>>(x, out);
    cudaFuncSetAttribute(race, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000);
    cudaLaunchKernel(reinterpret_cast<const void*>(race), dim3(1), dim3(64), nullptr, 0, nullptr);
    void* arguments[] = {&x, &out};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(race), dim3(10000), dim3(1024), arguments, 0, nullptr);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamDestroy(stream);
    race<<<1, 64, 0, stream>>>(x, out);
    cudaEvent_t first, second;
    cudaEventCreate(&first);
    cudaEventCreate(&second);
    cudaEventRecord(first);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, first, second);
    cudaEventDestroy(first);
    cudaEventRecord(first);
    cudaMalloc(&x, std::size_t{1} << 50);
    cudaMallocManaged(&x, std::size_t{1} << 50);
  }
  if (which == 15) {  // a copy of memory that no one has written, and two of memory that is written in part and wholly
    float *unwritten = nullptr, part[64];
    cudaMalloc(&unwritten, 256);
    cudaMemcpy(part, unwritten, 256, cudaMemcpyDeviceToHost);
    cudaMemset(unwritten, 0, 4);
    cudaMemcpy(part, unwritten, 256, cudaMemcpyDeviceToHost);
    cudaMemset(unwritten, 0, 256);
    cudaMemcpy(part, unwritten, 256, cudaMemcpyDeviceToHost);
  }
  if (which == 13) {  // copies past the ends of blocks of the host, and one that ends with its block
    cudaMemset(x, 0, 256);
    auto* const block = static_cast<float*>(std::malloc(200));
    auto* const element = new float[10];
    cudaMemcpy(block, x, 256, cudaMemcpyDeviceToHost);
    cudaMemcpy(x, element + 2, 64, cudaMemcpyHostToDevice);
    cudaMemcpy(block + 25, x, 100, cudaMemcpyDeviceToHost);
    delete[] element;
    std::free(block);
  }
  if (which == 16) {  // managed and pinned memory is part of the GPU's, of which 1 GiB is given
    constexpr std::size_t kBytes = std::size_t{600} << 20;
    std::size_t free_bytes = 0, total = 0;
    float *managed = nullptr, *device = nullptr, *pinned = nullptr;
    std::printf("%d ", cudaMallocManaged(&managed, kBytes));
    std::printf("%d ", cudaMalloc(&device, kBytes));
    std::printf("%d ", cudaMallocHost(&pinned, kBytes));
    cudaMemGetInfo(&free_bytes, &total);
    std::printf("%d %d ", free_bytes == total - kBytes - 2 * sizeof(host), cudaFree(managed));
    std::printf("%d\n", cudaMallocHost(&pinned, kBytes));
    cudaGetLastError();
  }
  if (which == 17) {  // a null pointer of host code, in a program whose handler calls the one that it has replaced
    static struct sigaction replaced {};
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      static_cast<void>(write(STDOUT_FILENO, "handler\n", 8));
      if ((replaced.sa_flags & SA_SIGINFO) != 0) replaced.sa_sigaction(signal, info, context);
    };
    float* pinned = nullptr;
    cudaMallocHost(&pinned, 1 << 16);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemsetAsync(pinned, 0, 1 << 16, stream);  // the pages are watched from here on
    sigaction(SIGSEGV, &action, &replaced);
    cudaMemsetAsync(pinned, 0, 1 << 16, stream);
    *static_cast<volatile int*>(nullptr) = 1;
  }
  if (which == 9) {
    cudaFree(x);
    host_pointer<<<1, 64>>>(x, out);
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
