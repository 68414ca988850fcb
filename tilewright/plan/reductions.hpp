// Reductions of an epilogue's nodes as a kernel does them: shared memory of those that hold a tile, and where in the
// workspace their parts meet. device/tilewright/epilogue/reduction.cuh.
#pragma once

#include <cstdint>

#include "tilewright/base/support.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::plan {

/// Reductions of a problem as computed, by what they leave.
struct ReductionCounts {
  int columns = 0;  // a result for each column
  int rows = 0;
  int singles = 0;

  int all() const { return columns + rows + singles; }
  bool operator==(const ReductionCounts&) const = default;
};
ReductionCounts reduction_counts(const op::Epilogue& epilogue);

/// Shared memory of `threads` that put bands of rows there: device/tilewright/epilogue/band_reductions.cuh.
int band_reduction_bytes(const ReductionCounts& counts, int rows, int columns, int threads, int element_bytes);

/// Shared memory of a warpgroup that holds accumulators of wgmma: device/tilewright/epilogue/fragment_reductions.cuh.
int fragment_reduction_bytes(const ReductionCounts& counts, int columns);

/// Blocks of m x n elements that leave parts, so many for each of `batches` matrices of D.
struct ReductionBlocks {
  std::int64_t along_m = 0, along_n = 0;
  std::int64_t shares = 1;  // of each
  std::int64_t batches = 1;
};

/// The parts of all reductions of a D of m x n, in a workspace.
std::int64_t reduction_part_bytes(const ReductionCounts& counts, const ReductionBlocks& blocks, std::int64_t m,
                                  std::int64_t n, int element_bytes);

/// Refuses more arrivals to count than a workspace has counters.
Support check_reductions(const ReductionCounts& counts, const ReductionBlocks& blocks);

}  // namespace tilewright::plan
