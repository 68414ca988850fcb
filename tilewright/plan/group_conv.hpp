// The plan of the group_conv family: convolutions that have few channels, or whose groups have, and the gradients of
// their inputs, on mma.sync. CTAs copy pixels with the channels of several groups to shared memory, and load fragments
// from these.
#pragma once

#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// A CTA computes blocks of `rows` output rows with `positions` adjacent positions each, for `groups` adjacent groups.
/// warps_m is the number of warps, tile.m that of the pixels of a block, tile.n that of the filters of a group, filled
/// up to a multiple of 16, or of some of them if the CTA has one group, tile.k the channels of a group. stages is the
/// number of blocks in shared memory.
struct GroupConvPlan : GemmTile {
  Target target;
  int rows = 1;
  int groups_of_cta = 1;
  int taps = 1;        // of a filter
  int warp_tiles = 1;  // tiles of 16 positions that a warp multiplies at a time

  int positions() const { return tile.m / rows; }
  int channels() const { return tile.k; }  // of a group
  int octets() const { return taps * channels() / 8; }
  int steps() const { return (octets() + 1) / 2; }
  /// Bytes of a pixel, and of a filter, in shared memory: 16 more than those of the elements, so that the 8 rows of a
  /// matrix of ldmatrix are in different banks.
  int pixel_bytes() const { return (groups_of_cta * channels() + 8) * 2; }
  int filter_line_bytes() const { return (steps() * 16 + 8) * 2; }
  /// Bytes of the filters and of the table of the offsets of taps.
  int filter_bytes() const;
  /// Adjacent columns of D that a lane stores.
  int lane_columns() const { return tile.n % 32 == 0 ? 8 : 4; }
  int registers() const;
  int ctas_per_sm() const;
  bool operator==(const GroupConvPlan&) const = default;
};

/// The line of a filter in shared memory: filter -> bytes. The lines are ordered such that the accumulators of a lane
/// are adjacent columns of D.
layout::Layout filter_lines(const GroupConvPlan& plan);
/// The row of a matrix that a lane addresses for ldmatrix.x4, which loads the fragments of two instructions along N:
/// (lane, pair of instructions) -> bytes.
layout::Layout filter_fragments(const GroupConvPlan& plan);

/// The designs to rank; none for problems other than convolutions of 8 to 64 channels, or in groups of as many. Of a
/// FlatDesign, the family uses `tile`; `warps_m`; `stages`, which is 2; `op_class`; and `instruction`: its m is the
/// number of positions that a warp multiplies at a time, its n the groups of a CTA, its k the taps of a filter.
/// warps_k is the number of output rows of a block.
std::vector<FlatDesign> group_conv_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                           const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<GroupConvPlan> plan_group_conv(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other convolutions than those of the plan's groups, and blocks that do not fit shared memory.
Support check_arguments(const GroupConvPlan& plan, const op::GemmView& arguments);

/// As many CTAs as are resident at once, or fewer if there are fewer blocks. @pre check_arguments accepted them
Launch launch(const GroupConvPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds, including the launch.
double estimate_us(const GroupConvPlan& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const GroupConvPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
