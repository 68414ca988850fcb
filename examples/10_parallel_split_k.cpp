// Split-K in parallel mode: D = relu(A * B + bias) with a small D and a long K. GEMMs write partial sums to a
// workspace, and a reduction adds them and applies the epilogue.
#include <cstdio>
#include <memory>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/split_k.hpp"

int main() {
  using namespace tilewright;
  constexpr int m = 32, n = 48, k = 1000;
  std::vector<float> a(m * k, 1.0F), b(k * n, 0.5F), bias(n, -100.0F), d(m * n);

  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);
  gemm.epilogue = op::parse_epilogue("D = relu(acc + row(bias))", DType::f32, {}).value_or_throw();
  gemm.tensors = {{"bias", op::matrix(bias.data(), DType::f32, 1, n)}};
  op::validate(gemm).or_throw();

  constexpr int parts = 3;
  const op::SplitK shape = op::split_k(gemm, parts, 0).value_or_throw();
  const auto workspace = std::make_unique<std::byte[]>(static_cast<std::size_t>(shape.workspace_bytes()));
  const auto address = reinterpret_cast<std::uint64_t>(workspace.get());
  const op::SplitK split = op::split_k(gemm, parts, address).value_or_throw();

  engine::Engine engine;
  for (const op::Gemm& partial : split.gemms) engine.run(partial);  // a batch, and the shorter last part
  engine.run(split.reduction);

  std::printf("%lld parts of %lld: D[0,0] = %g\n", static_cast<long long>(split.reduction.count()),
              static_cast<long long>(split.k_part), d[0]);
  return d[0] == 0.5F * k - 100.0F && d[m * n - 1] == d[0] ? 0 : 1;
}
