// The groups of a grouped GEMM, whose sizes are in device memory, and classes of rows, whose sizes the host knows.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shuffle.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The part of a kernel's parameters that concerns groups; kernels without groups have NoGroups, which is empty.
struct NoGroups {};
struct Groups {
  const int* ends;  // of each group: see op::GroupedGemm
};

struct IndependentGroups {
  const int* extents;             // m, n and k of each group
  const int* leading_dimensions;  // of A, B, C and D of each group
};

/// A class of D's rows: its first tile among those of all classes, its rows and its K, which may be 0.
struct RowClass {
  int first_tile;
  int m, k;
  TileGrid grid;
};
/// plan/sm90/row_classes writes these fields. Classes that do not exist begin behind the last tile.
template <int kClasses>
struct RowClasses {
  static constexpr int kCount = kClasses;
  RowClass of[kClasses];
  int tiles;  // of all classes
};

/// The rows, columns or elements of K of a group.
struct GroupInterval {
  int begin, end;
};

/// The interval of group number `group`, clamped to `capacity`; an empty one if there is no such group. If kIsStacked,
/// a group begins where the one before ends, else at 0.
template <bool kIsStacked>
__device__ __forceinline__ GroupInterval group_interval(const int* ends, int groups, int capacity, int group) {
  if (group >= groups) return {0, 0};
  const auto end_of = [&](int number) { return min(max(ptx::load_global_constant_b32(ends + number), 0), capacity); };
  const int begin = kIsStacked && group > 0 ? end_of(group - 1) : 0;
  return {begin, max(begin, end_of(group))};
}

/// The inclusive prefix sum over the lanes of a warp.
__device__ __forceinline__ int sum_up_to_lane(int value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(0xffffffff, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

/// A tile of the stack of all groups' tiles: those of group 0 come first, then those of group 1.
struct StackedTile {
  int group;
  int tile;  // number within the group
  GroupInterval interval;
};

/// Finds tile number `number` of the stack, where a tile has `extent` rows or columns. Returns false if there are not
/// so many. Must be called by whole warps; all lanes get the result.
template <bool kIsStacked>
__device__ __forceinline__ bool find_stacked_tile(const int* ends, int groups, int capacity, int extent, int number,
                                                  StackedTile& found) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int before = 0;  // tiles of the groups before these 32
#pragma unroll 1
  for (int first = 0; first < groups; first += 32) {
    const GroupInterval interval = group_interval<kIsStacked>(ends, groups, capacity, first + lane);
    const int tiles = ceil_div(interval.end - interval.begin, extent);
    const int through = before + sum_up_to_lane(tiles);
    const uint32_t behind = __ballot_sync(0xffffffff, through > number);
    if (behind != 0) {
      const int source = __ffs(static_cast<int>(behind)) - 1;
      found.group = first + source;
      found.tile = number - __shfl_sync(0xffffffff, through - tiles, source);
      found.interval = {__shfl_sync(0xffffffff, interval.begin, source), __shfl_sync(0xffffffff, interval.end, source)};
      return true;
    }
    before = __shfl_sync(0xffffffff, through, 31);
  }
  return false;
}

}  // namespace tilewright
