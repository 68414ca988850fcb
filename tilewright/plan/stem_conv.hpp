// The plan of the stem_conv family: forward convolutions of images with few channels on mma.sync. CTAs copy lines of
// the images to shared memory and load fragments of A from these, so that no im2col matrix is formed.
#pragma once

#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// A CTA computes blocks of warps_m rows of the output with positions() adjacent positions each, for tile.n filters.
/// tile.m is the number of pixels of a block, tile.k that of the elements of a window, with those that fill up its
/// rows. stages is the number of blocks whose lines are in shared memory.
struct StemConvPlan : GemmTile {
  Target target;
  int warp_tiles = 1;  // tiles of 16 positions that a warp multiplies at a time
  int step = 1;        // elements from the window of a position to that of the next: the stride times the channels
  int row_k = 8;       // elements of a row of the window, filled up to a multiple of 8

  int positions() const { return tile.m / warps_m; }
  int taps() const { return tile.k / row_k; }  // rows of the window
  int steps() const { return (tile.k + 15) / 16; }
  /// Elements of a line of the images in shared memory: of the windows of all positions, and of those before them that
  /// are in the same vector of 16 bytes.
  int line() const;
  /// Bytes of the line of a filter in shared memory, 16 more than those of its elements, so that the 8 lines of a
  /// matrix of ldmatrix are in different banks.
  int filter_line_bytes() const;
  int filter_bytes() const { return tile.n * filter_line_bytes(); }
  /// Registers per thread, from ptxas -v of this family, and the CTAs of an SM that these allow.
  int registers() const;
  int ctas_per_sm() const;
  bool operator==(const StemConvPlan&) const = default;
};

/// The filters in shared memory: (filter, element of K) -> bytes. The lines of filters are ordered such that the
/// accumulators of a lane are 8 adjacent columns of every 32 of D, which it stores as one vector.
layout::Layout filter_layout(const StemConvPlan& plan);
/// The row of a matrix that a lane addresses for ldmatrix.x4, which loads the fragments of two instructions along N:
/// (lane, pair of instructions, step along K) -> bytes.
layout::Layout filter_fragments(const StemConvPlan& plan);

/// The designs to rank; none for problems other than a product of an im2col matrix of up to 8 channels. Of a
/// FlatDesign, the family uses `tile`; `warps_m`; `stages`, which is 2; `op_class`; and `instruction`: its m is the
/// number of positions that a warp multiplies at a time, its n the elements from one position to the next, its k the
/// elements of a row of the window, filled up.
std::vector<FlatDesign> stem_conv_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                          const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<StemConvPlan> plan_stem_conv(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other convolutions than those of the plan's window, and lines that do not fit shared memory.
Support check_arguments(const StemConvPlan& plan, const op::GemmView& arguments);

/// As many CTAs as are resident at once, or fewer if there are fewer blocks. @pre check_arguments accepted them
Launch launch(const StemConvPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds, including the launch: the longest of moving the bytes, multiplying, and reading shared
/// memory.
double estimate_us(const StemConvPlan& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const StemConvPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
