// A custom epilogue: bias and activation. The input of the activation is stored as well, for a backward pass.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/expression.hpp"

int main() {
  using namespace tilewright;
  constexpr int m = 128, n = 96, k = 64;
  std::vector<float> a(m * k, 0.25F), b(k * n, -0.5F), bias(n), d(m * n), before(m * n);
  for (int j = 0; j < n; ++j) bias[static_cast<std::size_t>(j)] = 0.125F * static_cast<float>(j);

  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);

  const op::Expression t = op::acc() + op::row("bias");
  gemm.epilogue = op::make_epilogue("bias_gelu", DType::f32, op::call("gelu", {t}), {{"before", t}}).value_or_throw();
  gemm.tensors = {{"bias", op::matrix(bias.data(), DType::f32, 1, n)},
                  {"before", op::matrix(before.data(), DType::f32, m, n)}};

  engine::Engine engine;
  engine.run(gemm);

  const float x = 0.25F * -0.5F * k + 0.125F * 90;  // column 90
  const float expected = 0.5F * x * (1.0F + std::erf(x / std::sqrt(2.0F)));
  std::printf("%s: D[3,90] = %g, of %g\n", engine.device()->properties().name.c_str(), d[3 * n + 90],
              before[3 * n + 90]);
  return before[3 * n + 90] == x && std::fabs(d[3 * n + 90] - expected) < 1e-5F ? 0 : 1;
}
