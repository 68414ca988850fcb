// Copies a filter (K, R, S, C) to (pixel of a block, C; R', S'; K): the taps that meet each pixel of a block of pixels
// of the input's gradient, and zeros.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// op::FilterBlocks::Axis.
struct FilterBlocksAxis {
  int64_t tap_stride;  // of the filter, in elements
  int block, padding, stride, dilation, taps, copied_taps, first, is_reversed;

  /// The tap of the filter that meets `pixel` of a block at `tap` of the copy, or -1.
  __device__ __forceinline__ int tap(int pixel, int tap) const {
    const int dilated = pixel + padding - stride * (first + tap);
    const int index = dilated / dilation;
    if (dilated < 0 || index * dilation != dilated || index >= taps) return -1;
    return is_reversed != 0 ? taps - 1 - index : index;
  }
};

/// plan/conv_copy writes these fields; see op::FilterBlocks.
struct FilterBlocksParameters {
  const void* from;
  void* to;
  int64_t filter_stride;  // elements
  FilterBlocksAxis h, w;
  int channels, filters, copied_rows, copied_filters;
};

/// Plan: Element and kTile. A CTA of 256 threads transposes kTile channels of kTile filters, of one tap of the copy and
/// one pixel of a block. The values come from plan/conv_copy.
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
    const int tiles_of_filters = ceil_div(of.copied_filters, kTile), tiles_of_channels = ceil_div(of.channels, kTile);
    int rest = static_cast<int>(blockIdx.x);
    const auto next = [&rest](int extent) {
      const int quotient = rest / extent, index = rest - quotient * extent;
      rest = quotient;
      return index;
    };
    const int filter = next(tiles_of_filters) * kTile, channel = next(tiles_of_channels) * kTile;
    const int tap_w = next(of.w.copied_taps), tap_h = next(of.h.copied_taps);
    const int pixel = rest;  // of the block; behind the last are rows of zeros
    const int pixel_h = pixel / of.w.block;
    const int r = pixel_h < of.h.block ? of.h.tap(pixel_h, tap_h) : -1;
    const int s = of.w.tap(pixel - pixel_h * of.w.block, tap_w);
    const bool is_tap = r >= 0 && s >= 0;
    const int lane = static_cast<int>(threadIdx.x) % kTile, line = static_cast<int>(threadIdx.x) / kTile;

    if (is_tap && channel + lane < of.channels) {
      const Element* const from =
          static_cast<const Element*>(of.from) + r * of.h.tap_stride + s * of.w.tap_stride + channel + lane;
      for (int i = line; i < kTile && filter + i < of.filters; i += kLines)
        tile[i][lane] = from[(filter + i) * of.filter_stride];
    }
    __syncthreads();
    if (filter + lane >= of.copied_filters) return;
    const bool is_filter = is_tap && filter + lane < of.filters;
    for (int i = line; i < kTile && channel + i < of.channels; i += kLines) {
      const int64_t row = static_cast<int64_t>(pixel) * of.channels + channel + i;
      if (row >= of.copied_rows) return;
      const int64_t tap = (row * of.h.copied_taps + tap_h) * of.w.copied_taps + tap_w;
      static_cast<Element*>(of.to)[tap * of.copied_filters + filter + lane] = is_filter ? tile[lane][i] : Element{0};
    }
  }

 private:
  const FilterBlocksParameters& parameters_;
};

}  // namespace tilewright
