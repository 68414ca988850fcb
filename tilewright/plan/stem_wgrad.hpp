// The plan of the stem_wgrad family: gradients of the filters of convolutions with few channels on mma.sync. CTAs copy
// lines of the images to shared memory and load the windows' fragments from these, so that no im2col matrix is formed.
#pragma once

#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

/// A CTA sums the products of blocks of `rows` output rows with `positions` adjacent positions each, for `filters`
/// filters. It has `groups` groups of a warp for each row of the window, which take different output rows.
struct StemWgradPlan {
  op::GemmSignature operands;
  Target target;
  int filters = 16;
  int rows = 1, positions = 16;
  int taps = 1;   // rows of the window
  int row_k = 8;  // elements of a row of the window, filled up to a multiple of 8
  int step = 1;   // elements from the window of a position to that of the next: the stride times the channels
  int groups = 1;

  int threads() const { return 32 * taps * groups; }
  int line() const;  // elements of a line of the images in shared memory
  /// Bytes from a pixel of the gradient to the next in shared memory, 16 more than those of its elements, so that the 8
  /// rows of a matrix of ldmatrix are in different banks.
  int gradient_line() const;
  int gradient_bytes() const { return rows * positions * gradient_line(); }
  int quads() const { return taps * (filters / 16) * (row_k / 8) * 32; }  // vectors of four sums of a CTA
  /// Registers per thread, from ptxas -v of this family, and the CTAs of an SM that these allow.
  int registers() const;
  int ctas_per_sm() const;
  bool operator==(const StemWgradPlan&) const = default;
};

/// The row of a transposed matrix that a lane addresses for ldmatrix.x4, which loads a fragment of 16 filters and 16
/// positions: (lane, tile of 16 filters, step of 16 positions) -> bytes.
layout::Layout gradient_fragments(const StemWgradPlan& plan);

/// The designs to rank; none for problems other than a product with an im2col matrix of up to 8 channels. Of a
/// FlatDesign, the family uses `tile`, whose m is the filters of a CTA, whose n is the elements of a window, filled up,
/// and whose k is the pixels of a block; `instruction`, whose m is the output rows of a block, whose n is the step, and
/// whose k is the elements of a row of the window; warps_m, the rows of the window; and warps_n, the groups.
std::vector<FlatDesign> stem_wgrad_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                           const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<StemWgradPlan> plan_stem_wgrad(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other gradients than those of filters with the plan's window, and blocks that do not fit shared memory.
Support check_arguments(const StemWgradPlan& plan, const op::GemmView& arguments);

ParameterLayout parameter_layout(const StemWgradPlan& plan);

/// A cooperative launch of as many CTAs as are resident at once, or fewer if there are fewer blocks.
/// @pre check_arguments accepted them
Launch launch(const StemWgradPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds, including the launch.
double estimate_us(const StemWgradPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
