// Loops of launches, for `emulate run --skip-repeats`: repeats LOOP prints what they have computed.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void fill(float* x) { x[threadIdx.x] = static_cast<float>(threadIdx.x); }
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
__global__ void add(const float* x, float* sum) { sum[threadIdx.x] += x[threadIdx.x]; }
__global__ void next(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x] + 1; }
__global__ void print(const float* x) {
  if (threadIdx.x == 0 && x[0] == 0) printf("print\n");
}

__constant__ float offset = 1;
__managed__ float shared_offset = 1;
__global__ void add_constant(float* x) { x[threadIdx.x] = threadIdx.x + offset; }
__global__ void add_shared(float* x) { x[threadIdx.x] = threadIdx.x + shared_offset; }

constexpr int kCount = 64;
float *x, *y;

void show(const float* from) {
  float values[kCount];
  cudaMemcpy(values, from, sizeof(values), cudaMemcpyDeviceToHost);
  std::printf("%g\n", values[5]);
}

int main(int, char** argv) {
  cudaMalloc(&x, kCount * sizeof(float));
  cudaMalloc(&y, kCount * sizeof(float));
  cudaMemset(x, 0, kCount * sizeof(float));
  cudaMemset(y, 0, kCount * sizeof(float));
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  const float one = 1, zero = 0;
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  float* shared = nullptr;
  switch (std::atoi(argv[1])) {
    case 0:  // the sequence has the same result each time
      for (int i = 0; i < 10; ++i) {
        fill<<<1, kCount>>>(x);
        twice<<<1, kCount>>>(x);
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x, 8, x, 8, &zero, y, 8);
        cudaEventRecord(event);
        cudaEventSynchronize(event);
      }
      show(y);
      break;
    case 1:  // each launch adds to what the one before has left
      fill<<<1, kCount>>>(x);
      for (int i = 0; i < 10; ++i) add<<<1, kCount>>>(x, y);
      show(y);
      break;
    case 2:  // two buffers take turns
      for (int i = 0; i < 10; ++i) {
        next<<<1, kCount>>>(x, y);
        next<<<1, kCount>>>(y, x);
      }
      show(x);
      break;
    case 3:  // the sequence ends in the middle
      for (int i = 0; i < 10; ++i) {
        fill<<<1, kCount>>>(x);
        if (i != 9) twice<<<1, kCount>>>(x);
      }
      show(x);
      break;
    case 4:  // a fill begins each sum anew
      fill<<<1, kCount>>>(x);
      for (int i = 0; i < 10; ++i) {
        cudaMemset(y, 0, kCount * sizeof(float));
        add<<<1, kCount>>>(x, y);
        add<<<1, kCount>>>(x, y);
      }
      show(y);
      break;
    case 5:  // the host changes what the launch reads
      cudaMallocManaged(&shared, kCount * sizeof(float));
      for (int i = 0; i < 10; ++i) {
        shared[5] = static_cast<float>(i);
        next<<<1, kCount>>>(shared, y);
        cudaDeviceSynchronize();
      }
      show(y);
      break;
    case 6:  // the same in a managed variable
      for (int i = 0; i < 10; ++i) {
        shared_offset = static_cast<float>(i);
        add_shared<<<1, kCount>>>(x);
        cudaDeviceSynchronize();
      }
      show(x);
      break;
    case 7:  // the launch reads a constant
      for (int i = 0; i < 10; ++i) add_constant<<<1, kCount>>>(x);
      show(x);
      break;
    case 8: {  // a stream is destroyed in the middle of a sequence
      cudaStream_t stream = nullptr;
      cudaStreamCreate(&stream);
      for (int i = 0; i < 10; ++i) {
        fill<<<1, kCount, 0, stream>>>(x);
        if (i != 9) twice<<<1, kCount, 0, stream>>>(x);
      }
      cudaStreamDestroy(stream);
      cudaDeviceSynchronize();
      show(x);
      break;
    }
    case 9:
      for (int i = 0; i < 3; ++i) print<<<1, kCount>>>(x);
      cudaDeviceSynchronize();
      break;
    default:
      return 1;
  }
  return 0;
}
