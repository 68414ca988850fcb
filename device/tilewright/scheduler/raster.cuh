// The raster order assigns tiles of D to CTAs so that CTAs that run at the same time share operands in L2.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

struct TileCoordinate {
  int m, n;  // in tiles
};

/// Groups of kWidth tile columns are walked one after another, each row by row; with kGroupsRows, groups of tile rows,
/// each column by column. The last group may be narrower. Groups of 8 are 4 wide if there are fewer than 6 tile
/// columns, which is the order of CUTLASS's GemmIdentityThreadblockSwizzle.
template <int kWidth, bool kGroupsRows>
struct Raster {
  /// `index` is from 0 to tiles_m * tiles_n - 1. kWidth times the number of tiles along a group is below 2^31; the plan
  /// refuses other problems.
  static __device__ __forceinline__ TileCoordinate tile(int index, int tiles_m, int tiles_n) {
    if constexpr (kGroupsRows) {
      const TileCoordinate turned = Raster<kWidth, false>::tile(index, tiles_n, tiles_m);
      return {turned.n, turned.m};
    } else {
      const int widest = kWidth == 8 && tiles_n < 6 ? 4 : kWidth;
      const int group = index / (widest * tiles_m);
      const int first_n = group * widest;
      const int width = min(widest, tiles_n - first_n);
      const int within = index - first_n * tiles_m;
      return {within / width, first_n + within % width};
    }
  }
};

}  // namespace tilewright
