// The persistent schedulers of groups whose sizes are in device memory.
#pragma once

#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Persistent CTAs, or clusters, take tiles, or cluster tiles, round-robin: those of group 0 first, then those of group
/// 1. Groups differ in m or, if kAlongN, in n. The tiles of a group are walked along this mode first, in bands of up to
/// kBand tiles, so that tiles that share the group's matrix of the other operand are computed at the same time. Before
/// the first tile, the CTA counts the tiles of the groups in a table in shared memory. It has kEntries entries; if
/// there are more groups, an entry stands for several. Plan: kTileM, kTileN, kClusterM, kClusterN. Parameters of the
/// kernel: m, n, batches (the number of groups), tiles, groups.
template <class Plan, bool kAlongN, bool kIsStacked>
class GroupTiles {
  static constexpr int kCtas = Plan::kClusterM * Plan::kClusterN;
  static constexpr int kExtent = kAlongN ? Plan::kTileN : Plan::kTileM;
  static constexpr int kClusterAlong = kAlongN ? Plan::kClusterN : Plan::kClusterM;
  static constexpr int kClusterExtent = kExtent * kClusterAlong;
  static constexpr int kBand = 16;
  static constexpr int kEntries = 256;
  static constexpr int kMaxWarps = 16;

 public:
  using Tile = GroupTile<kAlongN, kIsStacked>;
  static constexpr int kSharedBytes = (kEntries + kMaxWarps) * 4;

  /// Must be called by all kThreads threads of the CTA: writes the table to kSharedBytes at the shared address
  /// `shared`. Ends with a barrier.
  template <int kThreads, class Parameters>
  static __device__ __forceinline__ void prepare(const Parameters& parameters, uint32_t shared) {
    static_assert(kThreads <= 32 * kMaxWarps);
    const int thread = static_cast<int>(threadIdx.x);
    const int groups = parameters.batches;
    const int chunk = ceil_div(groups, kEntries);
    const int entries = ceil_div(groups, chunk);
    int before = 0;  // tiles of the entries of earlier rounds
#pragma unroll 1
    for (int first = 0; first < entries; first += kThreads) {
      int tiles = 0;
#pragma unroll 1
      for (int i = 0; i < chunk; ++i) {
        tiles += tile_count(group_interval<kIsStacked>(parameters.groups.ends, groups, capacity(parameters),
                                                       (first + thread) * chunk + i));
      }
      int through = sum_up_to_lane(tiles);
      if (thread % 32 == 31) ptx::store_shared(shared + (kEntries + thread / 32) * 4, through);
      __syncthreads();
      through += before;
#pragma unroll 1
      for (int warp = 0; warp < kThreads / 32; ++warp) {
        const int of_warp = ptx::load_shared<int>(shared + (kEntries + warp) * 4);
        if (warp < thread / 32) through += of_warp;
        before += of_warp;
      }
      if (first + thread < entries) ptx::store_shared(shared + (first + thread) * 4, through);
      __syncthreads();
    }
  }

  /// `shared` is the address that prepare() had.
  template <class Parameters>
  __device__ __forceinline__ GroupTiles(const Parameters& parameters, uint32_t shared)
      : ends_(parameters.groups.ends),
        groups_(parameters.batches),
        capacity_(capacity(parameters)),
        others_(kAlongN ? parameters.tiles.tiles_m : parameters.tiles.tiles_n),
        shared_(shared),
        next_(static_cast<int>(blockIdx.x) / kCtas) {}

  /// Sets `tile` to the next tile; returns false if no tile is left. Along the mode that does not differ, the tile may
  /// lie outside D; along the other, the tile of a CTA of a cluster may lie behind the end of its group.
  __device__ __forceinline__ bool next(Tile& tile) {
    const int chunk = ceil_div(groups_, kEntries);
    const int entries = ceil_div(groups_, chunk);
    const int stack = through(entries - 1);
    if (next_ >= stack * others_) return false;
    find(next_, chunk, entries, tile);
    next_ += static_cast<int>(gridDim.x) / kCtas;
    return true;
  }
  /// Skips `count` tiles, which other warpgroups compute.
  __device__ __forceinline__ void skip(int count) { next_ += count * (static_cast<int>(gridDim.x) / kCtas); }

