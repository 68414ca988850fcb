// A kernel that is defined outside the library: a product of f64 matrices with one thread per element of D. It is not
// fast, but complete: metadata, source text, launch, and the list of configurations.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/registry/provider.hpp"

namespace examples {

using namespace tilewright;

/// D = A * B for batches of f64 matrices of any size, with any strides.
class F64GemmKernel final : public registry::Kernel {
 public:
  using Kernel::Kernel;

 protected:
  Support do_supports(const op::Problem& problem) const override {
    const op::GemmView gemm = op::view(problem).value_or_throw();
    for (const op::Tensor* operand : {&gemm.a.tensor, &gemm.b.tensor, &gemm.d.tensor}) {
      if (operand->shape.rank() != 3) return refuse("All operands must be rank 3.").as(RefusalCode::shape);
    }
    return gemm.check_strided(metadata().family);
  }

  compile::Source do_source() const override {
    compile::Source source;
    source.text = "#define F64_GEMM " + name() + R"(
struct Strides { long long batch, row, column; };

extern "C" __global__ void F64_GEMM(const double* a, const double* b, double* d, int m, int n, int k,
                                    Strides at_a, Strides at_b, Strides at_d) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  double sum = 0.0;
  for (int i = 0; i < k; ++i) {
    sum += a[blockIdx.z * at_a.batch + row * at_a.row + i * at_a.column] *
           b[blockIdx.z * at_b.batch + i * at_b.row + column * at_b.column];
  }
  d[blockIdx.z * at_d.batch + row * at_d.row + column * at_d.column] = sum;
}
)";
    return source;
  }

  plan::Launch do_launch(const op::Problem& problem) const override {
    const op::GemmView gemm = op::view(problem).value_or_throw();
    struct Strides {
      std::int64_t batch, row, column;
    };
    const auto ceil_div = [](std::int64_t x, int y) { return static_cast<std::uint32_t>((x + y - 1) / y); };
    const auto [tile_m, tile_n, tile_k] = plan::tiling(metadata().design).tile;
    plan::Launch launch;
    launch.grid = {ceil_div(gemm.m(), tile_m), ceil_div(gemm.n(), tile_n), static_cast<std::uint32_t>(gemm.batch())};
    launch.block = {static_cast<std::uint32_t>(tile_m), static_cast<std::uint32_t>(tile_n), 1};
    for (const op::Tensor* operand : {&gemm.a.tensor, &gemm.b.tensor, &gemm.d.tensor})
      launch.append_parameter(operand->address);
    for (const std::int64_t extent : {gemm.m(), gemm.n(), gemm.k()})
      launch.append_parameter(static_cast<std::int32_t>(extent));
    for (const op::Tensor* operand : {&gemm.a.tensor, &gemm.b.tensor, &gemm.d.tensor})
      launch.append_parameter(Strides{operand->batch_stride(), operand->row_stride(), operand->column_stride()});
    return launch;
  }
};

class F64GemmProvider final : public registry::Provider {
 public:
  std::string family() const override { return "F64GemmKernel"; }

  std::vector<registry::KernelPtr> generate(const Target& target) const override {
    std::vector<registry::KernelPtr> kernels;
    for (const int tile : {32, 16}) {
      for (const op::MatrixLayout a : kLayouts) {
        for (const op::MatrixLayout b : kLayouts) {
          for (const op::MatrixLayout d : kLayouts) {
            registry::KernelMetadata metadata;
            metadata.family = family();
            metadata.name = fmt::format("F64GemmKernel_tile{}x{}_{}{}{}", tile, tile, letter(a), letter(b), letter(d));
            metadata.signature = op::GemmSignature{.a = {DType::f64, a},
                                                   .b = {DType::f64, b},
                                                   .c = {DType::f64, d},
                                                   .d = {DType::f64, d},
                                                   .accumulator = DType::f64,
                                                   .epilogue = op::accumulator_alone(DType::f64),
                                                   .has_c = false};
            plan::FlatDesign design;
            design.target = target;
            design.tile = {tile, tile, 1};
            metadata.design = design;
            kernels.push_back(std::make_shared<F64GemmKernel>(std::move(metadata)));
          }
        }
      }
    }
    return kernels;
  }

 private:
  static constexpr std::array kLayouts{op::MatrixLayout::row_major, op::MatrixLayout::column_major};
  static char letter(op::MatrixLayout layout) { return layout == op::MatrixLayout::row_major ? 't' : 'n'; }
};

}  // namespace examples
