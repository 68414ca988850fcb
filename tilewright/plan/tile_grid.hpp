// The tile counts and divisors from which a kernel computes which tile a CTA takes: TileGrid of
// device/tilewright/scheduler/tile_grid.cuh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

/// A divisor d as the multiplier ceil(2^shift / d), where shift = 31 + ceil(log2(d)). The product of the multiplier and
/// a dividend n exceeds n * 2^shift / d by less than n, which is below 2^31. The quotient of n and d differs from the
/// next integer by at least 1/d >= 2^31 / 2^shift, so that shifting the product yields the floor of the quotient.
/// Source: Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994.
struct Divisor {
  std::uint32_t multiplier = std::uint32_t{1} << 31, shift = 31;

  Divisor() = default;
  /// @pre 1 <= divisor < 2^31
  explicit Divisor(std::int64_t divisor);
  /// @pre 0 <= dividend < 2^31
  std::int64_t quotient(std::int64_t dividend) const;
};

struct TileGrid {
  std::int32_t tiles_m = 0, tiles_n = 0;
  std::int32_t groups = 0;  // see PersistentTiles; 0 for a grid that is not persistent
  Divisor matrix, group, narrow;
};

/// Tile columns, or tile rows if `raster.along_n`, that are walked together; the last group may be narrower.
std::int64_t group_width(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n);

/// The number of different tile rows and of different tile columns.
struct TileSpan {
  std::int64_t rows = 0, columns = 0;
};
/// The span of the first `count` tiles in this order, or of all tiles if there are fewer.
TileSpan span_of_first(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t count);

/// The grid of a matrix with `tiles_m` x `tiles_n` tiles, which `raster` puts in order; 0 tiles are legal.
/// @pre tiles_m * tiles_n and the number of tiles of a group are below 2^31
TileGrid tile_grid(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t groups = 0);

/// Describes a field of type Divisor of the device; see parameters.hpp. `divisor` is a function that returns it.
template <class Sink, class Get>
void describe_divisor(Sink& sink, const char* name, const Get& divisor) {
  sink.begin(name);
  sink.field("multiplier", [&] { return divisor().multiplier; });
  sink.field("shift", [&] { return divisor().shift; });
  sink.end(sizeof(std::uint32_t));
}

/// A divisor for an extent that may be 0, of something that then has no elements.
inline Divisor divisor_by(std::int64_t extent) { return Divisor(std::max<std::int64_t>(extent, 1)); }

/// Describes the Divisor by an extent, which `extent` returns.
template <class Sink, class Get>
void describe_divisor_by(Sink& sink, const char* name, const Get& extent) {
  describe_divisor(sink, name, [&] { return divisor_by(extent()); });
}

/// Describes a field of type TileGrid; see parameters.hpp. `grid` is a function that returns it.
template <class Sink, class Grid>
void describe_tile_grid(Sink& sink, const char* name, const Grid& grid) {
  sink.begin(name);
  sink.field("tiles_m", [&] { return grid().tiles_m; });
  sink.field("tiles_n", [&] { return grid().tiles_n; });
  sink.field("groups", [&] { return grid().groups; });
  describe_divisor(sink, "matrix", [&] { return grid().matrix; });
  describe_divisor(sink, "group", [&] { return grid().group; });
  describe_divisor(sink, "narrow", [&] { return grid().narrow; });
  sink.end(sizeof(std::uint32_t));
}

}  // namespace tilewright::plan
