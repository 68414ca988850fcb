// The tiles of D that persistent CTAs compute, one after another.
#pragma once

#include <functional>

#include "tilewright/plan/design.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {

/// A tile by its number along each mode.
struct TileIndex {
  Number m, n, batch;
};

/// The tiles of a problem, in the order of plan::Raster.
class PersistentTiles {
 public:
  /// `m`, `n`, `batch`: numbers of tiles, of launch variables. Sets the grid to at most `max_groups` groups of CTAs of
  /// the kernel's cluster along x, which each take every n-th group of tiles. CTAs of a cluster that follow each other
  /// along z have the same tile.
  PersistentTiles(KernelBuilder& k, const Number& m, const Number& n, const Number& batch, const plan::Raster& raster,
                  int max_groups);

  /// Appends a loop over the tiles of this CTA.
  void for_each(const std::function<void(const TileIndex&)>& body) const;
  /// The same in two pieces.
  TileIndex begin() const;
  void end() const { kernel_->end_loop(); }

 private:
  KernelBuilder* kernel_;
  plan::Raster raster_;
  /// Groups of tiles of the cluster's size. Bands of raster_.width lie across the second mode, which is n, or m if the
  /// raster is along n.
  Number groups_along_, groups_across_;
  Number of_matrix_, of_band_, groups_;
};

}  // namespace tilewright::program
