#include "tilewright/lower/cuda/depthwise_conv.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::DepthwiseConvPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/conv/depthwise_conv.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  out.line("using Element = {};", cuda_name(plan.operands.a.element));
  out.line("using Accumulator = {};", cuda_name(plan.accumulator));
  out.line("using ElementC = {};", cuda_name(plan.operands.c.element));
  out.line("using ElementD = {};", cuda_name(plan.operands.d.element));
  out.line("using Matrix = {};", matrix_type(plan.operands.a));
  out.line("static constexpr int kVector = {}, kPixels = {}, kChannels = {}, kThreads = {};", plan.vector, plan.pixels,
           plan.channels, plan.threads);
  out.line("static constexpr int kTaps = {}, kStep = {}, kRowsAhead = {};", plan.taps, plan.step, plan.rows_ahead);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_kernel(out,
               {.family = "DepthwiseConv",
                .symbol = symbol,
                .parameters = "tilewright::DepthwiseConvParameters<Epilogue::Parameters, Plan::Matrix>",
                .attributes = fmt::format("__launch_bounds__({}, {})", plan.threads, plan.min_ctas())},
               plan::parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
