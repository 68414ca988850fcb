#include "tilewright/lower/cuda/gemm.hpp"

#include "tilewright/layout/index_code.hpp"

namespace tilewright::lower::cuda {

void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile) {
  const op::GemmSignature& operands = tile.operands;
  out.line("using ElementC = {};", cuda_name(operands.c.element));
  out.line("using ElementD = {};", cuda_name(operands.d.element));
  out.line("static constexpr int kAlignmentC = {};", operands.c.alignment);
  out.line("static constexpr int kAlignmentD = {};", operands.d.alignment);
  out.line("static constexpr bool kCIsRowMajor = {};", operands.c.layout == op::MatrixLayout::row_major);
  out.line("static constexpr int kTileM = {}, kTileN = {}, kTileK = {};", tile.tile.m, tile.tile.n, tile.tile.k);
  out.line("static constexpr int kWarpsM = {}, kWarpsN = {};", tile.warps_m, tile.warps_n);
  out.line("static constexpr int kStages = {};", tile.stages);
  out.line("using Raster = tilewright::Raster<{}, {}>;", tile.raster.width, tile.raster.groups_rows);
  out.line("static constexpr int kReductionCounters = {};", plan::kReductionCountersFrom);
}

void write_accumulator_tile(SourceWriter& out, const plan::AccumulatorTile& tile) {
  const std::vector<std::string> code =
      layout::coordinate_code(tile.coordinates.mode(0), {"lane", "warp"}, layout::IndexStyle::sums);
  out.line("struct AccumulatorTile {{  // (thread, value) -> coordinate: {}", layout::to_string(tile.coordinates))
      .indent();
  out.line("static constexpr int kLaneRows = {}, kOtherRow = {};", tile.lane_rows, tile.other_row);
  for (const auto& [name, text] : {std::pair{"row", code[0]}, {"column", code[1]}}) {
    out.line("static __device__ constexpr int {}(int thread) {{", name).indent();
    out.line("[[maybe_unused]] const int lane = thread % 32, warp = thread / 32;");
    out.line("return {};", text);
    out.dedent().line("}}");
  }
  out.dedent().line("}};");
}

void write_parameter_checks(SourceWriter& out, const plan::ParameterLayout& layout) {
  for (const plan::ParameterField& field : layout.fields)
    out.line("static_assert(TILEWRIGHT_OFFSET_OF(Parameters, {}) == {});", field.name, field.offset);
  out.line("static_assert(sizeof(Parameters) == {});", layout.size);
}

void write_kernel(SourceWriter& out, const KernelEntry& entry, const plan::ParameterLayout& layout) {
  out.line("using Parameters = {};", entry.parameters);
  write_parameter_checks(out, layout);
  out.blank();
  out.line("extern \"C\" __global__ void {}", entry.attributes);
  out.line("{}(const __grid_constant__ Parameters parameters) {{", entry.symbol).indent();
  out.line("tilewright::{}<Plan, Epilogue>(parameters).run();", entry.family);
  out.dedent().line("}}");
}

void write_tile_kernel(SourceWriter& out, std::string_view family, std::string_view symbol,
                       const plan::GemmTile& tile) {
  write_kernel(out,
               {.family = family,
                .symbol = symbol,
                .parameters = "tilewright::GemmParameters<Epilogue::Parameters>",
                .attributes = fmt::format("__launch_bounds__({})", tile.threads())},
               plan::gemm_parameter_layout(tile));
}

}  // namespace tilewright::lower::cuda
