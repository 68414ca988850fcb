// Trees of integers: the shapes, strides and coordinates of layouts.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/layout/basis.hpp"

namespace tilewright::layout {

/// What can be a leaf: any integer that fits in 63 bits and a sign; no bool, and no floating-point number.
template <class T>
concept Integer =
    std::integral<T> && !std::same_as<T, bool> && (sizeof(T) < sizeof(std::int64_t) || std::is_signed_v<T>);

/// CuTe's `_`: a whole mode, in coordinates that slice and in tilers.
struct Underscore {
  constexpr bool operator==(const Underscore&) const = default;
};
inline constexpr Underscore _{};

/// An integer, or a tuple of IntTuples: 8, (2,3), ((2,2),8), ().
/// Braces make tuples: IntTuple{{2, 2}, 8} is ((2,2),8) and IntTuple{8} is the tuple (8); IntTuple(8) is the integer 8.
/// In the place of an integer may stand a scaled basis element, 64@1 (a stride that leads through coordinates), or `_`
/// (a whole mode). Both are leaves, and no integers: what computes with integers refuses them.
class IntTuple {
 public:
  IntTuple() = default;                              // the integer 0
  IntTuple(Integer auto value) : value_(value) {}    // NOLINT: an integer is an IntTuple
  IntTuple(Underscore) : kind_(Kind::underscore) {}  // NOLINT: so is a whole mode
  IntTuple(std::initializer_list<IntTuple> modes) : modes_(modes), kind_(Kind::tuple) {}
  static IntTuple tuple(std::vector<IntTuple> modes);
  static IntTuple tuple(const std::vector<std::int64_t>& leaves);
  /// value@i..., which is the integer `value` where the basis is empty.
  static IntTuple scaled_basis(std::int64_t value, Basis basis);

  /// No tuple: an integer, a scaled basis element or `_`.
  bool is_leaf() const { return kind_ != Kind::tuple; }
  bool is_integer() const { return kind_ == Kind::scalar && basis_.empty(); }
  bool is_underscore() const { return kind_ == Kind::underscore; }
  /// The integer. @throws InvalidArgument for anything else.
  std::int64_t value() const {
    if (!is_integer()) refuse_value();
    return value_;
  }
  /// 64 of 64@1, and of the integer 64. @throws InvalidArgument for a tuple and for `_`.
  std::int64_t basis_value() const {
    if (kind_ != Kind::scalar) refuse_value();
    return value_;
  }
  /// @1 of 64@1; empty for everything else.
  const Basis& basis() const { return basis_; }
  /// Number of modes; 1 for a leaf.
  int rank() const { return is_leaf() ? 1 : static_cast<int>(modes_.size()); }
  /// Mode i; a leaf is its own mode 0. @throws InvalidArgument unless 0 <= i < rank().
  const IntTuple& operator[](int i) const {
    if (i < 0 || i >= rank()) refuse_mode(i);
    return is_leaf() ? *this : modes_[static_cast<std::size_t>(i)];
  }

  bool operator==(const IntTuple&) const = default;

 private:
  enum class Kind : std::uint8_t { scalar, underscore, tuple };
  [[noreturn]] void refuse_value() const;
  [[noreturn]] void refuse_mode(int i) const;

