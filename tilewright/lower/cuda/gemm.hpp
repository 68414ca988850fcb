// What the texts of all GEMM families share: the output's constants and the kernel's entry.
#pragma once

#include <string_view>

#include "tilewright/base/text.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::lower::cuda {

/// ElementC, ElementD, kAlignmentC, kAlignmentD, kCIsRowMajor, the tile, the warps, the stages, the raster,
/// kReductionCounters.
void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile);

/// extern "C" kernel `symbol` running `family`<Plan, Epilogue>, whose shared memory must be what the plan says.
void write_kernel(SourceWriter& out, std::string_view family, std::string_view symbol, int threads, int smem_bytes);

}  // namespace tilewright::lower::cuda
