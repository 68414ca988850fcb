// A user-defined operation that is not a GEMM, with a kernel and a provider: a five-point stencil, out = weight * (sum
// of the four neighbors) + (1 - 4 * weight) * x in the interior, and x on the border.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::stencil {

class Stencil final : public op::Operation {
 public:
  Stencil()
      : Operation(
            "stencil",
            {{"x", {"h", "w"}, op::Access::read, {DType::f32}}, {"out", {"h", "w"}, op::Access::write, {DType::f32}}},
            {{"weight", 0.25}}) {}

  Support check(const op::Custom& problem) const override {
    if (problem.extent("h") >= 2 && problem.extent("w") >= 2) return {};
    return refuse("a stencil needs 2 x 2 elements, got {} x {}", problem.extent("h"), problem.extent("w"))
        .as(RefusalCode::shape);
  }
  bool has_reference() const override { return true; }
  void reference(const op::Custom& problem) const override {
    const op::Tensor& x = problem.tensor("x");
    const std::int64_t height = problem.extent("h"), width = problem.extent("w");
    const double weight = problem.scalar("weight");
    for (std::int64_t row = 0; row < height; ++row) {
      for (std::int64_t column = 0; column < width; ++column) {
        const double own = op::load(x, row, column);
        const bool is_border = row == 0 || column == 0 || row == height - 1 || column == width - 1;
        const auto neighbour = [&](int down, int right) { return op::load(x, row + down, column + right); };
        const double result = is_border
                                  ? own
                                  : weight * (neighbour(-1, 0) + neighbour(1, 0) + neighbour(0, -1) + neighbour(0, 1)) +
                                        (1.0 - 4.0 * weight) * own;
        op::store(problem.tensor("out"), row, column, result);
      }
    }
  }
  double tolerance() const override { return 1e-5; }
};

/// One thread per element. `defect` is added to every result; 0 makes a correct kernel.
class StencilKernel final : public registry::Kernel {
 public:
  StencilKernel(registry::KernelMetadata metadata, float defect) : Kernel(std::move(metadata)), defect_(defect) {}

 protected:
  compile::Source do_source() const override {
    compile::Source source;
    source.text = "extern \"C\" __global__ void " + name() + R"((const float* x, float* out, long long x_step,
    long long out_step, int height, int width, float weight) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= width) return;
  const float* own = x + row * x_step + column;
  const bool is_border = row == 0 || column == 0 || row == height - 1 || column == width - 1;
  float result = *own;
  if (!is_border) {
    result = weight * (own[-x_step] + own[x_step] + own[-1] + own[1]) + (1.0f - 4.0f * weight) * *own;
  }
  out[row * out_step + column] = result + )" +
                  fmt::format("{:.1f}f;\n}}\n", defect_);
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& stencil = std::get<op::Custom>(problem);
    const auto height = static_cast<std::int32_t>(stencil.extent("h")),
               width = static_cast<std::int32_t>(stencil.extent("w"));
    plan::Launch launch;
    launch.block = {64, 1, 1};
    launch.grid = {static_cast<std::uint32_t>((width + 63) / 64), static_cast<std::uint32_t>(height), 1};
    for (const char* operand : {"x", "out"}) launch.append_parameter(stencil.tensor(operand).address);
    for (const char* operand : {"x", "out"}) launch.append_parameter(stencil.tensor(operand).stride[0]);
    launch.append_parameter(height);
    launch.append_parameter(width);
    launch.append_parameter(static_cast<float>(stencil.scalar("weight")));
    return launch;
  }

 private:
  float defect_;
};

/// Offers one kernel for each defect, in that order.
class StencilProvider final : public registry::Provider {
 public:
  explicit StencilProvider(std::vector<float> defects = {0.0F}) : defects_(std::move(defects)) {}

  std::string family() const override { return "stencils"; }
  std::vector<registry::KernelPtr> generate(const Target& target) const override {
    const auto operand = [](const char* name, op::Access access) {
      return op::OperandSignature{name, access, DType::f32, 2, 1, 1};
    };
    std::vector<registry::KernelPtr> kernels;
    for (std::size_t i = 0; i < defects_.size(); ++i) {
      registry::KernelMetadata metadata;
      metadata.family = family();
      metadata.name = fmt::format("stencil_{}", i);
      metadata.signature = {"stencil", {operand("x", op::Access::read), operand("out", op::Access::write)}};
      plan::tiling(metadata.design).target = target;
      kernels.push_back(std::make_shared<StencilKernel>(std::move(metadata), defects_[i]));
    }
    return kernels;
  }

 private:
  std::vector<float> defects_;
};

}  // namespace tilewright::stencil
