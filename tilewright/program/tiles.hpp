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

/// The order of plan::Raster of the tiles of a problem, in groups of the size of the kernel's cluster.
class TileOrder {
 public:
  /// `m`, `n`, `batch`: numbers of tiles, of launch variables.
  TileOrder(KernelBuilder& k, const Number& m, const Number& n, const Number& batch, const plan::Raster& raster);

  /// The number of groups.
  const Number& groups() const { return groups_; }
  /// This CTA's tile of a group. Its numbers are in registers.
  TileIndex tile(const Number& group) const;

 private:
  KernelBuilder* kernel_;
  plan::Raster raster_;
  /// Bands of raster_.width lie across the second mode, which is n, or m if the raster is along n.
  Number groups_along_, groups_across_;
  Number of_matrix_, of_band_, groups_;
};

/// The tiles of a problem, of which each CTA computes every n-th.
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
  TileOrder order_;
};

/// A part of a tile: its steps along k from `first_step` to before `end_step`, at least one.
struct TilePart {
  TileIndex tile;
  Number first_step, end_step;
};

/// The steps along k of all tiles, one tile after another, of which each CTA computes an equal number (stream-K). A CTA
/// has the rest of a tile that the CTA before it began, then whole tiles, then the beginning of one. There are at least
/// as many tiles as CTAs, so that at most two share a tile. CTAs are numbered from the last block on: blocks start in
/// their order, so that a CTA may wait for the one after it, whatever else the GPU computes.
class StreamedTiles {
 public:
  /// `steps`: of each tile, at least 1, of launch variables. Sets the grid to at most `max_ctas` CTAs. A launch with
  /// 2^31 steps or more is refused. @throws InvalidArgument for a kernel with clusters
  StreamedTiles(KernelBuilder& k, const TileOrder& order, const Number& steps, int max_ctas);

  /// The number of CTAs of a launch, of launch variables.
  const Number& ctas() const { return ctas_; }
  /// The number of this CTA.
  Number cta() const;
  /// Appends a loop over the parts of tiles of a CTA.
  void for_each(const Number& cta, const std::function<void(const TilePart&)>& body) const;
  /// The same in two pieces.
  TilePart begin(const Number& cta) const;
  void end() const { kernel_->end_loop(); }
  /// Whether the CTA after this one has the other steps of a part's tile.
  Number is_continued(const TilePart& part) const { return less(part.end_step, steps_); }

 private:
  Number first_step_of(const Number& cta) const;

  KernelBuilder* kernel_;
  TileOrder order_;
  Number steps_, all_steps_, ctas_;
  Number steps_of_cta_, longer_ctas_;  // the first longer_ctas_ CTAs have one step more
};

}  // namespace tilewright::program
