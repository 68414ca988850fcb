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

    const bool lanes_are_outputs = blocks.output_stride == 1;
    const Element* const filters = static_cast<const Element*>(blocks.from) + group * blocks.group_stride;
    Element loaded[kTaps][kSteps] = {};  // zeros where no tap meets the pixel
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      const int64_t offset = first_tap + tap < taps ? tap_offset(pixel, first_tap + tap) : -1;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int i = line + step * kLines, in = lanes_are_outputs ? i : lane, out = lanes_are_outputs ? lane : i;
        const int group_input = input + in - first_input;
        if (offset >= 0 && group_input >= 0 && group_input < blocks.inputs && output + out < blocks.outputs) {
          loaded[tap][step] =
              filters[offset + group_input * blocks.input_stride + (output + out) * blocks.output_stride];
        }
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
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      if (first_tap + tap >= taps) return;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int i = line + step * kLines, row = pixel * blocks.outputs + output + i;
        if (output + i >= blocks.outputs || row >= blocks.copied_rows) continue;
        const int64_t place = (group * blocks.copied_rows + row) * taps + first_tap + tap;
        static_cast<Element*>(blocks.to)[place * blocks.copied_inputs + input + lane] = tiles[tap][lane][i];
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

  const FilterBlocksParameters& parameters_;
};

}  // namespace tilewright
