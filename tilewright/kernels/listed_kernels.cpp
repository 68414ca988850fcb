#include "tilewright/kernels/listed_kernels.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace tilewright::kernels {
namespace {

struct Types {
  DType a, b, accumulator, d;
  op::MathOperation math = op::MathOperation::multiply_add;
};

std::vector<Types> combine(std::initializer_list<DType> operands, std::initializer_list<DType> accumulators,
                           std::initializer_list<DType> outputs, std::initializer_list<op::MathOperation> maths) {
  std::vector<Types> all;
  for (const DType a : operands)
    for (const DType b : operands)
      for (const DType accumulator : accumulators)
        for (const DType d : outputs)
          for (const op::MathOperation math : maths) all.push_back({a, b, accumulator, d, math});
  return all;
}

std::vector<Types> make_types() {
  using enum DType;
  using enum op::MathOperation;
  const std::array kinds{
      combine({f64}, {f64}, {f64}, {multiply_add}),
      combine({f32}, {f32}, {f32},
              {multiply_add, multiply_add_tf32, multiply_add_fast_f16, multiply_add_fast_bf16, multiply_add_fast_f32}),
      combine({f16}, {f32}, {f16, f32}, {multiply_add}),
      combine({f16}, {f16}, {f16}, {multiply_add}),
      combine({bf16}, {f32}, {bf16, f32}, {multiply_add}),
      combine({e4m3, e5m2}, {f32}, {bf16, f16, f32, e4m3}, {multiply_add, multiply_add_fast_accumulate}),
      combine({s8, u8}, {s32}, {s32, s8, f32}, {multiply_add}),
  };
  std::vector<Types> all;
  for (const std::vector<Types>& kind : kinds) all.insert(all.end(), kind.begin(), kind.end());
  return all;
}

constexpr std::array<std::array<std::int64_t, 3>, 5> kExtents{
    {{8192, 8192, 8192}, {1024, 1024, 1024}, {256, 256, 8192}, {16, 8192, 8192}, {8192, 16, 8192}}};
constexpr std::size_t kLayouts = 8;

}  // namespace

std::size_t listed_extents() { return kExtents.size(); }

std::optional<op::Gemm> listed_problem(std::size_t index) {
  static const std::vector<Types> types = make_types();
  const auto [m, n, k] = kExtents[index % kExtents.size()];
  const std::size_t layouts = index / kExtents.size() % kLayouts;
  const std::size_t kind = index / (kExtents.size() * kLayouts);
  if (kind >= types.size()) return std::nullopt;
  const auto layout = [&](int bit) {
    return (layouts >> bit & 1U) != 0 ? op::MatrixLayout::column_major : op::MatrixLayout::row_major;
  };
  const Types& type = types[kind];
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0}, type.a, m, k, layout(2));
  gemm.b = op::matrix(std::uint64_t{0}, type.b, k, n, layout(1));
  gemm.d = op::matrix(std::uint64_t{0}, type.d, m, n, layout(0));
  gemm.accumulator = type.accumulator;
  gemm.math = type.math;
  gemm.epilogue = op::linear_combination(op::default_compute(type.accumulator, type.d));
  return gemm;
}

registry::KernelPtr ListedKernels::next() {
  while (true) {
    while (!kernels_.empty()) {
      registry::KernelPtr kernel = std::move(kernels_.back());
      kernels_.pop_back();
      if (seen_.insert(kernel->name()).second) return kernel;
    }
    if (problem_ % listed_extents() == 0) seen_.clear();
    const std::optional<op::Gemm> problem = listed_problem(problem_++);
    if (!problem) return nullptr;
    registry::Discovery found;
    provider_.discover(*problem, target_, found);
    kernels_ = std::move(found.kernels);
    std::ranges::reverse(kernels_);
  }
}

}  // namespace tilewright::kernels
