// Copies the filters of each group to (pixel of a block, output; R', S'; input): the taps that meet each pixel of a
// block of pixels, and zeros. Outputs and inputs are the channels of the tensors that a convolution writes and reads.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// op::FilterBlocks::Axis.
struct FilterBlocksAxis {
  int64_t tap_stride;  // of the filter, in elements
  int block, pixel_step, tap_step, offset, dilation, taps, copied_taps, is_reversed;

  /// The tap of the filter that meets `pixel` of a block at `tap` of the copy, or -1.
  __device__ __forceinline__ int tap(int pixel, int tap) const {
    const int dilated = pixel * pixel_step + tap * tap_step + offset;
    const int index = dilated / dilation;
    if (dilated < 0 || index * dilation != dilated || index >= taps) return -1;
    return is_reversed != 0 ? taps - 1 - index : index;
  }
};

/// plan/conv_copy writes these fields; see op::FilterBlocks.
struct FilterBlocksParameters {
  const void* from;
  void* to;
  int64_t output_stride, input_stride;  // elements; one of them is 1
  int64_t group_stride;                 // elements
  FilterBlocksAxis h, w;
  int outputs, inputs, copied_rows;  // of a group
  int copied_inputs;
  int merged;  // groups that have inputs of their own in each row of the copy
};

/// Plan: Element, kTile and kThreads. A CTA copies kTile outputs of kTile inputs, of one tap of the copy and one pixel
/// of a block, through shared memory. The values come from plan/conv_copy.
template <class Plan>
class FilterBlocks {
  using Element = typename Plan::Element;
  static constexpr int kTile = Plan::kTile, kLines = Plan::kThreads / kTile;

 public:
  __device__ __forceinline__ explicit FilterBlocks(const FilterBlocksParameters& parameters)
      : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    __shared__ Element tile[kTile][kTile + 4 / sizeof(Element)];
    const FilterBlocksParameters& of = parameters_;
    const int tiles_of_inputs = ceil_div(of.copied_inputs, kTile), tiles_of_outputs = ceil_div(of.outputs, kTile);
    int rest = static_cast<int>(blockIdx.x);
    const auto next = [&rest](int extent) {
      const int quotient = rest / extent, index = rest - quotient * extent;
      rest = quotient;
      return index;
    };
    const int input = next(tiles_of_inputs) * kTile, output = next(tiles_of_outputs) * kTile;
    const int tap_w = next(of.w.copied_taps), tap_h = next(of.h.copied_taps);
    const int pixel = next(ceil_div(of.copied_rows, of.outputs));  // of the block; behind the last are rows of zeros
    const int64_t group = rest;
    const int first_input = rest % of.merged * of.inputs;  // of the group, in a row of the copy
    const int pixel_h = pixel / of.w.block;
    const int r = pixel_h < of.h.block ? of.h.tap(pixel_h, tap_h) : -1;
    const int s = of.w.tap(pixel - pixel_h * of.w.block, tap_w);
    const bool is_tap = r >= 0 && s >= 0;
    const int lane = static_cast<int>(threadIdx.x) % kTile, line = static_cast<int>(threadIdx.x) / kTile;

    if (is_tap) {
      const Element* const from =
          static_cast<const Element*>(of.from) + group * of.group_stride + r * of.h.tap_stride + s * of.w.tap_stride;
      const bool lanes_are_outputs = of.output_stride == 1;
      for (int i = line; i < kTile; i += kLines) {
        const int in = lanes_are_outputs ? i : lane, out = lanes_are_outputs ? lane : i;
        const int of_group = input + in - first_input;
        if (of_group >= 0 && of_group < of.inputs && output + out < of.outputs)
          tile[in][out] = from[of_group * of.input_stride + (output + out) * of.output_stride];
      }
    }
    __syncthreads();
    if (input + lane >= of.copied_inputs) return;
    const int of_group = input + lane - first_input;
    const bool is_input = is_tap && of_group >= 0 && of_group < of.inputs;
    for (int i = line; i < kTile && output + i < of.outputs; i += kLines) {
      const int row = pixel * of.outputs + output + i;
      if (row >= of.copied_rows) return;
      const int64_t tap = ((group * of.copied_rows + row) * of.h.copied_taps + tap_h) * of.w.copied_taps + tap_w;
      static_cast<Element*>(of.to)[tap * of.copied_inputs + input + lane] = is_input ? tile[lane][i] : Element{0};
    }
  }

 private:
  const FilterBlocksParameters& parameters_;
};

}  // namespace tilewright
