#include "tilewright/lower/cuda/group_conv.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::GroupConvPlan& plan, std::string_view symbol) {
  constexpr auto kSums = layout::IndexStyle::sums;
  constexpr std::string_view kOffset = "tilewright::uint32_t";
  const layout::Layout lines = plan::filter_lines(plan), fragments = plan::filter_fragments(plan);
  SourceWriter out;
  out.line("#include \"tilewright/conv/group_conv.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  out.line("using Element = {};", cuda_name(plan.operands.a.element));
  out.line("using MatrixB = {};", matrix_type(plan.operands.b));
  out.line("static constexpr int kWarps = {}, kRows = {}, kPositions = {}, kWarpTiles = {};", plan.warps_m, plan.rows,
           plan.positions(), plan.warp_tiles);
  out.line("static constexpr int kGroups = {}, kChannels = {}, kOctets = {}, kSteps = {};", plan.groups_of_cta,
           plan.channels(), plan.octets(), plan.steps());
  out.line("static constexpr int kTileM = {}, kTileN = {}, kSplitK = 1, kReductionCounters = {};", plan.tile.m,
           plan.tile.n, plan::kReductionCountersFrom);
  out.line("static constexpr int kPixel = {}, kFilterLine = {}, kLaneColumns = {};", plan.pixel_bytes(),
           plan.filter_line_bytes(), plan.lane_columns());
  out.line("// filter -> byte: {}", layout::to_string(lines));
  write_index_function(out, kOffset, "filter_place", {"filter"}, layout::index_code(lines, {"filter"}, kSums));
  out.line("// (lane, pair of instructions) -> byte: {}", layout::to_string(fragments));
  write_index_function(out, kOffset, "fragment_place", {"lane"},
                       layout::index_code(fragments.mode(0), {"lane"}, kSums));
  out.line("static constexpr int kFragmentPair = {};", fragments.mode(1).stride().value());
  write_outputs(out, plan.operands);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_kernel(out,
               {.family = "GroupConv",
                .symbol = symbol,
                .parameters = "tilewright::GemmParameters<Epilogue::Parameters, tilewright::NoGroups, "
                              "tilewright::Im2colMatrix<false>, Plan::MatrixB>",
                .attributes = fmt::format("__launch_bounds__({}, {})", plan.threads(), plan.ctas_per_sm())},
               plan::gemm_parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
