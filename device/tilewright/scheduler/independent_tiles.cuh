// The persistent scheduler of groups that have extents, matrices and leading dimensions of their own.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Persistent CTAs, or clusters of kClusterM x kClusterN that are numbered along M first, take tiles, or cluster tiles,
/// round-robin: those of group 0 first, then those of group 1. The tiles of a group are in raster order. Each warp
/// counts the tiles of 32 groups at a time, from where its last tile was. If kIsTransposed, the problem is computed as
/// the transposed problem. Plan: kTileM, kTileN, Raster. Parameters of the kernel: m, n and k, which are the capacity,
/// and groups.
template <class Plan, bool kIsTransposed, int kClusterM = 1, int kClusterN = 1>
class IndependentTiles {
  static constexpr int kCtas = kClusterM * kClusterN;
  static constexpr int kRows = Plan::kTileM * kClusterM, kColumns = Plan::kTileN * kClusterN;

 public:
  using Tile = IndependentTile;

  /// There are `count` groups.
  template <class Parameters>
  __device__ __forceinline__ IndependentTiles(const Parameters& parameters, int count)
      : groups_(parameters.groups),
        count_(count),
        m_(parameters.m),
        n_(parameters.n),
        k_(parameters.k),
        next_(static_cast<int>(blockIdx.x) / kCtas) {}

  /// Sets `tile` to the next tile; returns false if no tile is left. The tile of a CTA of a cluster may lie behind the
  /// end of its group. Must be called by whole warps; all lanes get the result.
  __device__ __forceinline__ bool next(Tile& tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (; first_ < count_; first_ += 32) {
      const Extents own = extents(first_ + lane);
      const int tiles = ceil_div(own.m, kRows) * ceil_div(own.n, kColumns);
      const int through = before_ + sum_up_to_lane(tiles);
      const uint32_t behind = __ballot_sync(0xffffffff, through > next_);
      if (behind != 0) {
        const int source = __ffs(static_cast<int>(behind)) - 1;
        set(tile, first_ + source, next_ - __shfl_sync(0xffffffff, through - tiles, source));
        next_ += static_cast<int>(gridDim.x) / kCtas;
        return true;
      }
      before_ = __shfl_sync(0xffffffff, through, 31);
    }
    return false;
  }

 private:
  struct Extents {
    int m, n;
  };

  /// The number that group `group` has in `numbers`, from 0 to `capacity`.
  __device__ __forceinline__ int extent(int group, int number, int capacity) const {
    return min(max(ptx::load_global_constant_b32(groups_.extents + group * 3 + number), 0), capacity);
  }
  /// m and n of a group; zeros if there is no such group.
  __device__ __forceinline__ Extents extents(int group) const {
    if (group >= count_) return {0, 0};
    return {extent(group, kIsTransposed ? 1 : 0, m_), extent(group, kIsTransposed ? 0 : 1, n_)};
  }

  /// Sets `tile` to tile number `number` of a group.
  __device__ __forceinline__ void set(Tile& tile, int group, int number) const {
    const Extents own = extents(group);
    const TileCoordinate at =
        Plan::Raster::tile(number, Plan::Raster::counted_grid(ceil_div(own.m, kRows), ceil_div(own.n, kColumns)));
    const int rank = kCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    const int* const lds = groups_.leading_dimensions + static_cast<int64_t>(group) * 4;
    const auto ld = [&](int operand) { return ptx::load_global_constant_b32(lds + operand); };
    tile.m = at.m * kRows + rank % kClusterM * Plan::kTileM;
    tile.n = at.n * kColumns + rank / kClusterM * Plan::kTileN;
    tile.batch = group;
    tile.is_alone = own.m <= kRows;
    tile.m_end = own.m;
    tile.n_end = own.n;
    tile.k_end = extent(group, 2, k_);
    tile.ld_a = ld(kIsTransposed ? 1 : 0);
    tile.ld_b = ld(kIsTransposed ? 0 : 1);
    tile.ld_c = ld(2);
    tile.ld_d = ld(3);
  }

  IndependentGroups groups_;
  int count_, m_, n_, k_;
  int next_;
  int first_ = 0;   // the first of the 32 groups that are counted
  int before_ = 0;  // tiles of the groups before these
};

}  // namespace tilewright
