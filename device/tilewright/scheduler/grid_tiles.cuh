// The tile of a CTA in kernels that launch one CTA for each tile of D.
#pragma once

#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Sets `tile` to the origin of this CTA's tile; returns false if there is none. The tiles of a matrix are in the
/// grid's x in raster order. gridDim.z is at most 65535, which is too small for some batches, so the matrix of the
/// batch is blockIdx.z * gridDim.y + blockIdx.y. Plan: Raster, kTileM, kTileN.
template <class Plan>
__device__ __forceinline__ bool grid_tile(const TileGrid& grid, uint32_t batches, TileOrigin& tile) {
  const uint32_t batch = blockIdx.z * gridDim.y + blockIdx.y;
  if (batch >= batches) return false;
  const TileCoordinate at = Plan::Raster::tile(static_cast<int>(blockIdx.x), grid);
  tile = {at.m * Plan::kTileM, at.n * Plan::kTileN, static_cast<int>(batch)};
  return true;
}

}  // namespace tilewright
