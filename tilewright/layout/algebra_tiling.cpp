// Divides, products, partitions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

Layout divide(const Layout& a, const Layout& tile) {
  const Layout rest = complement(tile, size_of(a));
  require(fill_offsets(tile, rest), [&] {
    return fmt::format("logical_divide of {} by {}: the tile has gaps that its complement does not fill", to_string(a),
                       to_string(tile));
  });
  return composition_of_pair(a, tile, rest);
}

Layout multiply(const Layout& block, const Layout& copies) {
  const Number needed = cosize_of(copies);
  const Number room = size_of(block) * needed;
  Layout rest = complement(block, room);
  // If the complement leaves gaps (a stride that is not a multiple of the span below it), it is too small for all
  // copies: continue past the block.
  if (!holds(less_equal(needed, size_of(rest)))) rest = complement(block, maximum(room, 2 * cosize_of(block)));
  return pair_of(block, composition(rest, copies));
}

void require_rank(const char* verb, const Layout& a, const Tiler& tiler) {
  if (tiler.rank() == 0 || tiler.rank() > a.rank())
    throw InvalidArgument(fmt::format("{} of {} by mode with {}: the tiler has {} modes, the layout {}", verb,
                                      to_string(a), to_string(tiler), tiler.rank(), a.rank()));
}

/// verb(a, tile), by-mode if the tiler is a tuple. Modes with tiler `_` are kept.
template <class Verb>
Layout by_mode(const char* name, const Layout& a, const Tiler& tiler, Verb&& verb) {
  if (tiler.is_whole()) return a;
  if (tiler.is_layout()) return verb(a, tiler.layout());
  require_rank(name, a, tiler);
  return transform_first_modes(a, tiler.rank(),
                               [&](const Layout& mode, int i) { return by_mode(name, mode, tiler[i], verb); });
}

/// by_mode, zipped: ((first, ...), (second, ..., modes past the tiler)), where verb returns (first, second) for each
/// mode. A mode with tiler `_` is second; its first is 1:0.
template <class Verb>
Layout zipped(const char* name, const Layout& a, const Tiler& tiler, Verb&& verb) {
  if (tiler.is_whole()) return pair_of(Layout(), a);
  if (tiler.is_layout()) return verb(a, tiler.layout());
  require_rank(name, a, tiler);
  LayoutBuilder first(tiler.rank());
  LayoutBuilder second(a.rank());
  for (int i = 0; i < a.rank(); ++i) {
    if (i < tiler.rank()) {
      const Layout pair = zipped(name, a.mode(i), tiler[i], verb);
      first.append(pair.mode(0));
      second.append(pair.mode(1));
    } else {
      second.append(a.mode(i));
    }
  }
  return pair_of(std::move(first).layout(), std::move(second).layout());
}

void push_modes(std::vector<Layout>& out, const Layout& layout) {
  for (int i = 0; i < layout.rank(); ++i) out.push_back(layout.rank() == 1 ? layout : layout.mode(i));
}

/// (a, (b, c)) -> (a, b, c)
Layout with_flat_second(const Layout& pair) {
  std::vector<Layout> modes = {pair.mode(0)};
  push_modes(modes, pair.mode(1));
  return concatenate(std::move(modes));
}

/// ((a, b), (c, d)) -> (a, b, c, d)
Layout with_flat_modes(const Layout& pair) {
  std::vector<Layout> modes;
  push_modes(modes, pair.mode(0));
  push_modes(modes, pair.mode(1));
  return concatenate(std::move(modes));
}

/// The layout with modes (first_i, second_i). @pre equal ranks
Layout zip(const Layout& first, const Layout& second) {
  if (first.shape().is_leaf() && second.shape().is_leaf()) return pair_of(first, second);
  return transform_first_modes(first, first.rank(),
                               [&](const Layout& mode, int i) { return pair_of(mode, second.mode(i)); });
}

Layout padded_product(const Layout& a, const Layout& b) {
  const int rank = std::max(a.rank(), b.rank());
  return multiply(append(a, rank), append(b, rank));
}

