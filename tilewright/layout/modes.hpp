// The working form of the algebra: a flat list of (extent, stride) modes, first mode fastest.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/small_vector.hpp"

namespace tilewright::layout {

struct Mode {
  std::int64_t extent = 1;
  std::int64_t stride = 0;  // times the basis element
  Basis basis = {};
};
using Modes = SmallVector<Mode, 8>;

Modes flat_modes(const Layout& layout);
/// As flat_modes. @throws InvalidArgument, naming the verb, where a stride is a scaled basis.
Modes integer_modes(const char* verb, const Layout& layout);

/// The modes as a shape and its stride: one mode is an integer layout, none is 1:0.
struct ShapeAndStride {
  IntTuple shape;
  IntTuple stride;
};
ShapeAndStride shape_and_stride(const Modes& modes);

/// Shape and stride of a tuple, mode by mode.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(int rank) {
    shapes_.reserve(static_cast<std::size_t>(rank));
    strides_.reserve(static_cast<std::size_t>(rank));
  }
  void append(ShapeAndStride mode) {
    shapes_.push_back(std::move(mode.shape));
    strides_.push_back(std::move(mode.stride));
  }
  void append(Layout mode) {
    shapes_.push_back(std::move(mode).shape());
    strides_.push_back(std::move(mode).stride());  // NOLINT(bugprone-use-after-move): its shape alone was moved
  }
  ShapeAndStride shape_and_stride() && {
    return {IntTuple::tuple(std::move(shapes_)), IntTuple::tuple(std::move(strides_))};
  }
  /// @throws InvalidArgument as the constructor of Layout does.
  Layout layout() && { return Layout(IntTuple::tuple(std::move(shapes_)), IntTuple::tuple(std::move(strides_))); }

 private:
  std::vector<IntTuple> shapes_;
  std::vector<IntTuple> strides_;
};

Layout from_modes(const Modes& modes);

/// Whether the layout (first, second) takes each offset below some end, its modes of stride 0 apart.
/// @pre injective, integer strides
bool fill_offsets(const Layout& first, const Layout& second);

/// Appends `next`, or makes the last mode longer where it continues that; an extent of 1 vanishes.
void append_merged(Modes& modes, const Mode& next);
/// Leaves the fewest modes of the same function below the size.
void merge(Modes& modes);
/// As merge, and the same function past the end too: a last extent of 1 still says where that end leads, so it is kept
/// as a mode that cannot vanish.
void merge_past_end(Modes& modes);

/// The modes as the leaves of a tree that has as many.
Layout with_profile(const Modes& modes, const IntTuple& profile);

/// (first, second): concatenate, without copies.
Layout pair_of(Layout first, Layout second);
/// composition(a, pair_of(first, second)) without making the pair. @throws as composition does
Layout composition_of_pair(const Layout& a, const Layout& first, const Layout& second);

/// The layout with each of its first `count` modes replaced by verb(mode, i).
template <class Verb>
Layout transform_first_modes(const Layout& layout, int count, Verb&& verb) {
  LayoutBuilder modes(layout.rank());
  for (int i = 0; i < layout.rank(); ++i) modes.append(i < count ? verb(layout.mode(i), i) : layout.mode(i));
  return std::move(modes).layout();
}

}  // namespace tilewright::layout
