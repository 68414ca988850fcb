// The shortest use of Tilewright: D = A * B on host arrays, on a GPU if there is one, else on the emulator.
#include <cstdio>
#include <vector>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright;
  constexpr int m = 256, n = 192, k = 320;
  std::vector<float> a(m * k, 0.5F), b(k * n, 2.0F), d(m * n);

  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);

  engine::Engine engine;  // a GPU if there is one, else the emulator; compiled kernels are cached on disk
  engine.run(gemm);       // finds the kernels for this problem, compiles the best one, runs it

  std::printf("%s: D[0,0] = %g\n", engine.device()->properties().name.c_str(), d[0]);
  return d[0] == 0.5F * 2.0F * k ? 0 : 1;
}
