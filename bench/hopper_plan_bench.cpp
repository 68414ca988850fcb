// hopper_plan_bench: the time to compute all integers of a Hopper GEMM kernel from layouts.
#include <benchmark/benchmark.h>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_tile.hpp"

namespace tilewright::arch {
namespace {

/// f16 x f16 -> f16, 128x256x64 tiles of two warpgroups, 4 stages, clusters of 2: A row-major, B row-major (MN-major in
/// shared memory), C and D row-major.
constexpr std::int64_t kM = 128;
constexpr std::int64_t kN = 256;
constexpr std::int64_t kK = 64;
constexpr int kStages = 4;
constexpr std::int64_t kProblem = 8192;

struct OperandPlan {
  layout::ComposedLayout smem;
  TmaCopy copy;
};

OperandPlan plan_operand(Major major, std::int64_t mn, std::int64_t multicast) {
  const SwizzleMode mode = widest_swizzle(major, 16, mn, kK).value_or_throw();
  OperandPlan plan;
  plan.smem = smem_tile({.major = major, .mode = mode, .element_bits = 16, .mn = mn, .k = kK}).value_or_throw();
  const layout::IntTuple stride = major == Major::k ? layout::IntTuple{kProblem, 1} : layout::IntTuple{1, kProblem};
  TmaRequest request;
  request.global = layout::Layout({kProblem, kProblem}, stride);
  request.smem = plan.smem;
  request.tile = {mn, kK};
  request.multicast = multicast;
  plan.copy = make_tma_copy(request).value_or_throw();
  return plan;
}

/// A part of C or D, kM x kK elements.
layout::ComposedLayout output_tile() {
  return smem_tile({.major = Major::k, .mode = SwizzleMode::bytes_128, .element_bits = 16, .mn = kM, .k = kK})
      .value_or_throw();
}

TmaCopy plan_output(const layout::ComposedLayout& smem, std::int64_t columns) {
  TmaRequest request;
  request.global = layout::Layout({kProblem, kProblem}, {kProblem, 1});
  request.smem = smem;
  request.tile = {kM, columns};
  return make_tma_copy(request).value_or_throw();
}

void gemm_plan(benchmark::State& state) {
  const WgmmaAtom& atom = *find_wgmma_atom(DType::f16, DType::f16, DType::f32, OperandSource::shared_memory);
  for (auto _ : state) {
    const OperandPlan a = plan_operand(Major::k, kM, 1);
    const OperandPlan b = plan_operand(Major::mn, kN, 2);
    const WgmmaTile tile =
        wgmma_tile(atom, kN, {Major::k, smem_stages(a.smem, kStages)}, {Major::mn, smem_stages(b.smem, kStages)})
            .value_or_throw();
    const layout::ComposedLayout output = output_tile();
    const TmaCopy c = plan_output(output, kK);
    const TmaCopy d = plan_output(output, kK);
    benchmark::DoNotOptimize(tile);
    benchmark::DoNotOptimize(c);
    benchmark::DoNotOptimize(d);
  }
}
BENCHMARK(gemm_plan)->Unit(benchmark::kMicrosecond);

/// The steps of a plan separately, to see where the time goes.
void tma_plan(benchmark::State& state) {
  const layout::ComposedLayout smem = output_tile();
  for (auto _ : state) benchmark::DoNotOptimize(plan_output(smem, kK));
}
BENCHMARK(tma_plan)->Unit(benchmark::kMicrosecond);

/// The work of a launch: the tensor maps of a new problem for an existing plan.
void tensor_map_of_another_tensor(benchmark::State& state) {
  const OperandPlan plan = plan_operand(Major::k, kM, 1);
  const layout::Layout global({4096, 4096}, {4096, 1});
  for (auto _ : state) benchmark::DoNotOptimize(tensor_map_for(plan.copy, global, 0));
}
BENCHMARK(tensor_map_of_another_tensor)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright::arch
