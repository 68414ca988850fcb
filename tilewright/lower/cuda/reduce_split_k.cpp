#include "tilewright/lower/cuda/reduce_split_k.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_plan(SourceWriter& out, const plan::ReduceSplitKPlan& plan) {
  const op::ReduceSplitKSignature& operands = plan.operands;
  const layout::Layout coordinates = plan::thread_coordinates(plan);
  const std::vector<std::string> thread = pair_code(coordinates, {"thread"});
  out.line("struct Plan {{").indent();
  out.line("using ElementParts = {};", cuda_name(operands.parts.element));
  out.line("using Accumulator = {};", cuda_name(operands.accumulator));
  out.line("static constexpr bool kPartsAreRowMajor = {};", operands.parts.layout == op::MatrixLayout::row_major);
  write_outputs(out, op::outputs_signature(operands));
  out.line("static constexpr int kTileM = {}, kTileN = {};", plan.tile.m, plan.tile.n);
  out.line("static constexpr int kThreadsM = {}, kThreadsN = {};  // thread -> (row, column): {}", plan.threads_m,
           plan.threads_n, layout::to_string(coordinates));
  write_index_function(out, "int", "row", {"thread"}, thread[0]);
  write_index_function(out, "int", "column", {"thread"}, thread[1]);
  out.line("static constexpr int kVector = {}, kPartVector = {}, kPartsAtOnce = {};", plan.vector, plan.part_vector,
           plan.tile.k);
  out.line("static constexpr int kSharedBytes = {}, kSplitK = 1, kReductionCounters = {};", plan.smem_bytes(),
           plan::kReductionCountersFrom);
  out.dedent().line("}};");
}

}  // namespace

std::string lower(const plan::ReduceSplitKPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/reduction/reduce_split_k.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  write_plan(out, plan);
  out.blank();
  write_epilogue(out, op::outputs_signature(plan.operands));
  out.blank();
  write_kernel(out,
               {.family = "ReduceSplitK",
                .symbol = symbol,
                .parameters = "tilewright::ReduceSplitKParameters<Epilogue::Parameters>",
                .attributes = fmt::format("__launch_bounds__({})", plan.threads())},
               plan::parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
