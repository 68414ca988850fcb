// Runs a kernel of SGEMM_CUDA (https://github.com/siboehm/SGEMM_CUDA) on integers: sgemm_cuda KERNEL SIZE.
#include <cstdlib>
#include <vector>

#include "exact_gemm.hpp"
#include "runner.cuh"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int kernel = std::atoi(argv[1]);
  const std::size_t size = std::strtoul(argv[2], nullptr, 10);
  const std::size_t bytes = size * size * sizeof(float);
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  // All matrices are row-major.
  const IntegerMatrix a{integers(size * size, 1), size, 1}, b{integers(size * size, 2), 1, size};
  std::vector<float> host(size * size);
  float *device_a = nullptr, *device_b = nullptr, *device_c = nullptr;
  const auto upload = [&](float*& device, const std::vector<int>& from) {
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(from[i]);
    cudaCheck(cudaMalloc(&device, bytes), __FILE__, __LINE__);
    cudaCheck(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice), __FILE__, __LINE__);
  };
  const std::vector<int> c = integers(size * size, 3);
  upload(device_a, a.elements);
  upload(device_b, b.elements);
  upload(device_c, c);
  const int extent = static_cast<int>(size);
  run_kernel(kernel, extent, extent, extent, 2, device_a, device_b, 3, device_c, handle);
  cudaCheck(cudaDeviceSynchronize(), __FILE__, __LINE__);
  cudaCheck(cudaMemcpy(host.data(), device_c, bytes, cudaMemcpyDeviceToHost), __FILE__, __LINE__);
  return compare(size, size, size, a, b, [&](std::size_t row, std::size_t column, int sum) {
    const std::size_t at = row * size + column;
    return host[at] == static_cast<float>(2 * sum + 3 * c[at]);
  });
}
