// The tiles of D that one CTA of a persistent grid computes, one after another.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Origin of a tile: its first row and column of D, and its batch.
struct TileOrigin {
  int m, n, batch;
};

/// Clusters of kClusterM x kClusterN CTAs, numbered along M first, take cluster tiles in turn, as many tiles; kSlices
/// clusters that follow each other take one together, each a slice of K.
/// Plan: kTileM, kTileN, kClusterM, kClusterN, kSlices, Raster.
template <class Plan>
class PersistentTiles {
  static constexpr int kCtas = Plan::kClusterM * Plan::kClusterN;
  static constexpr int kGroup = kCtas * Plan::kSlices;

 public:
  /// `cluster_tiles_m` x `cluster_tiles_n` cluster tiles for each of `batches`.
  __device__ __forceinline__ PersistentTiles(int cluster_tiles_m, int cluster_tiles_n, int batches)
      : tiles_m_(cluster_tiles_m),
        tiles_n_(cluster_tiles_n),
        per_batch_(cluster_tiles_m * cluster_tiles_n),
        end_(per_batch_ * batches),
        next_(static_cast<int>(blockIdx.x) / kGroup),
        step_(static_cast<int>(gridDim.x) / kGroup) {}

  /// False when there is none left; else where the next tile begins, which may lie outside D at its far edges.
  __device__ __forceinline__ bool next(TileOrigin& tile) {
    if (next_ >= end_) return false;
    tile.batch = next_ / per_batch_;
    const TileCoordinate at = Plan::Raster::tile(next_ - tile.batch * per_batch_, tiles_m_, tiles_n_);
    // Asked for each time: registers are scarcer.
    const int rank = kCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    tile.m = (at.m * Plan::kClusterM + rank % Plan::kClusterM) * Plan::kTileM;
    tile.n = (at.n * Plan::kClusterN + rank / Plan::kClusterM % Plan::kClusterN) * Plan::kTileN;
    next_ += step_;
    return true;
  }
  /// Leaves `count` tiles to others.
  __device__ __forceinline__ void skip(int count) { next_ += count * step_; }

 private:
  int tiles_m_, tiles_n_;
  int per_batch_, end_;
  int next_, step_;
};

}  // namespace tilewright
