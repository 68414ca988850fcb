// The plan of the group_wgrad family: gradients of the filters of convolutions whose groups have few channels, on
// mma.sync. CTAs copy pixels with the channels of several groups to shared memory, and load fragments from these.
#pragma once

#include <vector>

#include "tilewright/base/rounding.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

/// A CTA sums the products of blocks of `rows` output rows with `positions` adjacent positions each, for `groups`
/// adjacent groups. Each group has a warp for each of `units` sets of taps, in each of `teams` sets of warps, which
/// take different output rows.
struct GroupWgradPlan {
  op::GemmSignature operands;
  Target target;
  int rows = 1, positions = 16;
  int groups = 1;
  int channels = 8, filters = 16;  // of a group
  int taps = 1, units = 1, teams = 1;

  int taps_of_warp() const { return ceil_div(taps, units); }
  int threads() const { return 32 * groups * units * teams; }
  /// Bytes of a pixel in shared memory, 16 more than those of its elements, so that the 8 rows of a matrix of ldmatrix
  /// are in different banks.
  int pixel_bytes() const { return (groups * channels + 8) * 2; }
  int gradient_pixel_bytes() const { return (groups * filters + 8) * 2; }
  int gradient_bytes() const { return rows * positions * gradient_pixel_bytes(); }
  int quads() const { return groups * units * (filters / 16) * (taps_of_warp() * channels / 8) * 32; }
  int registers() const;
  int ctas_per_sm() const;
  bool operator==(const GroupWgradPlan&) const = default;
};

/// The row of a transposed matrix that a lane addresses for ldmatrix.x4, which loads a fragment of 16 filters and 16
/// positions: (lane, tile of 16 filters, step of 16 positions) -> bytes.
layout::Layout gradient_fragments(const GroupWgradPlan& plan);

/// The designs to rank; none for problems other than filter gradients with groups of 8 to 64 channels. Of a FlatDesign,
/// the family uses `tile`, whose m is the filters and whose n the channels of a group, and whose k is the pixels of a
/// block; `instruction`, whose m is the output rows of a block, whose n is the groups of a CTA, and whose k is the
/// taps; warps_m, the units; and warps_k, the teams.
std::vector<FlatDesign> group_wgrad_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                            const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<GroupWgradPlan> plan_group_wgrad(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other gradients than those of the plan's groups, and blocks that do not fit shared memory.
Support check_arguments(const GroupWgradPlan& plan, const op::GemmView& arguments);

ParameterLayout parameter_layout(const GroupWgradPlan& plan);

/// A cooperative launch of as many CTAs as are resident at once, or fewer if there are fewer blocks.
/// @pre check_arguments accepted them
Launch launch(const GroupWgradPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds, including the launch.
double estimate_us(const GroupWgradPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
