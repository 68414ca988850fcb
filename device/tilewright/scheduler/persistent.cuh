// The persistent tile scheduler: which tiles of D a CTA computes, one after another.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Persistent CTAs take tiles round-robin. The CTAs of a cluster, kClusterM x kClusterN and numbered along M first,
/// take one cluster tile at a time. With split-K, kSplitK consecutive clusters take the same cluster tile, each of them
/// one part of K. These kGroup CTAs are a group; the grid has `grid.groups` of them. Plan: kTileM, kTileN, kClusterM,
/// kClusterN, kSplitK, Raster.
template <class Plan>
class PersistentTiles {
  static constexpr int kCtas = Plan::kClusterM * Plan::kClusterN;
  static constexpr int kGroup = kCtas * Plan::kSplitK;

 public:
  using Tile = TileOrigin;

  /// Each of the `batches` matrices has `grid.tiles_m` x `grid.tiles_n` cluster tiles.
  __device__ __forceinline__ PersistentTiles(const TileGrid& grid, int batches)
      : grid_(grid),
        end_(grid.tiles_m * grid.tiles_n * batches),
        next_(static_cast<int>(blockIdx.x) / kGroup),
        step_(grid.groups) {}

  /// Sets `tile` to the origin of the next tile; returns false if no tile is left. The origin may lie outside D,
  /// because the last cluster tiles may extend beyond D.
  __device__ __forceinline__ bool next(TileOrigin& tile) {
    if (next_ >= end_) return false;
    tile.batch = grid_.matrix.quotient(next_);
    const TileCoordinate at = Plan::Raster::tile(next_ - tile.batch * (grid_.tiles_m * grid_.tiles_n), grid_);
    // The rank is read at each use, which costs less than a register to keep it.
    const int rank = kCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    tile.m = (at.m * Plan::kClusterM + rank % Plan::kClusterM) * Plan::kTileM;
    tile.n = (at.n * Plan::kClusterN + rank / Plan::kClusterM % Plan::kClusterN) * Plan::kTileN;
    next_ += step_;
    return true;
  }
  /// Skips `count` tiles, which other warpgroups compute.
  __device__ __forceinline__ void skip(int count) { next_ += count * step_; }

 private:
  const TileGrid& grid_;
  int end_;
  int next_, step_;
};

}  // namespace tilewright
