// Trees of integers: the shapes, strides and coordinates of layouts.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/layout/basis.hpp"
#include "tilewright/layout/number.hpp"

namespace tilewright::layout {

/// CuTe's `_`, in coordinates of slices and in tilers: the whole mode.
struct Underscore {
  constexpr bool operator==(const Underscore&) const = default;
};
inline constexpr Underscore _{};

/// An integer, or a tuple of IntTuples: 8, (2,3), ((2,2),8), (). An integer is a Number: static, or an expression that
/// is known at run time, as in (m,8). Functions that return std::int64_t or bool need static integers and refuse
/// others; beside them, functions named ..._of return a Number for any. Braces make tuples: IntTuple{{2, 2}, 8} is
/// ((2,2),8) and IntTuple{8} is the tuple (8); IntTuple(8) is the integer 8. A leaf may also be a scaled basis element,
/// 64@1 (a stride whose codomain is coordinates), or `_` (a whole mode). Functions that compute with integers refuse
/// those.
class IntTuple {
 public:
  IntTuple() : leaf_{} {}                                     // the integer 0
  IntTuple(Integer auto value) : leaf_{Number(value), {}} {}  // NOLINT: an integer is an IntTuple
  IntTuple(const Number& number) : leaf_{number, {}} {}       // NOLINT: so is a Number
  IntTuple(Underscore) : leaf_{}, kind_(Kind::underscore) {}  // NOLINT: so is `_`
  IntTuple(std::initializer_list<IntTuple> modes) : modes_(modes), kind_(Kind::tuple) {}
  IntTuple(const IntTuple& other) : kind_(other.kind_) {
    if (is_leaf()) {
      std::construct_at(&leaf_, other.leaf_);
    } else {
      std::construct_at(&modes_, other.modes_);
    }
  }
  IntTuple(IntTuple&& other) noexcept : kind_(other.kind_) { take_content(std::move(other)); }
  IntTuple& operator=(const IntTuple& other) {
    if (this != &other) *this = IntTuple(other);
    return *this;
  }
  IntTuple& operator=(IntTuple&& other) noexcept {
    IntTuple taken(std::move(other));  // may be a mode of this tuple
    destroy_content();
    kind_ = taken.kind_;
    take_content(std::move(taken));
    return *this;
  }
  ~IntTuple() { destroy_content(); }
  static IntTuple tuple(std::vector<IntTuple> modes);
  static IntTuple tuple(const std::vector<std::int64_t>& leaves);
  static IntTuple tuple(const std::vector<Number>& leaves);
  /// value@i...; the integer `value` if the basis is empty.
  static IntTuple scaled_basis(const Number& value, Basis basis);

  /// Whether it is an integer, a scaled basis element or `_`.
  bool is_leaf() const { return kind_ != Kind::tuple; }
  bool is_integer() const { return kind_ == Kind::scalar && leaf_.basis.empty(); }
  bool is_underscore() const { return kind_ == Kind::underscore; }
  /// Whether it is an integer that is known now.
  bool is_static() const { return is_integer() && leaf_.number.is_static(); }
  /// The static integer. @throws InvalidArgument for anything else.
  std::int64_t value() const {
    if (!is_static()) refuse_value();
    return leaf_.number.value();
  }
  /// The integer. @throws InvalidArgument for anything else.
  const Number& number() const {
    if (!is_integer()) refuse_value();
    return leaf_.number;
  }
  /// 64 for 64@1 and for the integer 64. @throws InvalidArgument for a tuple, for `_`, and for a run-time integer
  std::int64_t basis_value() const {
    if (kind_ != Kind::scalar || !leaf_.number.is_static()) refuse_value();
    return leaf_.number.value();
  }
  /// The same as a Number. @throws InvalidArgument for a tuple and for `_`.
  const Number& basis_number() const {
    if (kind_ != Kind::scalar) refuse_value();
    return leaf_.number;
  }
  /// @1 for 64@1; empty for everything else.
  const Basis& basis() const { return is_leaf() ? leaf_.basis : kNoBasis; }
  /// Number of modes; 1 for a leaf.
  int rank() const { return is_leaf() ? 1 : static_cast<int>(modes_.size()); }
  /// Mode i; a leaf is its own mode 0. @throws InvalidArgument unless 0 <= i < rank().
  const IntTuple& operator[](int i) const {
    if (i < 0 || i >= rank()) refuse_mode(i);
    return is_leaf() ? *this : modes_[static_cast<std::size_t>(i)];
  }

  bool operator==(const IntTuple& other) const {
    return kind_ == other.kind_ && (is_leaf() ? leaf_ == other.leaf_ : modes_ == other.modes_);
  }

 private:
  enum class Kind : std::uint8_t { scalar, underscore, tuple };
  [[noreturn]] void refuse_value() const;
  [[noreturn]] void refuse_mode(int i) const;

  void take_content(IntTuple&& other) noexcept {
    if (is_leaf()) {
      std::construct_at(&leaf_, other.leaf_);
    } else {
      std::construct_at(&modes_, std::move(other.modes_));
    }
  }
  void destroy_content() {
    if (!is_leaf()) std::destroy_at(&modes_);
  }

