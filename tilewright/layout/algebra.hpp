// The algebra of layouts: simplify, compose, complement, divide, multiply, invert.
//
// Definitions follow CuTe C++. What a function cannot do exactly it refuses: @throws InvalidArgument that names the
// rule and the modes that broke it. No function returns a layout that breaks its post-condition.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/layout/layout.hpp"

namespace tilewright::layout {

/// One layout for each mode of another; nullopt leaves that mode whole.
struct Tiler {
  std::vector<std::optional<Layout>> modes;
  bool operator==(const Tiler&) const = default;
};
/// The tiler of contiguous extents: (128,64) -> <128:1, 64:1>.
Tiler make_tiler(const IntTuple& shape);

/// The fewest modes with the same function on [0, size): merges neighbours, drops extents of 1. Flat.
Layout coalesce(const Layout& layout);
/// coalesce, by mode where the profile is a tuple; modes past the profile are kept.
Layout coalesce(const Layout& layout, const IntTuple& profile);
/// coalesce of the layout without its stride-0 modes.
Layout filter(const Layout& layout);

/// R with R(c) == a(b(c)) for every c < size(b), and compatible(b.shape(), R.shape()).
/// Refused: a stride of b that neither divides nor is divided by a mode of a (stride divisibility), an extent of b that
/// crosses a mode of a elsewhere than at its end (shape divisibility), modes of b whose sum carries over a mode of a.
Layout composition(const Layout& a, const Layout& b);
/// By mode; modes of a past the tiler are dropped.
Layout composition(const Layout& a, const Tiler& b);

/// What `layout` misses of [0, cotarget): R ordered, disjoint from `layout` except at 0, and
/// size((layout, R)) covers cotarget. Refused: negative or overlapping strides, gaps that are not whole multiples.
Layout complement(const Layout& layout, std::int64_t cotarget);

/// (the tile b of a, the rest of a): a o (b, complement(b, size(a))).
Layout logical_divide(const Layout& a, const Layout& b);
/// By mode; modes of a past the tiler are kept whole.
Layout logical_divide(const Layout& a, const Tiler& b);
/// ((tiles), (rests)). Whole modes are rests: their tile is 1:0. With every mode tiled, mode 0 is composition(a, b).
Layout zipped_divide(const Layout& a, const Layout& b);
Layout zipped_divide(const Layout& a, const Tiler& b);

/// (a, copies of a laid out as b): (a, complement(a, size(a) * cosize(b)) o b).
Layout logical_product(const Layout& a, const Layout& b);
Layout logical_product(const Layout& a, const Tiler& b);
/// logical_product with mode i of a and mode i of b zipped: mode i is (a_i, b_i). A block of a for each element of b.
Layout blocked_product(const Layout& a, const Layout& b);
/// As blocked_product with (b_i, a_i): the elements of a are spread over copies of b.
Layout raked_product(const Layout& a, const Layout& b);
/// `block` repeated to cover `shape`, repetitions ordered as make_ordered_layout does (first mode fastest by default).
/// Refused: an extent of the block that does not divide the shape's.
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const std::vector<int>& order = {});

/// The longest R with layout(R(i)) == i for i < size(R).
Layout right_inverse(const Layout& layout);
/// R with layout(R(layout(i))) == layout(i) for i < size(layout). Refused: negative or overlapping strides, strides
/// that are not multiples of the smaller ones.
Layout left_inverse(const Layout& layout);

/// The layout in units of n elements. Refused: a stride that n neither divides nor is divided by.
Layout upcast(const Layout& layout, std::int64_t n);
/// The layout in units of 1/n element.
Layout downcast(const Layout& layout, std::int64_t n);

}  // namespace tilewright::layout
