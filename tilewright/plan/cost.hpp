// A cost model that estimates the run time of a planned GEMM without measuring it. The estimate serves to rank
// candidates; it is not accurate enough to be quoted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// The input of the cost model: one plan on one problem.
struct CostInput {
  std::int64_t m = 0, n = 0, k = 0;                  // extents of the problem as computed
  std::int64_t batch = 1, batch_a = 1, batch_b = 1;  // matrices of D; distinct matrices of A and of B
  double distinct_a = 1.0,
         distinct_b = 1.0;  // share of the elements of A and of B that DRAM is read for: see op::Im2col
  /// Whether groups, whose mean extents m and n are, have the same ones.
  op::GroupSpread spread_m = op::GroupSpread::equal, spread_n = op::GroupSpread::equal;
  TileShape tile;
  int stages = 2;
  int split_k = 1;              // CTAs that compute one tile together
  bool splits_in_turn = false;  // see GemmTiling
  /// Loads of a mainloop step that a CTA issues one after another, each when the last has arrived in registers; 0 if
  /// the stages hide the latency of the copies.
  int copy_phases = 0;
  int threads = 0;
  int registers = 0;  // per thread
  int smem_bytes = 0;
  int element_bytes_a = 0, element_bytes_b = 0, element_bytes_d = 0;
  bool is_mn_major_a = false, is_mn_major_b = false;  // whether A is contiguous along M, and B along N
  int accumulator_bytes = 4;
  int beside_bytes = 0;              // see beside_bytes()
  double function_instructions = 0;  // see function_instructions()
  double fma_per_clock = 0;          // peak rate of one SM's math unit
  double instructions_per_fma = 1;   // 3 for 3xTF32
  /// Share of the SM's issue slots that multiplying at the peak rate takes; near 0 for tensor cores.
  double multiply_issue_share = 1;
  double smem_bytes_per_k = 0;              // bytes that the warps of one CTA read from shared memory, per unit of K
  double smem_loads_per_k = 0;              // warp instructions that read these bytes, per unit of K
  double multicast_a = 1, multicast_b = 1;  // number of CTAs that one read of an operand from L2 serves
  /// Vectors in which the threads store a tile of D beyond one for each 16 bytes; if they realign its rows, the vectors
  /// that they store to shared memory. The SM takes more_store_clocks for each.
  double more_stores = 0;
  double more_store_clocks = 1.02;
  int slow_source_bytes = 0;  // see slow_source_bytes()
  double row_ends = 0;        // parts of rows of D that begin or end within 16 bytes, in a tile
  double copies_per_k = 0;    // copies to shared memory that the threads of one CTA issue, per unit of K
};

/// The number of tiles of `tile` rows that `extent` rows take, in the mean over groups with that mean extent: if they
/// differ, half of the last tile of a group is unused in the mean, and most groups have a tile. If it is unknown
/// whether they differ, both are equally likely.
inline double tiles_along(std::int64_t extent, std::int64_t tile, op::GroupSpread spread) {
  const std::int64_t tiles = ceil_div(extent, tile);
  const auto equal = static_cast<double>(tiles);
  if (spread == op::GroupSpread::equal || extent == 0) return equal;
  const double unequal = std::max(1.0, static_cast<double>(extent) / static_cast<double>(tile) + 0.5);
  return spread == op::GroupSpread::unequal ? unequal : (equal + unequal) / 2;
}

/// The time in microseconds in which the split_k CTAs of a tile of `tile_area` elements exchange their partial sums, of
/// `accumulator_bytes` per element, through L2: each writes its own and reads its share of all.
double exchange_us(const arch::ArchLimits& limits, double tile_area, int accumulator_bytes);

/// Fills the members that do not depend on the kernel family: extents, tile, threads, element widths.
CostInput tile_cost(const GemmTile& tile, const op::GemmView& arguments);

/// The parts that the busiest SM computes if CTAs take `parts` as they become free. In the last round, an SM may have
/// one part, which it computes faster, or as many as CTAs, while others have none: with tiles of 64x256, f32
/// 3000x3000x3000 took 5, 9 and 6 % longer than evenly shared for 4.3, 6.4 and 8.5 parts of a CTA (H200, 2026-11-27).
/// The mean of both is returned.
double parts_of_busiest_sm(const Residence& residence, std::int64_t parts);

/// Sets the members of `input` that count the stores of D, which depend on its alignment. A warp stores
/// `adjacent_columns` columns of a row of D together.
void count_stores(const GemmTile& tile, bool realigns_rows, int adjacent_columns, CostInput& input);

/// Estimated microseconds, including the launch. Every wave of CTAs takes as long as the slowest of multiplying,
/// issuing instructions, reading shared memory, and its share of L2 and DRAM traffic. Each CTA adds the time to fill
/// and drain its pipeline and, with split-K, that of the exchange of partial sums.
double estimate_us(const arch::ArchLimits& limits, const CostInput& input);

}  // namespace tilewright::plan
