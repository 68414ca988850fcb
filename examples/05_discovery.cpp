// Discovery: the kernels that can compute a problem, best first; a filter by metadata; why the others cannot.
#include <cstdio>
#include <vector>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright;
  constexpr int m = 96, n = 64, k = 48;
  std::vector<float> a(m * k, 0.5F), b(k * n, 2.0F), d(m * n);
  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);

  engine::Engine engine;
  const auto is_small = [](const registry::KernelMetadata& metadata) {
    return plan::tiling(metadata.design).tile.m <= 64;
  };
  const std::vector<engine::RankedKernel> small = engine.find_kernels(gemm, is_small);
  engine.run(gemm, small.front().kernel);
  std::printf("%s: D[0,0] = %g\n", small.front().kernel->name().c_str(), d[0]);

  // Each refusal has a reason to read, and a code, an operand and the numbers for programs.
  const engine::Explanation explanation = engine.explain(gemm);
  std::printf("%s", engine::to_text(explanation).c_str());
  for (const registry::RefusedKernel& refused : explanation.refused)
    std::printf("%s: %s\n", refused.name.c_str(), std::string(name(refused.refusal.code)).c_str());

  // All kernels, for any problem. Each one is generated when the listing reaches it.
  engine::KernelListing listing = engine.list_kernels(parse_target("sm_90a").value_or_throw());
  for (int i = 0; i < 3; ++i) std::printf("%s\n", listing.next()->name().c_str());
  return d[0] == 0.5F * 2.0F * k && !explanation.refused.empty() ? 0 : 1;
}
