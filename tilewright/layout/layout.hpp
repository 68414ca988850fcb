// Layouts: functions from coordinates to offsets, given by a shape and a stride for each of its leaves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {

/// CuTe's layout over run-time integers: (8,64):(64,1) maps the coordinate (i,j) to 64*i + j.
/// Strides may be zero or negative, or scaled basis elements: (4,8):(1@0,1@1) maps (i,j) to the coordinate (i,j).
/// Invariant: shape and stride are congruent; every extent is an integer of at least 1, every stride an integer or a
/// scaled basis element. Extents and strides may be launch values, (m,k):(lda,1); values of the kernel may not, they
/// are coordinates and offsets.
class Layout {
 public:
  /// 1:0
  Layout() : shape_(1) {}
  /// @throws InvalidArgument unless the invariant holds
  Layout(IntTuple shape, IntTuple stride);

  const IntTuple& shape() const& { return shape_; }
  const IntTuple& stride() const& { return stride_; }
  IntTuple shape() && { return std::move(shape_); }
  IntTuple stride() && { return std::move(stride_); }
  int rank() const { return shape_.rank(); }
  /// Mode i as a layout. @throws InvalidArgument unless 0 <= i < rank().
  Layout mode(int i) const;

  /// The offset of a coordinate or of a colexicographic index. Indices past the size extend the last mode.
  /// @throws InvalidArgument if the coordinate is not weakly congruent to the shape, or if strides are scaled basis
  /// elements (see coordinate())
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t operator()(const IntTuple& coord) const;
  /// The same for run-time layouts and coordinates. @throws as operator() does
  Number at(const IntTuple& coord) const;
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const {
    return (*this)(IntTuple{static_cast<std::int64_t>(coord)...});
  }
  template <class... Coord>
  requires(sizeof...(Coord) >= 2) Number at(const Coord&... coord)
  const { return at(IntTuple{IntTuple(coord)...}); }

  bool operator==(const Layout&) const = default;

 private:
  /// Tag for parts that are known to satisfy the invariant.
  struct Valid {};
  Layout(Valid, IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {}

  IntTuple shape_;
  IntTuple stride_;
};

/// A compact layout, first mode fastest: (4,(2,3)) -> (4,(2,3)):(1,(4,8)).
Layout make_layout(const IntTuple& shape);
Layout make_layout(const IntTuple& shape, const IntTuple& stride);
/// A compact layout, last leaf fastest: (4,8) -> (4,8):(8,1).
Layout make_row_major(const IntTuple& shape);
/// A compact layout; modes of smaller order are faster, see compact_order: ((4,8), (1,0)) -> (4,8):(8,1).
Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order);
/// A compact layout whose modes are ordered as the layout's strides (by magnitude). Stride-0 modes keep stride 0.
/// @post congruent shapes, cosize(r) == product of the extents whose stride is not 0
Layout make_layout_like(const Layout& layout);
/// A compact layout for a register fragment of `layout`: mode 0 fastest, with its first leaf first (its stride-0 modes
/// keep stride 0); the other modes follow in the order of the layout's strides.
Layout make_fragment_like(const Layout& layout);
/// The layout that maps coordinates to themselves: (4,8) -> (4,8):(1@0,1@1). @post coordinate(r, c) == c
Layout make_identity_layout(const IntTuple& shape);
/// The layout whose modes are `modes`. @pre not empty
Layout concatenate(std::vector<Layout> modes);

int depth(const Layout& layout);
/// Number of coordinates.
std::int64_t size(const Layout& layout);
Number size_of(const Layout& layout);
/// Whether all extents and strides are known now.
bool is_static(const Layout& layout);
/// The layout with the values of its extents and strides. @throws InvalidArgument as evaluate of a Number does
Layout evaluate(const Layout& layout, const Bindings& bindings);
/// 1 + the distance between the smallest and the largest offset, in each mode of the codomain.
IntTuple coshape(const Layout& layout);
/// Product of the coshape.
std::int64_t cosize(const Layout& layout);
Number cosize_of(const Layout& layout);
/// The value of a layout at a coordinate: an integer, or a coordinate if the strides are scaled basis elements.
IntTuple coordinate(const Layout& layout, const IntTuple& coord);
/// The coordinate of an offset, congruent to the layout's shape, found by division by the strides.
/// @throws InvalidArgument if division does not find one: the layout does not reach the offset, or is not compact
/// @post layout(r) == offset
IntTuple hierarchical_coord(const Layout& layout, const Number& offset);
/// hierarchical_coord with one integer for each mode.
IntTuple flat_coord(const Layout& layout, const Number& offset);

// Structure: the functions of IntTuple of the same names, applied to shape and stride.

Layout get(const Layout& layout, const Basis& path);
/// All leaves as one tuple of modes.
Layout flatten(const Layout& layout);
Layout unflatten(const Layout& layout, const IntTuple& profile);
Layout take(const Layout& layout, int begin, int end);
Layout select(const Layout& layout, const std::vector<int>& modes);
Layout append(const Layout& layout, const Layout& x);
Layout prepend(const Layout& layout, const Layout& x);
/// Adds modes x up to `rank` modes.
Layout append(const Layout& layout, int rank, const Layout& x = Layout());
Layout prepend(const Layout& layout, int rank, const Layout& x = Layout());
Layout replace(const Layout& layout, int i, const Layout& x);
Layout group(const Layout& layout, int begin, int end);
Layout reverse(const Layout& layout);
Layout dice(const IntTuple& coord, const Layout& layout);

/// A part of a layout and its offset: an integer, or a coordinate if strides are scaled basis elements.
struct LayoutAndOffset {
  Layout layout;
  IntTuple offset;
  bool operator==(const LayoutAndOffset&) const = default;
};
/// The modes where the coordinate is `_`, see slice of IntTuple.
Layout slice(const IntTuple& coord, const Layout& layout);
/// The slice, and the offset of the coordinate with 0 for each `_`. @post layout(coord with x for _) == r.offset +
/// r.layout(x)
LayoutAndOffset slice_and_offset(const IntTuple& coord, const Layout& layout);

/// "(8,64):(64,1)"
std::string to_string(const Layout& layout);

}  // namespace tilewright::layout
