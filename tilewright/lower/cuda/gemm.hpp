// What the texts of all GEMM families share: the output's constants and the kernel's entry.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/text.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::lower::cuda {

/// ElementC, ElementD, kAlignmentC, kAlignmentD, kCIsRowMajor, the tile, the warps, the stages, the raster,
/// kReductionCounters.
void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile);

/// `struct AccumulatorTile`: where a thread's accumulators lie.
void write_accumulator_tile(SourceWriter& out, const plan::AccumulatorTile& tile);

/// Asserts that the fields of `struct Parameters` lie where the host writes them, and the struct's size.
void write_parameter_checks(SourceWriter& out, const plan::ParameterLayout& layout);

/// The entry of a kernel.
struct KernelEntry {
  std::string_view family;  // the device class that runs it: "Sm80Gemm"
  std::string_view symbol;
  std::string_view parameters;  // the struct that `Parameters` names: "tilewright::GemmParameters<...>"
  std::string attributes;       // "__launch_bounds__(128)"
};
/// `Parameters` with its checks, and an extern "C" kernel that runs `family`<Plan, Epilogue> on them.
void write_kernel(SourceWriter& out, const KernelEntry& entry, const plan::ParameterLayout& layout);

/// The same of a family of one CTA a tile.
void write_tile_kernel(SourceWriter& out, std::string_view family, std::string_view symbol, const plan::GemmTile& tile);

}  // namespace tilewright::lower::cuda
