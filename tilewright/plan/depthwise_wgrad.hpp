// The plan of filter gradients in the depthwise_conv family: the gradients of convolutions whose channels have a filter
// each are reductions over all output pixels, on CUDA cores.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

struct DepthwiseWgradPlan {
  op::GemmSignature operands;  // of the GEMM of one channel, whose batch is the channels
  Target target;
  DType accumulator = DType::f32;
  int vector = 1;     // adjacent channels of a thread
  int channels = 32;  // of a CTA, at most
  int threads = 256;
  int taps = 4;  // of a thread, in one row of the filter
  /// The distance of the windows of two positions, whose taps are adjacent pixels. 0: any distance of windows and taps.
  int step = 0;

  /// Threads of a CTA with the same channels, at least: they have different taps, or take different segments of rows of
  /// the output.
  int slots() const { return threads * vector / channels; }
  int smem_bytes() const { return taps * vector * bytes(accumulator) * threads / 2; }
  bool operator==(const DepthwiseWgradPlan&) const = default;
};

/// How a plan divides one problem among CTAs and threads. A unit is a group of `taps` taps of one row of the filter; a
/// tile is the channels of a CTA and a block of units.
struct DepthwiseWgradDivision {
  std::int64_t vectors = 1;                        // threads along the channels, of a tile
  std::int64_t tap_groups = 1;                     // units of one row of the filter
  std::int64_t units = 1, units_of_tile = 1;       // of the filter, and of a tile at most
  std::int64_t channel_tiles = 1, unit_tiles = 1;  // their product is the number of tiles
  std::int64_t lanes = 1;                          // threads with the same channels and taps
  std::int64_t segments_of_row = 1;                // of consecutive positions of a row of the output
  std::int64_t positions_of_segment = 0;           // at most
  std::int64_t segments = 0;                       // of all images
  std::int64_t segments_of_part = 0, parts = 1;    // of a CTA; and the number of CTAs of a tile
  double clocks = 0;                               // estimate of the instructions and of the sum of the parts

  std::int64_t tiles() const { return channel_tiles * unit_tiles; }
};

/// Whether the problem is the gradient of the filters of a depthwise convolution: a batch of products of one row with
/// the im2col matrix of one channel, whose channels are adjacent.
bool is_depthwise_wgrad(const op::GemmView& view);

/// The designs to rank, of which some may not support the problem. Of a FlatDesign, the family uses `tile`, whose m is
/// slots(), whose n is the channels of a CTA and whose k is the number of adjacent taps of a thread, or 1 for taps at
/// any distance; `instruction`, whose n is the channels of a thread and whose k is the step; and `warps_m`.
std::vector<FlatDesign> depthwise_wgrad_designs(const op::GemmSignature& signature, const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<DepthwiseWgradPlan> plan_depthwise_wgrad(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other problems than filter gradients of depthwise convolutions, extents, addresses and strides that are no
/// multiples of the vectors, other steps than that of the code, and extents beyond 32 bits.
Support check_arguments(const DepthwiseWgradPlan& plan, const op::GemmView& arguments);

/// Divides the rows of the output into segments, and these among so many CTAs that all SMs are busy, unless loading the
/// window beside each segment and adding the partial sums of the CTAs would take longer than what they save. @pre
/// is_depthwise_wgrad(arguments)
DepthwiseWgradDivision divide(const DepthwiseWgradPlan& plan, const op::GemmView& arguments);

ParameterLayout parameter_layout(const DepthwiseWgradPlan& plan);

/// A CTA for each tile and part. @pre check_arguments accepted them
Launch launch(const DepthwiseWgradPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds: those of the bytes and those of the instructions, which hardly overlap.
double estimate_us(const DepthwiseWgradPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
