// Which tile of D a CTA computes, and of which D. CTAs that run together share operands in L2.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

struct TileCoordinate {
  int m, n;  // in tiles
};

/// Tile columns in groups of kWidth, row by row within a group; or tile rows in groups, column by column. The last
/// group may be narrower.
template <int kWidth, bool kGroupsRows>
struct Raster {
  /// `index` counts CTAs from 0 to tiles_m * tiles_n - 1. kWidth times the tiles along the groups is below 2^31: the
  /// plan refuses what is not.
  static __device__ __forceinline__ TileCoordinate tile(int index, int tiles_m, int tiles_n) {
    if constexpr (kGroupsRows) {
      const TileCoordinate turned = Raster<kWidth, false>::tile(index, tiles_n, tiles_m);
      return {turned.n, turned.m};
    } else {
      const int group = index / (kWidth * tiles_m);
      const int first_n = group * kWidth;
      const int width = min(kWidth, tiles_n - first_n);
      const int within = index - first_n * tiles_m;
      return {within / width, first_n + within % width};
    }
  }
};

/// Which matrix of a batch this CTA computes, perhaps one past the last. A grid's z, at most 65535, is not enough for
/// every batch: y counts the multiples of it.
__device__ __forceinline__ uint32_t batch_of_grid() { return blockIdx.y * gridDim.z + blockIdx.z; }

}  // namespace tilewright
