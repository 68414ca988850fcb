// Runs gemm() of a tutorial of CuTe (https://github.com/NVIDIA/cutlass, examples/cute/tutorial) on integers:
// cute_tutorial M N K TRANSPOSE_A TRANSPOSE_B. TUTORIAL is its file, and ELEMENT the type of the matrices.
#define main tutorial_main
#include TUTORIAL
#undef main

#include "exact_gemm.hpp"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::size_t m = std::strtoul(argv[1], nullptr, 10), n = std::strtoul(argv[2], nullptr, 10);
  const std::size_t k = std::strtoul(argv[3], nullptr, 10);
  const char transpose_a = argv[4][0], transpose_b = argv[5][0];
  const bool a_is_row_major = transpose_a == 'T', b_is_row_major = transpose_b == 'N';  // as m x k and n x k
  const IntegerMatrix a{integers(m * k, 1), a_is_row_major ? k : 1, a_is_row_major ? 1 : m};
  const IntegerMatrix b{integers(n * k, 2), b_is_row_major ? k : 1, b_is_row_major ? 1 : n};
  using Elements = thrust::host_vector<ELEMENT>;
  const auto converted = [](const std::vector<int>& from) {
    Elements to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<ELEMENT>(static_cast<float>(from[i]));
    return to;
  };
  const thrust::device_vector<ELEMENT> device_a = converted(a.elements), device_b = converted(b.elements);
  thrust::device_vector<ELEMENT> device_c = converted(std::vector<int>(m * n, 1));
  const ELEMENT alpha(1.0F), beta(0.0F);
  gemm(transpose_a, transpose_b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha,
       device_a.data().get(), static_cast<int>(a_is_row_major ? k : m), device_b.data().get(),
       static_cast<int>(b_is_row_major ? k : n), beta, device_c.data().get(), static_cast<int>(m));
  const Elements c = device_c;
  return compare(m, n, k, a, b, [&](std::size_t row, std::size_t column, int sum) {
    return static_cast<float>(c[column * m + row]) == static_cast<float>(static_cast<ELEMENT>(static_cast<float>(sum)));
  });
}
