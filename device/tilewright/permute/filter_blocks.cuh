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
    const FilterBlocksParameters& blocks = parameters_;
    const int tiles_of_inputs = ceil_div(blocks.copied_inputs, kTile);
    const int tiles_of_outputs = ceil_div(blocks.outputs, kTile);
    int rest = static_cast<int>(blockIdx.x);
    const auto next = [&rest](int extent) {
      const int quotient = rest / extent, index = rest - quotient * extent;
      rest = quotient;
      return index;
    };
    const int input = next(tiles_of_inputs) * kTile, output = next(tiles_of_outputs) * kTile;
    const int tap_w = next(blocks.w.copied_taps), tap_h = next(blocks.h.copied_taps);
    // The pixel of the block. Behind the last pixel are rows of zeros.
    const int pixel = next(ceil_div(blocks.copied_rows, blocks.outputs));
    const int64_t group = rest;
    const int first_input = rest % blocks.merged * blocks.inputs;  // of the group, in a row of the copy
    const int pixel_h = pixel / blocks.w.block;
    const int r = pixel_h < blocks.h.block ? blocks.h.tap(pixel_h, tap_h) : -1;
    const int s = blocks.w.tap(pixel - pixel_h * blocks.w.block, tap_w);
    const bool is_tap = r >= 0 && s >= 0;
    const int lane = static_cast<int>(threadIdx.x) % kTile, line = static_cast<int>(threadIdx.x) / kTile;

    if (is_tap) {
      const Element* const from = static_cast<const Element*>(blocks.from) + group * blocks.group_stride +
                                  r * blocks.h.tap_stride + s * blocks.w.tap_stride;
      const bool lanes_are_outputs = blocks.output_stride == 1;
      for (int i = line; i < kTile; i += kLines) {
        const int in = lanes_are_outputs ? i : lane, out = lanes_are_outputs ? lane : i;
        const int group_input = input + in - first_input;
        if (group_input >= 0 && group_input < blocks.inputs && output + out < blocks.outputs)
          tile[in][out] = from[group_input * blocks.input_stride + (output + out) * blocks.output_stride];
      }
    }
    __syncthreads();
    if (input + lane >= blocks.copied_inputs) return;
    const int group_input = input + lane - first_input;
    const bool is_input = is_tap && group_input >= 0 && group_input < blocks.inputs;
    for (int i = line; i < kTile && output + i < blocks.outputs; i += kLines) {
      const int row = pixel * blocks.outputs + output + i;
      if (row >= blocks.copied_rows) return;
      const int64_t tap =
          ((group * blocks.copied_rows + row) * blocks.h.copied_taps + tap_h) * blocks.w.copied_taps + tap_w;
      static_cast<Element*>(blocks.to)[tap * blocks.copied_inputs + input + lane] =
          is_input ? tile[lane][i] : Element{0};
    }
  }

 private:
  const FilterBlocksParameters& parameters_;
};

}  // namespace tilewright
