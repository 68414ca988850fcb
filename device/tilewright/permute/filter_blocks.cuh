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
    const int index = dilation == 1 ? dilated : dilated / dilation;
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

/// Plan: Element, kTile, kTaps and kThreads. A CTA copies kTile outputs of kTile inputs, of kTaps taps of the copy and
/// one pixel of a block, through shared memory. It issues the loads of all taps before it uses the first value, because
/// a filter is too small for other CTAs to hide their latency. The values come from plan/conv_copy.
template <class Plan>
class FilterBlocks {
  using Element = typename Plan::Element;
  static constexpr int kTile = Plan::kTile, kTaps = Plan::kTaps, kLines = Plan::kThreads / kTile;
  static constexpr int kSteps = kTile / kLines;  // lines of a thread
  static_assert(Plan::kThreads % kTile == 0 && kTile % kLines == 0);

 public:
  __device__ __forceinline__ explicit FilterBlocks(const FilterBlocksParameters& parameters)
      : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    __shared__ Element tiles[kTaps][kTile][kTile + 4 / sizeof(Element)];
    const FilterBlocksParameters& blocks = parameters_;
    const int taps = blocks.h.copied_taps * blocks.w.copied_taps;
    int rest = static_cast<int>(blockIdx.x);
    const auto next = [&rest](int extent) {
      const int quotient = rest / extent, index = rest - quotient * extent;
      rest = quotient;
      return index;
    };
    const int input = next(ceil_div(blocks.copied_inputs, kTile)) * kTile;
    const int output = next(ceil_div(blocks.outputs, kTile)) * kTile;
    const int first_tap = next(ceil_div(taps, kTaps)) * kTaps;
    // The pixel of the block. Behind the last pixel are rows of zeros.
    const int pixel = next(ceil_div(blocks.copied_rows, blocks.outputs));
    const int64_t group = rest;
    const int first_input = rest % blocks.merged * blocks.inputs;  // of the group, in a row of the copy
    const int lane = static_cast<int>(threadIdx.x) % kTile, line = static_cast<int>(threadIdx.x) / kTile;

    // Lanes run along the adjacent elements of the filter. The other channels of a thread's elements are in its lines.
    const bool lanes_are_outputs = blocks.output_stride == 1;
    const int first_of_lane = (lanes_are_outputs ? output : input - first_input) + lane;
    const int first_of_line = (lanes_are_outputs ? input - first_input : output) + line;
    const bool has_lane = is_below(first_of_lane, lanes_are_outputs ? blocks.outputs : blocks.inputs);
    const int lines = lanes_are_outputs ? blocks.inputs : blocks.outputs;
    const int64_t pitch = lanes_are_outputs ? blocks.input_stride : blocks.output_stride;
    const Element* const filters =
        static_cast<const Element*>(blocks.from) + group * blocks.group_stride + first_of_lane + first_of_line * pitch;
    Element loaded[kTaps][kSteps] = {};  // zeros where no tap meets the pixel
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      const int64_t offset = first_tap + tap < taps ? tap_offset(pixel, first_tap + tap) : -1;
      const Element* from = filters + offset;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (offset >= 0 && has_lane && is_below(first_of_line + step * kLines, lines)) loaded[tap][step] = *from;
        from += kLines * pitch;
      }
    }
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int i = line + step * kLines;
        (lanes_are_outputs ? tiles[tap][i][lane] : tiles[tap][lane][i]) = loaded[tap][step];
      }
    }
    __syncthreads();
    if (input + lane >= blocks.copied_inputs) return;
    const int first_row = pixel * blocks.outputs + output + line;
    const int64_t row_pitch = static_cast<int64_t>(taps) * blocks.copied_inputs;
    Element* const to = static_cast<Element*>(blocks.to) + (group * blocks.copied_rows + first_row) * row_pitch +
                        static_cast<int64_t>(first_tap) * blocks.copied_inputs + input + lane;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * kLines;
      if (output + line + i >= blocks.outputs || first_row + i >= blocks.copied_rows) return;
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        if (first_tap + tap < taps) to[i * row_pitch + tap * blocks.copied_inputs] = tiles[tap][lane][line + i];
      }
    }
  }

 private:
  /// The offset of the tap of a filter that meets `pixel` of a block at tap number `tap` of the copy, or -1.
  __device__ __forceinline__ int64_t tap_offset(int pixel, int tap) const {
    const FilterBlocksAxis &h = parameters_.h, &w = parameters_.w;
    const int pixel_h = pixel / w.block, tap_h = tap / w.copied_taps;
    const int r = pixel_h < h.block ? h.tap(pixel_h, tap_h) : -1;
    const int s = w.tap(pixel - pixel_h * w.block, tap - tap_h * w.copied_taps);
    return r < 0 || s < 0 ? -1 : r * h.tap_stride + s * w.tap_stride;
  }

  static __device__ __forceinline__ bool is_below(int index, int extent) {
    return static_cast<uint32_t>(index) < static_cast<uint32_t>(extent);
  }

  const FilterBlocksParameters& parameters_;
};

}  // namespace tilewright