 private:
  template <class Parameters>
  static __device__ __forceinline__ int capacity(const Parameters& parameters) {
    return kAlongN ? parameters.n : parameters.m;
  }
  static __device__ __forceinline__ int tile_count(const GroupInterval& interval) {
    return ceil_div(interval.end - interval.begin, kClusterExtent);
  }
  /// The number of tiles of the entries up to `entry`.
  __device__ __forceinline__ int through(int entry) const { return ptx::load_shared<int>(shared_ + entry * 4); }

  /// Sets `tile` to the tile of this CTA in cluster tile number `number`.
  __device__ __forceinline__ void find(int number, int chunk, int entries, Tile& tile) const {
    int place = number / others_;  // in the stack of the groups' cluster tiles
    int low = 0, high = entries - 1;
#pragma unroll 1
    while (low < high) {
      const int middle = (low + high) / 2;
      if (through(middle) > place) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    int before = low > 0 ? through(low - 1) : 0;
    int group = low * chunk;
    GroupInterval interval = group_interval<kIsStacked>(ends_, groups_, capacity_, group);
#pragma unroll 1
    while (place >= before + tile_count(interval) && group + 1 < groups_) {
      before += tile_count(interval);
      interval = group_interval<kIsStacked>(ends_, groups_, capacity_, ++group);
    }
    number -= before * others_;
    const int tiles = tile_count(interval);
    const int height = ceil_div(tiles, ceil_div(tiles, kBand));  // of a band; the last may be lower
    const int first = number / (height * others_) * height;
    number -= first * others_;
    const int own_height = min(height, tiles - first);
    const int across = number / own_height;
    const int along = first + number - across * own_height;
    const int rank = kCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    const int rank_m = rank % Plan::kClusterM, rank_n = rank / Plan::kClusterM % Plan::kClusterN;
    const int from = interval.begin + (along * kClusterAlong + (kAlongN ? rank_n : rank_m)) * kExtent;
    tile.m = kAlongN ? (across * Plan::kClusterM + rank_m) * Plan::kTileM : from;
    tile.n = kAlongN ? from : (across * Plan::kClusterN + rank_n) * Plan::kTileN;
    tile.batch = group;
    tile.begin = interval.begin;
    tile.end = interval.end;
    tile.is_alone = tiles == 1;
  }

  const int* ends_;
  int groups_, capacity_;
  int others_;  // tiles along the mode that does not differ
  uint32_t shared_;
  int next_;
};

/// Groups that end along K: the tiles of PersistentTiles, where a matrix of the batch is a group. If kIsStacked, the
/// groups follow each other along K. Parameters of the kernel: k, batches, tiles, groups.
template <class Plan, bool kIsStacked>
class GroupKTiles {
 public:
  using Tile = GroupKTile;

  template <class Parameters>
  __device__ __forceinline__ explicit GroupKTiles(const Parameters& parameters)
      : tiles_(parameters.tiles, parameters.batches),
        ends_(parameters.groups.ends),
        groups_(parameters.batches),
        capacity_(parameters.k) {}

  __device__ __forceinline__ bool next(Tile& tile) {
    if (!tiles_.next(tile)) return false;
    const GroupInterval k = group_interval<kIsStacked>(ends_, groups_, capacity_, tile.batch);
    tile.k_begin = k.begin;
    tile.k_end = k.end;
    return true;
  }

 private:
  PersistentTiles<Plan> tiles_;
  const int* ends_;
  int groups_, capacity_;
};

}  // namespace tilewright