IntTuple whole_modes(int rank) {
  return rank == 1 ? IntTuple(_) : IntTuple::tuple(std::vector<IntTuple>(static_cast<std::size_t>(rank), _));
}

/// A tuple coordinate, extended by `_` up to the rank.
IntTuple padded_coord(const IntTuple& coord, int rank) { return coord.is_leaf() ? coord : append(coord, rank, _); }

/// The tiler and the coordinate of a thread in it, for outer_partition.
struct ThreadTile {
  Tiler tiler;
  IntTuple coord;
};
ThreadTile thread_tile(const Layout& threads, const Number& index) {
  const IntTuple extents = product_each(threads.shape());
  return {make_tiler(extents.is_leaf() ? IntTuple{extents} : extents), flat_coord(threads, index)};
}

}  // namespace

Layout logical_divide(const Layout& a, const Tiler& b) { return by_mode("logical_divide", a, b, divide); }
Layout zipped_divide(const Layout& a, const Tiler& b) { return zipped("zipped_divide", a, b, divide); }
Layout tiled_divide(const Layout& a, const Tiler& b) { return with_flat_second(zipped("tiled_divide", a, b, divide)); }
Layout flat_divide(const Layout& a, const Tiler& b) { return with_flat_modes(zipped("flat_divide", a, b, divide)); }

Layout logical_product(const Layout& a, const Tiler& b) { return by_mode("logical_product", a, b, multiply); }
Layout zipped_product(const Layout& a, const Tiler& b) { return zipped("zipped_product", a, b, multiply); }
Layout tiled_product(const Layout& a, const Tiler& b) {
  return with_flat_second(zipped("tiled_product", a, b, multiply));
}
Layout flat_product(const Layout& a, const Tiler& b) { return with_flat_modes(zipped("flat_product", a, b, multiply)); }

Layout blocked_product(const Layout& a, const Layout& b) {
  const Layout product = padded_product(a, b);
  return zip(product.mode(0), product.mode(1));
}

Layout raked_product(const Layout& a, const Layout& b) {
  const Layout product = padded_product(a, b);
  return zip(product.mode(1), product.mode(0));
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order) {
  if (block.rank() > shape.rank())
    throw InvalidArgument(fmt::format("tile_to_shape of {} to {}: the block has more modes than the shape",
                                      to_string(block), to_string(shape)));
  const Layout block_of_rank = append(block, shape.rank());
  const IntTuple repeats = transform_modes(product_each(shape), [&](const IntTuple& target, int i) -> IntTuple {
    const Number extent = size_of(block_of_rank.mode(i));
    require(divides(extent, target.number()), [&] {
      return fmt::format("tile_to_shape of {} to {}: in mode {}, {} does not divide {}", to_string(block),
                         to_string(shape), i, to_string(extent), to_string(target));
    });
    return target.number() / extent;
  });
  return blocked_product(block_of_rank, make_ordered_layout(repeats, order));
}

LayoutAndOffset inner_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord) {
  const Layout tiled = zipped("inner_partition", layout, tiler, divide);
  return slice_and_offset({whole_modes(tiled.mode(0).rank()), padded_coord(coord, tiled.mode(1).rank())}, tiled);
}

LayoutAndOffset outer_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord) {
  const Layout tiled = zipped("outer_partition", layout, tiler, divide);
  return slice_and_offset({padded_coord(coord, tiled.mode(0).rank()), whole_modes(tiled.mode(1).rank())}, tiled);
}

LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord) {
  return inner_partition(layout, tiler, coord);
}

LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                           const IntTuple& projection) {
  return inner_partition(layout, dice(projection, tiler), dice(projection, coord));
}

LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, const Number& index) {
  const ThreadTile part = thread_tile(threads, index);
  return outer_partition(layout, part.tiler, part.coord);
}

LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, const Number& index,
                                const IntTuple& projection) {
  const ThreadTile part = thread_tile(threads, index);
  return outer_partition(layout, dice(projection, part.tiler), dice(projection, part.coord));
}

}  // namespace tilewright::layout
