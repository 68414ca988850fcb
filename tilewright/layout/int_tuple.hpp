// Trees of integers: the shapes, strides and coordinates of layouts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tilewright::layout {

/// An integer, or a tuple of IntTuples: 8, (2,3), ((2,2),8), ().
/// Braces make tuples: IntTuple{{2, 2}, 8} is ((2,2),8) and IntTuple{8} is the tuple (8); IntTuple(8) is the integer 8.
class IntTuple {
 public:
  IntTuple() = default;                            // the integer 0
  IntTuple(std::int64_t value) : value_(value) {}  // NOLINT: an integer is an IntTuple
  IntTuple(std::initializer_list<IntTuple> modes) : modes_(modes), is_leaf_(false) {}
  static IntTuple tuple(std::vector<IntTuple> modes);
  static IntTuple tuple(const std::vector<std::int64_t>& leaves);

  bool is_leaf() const { return is_leaf_; }
  /// @throws InvalidArgument for a tuple.
  std::int64_t value() const;
  /// Number of modes; 1 for an integer.
  int rank() const { return is_leaf_ ? 1 : static_cast<int>(modes_.size()); }
  /// Mode i; an integer is its own mode 0. @throws InvalidArgument unless 0 <= i < rank().
  const IntTuple& operator[](int i) const;

  bool operator==(const IntTuple&) const = default;

 private:
  std::int64_t value_ = 0;
  std::vector<IntTuple> modes_;
  bool is_leaf_ = true;
};

/// 0 for an integer, else one more than the deepest mode.
int depth(const IntTuple& t);
/// The leaves from left to right.
std::vector<std::int64_t> leaves(const IntTuple& t);
/// The tuple of the leaves; an integer stays an integer.
IntTuple flatten(const IntTuple& t);
/// @throws InvalidArgument when it does not fit in 63 bits. The product of () is 1.
std::int64_t product(const IntTuple& t);
/// Sum of products of corresponding leaves. @throws InvalidArgument unless congruent.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);
/// Exclusive products from the left, in the profile of t: ((2,3),4) -> ((1,2),6).
IntTuple prefix_product(const IntTuple& t, std::int64_t init = 1);

/// ceil(a / b) for b > 0.
std::int64_t ceil_div(std::int64_t a, std::int64_t b);
/// a / b as shapes. Integers: ceil(a / b), where one divides the other. A tuple by an integer takes the integer out of
/// its modes from the left: ((6,2) / 12) = (1,1). An integer by a tuple is by its product; tuples by mode.
/// @throws InvalidArgument where neither divides the other.
IntTuple shape_div(const IntTuple& a, const IntTuple& b);

/// Same tree, whatever the leaves.
bool congruent(const IntTuple& a, const IntTuple& b);
/// The tree of b refines that of a: an integer is weakly congruent to anything.
bool weakly_congruent(const IntTuple& a, const IntTuple& b);
/// Any coordinate of a is one of b: sizes agree, and so they do by mode wherever a is a tuple.
bool compatible(const IntTuple& a, const IntTuple& b);

/// The index, in units of `stride`, of a coordinate in a shape. An integer coordinate of a tuple shape counts
/// colexicographically; the last mode is not wrapped, so that indices past the end extend it.
/// @throws InvalidArgument unless the coordinate is weakly congruent to the shape, and the shape congruent to the
/// stride.
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape);
/// The coordinate, congruent to the shape, of a colexicographic index; the last mode is not wrapped.
/// Post: crd2idx(idx2crd(i, s), s) == i.
IntTuple idx2crd(std::int64_t index, const IntTuple& shape);

/// "((2,2),8)"
std::string to_string(const IntTuple& t);

}  // namespace tilewright::layout
