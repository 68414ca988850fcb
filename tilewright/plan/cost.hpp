// How long a planned GEMM should take, without measuring: to rank candidates by, not to quote.
#pragma once

#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// What the model needs to know of a plan.
struct CostInput {
  std::int64_t m = 0, n = 0, k = 0;                  // of the problem as computed
  std::int64_t batch = 1, batch_a = 1, batch_b = 1;  // matrices of D; those of A and B that differ
  TileShape tile;
  int stages = 2;
  int threads = 0;
  int registers = 0;  // per thread
  int smem_bytes = 0;
  int element_bytes_a = 0, element_bytes_b = 0, element_bytes_d = 0;
  double fma_per_clock = 0;         // of one SM's unit, at its peak
  double instructions_per_fma = 1;  // 3 for 3xTF32
  double multiply_issue_share = 1;  // of the SM's issue slots while it multiplies at its peak: near 0 for tensor cores
  double smem_bytes_per_k = 0;      // that one CTA's warps read for one step of K
  double smem_loads_per_k = 0;      // warp instructions that read them
  double multicast_a = 1, multicast_b = 1;  // CTAs that one read of an operand from L2 serves
  double copies_per_k = 0;                  // that one CTA's threads begin to fill shared memory, one step of K
};

/// What every family fills in the same way: extents, tile, threads, element widths.
CostInput tile_cost(const GemmTile& tile, const op::GemmView& arguments);

/// Microseconds, launch included. Every wave of CTAs takes as long as the slowest of: multiplying, issuing
/// instructions, reading shared memory, and its share of L2 and DRAM; a CTA adds a fill and a drain of its pipeline.
double estimate_us(const arch::ArchLimits& limits, const CostInput& input);

}  // namespace tilewright::plan
