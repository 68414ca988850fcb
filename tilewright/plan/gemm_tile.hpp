// What every GEMM family's plan shares: the problem turned as the design asks, the checks on tiles, and the launch.
#pragma once

#include <cstdint>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/reductions.hpp"

namespace tilewright::plan {

/// m, n and k of a tile or of a warp's share of it.
struct TileShape {
  int m = 0, n = 0, k = 0;
  bool operator==(const TileShape&) const = default;
};

struct GemmTile {
  op::GemmSignature operands;  // of the problem as computed: D is row-major unless the design swaps operands
  bool is_transposed = false;  // computed as D' = B' A': the caller's D is column-major, or the design swaps operands
  TileShape tile;              // of the problem as computed
  int warps_m = 1, warps_n = 1;
  int stages = 2;
  Raster raster;

  int threads() const { return 32 * warps_m * warps_n; }
  int warp_tile_m() const { return tile.m / warps_m; }
  int warp_tile_n() const { return tile.n / warps_n; }
  int d_tile_columns() const { return tile.n / operands.epilogue.columns_per_element(); }
  /// Shared memory of the epilogue's reductions over bands of so many rows.
  int reduction_bytes(int band_rows) const {
    const op::Epilogue& epilogue = operands.epilogue;
    return band_reduction_bytes(reduction_counts(epilogue), band_rows, tile.n, threads(), bytes(epilogue.compute));
  }
  bool operator==(const GemmTile&) const = default;
};

/// Turns the problem and checks what holds for every family: sm_80 or newer, one warp along K, at least two stages, a
/// raster of 1, 2, 4 or 8, threads within the architecture's limit, tiles that the warps divide.
/// @pre op::validate(description), here and where the families plan
Result<GemmTile> plan_gemm_tile(const op::GemmSignature& description, const Design& design);

/// Refuses a workspace beyond kMaxWorkspaceBytes.
Support check_workspace(std::int64_t bytes);

/// Refuses shared memory beyond what one CTA of the target may have.
Support check_smem(int smem_bytes, const Target& target);

/// Refuses an instruction whose types are not the operands', or whose class is not `expected`.
Support check_instruction(const op::GemmSignature& description, const MathInstruction& instruction, OpClass expected);

/// Refuses a number of warps along M or N that is not a power of two, and what only the sm90 families have: clusters,
/// schedules, swapped operands, slices of K, repacked operands.
Support check_plain_design(const Design& design);

/// Refuses extents whose tiles do not fit 32-bit indices of the kernel, those of its raster (scheduler/raster.cuh)
/// among them, and the grid's 2^31 - 1 CTAs.
Support check_extents(const GemmTile& tile, const op::GemmView& arguments);

/// Appends the fields of the epilogue's struct: see describe_epilogue.
void append_epilogue(Launch& launch, const op::Epilogue& epilogue, const op::GemmView& arguments, bool is_transposed);

/// Refuses what launch_gemm cannot launch: extents, and reductions whose parts or arrivals are too many.
Support check_launch(const GemmTile& tile, const op::GemmView& arguments);

/// Where a thread's accumulators lie in the tile of its instruction or, where warps stage theirs together, of all
/// warps.
struct AccumulatorTile {
  /// ((lane, warp), accumulator) -> (row, column), as scaled basis strides.
  layout::Layout coordinates;
  int lane_rows = 1;  // from the row of one group of four lanes to the next group's
  int other_row = 8;  // from a thread's first row to its other one, which follows in accumulators 2 and 3
};
/// `offsets` are ((lane, warp), accumulator) -> offset in a column-major tile of rows x columns.
AccumulatorTile accumulator_tile(const layout::Layout& offsets, int rows, int columns);

/// Where launch_gemm writes each parameter.
ParameterLayout gemm_parameter_layout(const GemmTile& tile);

/// The launch of one CTA a tile of each D, with the parameters of device/tilewright/gemm/parameters.cuh.
/// @pre op::validate(arguments) and check_launch accepted them
Launch launch_gemm(const GemmTile& tile, int smem_bytes, const op::GemmView& arguments);

}  // namespace tilewright::plan
