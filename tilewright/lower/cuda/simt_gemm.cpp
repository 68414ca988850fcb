#include "tilewright/lower/cuda/simt_gemm.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_operand(SourceWriter& out, char role, const plan::PanelOperand& operand, DType stored, int tile_mn,
                   int tile_k) {
  out.line("struct Operand{} {{", role).indent();
  out.line("using Element = {};", cuda_name(operand.element));
  out.line("using Stored = {};", cuda_name(stored));
  out.line("static constexpr bool kIsKMajor = {}, kIsAsync = {};", operand.is_k_major, operand.is_async);
  out.line("static constexpr int kTileMn = {}, kTileK = {};", tile_mn, tile_k);
  out.line("static constexpr int kLineElements = {}, kVector = {};", operand.line_elements, operand.vector);
  out.dedent().line("}};");
}

}  // namespace

std::string lower(const plan::SimtGemmPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/gemm/simt_gemm.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  write_operand(out, 'A', plan.a, plan.stored, plan.tile.m, plan.tile.k);
  write_operand(out, 'B', plan.b, plan.stored, plan.tile.n, plan.tile.k);
  out.line("using Accumulator = {};", cuda_name(plan.stored));
  out.line("static constexpr int kLanesM = {}, kLanesN = {};", plan.lanes_m, plan.lanes_n);
  out.line("static constexpr int kVectorM = {}, kVectorN = {};", plan.vector_m, plan.vector_n);
  out.line("static constexpr int kStageBytes = {}, kSharedBytes = {};", plan.stage_bytes(), plan.smem_bytes());
  write_tile_constants(out, plan);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_tile_kernel(out, "SimtGemm", symbol, plan);
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
