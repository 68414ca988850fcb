#include "tilewright/lower/cuda/group_wgrad.hpp"

#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::GroupWgradPlan& plan, std::string_view symbol) {
  const layout::Layout fragments = plan::gradient_fragments(plan);
  SourceWriter out;
  out.line("#include \"tilewright/conv/group_wgrad.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  out.line("using Element = {};", cuda_name(plan.operands.a.element));
  out.line("using ElementC = {};", cuda_name(plan.operands.c.element));
  out.line("using ElementD = {};", cuda_name(plan.operands.d.element));
  out.line("static constexpr int kRows = {}, kPositions = {}, kGroups = {}, kChannels = {}, kFilters = {};", plan.rows,
           plan.positions, plan.groups, plan.channels, plan.filters);
  out.line("static constexpr int kTaps = {}, kTapsOfWarp = {}, kUnits = {}, kTeams = {};", plan.taps,
           plan.taps_of_warp(), plan.units, plan.teams);
  out.line("static constexpr int kPixel = {}, kGradientPixel = {};", plan.pixel_bytes(), plan.gradient_pixel_bytes());
  out.line("// (lane, tile of filters, step) -> byte: {}", layout::to_string(fragments));
  write_index_function(out, "tilewright::uint32_t", "fragment_place", {"lane"},
                       layout::index_code(fragments.mode(0), {"lane"}, layout::IndexStyle::sums));
  out.line("static constexpr int kFragmentTile = {}, kFragmentStep = {};", fragments.mode(1).stride().value(),
           fragments.mode(2).stride().value());
  out.line("static constexpr int kBarrier = {}, kPartsFrom = {};",
           plan::kReductionCountersFrom + plan::kReductionCounterBytes, plan::kWorkspaceCounterBytes);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands);
  out.blank();
  write_kernel(out,
               {.family = "GroupWgrad",
                .symbol = symbol,
                .parameters = "tilewright::WgradParameters<Epilogue::Parameters>",
                .attributes = fmt::format("__launch_bounds__({}, {})", plan.threads(), plan.ctas_per_sm())},
               plan::parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
