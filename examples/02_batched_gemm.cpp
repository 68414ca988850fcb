// A batched GEMM in one launch: D[i] = A[i] * B. A has a batch mode, and B is broadcast to all products.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "tilewright/engine/engine.hpp"

int main() {
  using namespace tilewright;
  constexpr int batch = 8, m = 64, n = 48, k = 32;
  std::vector<float> a(batch * m * k), b(k * n, 2.0F), d(batch * m * n);
  for (int i = 0; i < batch; ++i) std::fill_n(a.begin() + i * m * k, m * k, static_cast<float>(i));  // A[i]

  op::Gemm gemm;
  gemm.a = op::batched(op::matrix(a.data(), DType::f32, m, k), batch);  // (batch, m, k), packed
  gemm.b = op::matrix(b.data(), DType::f32, k, n);                      // no batch mode: B is broadcast
  gemm.d = op::batched(op::matrix(d.data(), DType::f32, m, n), batch);

  engine::Engine engine;
  engine.run(gemm);

  const float last = d[batch * m * n - 1];
  std::printf("%s: D[%d,%d,%d] = %g\n", engine.device()->properties().name.c_str(), batch - 1, m - 1, n - 1, last);
  return last == (batch - 1) * 2.0F * k ? 0 : 1;
}
