// The persistent scheduler of classes of rows, each of which has a K of its own.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Persistent CTAs, or clusters of kClusterM x kClusterN that are numbered along M first, take tiles, or cluster tiles,
/// in rounds: those of class 0 first, then those of class 1. Every other round is taken in reverse order, so that the
/// CTA that has a tile of a longer K than others in one round is among those that have a shorter one in the next. The
/// tiles of a class are in raster order. Plan: kTileM, kTileN, kClusterM, kClusterN, Raster, Groups, which is
/// RowClasses. Parameters of the kernel: groups.
template <class Plan>
class ClassTiles {
  static constexpr int kCtas = Plan::kClusterM * Plan::kClusterN;
  using Classes = typename Plan::Groups;

 public:
  using Tile = ClassTile;

  template <class Parameters>
  __device__ __forceinline__ explicit ClassTiles(const Parameters& parameters)
      : classes_(parameters.groups), place_(static_cast<int>(blockIdx.x) / kCtas) {}

  /// Sets `tile` to the next tile; returns false if no tile is left. The tile of a CTA of a cluster may lie behind the
  /// end of its class.
  __device__ __forceinline__ bool next(Tile& tile) {
    const int next = round_ + place_;
    if (next >= classes_.tiles) return false;
    int number = 0;
#pragma unroll
    for (int i = 1; i < Classes::kCount; ++i) number += next >= classes_.of[i].first_tile ? 1 : 0;
    const RowClass& own = classes_.of[number];
    const TileCoordinate at = Plan::Raster::tile(next - own.first_tile, own.grid);
    const int rank = kCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    tile.m = (at.m * Plan::kClusterM + rank % Plan::kClusterM) * Plan::kTileM;
    tile.n = (at.n * Plan::kClusterN + rank / Plan::kClusterM) * Plan::kTileN;
    tile.batch = number;
    tile.m_end = own.m;
    tile.k_end = own.k;
    const int tiles_of_round = static_cast<int>(gridDim.x) / kCtas;
    round_ += tiles_of_round;
    place_ = tiles_of_round - 1 - place_;
    return true;
  }

 private:
  const Classes& classes_;
  int round_ = 0;  // the first tile of the round
  int place_;      // in the round
};

}  // namespace tilewright
