#include "tilewright/lower/cuda/stem_conv.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::StemConvPlan& plan, std::string_view symbol) {
  constexpr auto kSums = layout::IndexStyle::sums;
  constexpr std::string_view kOffset = "tilewright::uint32_t";
  const layout::Layout filters = plan::filter_layout(plan), fragments = plan::filter_fragments(plan);
  SourceWriter out;
  out.line("#include \"tilewright/conv/stem_conv.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  out.line("using Element = {};", cuda_name(plan.operands.a.element));
  out.line("static constexpr int kWarps = {}, kPositions = {}, kWarpTiles = {};", plan.warps_m, plan.positions(),
           plan.warp_tiles);
  out.line("static constexpr int kTaps = {}, kRowK = {}, kStep = {}, kLine = {}, kSteps = {};", plan.taps(), plan.row_k,
           plan.step, plan.line(), plan.steps());
  out.line("static constexpr int kTileM = {}, kTileN = {}, kSplitK = 1, kReductionCounters = {};", plan.tile.m,
           plan.tile.n, plan::kReductionCountersFrom);
  out.line("static constexpr int kFilterBytes = {};", plan.filter_bytes());
  out.line("// (filter, element of K) -> byte: {}", layout::to_string(filters));
  write_index_function(out, kOffset, "filter_place", {"filter", "k"},
                       layout::index_code(filters, {"filter", "k"}, kSums));
  out.line("// (lane, pair of instructions, step) -> byte: {}", layout::to_string(fragments));
  write_index_function(out, kOffset, "fragment_place", {"lane"},
                       layout::index_code(fragments.mode(0), {"lane"}, kSums));
  out.line("static constexpr int kFragmentPair = {}, kFragmentStep = {};", fragments.mode(1).stride().value(),
           fragments.mode(2).stride().value());
  write_outputs(out, plan.operands);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_kernel(out,
               {.family = "StemConv",
                .symbol = symbol,
                .parameters = "tilewright::GemmParameters<Epilogue::Parameters, tilewright::NoGroups, " +
                              matrix_type(plan.operands.a) + ">",
                .attributes = fmt::format("__launch_bounds__({}, {})", plan.threads(), plan.ctas_per_sm())},
               plan::gemm_parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
