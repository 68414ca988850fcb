// The working form of the algebra: a flat list of (extent, stride) modes, first mode fastest.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/layout/layout.hpp"

namespace tilewright::layout {

struct Mode {
  std::int64_t extent = 1;
  std::int64_t stride = 0;  // times the basis element
  Basis basis = {};
};
using Modes = std::vector<Mode>;

Modes flat_modes(const Layout& layout);
/// As flat_modes. @throws InvalidArgument, naming the verb, where a stride is a scaled basis.
Modes integer_modes(const char* verb, const Layout& layout);

/// The modes as a shape and its stride: one mode is an integer layout, none is 1:0.
struct ShapeAndStride {
  IntTuple shape;
  IntTuple stride;
};
ShapeAndStride shape_and_stride(const Modes& modes);
Layout from_modes(const Modes& modes);

/// Whether the layout takes each offset below some end, its modes of stride 0 apart. @pre injective, integer strides
bool fills_offsets(const Layout& layout);

/// Appends `next`, or makes the last mode longer where it continues that; an extent of 1 vanishes.
void append_merged(Modes& modes, const Mode& next);
/// The fewest modes of the same function below the size.
Modes merged(Modes modes);
/// As merged, and the same function past the end too: a last extent of 1 still says where that end leads, so it is kept
/// as a mode that cannot vanish.
Modes merged_past_end(Modes modes);

/// The modes as the leaves of a tree that has as many.
Layout with_profile(const Modes& modes, const IntTuple& profile);

/// (first, second): concatenate, without copies.
Layout pair_of(Layout first, Layout second);

/// The layout with each of its first `count` modes replaced by verb(mode, i).
template <class Verb>
Layout transform_first_modes(const Layout& layout, int count, Verb&& verb) {
  std::vector<Layout> modes;
  modes.reserve(static_cast<std::size_t>(layout.rank()));
  for (int i = 0; i < layout.rank(); ++i) modes.push_back(i < count ? verb(layout.mode(i), i) : layout.mode(i));
  return concatenate(std::move(modes));
}

}  // namespace tilewright::layout
