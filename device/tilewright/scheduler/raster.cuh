// The raster order assigns tiles of D to CTAs so that CTAs that run at the same time share operands in L2.
#pragma once

#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

struct TileCoordinate {
  int m, n;  // in tiles
};

/// Groups of kWidth tile columns are walked one after another, each row by row; with kGroupsRows, groups of tile rows,
/// each column by column. The last group may be narrower. Groups of 8 are 4 wide if there are fewer than 6 tile
/// columns, which is the order of CUTLASS's GemmIdentityThreadblockSwizzle. plan::tile_grid computes the divisors of
/// the same groups.
template <int kWidth, bool kGroupsRows>
struct Raster {
  /// `index` is from 0 to tiles_m * tiles_n - 1. Grid is TileGrid or CountedTileGrid. kWidth times the number of tiles
  /// along a group is below 2^31; the plan refuses other problems.
  template <class Grid>
  static __device__ __forceinline__ TileCoordinate tile(int index, const Grid& grid) {
    const int along = kGroupsRows ? grid.tiles_n : grid.tiles_m;
    const int across = kGroupsRows ? grid.tiles_m : grid.tiles_n;
    const int widest = widest_group(across);
    const int group = grid.group.quotient(index);
    const int first = group * widest;
    const int width = min(widest, across - first);
    const int within = index - first * along;
    const int line = width == widest ? quotient_of_widest(within, widest) : grid.narrow.quotient(within);
    const int in_line = within - line * width;
    return kGroupsRows ? TileCoordinate{first + in_line, line} : TileCoordinate{line, first + in_line};
  }

  /// The grid of a matrix whose number of tiles only the device knows; it divides by variables.
  static __device__ __forceinline__ CountedTileGrid counted_grid(int tiles_m, int tiles_n) {
    const int across = kGroupsRows ? tiles_m : tiles_n;
    const int widest = widest_group(across);
    return {tiles_m, tiles_n, {widest * (kGroupsRows ? tiles_n : tiles_m)}, {across % widest}};
  }

 private:
  static __device__ __forceinline__ int widest_group(int across) { return kWidth == 8 && across < 6 ? 4 : kWidth; }
  /// The compiler divides by a constant with a shift.
  static __device__ __forceinline__ int quotient_of_widest(int within, int widest) {
    const auto dividend = static_cast<uint32_t>(within);
    return static_cast<int>(kWidth == 8 && widest == 4 ? dividend / 4 : dividend / kWidth);
  }
};

}  // namespace tilewright
