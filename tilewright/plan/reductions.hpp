// The resources that a kernel needs for the reductions of an epilogue: shared memory for reducing within a tile, and
// workspace for the partial results of all tiles. See device/tilewright/epilogue/reduction.cuh.
#pragma once

#include <cstdint>

#include "tilewright/base/support.hpp"
#include "tilewright/op/epilogue.hpp"
#include "tilewright/op/grouped_mode.hpp"

namespace tilewright::plan {

/// The number of reductions in the problem as computed, by the shape of their results.
struct ReductionCounts {
  int columns = 0;  // reductions with one result per column
  int rows = 0;     // reductions with one result per row
  int singles = 0;  // full reductions

  int all() const { return columns + rows + singles; }
  bool operator==(const ReductionCounts&) const = default;
};
ReductionCounts reduction_counts(const op::Epilogue& epilogue);

/// Bytes of shared memory in which `threads` threads reduce bands of `rows` rows by `columns` columns; see
/// device/tilewright/epilogue/band_reductions.cuh.
int band_reduction_bytes(const ReductionCounts& counts, int rows, int columns, int threads, int element_bytes);

/// Bytes of shared memory in which a consumer warpgroup reduces its wgmma accumulators; see
/// device/tilewright/epilogue/fragment_reductions.cuh.
int fragment_reduction_bytes(const ReductionCounts& counts, int columns);

/// The grid of blocks of D that each write partial results to the workspace.
struct ReductionBlocks {
  std::int64_t along_m = 0, along_n = 0;  // in a matrix of D, or in the stack of the groups
  std::int64_t shares = 1;                // CTAs that share one block with split-K; each writes its own partial results
  std::int64_t batches = 1;               // matrices of D, or groups
  bool stacks_m = false, stacks_n = false;  // the groups are stacked along M, or along N
};

/// The blocks of `rows` x `columns` of a D of `m` x `n` with groups of `mode`. Stacked groups may each have one more
/// than their share; see ReductionParts of device/tilewright/epilogue/reduction.cuh.
ReductionBlocks reduction_blocks(op::GroupedMode mode, std::int64_t m, std::int64_t n, std::int64_t rows,
                                 std::int64_t columns, std::int64_t batches);

/// Bytes of workspace for the partial results of all reductions of a D of `m` x `n`.
std::int64_t reduction_part_bytes(const ReductionCounts& counts, const ReductionBlocks& blocks, std::int64_t m,
                                  std::int64_t n, int element_bytes);

/// Refuses reductions that need more arrival counters than a workspace has.
Support check_reductions(const ReductionCounts& counts, const ReductionBlocks& blocks);

}  // namespace tilewright::plan
