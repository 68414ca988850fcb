// The plan of the reduce_split_k family, which sums the parts of split-K and applies the epilogue. A CTA computes a
// tile of D, each of its threads a few vectors of adjacent columns, one band of rows after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/op/reduce_split_k.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

struct ReduceSplitKPlan {
  /// Signature of the problem as computed, whose D is row-major.
  op::ReduceSplitKSignature operands;
  bool is_transposed = false;  // all matrices are transposed, because the caller's D is column-major
  Target target;
  TileShape tile;       // extents of a CTA's tile along m and n; k is the number of parts that a thread loads at once
  int vector = 1;       // adjacent columns that a thread computes together
  int part_vector = 1;  // elements of a part that one load moves; divides `vector`
  int threads_m = 1, threads_n = 1;

  int threads() const { return threads_m * threads_n; }
  /// Tiles are computed in bands of threads_m rows.
  int bands() const { return tile.m / threads_m; }
  /// Bytes of shared memory for the reductions of the epilogue.
  int smem_bytes() const;
  bool operator==(const ReduceSplitKPlan&) const = default;
};

/// Maps a thread to its row and the first of its columns in a band, as scaled basis strides. Threads follow each other
/// along the contiguous mode of the parts, so that their loads coalesce.
layout::Layout thread_coordinates(const ReduceSplitKPlan& plan);

/// The designs to rank for the problem; never empty. Of a FlatDesign, the family uses `tile`, whose k is the number of
/// parts that a thread loads at once, `warps_m`, the number of warps, and `instruction`, whose m and n are the elements
/// of D that a thread computes together. As everywhere, m and n are those of the caller's problem.
std::vector<FlatDesign> reduce_split_k_designs(const op::ReduceSplitKSignature& signature, const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<ReduceSplitKPlan> plan_reduce_split_k(const op::ReduceSplitKSignature& signature, const FlatDesign& design);

/// Refuses extents beyond the kernel's 32-bit indices and the grid, and reductions of the epilogue with too many
/// partial results.
Support check_arguments(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments);

/// The offset at which launch() writes each parameter.
ParameterLayout parameter_layout(const ReduceSplitKPlan& plan);

/// One CTA for each tile. @pre op::validate(arguments) and check_arguments accepted them
Launch launch(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments);

/// Estimated microseconds, including the launch: the time to move all bytes to and from L2 or DRAM, or that in which
/// the threads wait for their loads, whichever is longer.
double estimate_us(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments);

}  // namespace tilewright::plan
