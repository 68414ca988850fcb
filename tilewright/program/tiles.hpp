// The tiles of D that persistent CTAs compute, one after another.
#pragma once

#include <functional>

#include "tilewright/program/instructions.hpp"

namespace tilewright::program {

/// A tile by its number along each mode.
struct TileIndex {
  Number m, n, batch;
};

/// The tiles of a problem, in raster order: groups of `raster` tile columns are walked row by row, so that CTAs which
/// run at the same time share rows of A and columns of B in L2.
class PersistentTiles {
 public:
  /// `m`, `n`, `batch`: numbers of tiles, of launch variables. Sets the grid to at most `max_groups` groups of CTAs of
  /// the kernel's cluster along x, which each take every n-th group of tiles.
  PersistentTiles(KernelBuilder& k, const Number& m, const Number& n, const Number& batch, int raster, int max_groups);

  /// Appends a loop over the tiles of this CTA.
  void for_each(const std::function<void(const TileIndex&)>& body) const;
  /// The same in two pieces.
  TileIndex begin() const;
  void end() const { kernel_->end_loop(); }

 private:
  KernelBuilder* kernel_;
  int raster_;
  Number groups_m_, groups_n_;  // groups of tiles of the cluster's size, along each mode
  Number of_matrix_, of_band_, groups_;
};

}  // namespace tilewright::program
