// The dynamic scheduler of kernels that split K in turn: which part of which tile a CTA computes next.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/k_part.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A part of K of a tile. `number` is that of the tile in raster order, matrix after matrix.
struct PartOfTile : TileOrigin {
  int number, part;
};

/// CTAs draw tickets: first for part 0 of all tiles, then for part 1. A CTA that ends early draws more of them, so that
/// all CTAs end within the time of one part. A part is drawn after all earlier parts of its tile, so a CTA may wait for
/// these without all CTAs being resident. Plan: kTileM, kTileN, kSplitK, Raster, kTicketCounter (offset in the
/// workspace of a counter, which is zero before the first CTA draws a ticket, and again when each has found no part
/// left).
template <class Plan>
class PartsInTurn {
 public:
  using Tile = PartOfTile;

  /// Each of the `batches` matrices has `grid.tiles_m` x `grid.tiles_n` tiles.
  __device__ __forceinline__ PartsInTurn(const TileGrid& grid, const uint32_t& batches, char* workspace)
      : grid_(grid), batches_(batches), workspace_(workspace) {}

  /// Draws the ticket of the next part; returns false if no part is left. All threads must call it. `shared` is memory
  /// for one ticket, which no thread reads or writes otherwise during the call.
  __device__ __forceinline__ bool next(int& ticket, void* shared) const {
    int* const drawn = static_cast<int*>(shared);
    const int parts = tiles() * Plan::kSplitK;
    if (ptx::thread() == 0) {
      const auto last = static_cast<uint32_t>(parts) + gridDim.x - 1;
      *drawn = static_cast<int>(
          ptx::increment_to_relaxed(reinterpret_cast<uint32_t*>(workspace_ + Plan::kTicketCounter), last));
    }
    __syncthreads();
    ticket = *drawn;
    __syncthreads();
    return ticket < parts;
  }

  /// The part with this ticket.
  __device__ __forceinline__ PartOfTile part_of(int ticket) const {
    PartOfTile tile;
    tile.part = ticket / tiles();
    tile.number = ticket - tile.part * tiles();
    tile.batch = grid_.matrix.quotient(tile.number);
    const TileCoordinate at = Plan::Raster::tile(tile.number - tile.batch * (grid_.tiles_m * grid_.tiles_n), grid_);
    tile.m = at.m * Plan::kTileM;
    tile.n = at.n * Plan::kTileN;
    return tile;
  }

 private:
  __device__ __forceinline__ int tiles() const { return grid_.tiles_m * grid_.tiles_n * static_cast<int>(batches_); }

  const TileGrid& grid_;
  const uint32_t& batches_;
  char* workspace_;
};

}  // namespace tilewright
