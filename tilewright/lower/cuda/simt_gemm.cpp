#include "tilewright/lower/cuda/simt_gemm.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_operand(SourceWriter& out, char role, const plan::SimtGemmPlan& plan) {
  const bool is_a = role == 'A';
  const plan::PanelOperand& operand = is_a ? plan.a : plan.b;
  const layout::Layout smem = plan::smem_layout(plan, is_a);
  out.line("struct Operand{} {{  // {}", role, layout::to_string(smem)).indent();
  out.line("using Element = {};", cuda_name(operand.element));
  out.line("using Matrix = {};", matrix_type(is_a ? plan.operands.a : plan.operands.b));
  out.line("using Stored = {};", cuda_name(plan.stored));
  out.line("static constexpr bool kIsKMajor = {}, kIsInterleaved = {};", operand.is_k_major, operand.is_interleaved);
  out.line("static constexpr bool kIsAsync = {}, kIsStaged = {};", operand.copy == plan::PanelCopy::async,
           operand.copy == plan::PanelCopy::staged);
  out.line("static constexpr bool kIsPointerArray = {};", (is_a ? plan.operands.a : plan.operands.b).is_pointer_array);
  out.line("static constexpr int kTileK = {}, kVector = {};", plan.tile.k, operand.vector);
  out.line("static constexpr int kTileElements = {}, kLineElements = {}, kElementStep = {};",
           operand.line_elements * plan.tile.k, operand.line_elements, smem(0, 1));
  write_tile_copy(out, plan::tile_copy(plan, is_a));
  out.dedent().line("}};");
}

void write_thread_tile(SourceWriter& out, const plan::SimtGemmPlan& plan) {
  constexpr auto kSums = layout::IndexStyle::sums;
  const plan::SimtThreadTile tile = plan::thread_tile(plan);
  const layout::Layout accumulators = tile.coordinates.mode(1);
  const std::vector<std::string> thread = pair_code(tile.coordinates.mode(0), {"lane", "warp"});
  out.line("struct ThreadTile {{  // {}", layout::to_string(tile.coordinates)).indent();
  out.line("static constexpr int kM = {}, kN = {};", plan.thread_m(), plan.thread_n());
  out.line("static constexpr int kVectorM = {}, kVectorN = {};", plan.vector_m, plan.vector_n);
  write_thread_function(out, "int", "row", thread[0]);
  write_thread_function(out, "int", "column", thread[1]);
  write_index_function(out, "int", "row_step", {"i"}, pair_code(accumulators.mode(0), {"i"})[0]);
  write_index_function(out, "int", "column_step", {"j"}, pair_code(accumulators.mode(1), {"j"})[1]);
  out.line("static constexpr int kBandRows = {};", layout::size(tile.band));
  write_thread_function(out, "int", "band_row", layout::index_code(tile.band_row, {"lane", "warp"}, kSums));
  write_index_function(out, "int", "row_of_band", {"row"}, layout::index_code(tile.band, {"row"}, kSums));
  out.dedent().line("}};");
}

}  // namespace

std::string lower(const plan::SimtGemmPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/gemm/simt_gemm.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  write_operand(out, 'A', plan);
  write_operand(out, 'B', plan);
  out.line("using Accumulator = {};", cuda_name(plan.stored));
  write_thread_tile(out, plan);
  out.line("static constexpr int kCopyPhases = {}, kCopyLag = {};", plan.copy_phases, plan.copy_lag);
  out.line("static constexpr bool kStagesRows = {}, kRealignsRows = {};", plan.stages_rows(), plan.realigns_rows());
  out.line("static constexpr int kBandLine = {}, kBandBytes = {};", plan.band_line(), plan.band_bytes());
  out.line("static constexpr int kStageBytes = {}, kSharedBytes = {};", plan.stage_bytes(), plan.smem_bytes());
  write_tile_constants(out, plan);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  // The CTAs of a split-K kernel wait for each other, so those that the plan has assumed must be resident. Other
  // kernels need as many to hide latencies: one register above 128 would halve the CTAs of 256 threads.
  write_tile_kernel(out, "SimtGemm", symbol, plan, plan::residence_of(plan).ctas_per_sm);
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
