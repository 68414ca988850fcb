// Copies rows that have the channels of a block of pixels each to images.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// plan/conv_copy writes these fields; see op::PixelBlocks. Sizes along the channels are in units of a store.
struct PixelBlocksParameters {
  const void* from;
  void* to;
  int64_t from_step, image_step, pixel_step;  // from one row, image and pixel to the next
  int units;                                  // of all images
  int row;                                    // units of a group of a pixel
  int h, w, block_h, block_w;
  int rows_h, rows_w;  // blocks of an image along each axis
  Divisor by_row, by_h, by_w, by_block_h, by_block_w;
  int groups, group;  // of a pixel, and units from one to the next in a row
  Divisor by_groups;
  int part, parts;  // units of a part of a row
  Divisor by_images_of_part, by_parts;
};

/// Plan: Unit, the type of a load and store, kThreads of a CTA, and kUnits of a thread. The values come from
/// plan/conv_copy.
template <class Plan>
class PixelBlocks {
  using Unit = typename Plan::Unit;

 public:
  __device__ __forceinline__ explicit PixelBlocks(const PixelBlocksParameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    const PixelBlocksParameters& of = parameters_;
    const int first = static_cast<int>(blockIdx.x) * Plan::kThreads * Plan::kUnits + static_cast<int>(threadIdx.x);
    Unit units[Plan::kUnits];
    int64_t to[Plan::kUnits];
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      const int index = first + i * Plan::kThreads;
      if (index >= of.units) continue;
      const int group_of_all = of.by_row.quotient(index), unit = index - group_of_all * of.row;
      const int pixel = of.by_groups.quotient(group_of_all), group = group_of_all - pixel * of.groups;
      const int line = of.by_w.quotient(pixel), w = pixel - line * of.w;
      const int image = of.by_h.quotient(line), h = line - image * of.h;
      const int block_h = of.by_block_h.quotient(h), block_w = of.by_block_w.quotient(w);
      const int64_t row = (static_cast<int64_t>(image) * of.rows_h + block_h) * of.rows_w + block_w;
      const int in_block = (h - block_h * of.block_h) * of.block_w + w - block_w * of.block_w;
      const int part_of_all = of.by_images_of_part.quotient(image);
      const int part = part_of_all - of.by_parts.quotient(part_of_all) * of.parts;
      units[i] = static_cast<const Unit*>(
          of.from)[row * of.from_step + group * of.group + part * of.part + in_block * of.row + unit];
      to[i] = image * of.image_step + (h * of.w + w) * of.pixel_step + group * of.row + unit;
    }
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      if (first + i * Plan::kThreads < of.units) static_cast<Unit*>(of.to)[to[i]] = units[i];
    }
  }

 private:
  const PixelBlocksParameters& parameters_;
};

}  // namespace tilewright
