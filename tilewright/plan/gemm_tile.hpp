// The part of a plan that all GEMM families share: the problem as computed, which may be the transposed problem, the
// checks on tiles, and the launch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/reductions.hpp"

namespace tilewright::plan {

struct GemmTile {
  /// Signature of the problem as computed. The rows of its D are contiguous unless the design swaps operands or the
  /// epilogue is gated.
  op::GemmSignature operands;
  /// The kernel computes D' = B' A'; see plan::computes_transposed().
  bool is_transposed = false;
  TileShape tile;  // extents along m, n and k of the problem as computed
  int warps_m = 1, warps_n = 1;
  int stages = 2;
  Raster raster;                // of the problem as computed
  int split_k = 1;              // CTAs that compute one tile together, each a part of K
  bool splits_in_turn = false;  // see GemmTiling

  /// The groups of the problem as computed; see op::GroupedGemm.
  op::GroupedMode groups() const { return operands.groups; }
  int threads() const { return 32 * warps_m * warps_n; }
  int warp_tile_m() const { return tile.m / warps_m; }
  int warp_tile_n() const { return tile.n / warps_n; }
  int d_tile_columns() const { return tile.n / operands.epilogue.columns_per_element(); }
  /// Bytes of shared memory for the epilogue's reductions over bands of `band_rows` rows.
  int reduction_bytes(int band_rows) const {
    const op::Epilogue& epilogue = operands.epilogue;
    return band_reduction_bytes(reduction_counts(epilogue), band_rows, tile.n, threads(), bytes(epilogue.compute));
  }
  /// Whether the epilogue stages rows of D in shared memory whose alignment is less than `least_bytes`. It can if D is
  /// row-major and one CTA has all of a sum.
  bool stages_rows_below(int least_bytes) const {
    const bool has_sums = split_k == 1 || splits_in_turn;
    return has_sums && operands.d.layout == op::MatrixLayout::row_major && operands.d.folded_modes == 0 &&
           operands.d.alignment * bytes(operands.d.element) < least_bytes;
  }
  /// Whether the CTAs of a tile work at once and share its sums; see epilogue/split_k_tile.cuh.
  bool shares_sums() const { return split_k > 1 && !splits_in_turn; }
  /// Rows of the tile that one CTA's share of the sums may overlap with split-K; see epilogue/split_k_tile.cuh.
  int split_k_rows() const;
  bool operator==(const GemmTile&) const = default;
};

/// Transposes the problem where plan::computes_transposed() says so. Refuses to swap the operands of a gated epilogue.
/// Makes the checks that every family shares: groups are not computed with split-K, the target is sm_80 or newer, there
/// are at least two stages, the raster width is 1, 2, 4 or 8, the threads are within the architecture's limit, and the
/// warps divide the tile evenly.
/// @pre op::validate(signature); the planning functions of the families require it too
Result<GemmTile> plan_gemm_tile(const op::GemmSignature& signature, const GemmTiling& design,
                                bool swaps_operands = false);

/// Refuses a workspace beyond kMaxWorkspaceBytes.
Support check_workspace(std::int64_t bytes);

/// Refuses more shared memory than one CTA of the target may allocate.
Support check_smem(int smem_bytes, const Target& target);

/// Refuses a tile along K that does not consist of whole blocks of an interleaved A or B.
Support check_blocks_along_k(const GemmTile& tile);

/// Refuses a number of warps along M or N that is not a power of two.
Support check_warps_are_powers_of_two(const GemmTiling& design);

/// Tiles along m and n of the problem as computed, of one matrix of D. Along a mode in which groups differ it is the
/// largest number of tiles that all groups together can have, whatever their sizes: see
/// device/tilewright/scheduler/groups.cuh.
struct TileCounts {
  std::int64_t m = 0, n = 0;
};
TileCounts tile_counts(const GemmTile& tile, const op::GemmView& arguments);

/// The number of matrices of D whose tiles are counted separately: 1 if groups differ in m or n.
std::int64_t counted_matrices(const GemmTile& tile, const op::GemmView& arguments);

/// Refuses extents whose tiles exceed the kernel's 32-bit indices, including those of its raster order
/// (scheduler/raster.cuh), or the grid's limit of 2^31 - 1 CTAs.
Support check_extents(const GemmTile& tile, const op::GemmView& arguments);

/// Appends the fields of the epilogue's struct: see describe_epilogue.
void append_epilogue(Launch& launch, const op::Epilogue& epilogue, const op::GemmView& arguments, bool is_transposed);

/// How many CTAs of a kernel the target holds at once.
struct Residence {
  int ctas_per_sm = 1, sms = 1;

  int ctas() const { return ctas_per_sm * sms; }
  /// Groups of split_k CTAs that work at once.
  int groups(int split_k) const { return std::min(ctas() / split_k, kGroupBarriers); }
};
/// The residence that a plan assumes. A split-K kernel, whose CTAs wait for each other, is compiled for it.
template <class Plan>
Residence residence_of(const Plan& plan) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  return {arch::resident_blocks(limits, plan.threads(), plan.registers(), plan.smem_bytes()), limits.sm_count};
}

/// Refuses what launch_gemm cannot launch: extents that are too large, and reductions with too many partial results or
/// arrivals.
Support check_launch(const GemmTile& tile, const Residence& residence, const op::GemmView& arguments);

/// Refuses a split_k below 1, above the number of resident CTAs, or with accumulators that kernels do not sum, and
/// parts in turn of a tile that is not split, or with reductions.
Support check_split_k(const GemmTile& tile, const Residence& residence);

/// The positions of a thread's accumulators in the tile of one instruction or, if the warps stage their accumulators
/// together, in the tile of all warps.
struct AccumulatorTile {
  /// ((lane, warp), accumulator) -> (row, column), as scaled basis strides.
  layout::Layout coordinates;
  int lane_rows = 1;  // distance in rows between consecutive groups of four lanes
  int other_row = 8;  // distance from a thread's first row to its second, which accumulators 2 and 3 hold
};
/// `offsets` maps ((lane, warp), accumulator) to the offset in a column-major tile of `rows` x `columns`.
AccumulatorTile accumulator_tile(const layout::Layout& offsets, int rows, int columns);

/// The offset at which launch_gemm writes each parameter.
ParameterLayout gemm_parameter_layout(const GemmTile& tile);

/// Builds a launch with one CTA per tile of each matrix of D. With split-K, groups of split_k CTAs take the tiles in
/// turn; the launch is cooperative, with as many groups as are resident at once. If the parts of a tile are added in
/// turn, the launch has as many CTAs as are resident at once, or as there are parts. The parameters are those of
/// device/tilewright/gemm/parameters.cuh.
/// @pre op::validate(arguments) and check_launch accepted them
Launch launch_gemm(const GemmTile& tile, const Residence& residence, int smem_bytes, const op::GemmView& arguments);

}  // namespace tilewright::plan
