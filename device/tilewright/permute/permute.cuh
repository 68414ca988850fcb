// Copies a tensor to another order of its modes, through registers. A thread moves blocks: it loads a few vectors along
// the mode that is contiguous in the source, transposes them, and stores vectors along the row, the modes that are
// contiguous in the destination.
#pragma once

#include "tilewright/ptx/permute.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A mode, or several merged: its strides in elements in both tensors, and its extent.
struct PermutedCoordinate {
  int64_t from, to;
  int extent;
  Divisor by_extent;
};

struct PermutedOffsets {
  int64_t from, to;
};

/// Up to kCount modes as one index, fastest first; those that it lacks have extent 1 and strides of 0.
template <int kCount>
struct PermutedAxis {
  PermutedCoordinate coordinate[kCount];

  /// The offsets of `index` in elements. @pre 0 <= index < the product of the extents
  __device__ __forceinline__ PermutedOffsets offsets(int index) const {
    PermutedOffsets sum{0, 0};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int rest = i + 1 < kCount ? coordinate[i].by_extent.quotient(index) : 0;
      const int place = i + 1 < kCount ? index - rest * coordinate[i].extent : index;
      sum.from += place * coordinate[i].from;
      sum.to += place * coordinate[i].to;
      index = rest;
    }
    return sum;
  }
};

/// plan/permute writes these fields. `row` has the modes that are contiguous in the destination, `lines` those that are
/// contiguous in the source and others, and `rest` what remains, of which a CTA has one index.
template <int kCount>
struct PermuteParameters {
  PermutedAxis<kCount> row, lines, rest;
  const void* from;
  void* to;
  int row_extent, line_extent;
  int row_tiles, line_tiles;
  Divisor by_row_tiles, by_line_tiles;
  int lane_bits, warp_bits;  // logarithms of the lanes of a warp, and of the warps of a CTA, that lie along the row
};

/// Plan: Element, kCoordinates, kTransposes, kFromVector and kToVector (elements of a load and of a store: the block of
/// a thread has kFromVector lines and kToVector elements of a row), kWarps, and kBlocks (of a thread, along the lines).
/// Without kTransposes the row is contiguous in both tensors, and loads are vectors along it, too. The values come from
/// plan/permute.
template <class Plan>
class Permute {
  using Element = typename Plan::Element;
  using Parameters = PermuteParameters<Plan::kCoordinates>;
  static constexpr int kLines = Plan::kFromVector, kRow = Plan::kToVector;
  static constexpr int kLoad = Plan::kTransposes ? kLines : kRow;
  static constexpr int kLoads = Plan::kTransposes ? kRow : kLines;
  using Loaded = Vector<Element, kLoad>;
  using Stored = Vector<Element, kRow>;

  static_assert(Plan::kTransposes || kLines == 1);

 public:
  __device__ __forceinline__ explicit Permute(const Parameters& parameters)
      : parameters_(parameters),
        from_(static_cast<const Element*>(parameters.from)),
        to_(static_cast<Element*>(parameters.to)) {}

  __device__ __forceinline__ void run() const {
    const int tile = static_cast<int>(blockIdx.x);
    const int tile_and_rest = parameters_.by_row_tiles.quotient(tile);
    const int rest = parameters_.by_line_tiles.quotient(tile_and_rest);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int lanes_row = 1 << parameters_.lane_bits, warps_row = 1 << parameters_.warp_bits;
    const int lanes_lines = 32 >> parameters_.lane_bits, warps_lines = Plan::kWarps >> parameters_.warp_bits;
    const int block_step = warps_lines * lanes_lines * kLines;
    // Lanes follow each other along the source, so that loads coalesce, or along the row if that is contiguous there.
    const int lane_line = Plan::kTransposes ? lane & (lanes_lines - 1) : lane >> parameters_.lane_bits;
    const int lane_row = Plan::kTransposes ? lane >> (5 - parameters_.lane_bits) : lane & (lanes_row - 1);
    const int row = ((tile - tile_and_rest * parameters_.row_tiles) * warps_row * lanes_row +
                     (warp & (warps_row - 1)) * lanes_row + lane_row) *
                    kRow;
    const int line = (tile_and_rest - rest * parameters_.line_tiles) * block_step * Plan::kBlocks +
                     ((warp >> parameters_.warp_bits) * lanes_lines + lane_line) * kLines;
    if (row >= parameters_.row_extent || line >= parameters_.line_extent) return;

    const PermutedOffsets origin = parameters_.rest.offsets(rest);
    const bool row_is_whole = row + kRow <= parameters_.row_extent;
    Loaded loaded[Plan::kBlocks][kLoads];
#pragma unroll
    for (int block = 0; block < Plan::kBlocks; ++block) {
      const int first = line + block * block_step;
      if (first < parameters_.line_extent) load(loaded[block], origin.from, first, row, row_is_whole);
    }
    const int64_t row_to = origin.to + parameters_.row.offsets(row).to;
#pragma unroll
    for (int block = 0; block < Plan::kBlocks; ++block) {
      const int first = line + block * block_step;
      if (first < parameters_.line_extent) store(loaded[block], row_to, first, row, row_is_whole);
    }
  }

