// The tile of a CTA in kernels that launch one CTA for each tile of D.
#pragma once

#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The tiles of a matrix are in the grid's x in raster order. gridDim.z is at most 65535, which is too small for some
/// batches, so the matrix of the batch is blockIdx.z * gridDim.y + blockIdx.y. Plan: Raster, kTileM, kTileN. Parameters
/// of the kernel: tiles, batch.
template <class Plan>
struct GridTiles {
  using Tile = TileOrigin;

  /// Sets `tile` to this CTA's tile; returns false if there is none.
  template <class Parameters>
  static __device__ __forceinline__ bool find(const Parameters& parameters, Tile& tile) {
    const uint32_t batch = blockIdx.z * gridDim.y + blockIdx.y;
    if (batch >= parameters.batch) return false;
    const TileCoordinate at = Plan::Raster::tile(static_cast<int>(blockIdx.x), parameters.tiles);
    tile = {at.m * Plan::kTileM, at.n * Plan::kTileN, static_cast<int>(batch)};
    return true;
  }
};

/// Groups that differ in m or, if kAlongN, in n. All tiles are in the grid's x; along the mode that differs they are
/// those of the stack (scheduler/groups.cuh). The grid has as many as there can be at most. Parameters of the kernel:
/// those above, m, n, groups; `batch` is the number of groups.
template <class Plan, bool kAlongN, bool kIsStacked>
struct GridGroupTiles {
  using Tile = GroupTile<kAlongN, kIsStacked>;

  /// Must be called by whole warps.
  template <class Parameters>
  static __device__ __forceinline__ bool find(const Parameters& parameters, Tile& tile) {
    const TileCoordinate at = Plan::Raster::tile(static_cast<int>(blockIdx.x), parameters.tiles);
    constexpr int kExtent = kAlongN ? Plan::kTileN : Plan::kTileM;
    StackedTile found;
    if (!find_stacked_tile<kIsStacked>(parameters.groups.ends, static_cast<int>(parameters.batch),
                                       kAlongN ? parameters.n : parameters.m, kExtent, kAlongN ? at.n : at.m, found)) {
      return false;
    }
    const int first = found.interval.begin + found.tile * kExtent;
    tile.m = kAlongN ? at.m * Plan::kTileM : first;
    tile.n = kAlongN ? first : at.n * Plan::kTileN;
    tile.batch = found.group;
    tile.begin = found.interval.begin;
    tile.end = found.interval.end;
    return true;
  }
};

/// Groups that end along K: the tiles of a batch. If kIsStacked, the groups follow each other along K. Parameters of
/// the kernel: those of GridTiles, k, groups.
template <class Plan, bool kIsStacked>
struct GridGroupKTiles {
  using Tile = GroupKTile;

  template <class Parameters>
  static __device__ __forceinline__ bool find(const Parameters& parameters, Tile& tile) {
    if (!GridTiles<Plan>::find(parameters, tile)) return false;
    const GroupInterval k = group_interval<kIsStacked>(parameters.groups.ends, static_cast<int>(parameters.batch),
                                                       parameters.k, tile.batch);
    tile.k_begin = k.begin;
    tile.k_end = k.end;
    return true;
  }
};

}  // namespace tilewright