  std::int64_t value_ = 0;
  std::vector<IntTuple> modes_;
  Basis basis_;
  Kind kind_ = Kind::scalar;
};

// Structure.

/// 0 for a leaf, else one more than the deepest mode.
int depth(const IntTuple& t);
/// The integers from left to right. @throws InvalidArgument where a leaf is no integer.
std::vector<std::int64_t> leaves(const IntTuple& t);
/// The mode that a path leads to: get(((2,3),8), {0,1}) is 3. @throws InvalidArgument where the path leaves the tree.
const IntTuple& get(const IntTuple& t, const Basis& path);
/// The tuple of the leaves; a leaf stays a leaf.
IntTuple flatten(const IntTuple& t);
/// The leaves of the tuple `flat` in the tree of `profile`: the inverse of flatten.
/// @throws InvalidArgument unless it has as many leaves. @post flatten(r) == flatten(flat), congruent(r, profile)
IntTuple unflatten(const IntTuple& flat, const IntTuple& profile);
/// Modes [begin, end) as a tuple. @throws InvalidArgument unless 0 <= begin < end <= rank.
IntTuple take(const IntTuple& t, int begin, int end);
/// The named modes, in that order, as a tuple.
IntTuple select(const IntTuple& t, const std::vector<int>& modes);
/// One mode more, x, at the end or at the front; a leaf t is its own one mode.
IntTuple append(const IntTuple& t, const IntTuple& x);
IntTuple prepend(const IntTuple& t, const IntTuple& x);
/// Modes x at the end or at the front until there are `rank`. @throws InvalidArgument when there are more already.
IntTuple append(const IntTuple& t, int rank, const IntTuple& x);
IntTuple prepend(const IntTuple& t, int rank, const IntTuple& x);
/// Mode i replaced by x.
IntTuple replace(const IntTuple& t, int i, const IntTuple& x);
/// Modes [begin, end) made one mode: group((2,3,5), 0, 2) is ((2,3),5).
IntTuple group(const IntTuple& t, int begin, int end);
/// The modes in reverse order; what is inside of each stays.
IntTuple reverse(const IntTuple& t);
/// The tree with each leaf replaced by verb(leaf), an IntTuple.
template <class Verb>
IntTuple transform_leaves(const IntTuple& t, Verb&& verb) {
  if (t.is_leaf()) return verb(t);
  std::vector<IntTuple> modes;
  modes.reserve(static_cast<std::size_t>(t.rank()));
  for (int i = 0; i < t.rank(); ++i) modes.push_back(transform_leaves(t[i], verb));
  return IntTuple::tuple(std::move(modes));
}
/// Each mode i of `t` replaced by verb(t[i], i); a leaf is its own one mode and stays without parentheses.
template <class Verb>
IntTuple transform_modes(const IntTuple& t, Verb&& verb) {
  if (t.is_leaf()) return verb(t, 0);
  std::vector<IntTuple> modes;
  modes.reserve(static_cast<std::size_t>(t.rank()));
  for (int i = 0; i < t.rank(); ++i) modes.push_back(verb(t[i], i));
  return IntTuple::tuple(std::move(modes));
}
bool has_underscore(const IntTuple& t);
bool has_basis(const IntTuple& t);

// Arithmetic.

/// a * b. @throws InvalidArgument when its magnitude does not fit in 63 bits, so that what is returned can be negated.
std::int64_t checked_product(std::int64_t a, std::int64_t b);
/// a + b. @throws as checked_product does.
std::int64_t checked_sum(std::int64_t a, std::int64_t b);
/// @throws InvalidArgument when it does not fit in 63 bits. The product of () is 1.
std::int64_t product(const IntTuple& t);
/// The product of each mode: ((2,2),8) -> (4,8). An integer stays one.
IntTuple product_each(const IntTuple& t);
/// The largest leaf. @throws InvalidArgument for ().
std::int64_t tuple_max(const IntTuple& t);
/// Sum of products of corresponding leaves. @throws InvalidArgument unless congruent.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);
/// a with each leaf multiplied by the product of what corresponds to it in b. @throws InvalidArgument unless weakly
/// congruent.
IntTuple elem_scale(const IntTuple& a, const IntTuple& b);
/// Exclusive products from the left, in the profile of t: ((2,3),4) -> ((1,2),6).
IntTuple prefix_product(const IntTuple& t, std::int64_t init = 1);
/// Exclusive products from the right, in the profile of t: ((2,3),4) -> ((12,4),1).
IntTuple suffix_product(const IntTuple& t, std::int64_t init = 1);
/// The strides that make a shape compact, its modes from the fastest to the slowest by growing order; inside of one
/// leaf of `order` the first is fastest, and so it is among equals. ((4,8), (1,0)) -> (8,1).
/// @throws InvalidArgument unless the order is weakly congruent to the shape.
IntTuple compact_order(const IntTuple& shape, const IntTuple& order);

/// ceil(a / b) for b > 0.
std::int64_t ceil_div(std::int64_t a, std::int64_t b);
/// ceil(a / b) as shapes: a tuple by an integer takes the integer out of its modes from the left, an integer by a tuple
/// is by its product, tuples are by mode and missing modes of b are 1.
IntTuple ceil_div(const IntTuple& a, const IntTuple& b);
/// a / b as shapes. Integers: ceil(a / b), where one divides the other. A tuple by an integer takes the integer out of
/// its modes from the left: ((6,2) / 12) = (1,1). An integer by a tuple is by its product; tuples by mode.
/// @throws InvalidArgument where neither divides the other.
IntTuple shape_div(const IntTuple& a, const IntTuple& b);

/// Elements of the module that coordinates live in (CuTe's ArithmeticTuple): scaled bases become tuples, 5@1 -> (0,5),
/// and tuples add by mode, the shorter one followed by zeros; 0 adds to anything.
/// @throws InvalidArgument where an integer other than 0 meets a tuple.
IntTuple operator+(const IntTuple& a, const IntTuple& b);
/// Each leaf times n.
IntTuple operator*(std::int64_t n, const IntTuple& t);
/// The tuple that a scaled basis element stands for: 5@1@0 -> ((0,5)). Everything else stays.
IntTuple as_arithmetic_tuple(const IntTuple& t);
/// The basis of a shape's coordinates: (4,(2,3)) -> (1@0,(1@0@1,1@1@1)); an integer's is 1.
IntTuple make_basis_like(const IntTuple& shape);

// Comparison.

/// Same tree, whatever the leaves.
bool congruent(const IntTuple& a, const IntTuple& b);
/// The tree of b refines that of a: an integer is weakly congruent to anything.
bool weakly_congruent(const IntTuple& a, const IntTuple& b);
/// Any coordinate of a is one of b: sizes agree, and so they do by mode wherever a is a tuple.
bool compatible(const IntTuple& a, const IntTuple& b);
/// Whether tiles of shape `tile` cover `shape` without overhang: by mode where the tile is a tuple, modes of the shape
/// past it are whole.
bool evenly_divides(const IntTuple& shape, const IntTuple& tile);
/// a before b in lexicographical and in colexicographical order: by the first, or the last, mode that differs. Where
/// all modes of one are those of the other, the shorter is first. @throws InvalidArgument where a tuple meets an
/// integer.
bool lex_less(const IntTuple& a, const IntTuple& b);
bool colex_less(const IntTuple& a, const IntTuple& b);
/// Every leaf of a is less than the one of b, which may have more modes.
/// @throws InvalidArgument where a tuple meets an integer.
bool elem_less(const IntTuple& a, const IntTuple& b);
/// As CuTe defines them: elem_leq(a, b) is not elem_less(b, a), elem_gtr is elem_less(b, a), elem_geq is not
/// elem_less(a, b). Of tuples, elem_leq asks that some leaf of b is not less than a's, not that all are.
bool elem_leq(const IntTuple& a, const IntTuple& b);
bool elem_gtr(const IntTuple& a, const IntTuple& b);
bool elem_geq(const IntTuple& a, const IntTuple& b);

// Coordinates.

/// The index, in units of `stride`, of a coordinate in a shape. An integer coordinate of a tuple shape counts
/// colexicographically; the last mode is not wrapped, so that indices past the end extend it.
/// @throws InvalidArgument unless the coordinate is weakly congruent to the shape, that congruent to the stride, all
/// are integers, and extents that an integer is counted through are at least 1; the latter here and below.
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape);
/// As crd2idx, for strides that may be scaled bases: the sum of digit * stride, as operator+ adds.
IntTuple coordinate(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
/// The coordinate, congruent to the shape, of a colexicographic index; the last mode is not wrapped. A tuple of indices
/// is taken by mode.
/// @post crd2idx(idx2crd(i, s), s) == i
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape);
/// The digit (index / stride) % extent for each leaf; 0 where the extent is 1 or the stride 0.
/// @post for an index that the compact layout shape:stride reaches, crd2idx(r, shape, stride) == index
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride);
/// The coordinate in shape `to` of a coordinate in shape `from`: by mode where all three are tuples, else through the
/// index. @post congruent(r, to), crd2idx(r, to) == crd2idx(coord, from) where taken through the index
IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to);
/// What `_` of the coordinate names: slice((_,(1,_)), (4,(2,3))) is (4,3), slice(_, t) is t, slice(1, t) is ().
/// @throws InvalidArgument where ranks differ.
IntTuple slice(const IntTuple& coord, const IntTuple& t);
/// What the coordinate names other than by `_`: dice((_,(1,_)), (4,(2,3))) is (2), dice(1, t) is t, dice(_, t) is ().
/// @throws InvalidArgument where ranks differ.
IntTuple dice(const IntTuple& coord, const IntTuple& t);

/// "((2,2),8)", "(1@0,64@1)", "(_,3)"
std::string to_string(const IntTuple& t);

}  // namespace tilewright::layout
