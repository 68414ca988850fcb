#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile) {
  const op::GemmDescription& operands = tile.operands;
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

void write_kernel(SourceWriter& out, std::string_view family, std::string_view symbol, int threads, int smem_bytes) {
  out.line("extern \"C\" __global__ void __launch_bounds__({})", threads);
  out.line("{}(const __grid_constant__ tilewright::GemmParameters<Epilogue::Parameters> parameters) {{", symbol)
      .indent();
  out.line("static_assert(tilewright::{}<Plan, Epilogue>::kSharedBytes == {});", family, smem_bytes);
  out.line("tilewright::{}<Plan, Epilogue>(parameters).run();", family);
  out.dedent().line("}}");
}

}  // namespace tilewright::lower::cuda
