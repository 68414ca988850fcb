// The caller chooses the kernel: SIMT f32, CTA tile 128x128x8, 4 stages, 2x4x1 warps, and the epilogue
// alpha * A * B + beta * C. PyCUTLASS describes the same kernel by a GemmOperationUniversal.
#include <fmt/format.h>

#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

using namespace tilewright;

int main() {
  constexpr int m = 512, n = 256, k = 128;
  std::vector<float> a(m * k), b(k * n), c(m * n), d(m * n);

  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), DType::f32, m, k);
  gemm.b = op::matrix(b.data(), DType::f32, k, n);
  gemm.c = op::matrix(c.data(), DType::f32, m, n);
  gemm.d = op::matrix(d.data(), DType::f32, m, n);
  gemm.alpha = 1.0;
  gemm.beta = 0.0;
  op::fill_integers(gemm.a, -8, 7, 1);  // integers: every order of addition gives the same bits
  op::fill_integers(gemm.b, -8, 7, 2);
  op::fill_integers(gemm.c, -8, 7, 3);

  engine::Engine engine;
  plan::SimtGemmDesign design;  // multiply-adds on CUDA cores
  design.target = engine.device()->properties().target;
  design.tile = {128, 128, 8};
  design.stages = 4;
  design.warps_m = 2;
  design.warps_n = 4;
  design.raster.width = 1;  // PyCUTLASS: IdentitySwizzle1

  op::GemmSignature operation;
  operation.a = operation.b = operation.c = operation.d = {DType::f32, op::MatrixLayout::row_major, 1};
  operation.epilogue = op::linear_combination();

  const registry::KernelPtr kernel = engine.make_kernel(operation, design);
  engine.run(gemm, kernel);

  const op::Comparison comparison = op::compare(gemm);
  fmt::print("{}\non {}\n{}\n", kernel->name(), engine.device()->properties().name, op::to_string(comparison));
  return comparison.is_exact() ? 0 : 1;
}
