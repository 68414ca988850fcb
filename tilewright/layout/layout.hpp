// Layouts: functions from coordinates to offsets, given by a shape and a stride for each of its leaves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {

/// CuTe's layout over run-time integers: (8,64):(64,1) takes the coordinate (i,j) to 64*i + j.
/// Invariant: shape and stride are congruent; every extent is at least 1. Strides may be zero or negative.
class Layout {
 public:
  /// 1:0
  Layout() : shape_(1) {}
  /// @throws InvalidArgument when the invariant does not hold.
  Layout(IntTuple shape, IntTuple stride);

  const IntTuple& shape() const { return shape_; }
  const IntTuple& stride() const { return stride_; }
  int rank() const { return shape_.rank(); }
  /// Mode i as a layout. @throws InvalidArgument unless 0 <= i < rank().
  Layout mode(int i) const;

  /// The offset of a coordinate, or of a colexicographic index (an integer is a coordinate). Indices past the size
  /// extend the last mode. @throws InvalidArgument unless the coordinate is weakly congruent to the shape.
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t operator()(const IntTuple& coord) const;
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const {
    return (*this)(IntTuple{static_cast<std::int64_t>(coord)...});
  }

  bool operator==(const Layout&) const = default;

 private:
  IntTuple shape_;
  IntTuple stride_;
};

/// Compact, first mode fastest: (4,(2,3)) -> (4,(2,3)):(1,(4,8)).
Layout make_layout(const IntTuple& shape);
Layout make_layout(const IntTuple& shape, const IntTuple& stride);
/// Compact, last leaf fastest: (4,8) -> (4,8):(8,1).
Layout make_row_major(const IntTuple& shape);
/// Compact; mode order[i] of the strides grows i-th: ((4,8), {1,0}) -> (4,8):(8,1). Within a mode the first is fastest.
/// @throws InvalidArgument unless `order` is a permutation of the modes.
Layout make_ordered_layout(const IntTuple& shape, const std::vector<int>& order);
/// The layouts as modes of one. @pre not empty
Layout concatenate(const std::vector<Layout>& modes);

int depth(const Layout& layout);
/// Number of coordinates.
std::int64_t size(const Layout& layout);
/// 1 + the distance between the smallest and the largest offset.
std::int64_t cosize(const Layout& layout);
/// All leaves as one tuple of modes.
Layout flatten(const Layout& layout);

/// "(8,64):(64,1)"
std::string to_string(const Layout& layout);

}  // namespace tilewright::layout
