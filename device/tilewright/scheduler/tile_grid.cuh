// The number of tiles of a matrix, and divisors with which a CTA finds its tile by multiplications.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// `tiles_m` x `tiles_n` tiles for each matrix of the batch; for the persistent scheduler, cluster tiles. See Raster
/// for groups.
struct TileGrid {
  int tiles_m, tiles_n;
  int groups;      // groups of CTAs of a persistent grid; see PersistentTiles
  Divisor matrix;  // by the number of tiles of a matrix
  Divisor group;   // by the number of tiles of a group that is not narrower than the others
  Divisor narrow;  // by the width of the last group if that is narrower
};

/// The same for numbers that only the device knows.
struct CountedTileGrid {
  struct Divisor {
    int divisor;
    __device__ __forceinline__ int quotient(int dividend) const { return dividend / divisor; }
  };
  int tiles_m, tiles_n;
  Divisor group, narrow;
};

}  // namespace tilewright