 private:
  __device__ __forceinline__ void load(Loaded (&loaded)[kLoads], int64_t origin, int line, int row,
                                       bool row_is_whole) const {
    const int64_t at_line = origin + parameters_.lines.offsets(line).from;
    if constexpr (Plan::kTransposes) {
      const bool is_whole = line + kLines <= parameters_.line_extent;
#pragma unroll
      for (int i = 0; i < kRow; ++i) {
        if (row + i >= parameters_.row_extent) continue;
        read(loaded[i], from_ + at_line + parameters_.row.offsets(row + i).from, is_whole,
             parameters_.line_extent - line);
      }
    } else {
      read(loaded[0], from_ + at_line + parameters_.row.offsets(row).from, row_is_whole, parameters_.row_extent - row);
    }
  }

  /// Loads a vector, or the `count` elements that are inside the tensor.
  static __device__ __forceinline__ void read(Loaded& loaded, const Element* from, bool is_whole, int count) {
    if (is_whole) {
      loaded = *reinterpret_cast<const Loaded*>(from);
      return;
    }
#pragma unroll
    for (int i = 0; i < kLoad - 1; ++i) {
      if (i < count) loaded.element[i] = from[i];
    }
  }

  __device__ __forceinline__ void store(const Loaded (&loaded)[kLoads], int64_t row_to, int line, int row,
                                        bool row_is_whole) const {
    Stored stored[kLines];
    if constexpr (Plan::kTransposes) {
      transpose(loaded, stored);
    } else {
      stored[0] = loaded[0];
    }
#pragma unroll
    for (int j = 0; j < kLines; ++j) {
      if (line + j >= parameters_.line_extent) continue;
      Element* const to = to_ + row_to + parameters_.lines.offsets(line + j).to;
      if (row_is_whole) {
        *reinterpret_cast<Stored*>(to) = stored[j];
        continue;
      }
#pragma unroll
      for (int i = 0; i < kRow - 1; ++i) {
        if (row + i < parameters_.row_extent) to[i] = stored[j].element[i];
      }
    }
  }

  /// Element j of vector i becomes element i of vector j.
  static __device__ __forceinline__ void transpose(const Loaded (&loaded)[kLoads], Stored (&stored)[kLines]) {
    if constexpr (sizeof(Element) == 2 && kLines % 2 == 0 && kRow % 2 == 0) {
      using From = Vector<uint32_t, kLines / 2>;
      Vector<uint32_t, kRow / 2> words[kLines];
#pragma unroll
      for (int i = 0; i < kRow; i += 2) {
        const From low = __builtin_bit_cast(From, loaded[i]), high = __builtin_bit_cast(From, loaded[i + 1]);
#pragma unroll
        for (int j = 0; j < kLines / 2; ++j) {
          words[2 * j].element[i / 2] = ptx::permute_bytes(low.element[j], high.element[j], 0x5410);
          words[2 * j + 1].element[i / 2] = ptx::permute_bytes(low.element[j], high.element[j], 0x7632);
        }
      }
#pragma unroll
      for (int j = 0; j < kLines; ++j) stored[j] = __builtin_bit_cast(Stored, words[j]);
    } else if constexpr (sizeof(Element) == 1 && kLines % 4 == 0 && kRow % 4 == 0) {
      using From = Vector<uint32_t, kLines / 4>;
      Vector<uint32_t, kRow / 4> words[kLines];
#pragma unroll
      for (int i = 0; i < kRow; i += 4) {
        From from[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) from[j] = __builtin_bit_cast(From, loaded[i + j]);
#pragma unroll
        for (int j = 0; j < kLines / 4; ++j) {
          const uint32_t low01 = ptx::permute_bytes(from[0].element[j], from[1].element[j], 0x5140);
          const uint32_t low23 = ptx::permute_bytes(from[2].element[j], from[3].element[j], 0x5140);
          const uint32_t high01 = ptx::permute_bytes(from[0].element[j], from[1].element[j], 0x7362);
          const uint32_t high23 = ptx::permute_bytes(from[2].element[j], from[3].element[j], 0x7362);
          words[4 * j].element[i / 4] = ptx::permute_bytes(low01, low23, 0x5410);
          words[4 * j + 1].element[i / 4] = ptx::permute_bytes(low01, low23, 0x7632);
          words[4 * j + 2].element[i / 4] = ptx::permute_bytes(high01, high23, 0x5410);
          words[4 * j + 3].element[i / 4] = ptx::permute_bytes(high01, high23, 0x7632);
        }
      }
#pragma unroll
      for (int j = 0; j < kLines; ++j) stored[j] = __builtin_bit_cast(Stored, words[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kLines; ++j) {
#pragma unroll
        for (int i = 0; i < kRow; ++i) stored[j].element[i] = loaded[i].element[j];
      }
    }
  }

  const Parameters& parameters_;
  const Element* from_;
  Element* to_;
};

}  // namespace tilewright
