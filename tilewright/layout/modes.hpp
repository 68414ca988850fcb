// Flat lists of (extent, stride) modes, first mode fastest, on which the algebra works.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/small_vector.hpp"

namespace tilewright::layout {

struct Mode {
  Number extent = 1;
  Number stride = 0;  // the factor of the basis element
  Basis basis = {};
};
using Modes = SmallVector<Mode, 8>;

Modes flat_modes(const Layout& layout);
/// flat_modes of a layout with integer strides. @throws InvalidArgument, which names the verb, for other strides
Modes integer_modes(const char* verb, const Layout& layout);

/// The shape and the stride of a list of modes: leaves for one mode, 1:0 for none.
struct ShapeAndStride {
  IntTuple shape;
  IntTuple stride;
};
ShapeAndStride shape_and_stride(const Modes& modes);

/// Builds a layout mode by mode.
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
    strides_.push_back(std::move(mode).stride());  // NOLINT(bugprone-use-after-move): only the shape was moved
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

/// Whether the layout (first, second), without stride-0 modes, reaches every offset below its cosize, as a condition.
/// @pre injective, integer strides
Number fill_offsets(const Layout& first, const Layout& second);

/// Appends `next`, merged into the last mode if it continues that. A mode of extent 1 is dropped.
void append_merged(Modes& modes, const Mode& next);
/// Merges adjacent modes and drops those of extent 1: coalesce.
void merge(Modes& modes);
/// merge that also preserves the function past the end: a last mode of extent 1 gives the stride of indices past the
/// end, so it is kept with extent 2.
void merge_past_end(Modes& modes);

/// The modes as the leaves of a profile with the same number of leaves.
Layout with_profile(const Modes& modes, const IntTuple& profile);

/// The layout (first, second).
Layout pair_of(Layout first, Layout second);
/// composition(a, pair_of(first, second)). @throws as composition does
Layout composition_of_pair(const Layout& a, const Layout& first, const Layout& second);

/// The layout with each of its first `count` modes replaced by verb(mode, i).
template <class Verb>
Layout transform_first_modes(const Layout& layout, int count, Verb&& verb) {
  LayoutBuilder modes(layout.rank());
  for (int i = 0; i < layout.rank(); ++i) modes.append(i < count ? verb(layout.mode(i), i) : layout.mode(i));
  return std::move(modes).layout();
}

}  // namespace tilewright::layout
