// Runs a kernel of fast.cu (https://github.com/pranjalssh/fast.cu) on integers: fast_cu KERNEL M N K.
#define main fast_cu_main
#include "matmul.cu"
#undef main

#include <algorithm>

#include "exact_gemm.hpp"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int kernel = std::atoi(argv[1]);
  const std::size_t m = std::strtoul(argv[2], nullptr, 10), n = std::strtoul(argv[3], nullptr, 10);
  const std::size_t k = std::strtoul(argv[4], nullptr, 10);
  cublasCreate(&cublas_handle);
  // A is row-major, and B and C are column-major. For kernel 1 all are row-major.
  const bool is_first = kernel == 1;
  const IntegerMatrix a{integers(m * k, 1), k, 1};
  const IntegerMatrix b{integers(n * k, 2), is_first ? 1 : k, is_first ? n : 1};
  std::vector<bf16> host(std::max({m * k, n * k, m * n}));
  bf16 *device_a = nullptr, *device_b = nullptr, *device_c = nullptr;
  const auto upload = [&](bf16*& device, const IntegerMatrix& from) {
    const std::size_t count = from.elements.size();
    for (std::size_t i = 0; i < count; ++i) host[i] = __float2bfloat16(static_cast<float>(from.elements[i]));
    cudaCheck(cudaMalloc(&device, count * sizeof(bf16)));
    cudaCheck(cudaMemcpy(device, host.data(), count * sizeof(bf16), cudaMemcpyHostToDevice));
  };
  upload(device_a, a);
  upload(device_b, b);
  cudaCheck(cudaMalloc(&device_c, m * n * sizeof(bf16)));
  run_kernel(kernel, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), device_a, device_b, device_c);
  cudaCheck(cudaDeviceSynchronize());
  cudaCheck(cudaMemcpy(host.data(), device_c, m * n * sizeof(bf16), cudaMemcpyDeviceToHost));
  return compare(m, n, k, a, b, [&](std::size_t row, std::size_t column, int sum) {
    const bf16 element = host[is_first ? row * n + column : column * m + row];
    return __bfloat162float(element) == __bfloat162float(__float2bfloat16(static_cast<float>(sum)));
  });
}
