#include "tilewright/lower/cuda/sm80_gemm.hpp"

#include "tilewright/layout/index_code.hpp"
#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_fragments(SourceWriter& out, const plan::MmaFragmentLoads& loads) {
  constexpr auto kSums = layout::IndexStyle::sums;
  const layout::Layout& offset = loads.offset.layout;
  const layout::ComposedLayout steps{loads.offset.swizzle, 0, layout::take(offset, 1, 3)};
  out.line("struct Fragments {{  // ((lane, warp), load, step): {}", layout::to_string(loads.offset)).indent();
  out.line("static constexpr int kLoads = {}, kStepK = {};", loads.loads(), loads.step_k);
  write_thread_function(out, "tilewright::uint32_t", "place",
                        layout::index_code(loads.offset.mode(0), {"lane", "warp"}, kSums));
  write_index_function(out, "tilewright::uint32_t", "step_place", {"load", "step"},
                       layout::index_code(steps, {"load", "step"}, kSums));
  out.dedent().line("}};");
}

void write_operand(SourceWriter& out, char role, const plan::Sm80GemmPlan& plan) {
  const bool is_a = role == 'A';
  const plan::SmemOperand& operand = is_a ? plan.a : plan.b;
  out.line("struct Operand{} {{  // shared-memory layout: {}", role, layout::to_string(plan::smem_layout(operand)))
      .indent();
  out.line("using Element = {};", cuda_name(operand.element));
  out.line("using Matrix = {};", matrix_type(is_a ? plan.operands.a : plan.operands.b));
  out.line("static constexpr bool kIsKMajor = {}, kIsInterleaved = {}, kUsesLdmatrix = {};", operand.is_k_major,
           operand.is_interleaved, operand.uses_ldmatrix);
  out.line("static constexpr bool kIsPointerArray = {};", (is_a ? plan.operands.a : plan.operands.b).is_pointer_array);
  out.line("static constexpr int kContiguous = {}, kAlignmentBytes = {};", operand.contiguous, operand.alignment_bytes);
  out.line("static constexpr int kTileBytes = {}, kSwizzledBits = {:#x};", operand.tile_bytes(),
           layout::target_bits(operand.swizzle));
  write_tile_copy(out, plan::tile_copy(plan, operand));
  write_fragments(out, plan::fragment_loads(plan, is_a));
  out.dedent().line("}};");
}

std::string math_type(const plan::Sm80GemmPlan& plan) {
  const arch::MmaAtom& atom = *plan.atom;
  const std::string instruction = fmt::format("tilewright::ptx::Mma<{}, {}, {}, {}, {}, {}>", atom.m, atom.n, atom.k,
                                              cuda_name(atom.a), cuda_name(atom.b), cuda_name(atom.c));
  switch (plan.operands.math) {
    case op::MathOperation::multiply_add:
    case op::MathOperation::multiply_add_fast_accumulate:
      return fmt::format("tilewright::DirectMath<{}>", instruction);
    case op::MathOperation::multiply_add_tf32:
      return fmt::format("tilewright::Tf32Math<{}>", instruction);
    case op::MathOperation::multiply_add_fast_f32:
      return fmt::format("tilewright::SplitTf32Math<{}, {}>", instruction, plan.is_transposed);
    case op::MathOperation::multiply_add_fast_f16:
    case op::MathOperation::multiply_add_fast_bf16:
      return fmt::format("tilewright::FastMath<{}, {}>", instruction, cuda_name(atom.a));
  }
  TILEWRIGHT_CHECK(false, "math operation {} has no device type", static_cast<int>(plan.operands.math));
}

/// The device header that wraps the mma.sync instructions of an operand type.
std::string_view instruction_header(DType operand) {
  switch (operand) {
    case DType::f16:
    case DType::bf16:
      return "tilewright/ptx/mma_f16.cuh";
    case DType::tf32:
      return "tilewright/ptx/mma_tf32.cuh";
    case DType::s8:
    case DType::u8:
      return "tilewright/ptx/mma_s8.cuh";
    case DType::f64:
      return "tilewright/ptx/mma_f64.cuh";
    default:
      TILEWRIGHT_CHECK(false, "no device header has mma.sync of {}", name(operand));
  }
}

}  // namespace

std::string lower(const plan::Sm80GemmPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/gemm/sm80_gemm.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.line("#include \"{}\"", instruction_header(plan.atom->a));
  out.blank();
  out.line("struct Plan {{").indent();
  write_operand(out, 'A', plan);
  write_operand(out, 'B', plan);
  out.line("using Math = {};", math_type(plan));
  out.line("static constexpr bool kPromotesAccumulators = {};", plan.promotes_accumulators);
  out.line("static constexpr bool kAccumulatesInHalf = {};", plan.operands.accumulator == DType::f16);
  write_accumulator_tile(out, plan::accumulator_tile(plan));
  out.line("static constexpr int kBandLine = {};", plan.band_line());
  out.line("static constexpr bool kRealignsRows = {};", plan.realigns_rows());
  out.line("static constexpr int kStageBytes = {}, kBandBytes = {}, kSharedBytes = {};", plan.stage_bytes(),
           plan.band_bytes(), plan.smem_bytes());
  write_tile_constants(out, plan);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  // The CTAs of a split-K kernel wait for each other, so those that the plan has assumed must be resident.
  write_tile_kernel(out, "Sm80Gemm", symbol, plan, plan.split_k > 1 ? plan::residence_of(plan).ctas_per_sm : 0);
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
