#include "tilewright/lower/cuda/skinny_gemm.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_operand(SourceWriter& out, std::string_view name, const plan::LineOperand& operand, bool is_pointer_array) {
  out.line("struct {} {{", name).indent();
  out.line("using Element = {};", cuda_name(operand.element));
  out.line("static constexpr bool kIsKMajor = {}, kIsPointerArray = {};", operand.is_k_major, is_pointer_array);
  out.line("static constexpr int kVector = {};", operand.vector);
  out.dedent().line("}};");
}

}  // namespace

std::string lower(const plan::SkinnyGemmPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/gemm/skinny_gemm.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  const bool a = plan.operands.a.is_pointer_array, b = plan.operands.b.is_pointer_array;
  write_operand(out, "Lines", plan.lines, plan.rows_are_few ? b : a);
  write_operand(out, "Few", plan.few_lines, plan.rows_are_few ? a : b);
  out.line("using Accumulator = {};", cuda_name(plan.stored));
  out.line("static constexpr bool kRowsAreFew = {};", plan.rows_are_few);
  out.line("static constexpr int kFew = {}, kThreadLines = {}, kTileLines = {}, kLaneGroups = {};", plan.few,
           plan.thread_lines, plan.tile_lines(), plan.lane_groups);
  out.line("static constexpr int kWarpsLines = {}, kWarpsK = {}, kClusterK = {};", plan.warps_lines, plan.warps_k,
           plan.cluster_k);
  out.line("static constexpr int kChunk = {}, kAhead = {}, kSharedBytes = {};", plan.chunk, plan.stages,
           plan.smem_bytes());
  out.line("static constexpr int kTileM = {}, kTileN = {}, kSplitK = 1, kReductionCounters = {};", plan.tile.m,
           plan.tile.n, plan::kReductionCountersFrom);
  write_outputs(out, plan.operands);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  std::string attributes = fmt::format("__launch_bounds__({})", plan.threads());
  if (plan.cluster_k > 1) attributes = fmt::format("__cluster_dims__({}) {}", plan.cluster_k, attributes);
  write_kernel(out,
               {.family = "SkinnyGemm",
                .symbol = symbol,
                .parameters = "tilewright::GemmParameters<Epilogue::Parameters>",
                .attributes = attributes},
               plan::gemm_parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
