#include "tilewright/lower/cuda/depthwise_wgrad.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::DepthwiseWgradPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/conv/depthwise_wgrad.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  out.line("using Gradient = {};", cuda_name(plan.operands.a.element));
  out.line("using Image = {};", cuda_name(plan.operands.b.element));
  out.line("using Accumulator = {};", cuda_name(plan.accumulator));
  out.line("using ElementC = {};", cuda_name(plan.operands.c.element));
  out.line("using ElementD = {};", cuda_name(plan.operands.d.element));
  out.line("using Matrix = {};", matrix_type(plan.operands.b));
  out.line("static constexpr int kVector = {}, kTaps = {}, kStep = {}, kThreads = {};", plan.vector, plan.taps,
           plan.step, plan.threads);
  out.line("static constexpr int kCounters = {}, kPartsFrom = {};", plan::kReductionCountersFrom,
           plan::kWorkspaceCounterBytes);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_kernel(out,
               {.family = "DepthwiseWgrad",
                .symbol = symbol,
                .parameters = "tilewright::DepthwiseWgradParameters<Epilogue::Parameters, Plan::Matrix>",
                .attributes = fmt::format("__launch_bounds__({})", plan.threads)},
               plan::parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
