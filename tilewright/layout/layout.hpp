// Layouts: functions from coordinates to offsets, given by a shape and a stride for each of its leaves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {

/// CuTe's layout over run-time integers: (8,64):(64,1) takes the coordinate (i,j) to 64*i + j.
/// Strides may be zero or negative. They may also be scaled bases: (4,8):(1@0,1@1) takes (i,j) to the coordinate (i,j).
/// Invariant: shape and stride are congruent; every extent is an integer of at least 1, every stride an integer or a
/// scaled basis element.
class Layout {
 public:
  /// 1:0
  Layout() : shape_(1) {}
  /// @throws InvalidArgument when the invariant does not hold.
  Layout(IntTuple shape, IntTuple stride);

  const IntTuple& shape() const& { return shape_; }
  const IntTuple& stride() const& { return stride_; }
  IntTuple shape() && { return std::move(shape_); }
  IntTuple stride() && { return std::move(stride_); }
  int rank() const { return shape_.rank(); }
  /// Mode i as a layout. @throws InvalidArgument unless 0 <= i < rank().
  Layout mode(int i) const;

  /// The offset of a coordinate, or of a colexicographic index (an integer is a coordinate). Indices past the size
  /// extend the last mode. @throws InvalidArgument unless the coordinate is weakly congruent to the shape, and where
  /// strides are scaled bases (see coordinate()).
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t operator()(const IntTuple& coord) const;
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const {
    return (*this)(IntTuple{static_cast<std::int64_t>(coord)...});
  }

  bool operator==(const Layout&) const = default;

 private:
  /// For parts that are known to hold the invariant.
  struct Valid {};
  Layout(Valid, IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {}

  IntTuple shape_;
  IntTuple stride_;
};

/// Compact, first mode fastest: (4,(2,3)) -> (4,(2,3)):(1,(4,8)).
Layout make_layout(const IntTuple& shape);
Layout make_layout(const IntTuple& shape, const IntTuple& stride);
/// Compact, last leaf fastest: (4,8) -> (4,8):(8,1).
Layout make_row_major(const IntTuple& shape);
/// Compact; modes of less order are faster, see compact_order: ((4,8), (1,0)) -> (4,8):(8,1).
Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order);
/// Compact in the order of the layout's strides (by magnitude); its stride-0 modes stay so.
/// @post congruent shapes, cosize(r) == product of the extents whose stride is not 0
Layout make_layout_like(const Layout& layout);
/// A place to hold what `layout` has: mode 0 compact with the first leaf fastest (its stride-0 modes stay so), the
/// other modes above it in the order of the layout's strides.
Layout make_fragment_like(const Layout& layout);
/// The layout of coordinates themselves: (4,8) -> (4,8):(1@0,1@1). @post coordinate(r, c) == c
Layout make_identity_layout(const IntTuple& shape);
/// The layouts as modes of one. @pre not empty
Layout concatenate(std::vector<Layout> modes);

int depth(const Layout& layout);
/// Number of coordinates.
std::int64_t size(const Layout& layout);
/// 1 + the distance between the smallest and the largest offset; of coordinates, in each mode.
IntTuple coshape(const Layout& layout);
/// Product of the coshape.
std::int64_t cosize(const Layout& layout);
/// The value of a layout at a coordinate, whatever its strides: an integer, or a coordinate where they are bases.
IntTuple coordinate(const Layout& layout, const IntTuple& coord);
/// The coordinate, congruent to the layout's shape, of an offset; its digits found by dividing by the strides.
/// @throws InvalidArgument where that leads elsewhere: the layout does not reach the offset, or is not compact enough.
/// @post layout(r) == offset
IntTuple hierarchical_coord(const Layout& layout, std::int64_t offset);
/// The same, one integer for each mode.
IntTuple flat_coord(const Layout& layout, std::int64_t offset);

// Structure: each is its namesake on IntTuple, on the shape and on the stride at once.

Layout get(const Layout& layout, const Basis& path);
/// All leaves as one tuple of modes.
Layout flatten(const Layout& layout);
Layout unflatten(const Layout& layout, const IntTuple& profile);
Layout take(const Layout& layout, int begin, int end);
Layout select(const Layout& layout, const std::vector<int>& modes);
Layout append(const Layout& layout, const Layout& x);
Layout prepend(const Layout& layout, const Layout& x);
/// Modes x (1:0 by default) until there are `rank`.
Layout append(const Layout& layout, int rank, const Layout& x = Layout());
Layout prepend(const Layout& layout, int rank, const Layout& x = Layout());
Layout replace(const Layout& layout, int i, const Layout& x);
Layout group(const Layout& layout, int begin, int end);
Layout reverse(const Layout& layout);
Layout dice(const IntTuple& coord, const Layout& layout);

/// A part of a layout, and where it begins: an integer, or a coordinate where strides are bases.
struct LayoutAndOffset {
  Layout layout;
  IntTuple offset;
  bool operator==(const LayoutAndOffset&) const = default;
};
/// The modes that the coordinate names by `_`, see slice of IntTuple.
Layout slice(const IntTuple& coord, const Layout& layout);
/// The slice and the offset of the rest. @post layout(c with x in the places of _) == r.offset + r.layout(x)
LayoutAndOffset slice_and_offset(const IntTuple& coord, const Layout& layout);

/// "(8,64):(64,1)"
std::string to_string(const Layout& layout);

}  // namespace tilewright::layout