  struct Leaf {
    Number number;
    Basis basis;
    bool operator==(const Leaf&) const = default;
  };
  static constexpr Basis kNoBasis{};

  union {
    Leaf leaf_;                    // of a scalar and of `_`
    std::vector<IntTuple> modes_;  // of a tuple
  };
  Kind kind_ = Kind::scalar;
};

// Structure.

/// 0 for a leaf, else 1 + the largest depth of a mode.
int depth(const IntTuple& t);
/// The integers from left to right. @throws InvalidArgument if a leaf is not an integer
std::vector<std::int64_t> leaves(const IntTuple& t);
std::vector<Number> numbers_of(const IntTuple& t);
/// Whether all leaves are known now.
bool is_static(const IntTuple& t);
/// The tree with the values of its integers. @throws InvalidArgument as evaluate of a Number does
IntTuple evaluate(const IntTuple& t, const Bindings& bindings);
/// The mode at a path: get(((2,3),8), {0,1}) is 3. @throws InvalidArgument if there is no such mode
const IntTuple& get(const IntTuple& t, const Basis& path);
/// The tuple of the leaves; a leaf stays a leaf.
IntTuple flatten(const IntTuple& t);
/// The leaves of `flat` in the profile of `profile`: the inverse of flatten.
/// @throws InvalidArgument unless both have the same number of leaves. @post flatten(r) == flatten(flat), congruent(r,
/// profile)
IntTuple unflatten(const IntTuple& flat, const IntTuple& profile);
/// Modes [begin, end) as a tuple. @throws InvalidArgument unless 0 <= begin < end <= rank.
IntTuple take(const IntTuple& t, int begin, int end);
/// The given modes, in that order, as a tuple.
IntTuple select(const IntTuple& t, const std::vector<int>& modes);
/// Adds the mode x at the end or at the front. A leaf t counts as one mode.
IntTuple append(const IntTuple& t, const IntTuple& x);
IntTuple prepend(const IntTuple& t, const IntTuple& x);
/// Adds modes x at the end or at the front up to `rank` modes. @throws InvalidArgument if t has more
IntTuple append(const IntTuple& t, int rank, const IntTuple& x);
IntTuple prepend(const IntTuple& t, int rank, const IntTuple& x);
/// Replaces mode i by x.
IntTuple replace(const IntTuple& t, int i, const IntTuple& x);
/// Groups modes [begin, end) into one mode: group((2,3,5), 0, 2) is ((2,3),5).
IntTuple group(const IntTuple& t, int begin, int end);
/// The top-level modes in reverse order.
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
/// The tuple of verb(t[i], i); verb(t, 0) for a leaf.
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

/// The product of all leaves; 1 for (). @throws InvalidArgument if it does not fit in 63 bits
std::int64_t product(const IntTuple& t);
Number product_of(const IntTuple& t);
/// The product of each mode: ((2,2),8) -> (4,8). An integer remains an integer.
IntTuple product_each(const IntTuple& t);
/// The largest leaf. @throws InvalidArgument for ().
std::int64_t tuple_max(const IntTuple& t);
Number tuple_max_of(const IntTuple& t);
/// The sum of the products of corresponding leaves. @throws InvalidArgument unless congruent.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);
Number inner_product_of(const IntTuple& a, const IntTuple& b);
/// Each leaf of a times the product of the corresponding mode of b. @throws InvalidArgument unless a is weakly
/// congruent to b
IntTuple elem_scale(const IntTuple& a, const IntTuple& b);
/// Exclusive products from the left, in the profile of t: ((2,3),4) -> ((1,2),6).
IntTuple prefix_product(const IntTuple& t, const Number& init = 1);
/// Exclusive products from the right, in the profile of t: ((2,3),4) -> ((12,4),1).
IntTuple suffix_product(const IntTuple& t, const Number& init = 1);
/// The strides of a compact layout whose modes are faster the smaller their order is. Modes of equal order, and the
/// leaves within one leaf of `order`, are faster from left to right. ((4,8), (1,0)) -> (8,1).
/// @throws InvalidArgument unless the order is weakly congruent to the shape. Run-time orders (strides) that cannot be
/// compared are refused or recorded, see conditions.hpp
IntTuple compact_order(const IntTuple& shape, const IntTuple& order);

/// ceil(a / b) for b > 0.
std::int64_t ceil_div(std::int64_t a, std::int64_t b);
/// ceil(a / b) of shapes. A tuple by an integer divides its modes from left to right, an integer by a tuple divides by
/// the tuple's product, two tuples divide by mode, where missing modes of b are 1.
IntTuple ceil_div(const IntTuple& a, const IntTuple& b);
/// a / b of shapes. Integers: ceil(a / b), if one divides the other. A tuple by an integer divides its modes from left
/// to right: ((6,2) / 12) = (1,1). An integer by a tuple divides by the tuple's product; two tuples divide by mode.
/// @throws InvalidArgument if neither divides the other
IntTuple shape_div(const IntTuple& a, const IntTuple& b);

/// The sum of coordinates (CuTe's ArithmeticTuple): scaled basis elements become tuples, 5@1 -> (0,5); tuples add by
/// mode, the shorter one extended by zeros; 0 adds to anything.
/// @throws InvalidArgument for an integer other than 0 plus a tuple
IntTuple operator+(const IntTuple& a, const IntTuple& b);
/// Each leaf times n.
IntTuple scaled(const Number& n, const IntTuple& t);
template <std::same_as<IntTuple> T>  // no conversion of a Number to a tuple
IntTuple operator*(const Number& n, const T& t) {
  return scaled(n, t);
}
/// A scaled basis element as a tuple: 5@1@0 -> ((0,5)). Everything else is unchanged.
IntTuple as_arithmetic_tuple(const IntTuple& t);
/// The basis elements of a shape's coordinates: (4,(2,3)) -> (1@0,(1@0@1,1@1@1)); 1 for an integer.
IntTuple make_basis_like(const IntTuple& shape);

// Comparison.

/// Whether a and b have the same profile.
bool congruent(const IntTuple& a, const IntTuple& b);
/// Whether the profile of b refines that of a. An integer is weakly congruent to anything.
bool weakly_congruent(const IntTuple& a, const IntTuple& b);
/// Whether every coordinate of shape a is one of shape b: equal sizes, and compatible modes if a is a tuple. False if
/// it is not known for run-time extents; so is evenly_divides.
bool compatible(const IntTuple& a, const IntTuple& b);
/// Whether tiles of shape `tile` fill `shape` exactly. By mode if the tile is a tuple; further modes of the shape are
/// not tiled.
bool evenly_divides(const IntTuple& shape, const IntTuple& tile);
/// Whether a precedes b in lexicographical or colexicographical order: by the first or the last mode that differs. A
/// prefix precedes the longer tuple. @throws InvalidArgument if a tuple is compared with an integer
bool lex_less(const IntTuple& a, const IntTuple& b);
bool colex_less(const IntTuple& a, const IntTuple& b);
/// Whether every leaf of a is less than the corresponding one of b, which may have more modes.
/// @throws InvalidArgument if a tuple is compared with an integer
bool elem_less(const IntTuple& a, const IntTuple& b);
/// elem_less as a condition: the predicate of a coordinate.
Number elem_less_of(const IntTuple& a, const IntTuple& b);
/// As in CuTe: elem_leq(a, b) is !elem_less(b, a), elem_gtr(a, b) is elem_less(b, a), elem_geq(a, b) is !elem_less(a,
/// b). So for tuples elem_leq holds if some leaf of b is not less than that of a; it need not hold for all leaves.
bool elem_leq(const IntTuple& a, const IntTuple& b);
bool elem_gtr(const IntTuple& a, const IntTuple& b);
bool elem_geq(const IntTuple& a, const IntTuple& b);

// Coordinates.

/// The inner product of a coordinate with `stride` (by default the compact strides of the shape). An integer in place
/// of a tuple is a colexicographic index into that part of the shape; it does not wrap in the last mode, so that
/// indices past the end extend it.
/// @throws InvalidArgument unless the coordinate is weakly congruent to the shape, the shape congruent to the stride,
/// all leaves integers, and the extents that an index is divided by at least 1 (also the functions below)
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape);
/// crd2idx of run-time coordinates, shapes and strides.
Number index_of(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
Number index_of(const IntTuple& coord, const IntTuple& shape);
/// crd2idx for strides that may be scaled basis elements. Terms are added by operator+.
IntTuple coordinate(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride);
/// The coordinate, congruent to the shape, of a colexicographic index. The last mode does not wrap. A tuple of indices
/// is converted by mode.
/// @post crd2idx(idx2crd(i, s), s) == i
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape);
/// The digit (index / stride) % extent for each leaf; 0 where the extent is 1 or the stride 0.
/// @post for an index that the compact layout shape:stride reaches, crd2idx(r, shape, stride) == index
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride);
/// The coordinate in shape `to` of a coordinate in shape `from`: by mode if all three are tuples, else the one with the
/// same index. @post congruent(r, to)
IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to);
/// The modes of t where the coordinate is `_`: slice((_,(1,_)), (4,(2,3))) is (4,3), slice(_, t) is t, slice(1, t) is
/// ().
/// @throws InvalidArgument if ranks differ
IntTuple slice(const IntTuple& coord, const IntTuple& t);
/// The modes of t where the coordinate is not `_`: dice((_,(1,_)), (4,(2,3))) is (2), dice(1, t) is t, dice(_, t) is
/// ().
/// @throws InvalidArgument if ranks differ
IntTuple dice(const IntTuple& coord, const IntTuple& t);

/// "((2,2),8)", "(1@0,64@1)", "(_,3)"
std::string to_string(const IntTuple& t);

}  // namespace tilewright::layout
