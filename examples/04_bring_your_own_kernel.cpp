// Bring your own kernel: register it, find it for a problem together with the built-in kernels, run it.
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/f64_gemm_kernel.hpp"
#include "tilewright/engine/engine.hpp"

int main() {
  using namespace tilewright;
  constexpr int batch = 1, m = 64, n = 48, k = 32;
  std::vector<double> a(batch * m * k), b(batch * k * n), d(batch * m * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<double>(i));

  op::Gemm gemm;
  gemm.a = op::batched(op::matrix(a.data(), DType::f64, m, k), batch);
  gemm.b = op::batched(op::matrix(b.data(), DType::f64, k, n), batch);
  gemm.d = op::batched(op::matrix(d.data(), DType::f64, m, n), batch);
  gemm.accumulator = DType::f64;
  gemm.epilogue = op::linear_combination(DType::f64);

  engine::Engine engine;
  engine.registry().add(std::make_shared<examples::F64GemmProvider>()).or_throw();

  const auto is_mine = [](const registry::KernelMetadata& metadata) { return metadata.family == "F64GemmKernel"; };
  const std::vector<engine::RankedKernel> kernels = engine.find_kernels(gemm, is_mine);
  for (const engine::RankedKernel& ranked : kernels) std::printf("%s\n", ranked.kernel->name().c_str());

  engine.run(gemm, kernels.front().kernel);
  double expected = 0.0;
  for (std::size_t i = 0; i < k; ++i) expected += a[3 * k + i] * b[i * n + 5];
  std::printf("%s: D[3,5] = %.12f\n", engine.device()->properties().name.c_str(), d[3 * n + 5]);
  return kernels.size() == 2 && std::fabs(d[3 * n + 5] - expected) < 1e-7 ? 0 : 1;
}
