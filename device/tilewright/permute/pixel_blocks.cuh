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
    const PixelBlocksParameters& blocks = parameters_;
    const int first = static_cast<int>(blockIdx.x) * Plan::kThreads * Plan::kUnits + static_cast<int>(threadIdx.x);
    Unit units[Plan::kUnits];
    int64_t to[Plan::kUnits];
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      const int index = first + i * Plan::kThreads;
      if (index >= blocks.units) continue;
      const int group_of_all = blocks.by_row.quotient(index), unit = index - group_of_all * blocks.row;
      const int pixel = blocks.by_groups.quotient(group_of_all), group = group_of_all - pixel * blocks.groups;
      const int line = blocks.by_w.quotient(pixel), w = pixel - line * blocks.w;
      const int image = blocks.by_h.quotient(line), h = line - image * blocks.h;
      const int block_h = blocks.by_block_h.quotient(h), block_w = blocks.by_block_w.quotient(w);
      const int64_t row = (static_cast<int64_t>(image) * blocks.rows_h + block_h) * blocks.rows_w + block_w;
      const int in_block = (h - block_h * blocks.block_h) * blocks.block_w + w - block_w * blocks.block_w;
      const int part_of_all = blocks.by_images_of_part.quotient(image);
      const int part = part_of_all - blocks.by_parts.quotient(part_of_all) * blocks.parts;
      units[i] = static_cast<const Unit*>(blocks.from)[row * blocks.from_step + group * blocks.group +
                                                       part * blocks.part + in_block * blocks.row + unit];
      to[i] = image * blocks.image_step + (h * blocks.w + w) * blocks.pixel_step + group * blocks.row + unit;
    }
#pragma unroll
    for (int i = 0; i < Plan::kUnits; ++i) {
      if (first + i * Plan::kThreads < blocks.units) static_cast<Unit*>(blocks.to)[to[i]] = units[i];
    }
  }

 private:
  const PixelBlocksParameters& parameters_;
};

}  // namespace tilewright
