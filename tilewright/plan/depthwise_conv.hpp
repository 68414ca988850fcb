// The plan of the depthwise_conv family: convolutions whose channels have a filter each, on CUDA cores. They move few
// bytes for each product, so that tensor cores would wait for memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/base/rounding.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

struct DepthwiseConvPlan {
  op::GemmSignature operands;  // of the GEMM of one channel, whose batch is the channels
  Target target;
  DType accumulator = DType::f32;
  int vector = 1;     // adjacent channels of a thread
  int pixels = 4;     // adjacent positions of a thread, in one row of the output
  int channels = 64;  // of a CTA
  int threads = 128;
  /// The number of taps along the width that the code has, whose pixels are adjacent, and the distance of the pixels of
  /// two positions. 0 taps: any number, at any distance.
  int taps = 0, step = 1;
  /// If it is not 0, a thread computes consecutive rows of the output, and loads each row of the image once for them,
  /// as many rows before it uses them. The filter then has `taps` adjacent taps along the height, too, and the same
  /// step.
  int rows_ahead = 0;

  bool slides() const { return rows_ahead != 0; }
  /// Rows of the output whose windows have a row of the image in common, if the window slides.
  int sums() const { return ceil_div(taps, step); }
  /// CTAs of an SM, for which the registers must be enough. With two instead of three, too few rows are on their way
  /// from DRAM: tf32 2x120x120x792 took 66 us, and 52 with three (two runs, H200, 2026-11-28).
  int min_ctas() const { return slides() ? 3 : 1; }
  /// Groups of `pixels` positions that a CTA computes at once.
  int band() const { return threads * vector / channels; }
  bool operator==(const DepthwiseConvPlan&) const = default;
};

/// Whether the problem is a depthwise convolution or the gradient of its input: a batch of products of an im2col matrix
/// of one channel with one column, whose channels are adjacent.
bool is_depthwise_conv(const op::GemmView& view);

/// The designs to rank, of which some may not support the problem. Of a FlatDesign, the family uses `tile`, whose m and
/// n are the positions and the channels that a CTA computes at once and whose k is the number of taps along the width
/// that the code has, or 1 for any; `instruction`, whose m and n are those of a thread and whose k is the step;
/// `warps_m`; and `stages`, which are 2 if the window slides, else 1.
std::vector<FlatDesign> depthwise_conv_designs(const op::GemmSignature& signature, const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<DepthwiseConvPlan> plan_depthwise_conv(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses other problems than depthwise convolutions, extents, addresses and strides that are no multiples of the
/// vectors, other taps than those of the code, and filters that do not fit shared memory.
Support check_arguments(const DepthwiseConvPlan& plan, const op::GemmView& arguments);

ParameterLayout parameter_layout(const DepthwiseConvPlan& plan);

/// As many CTAs as are resident at once, or fewer if there is less to compute. @pre check_arguments accepted them
Launch launch(const DepthwiseConvPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds: those of the bytes, or of the instructions, whichever are more.
double estimate_us(const DepthwiseConvPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
