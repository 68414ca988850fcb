// Which tile of D a CTA computes, and of which D. Tile columns are walked in groups of kWidth, row by row within a
// group, so that CTAs that run together share operands in L2.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

struct TileCoordinate {
  int m, n;  // in tiles
};

/// `index` counts CTAs from 0 to tiles_m * tiles_n - 1. The last group may be narrower.
/// kWidth * tiles_m is below 2^31: the plan refuses what is not.
template <int kWidth>
__device__ __forceinline__ TileCoordinate raster(int index, int tiles_m, int tiles_n) {
  const int group = index / (kWidth * tiles_m);
  const int first_n = group * kWidth;
  const int width = min(kWidth, tiles_n - first_n);
  const int within = index - first_n * tiles_m;
  return {within / width, first_n + within % width};
}

/// Which matrix of a batch this CTA computes, perhaps one past the last. A grid's z, at most 65535, is not enough for
/// every batch: y counts the multiples of it.
__device__ __forceinline__ uint32_t batch_of_grid() { return blockIdx.y * gridDim.z + blockIdx.z; }

}  // namespace tilewright
