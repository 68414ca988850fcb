// Several kernels are compiled in the background, in parallel. A callback reports the progress.
#include <cstdio>
#include <vector>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright;
  constexpr int m = 64, n = 48, k = 32;
  std::vector<float> a(m * k, 0.5F), b(k * n, 2.0F), d(m * n);
  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);

  engine::Engine engine;
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& ranked : engine.find_kernels(gemm)) {
    if (kernels.size() < 3) kernels.push_back(ranked.kernel);
  }
  std::future<std::vector<engine::ArtifactPtr>> compiling =
      engine.compile_async(kernels, [](const engine::CompileProgress& progress) {
        std::printf("%zu of %zu: %s\n", progress.done, progress.all, progress.kernel.c_str());
      });
  const std::vector<engine::ArtifactPtr> artifacts = compiling.get();

  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::fill(d.begin(), d.end(), 0.0F);
    engine.run(gemm, kernels[i], artifacts[i], {});
    if (d[0] != 0.5F * 2.0F * k) return 1;
  }
  return 0;
}
