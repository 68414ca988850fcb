// Products, quotients, sums and comparisons of IntTuples.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {
namespace {

void require_same_rank(const char* what, const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf() || a.rank() != b.rank())
    throw InvalidArgument(fmt::format("{} of {} and {}: ranks differ", what, to_string(a), to_string(b)));
}

Number shape_div_leaf(const Number& a, const Number& b) {
  const auto refusal = [&] {
    return fmt::format("shape_div of {} by {}: neither divides the other", to_string(a), to_string(b));
  };
  require(less(0, minimum(a, b)), refusal);
  if (!holds(divides(a, b))) require(divides(b, a), refusal);
  return ceil_div(a, b);
}

Number ceil_div_leaf(const Number& a, const Number& b) {
  require(both(less_equal(0, a), less(0, b)),
          [&] { return fmt::format("ceil_div of {} by {}", to_string(a), to_string(b)); });
  return ceil_div(a, b);
}

/// The quotient of shapes, given that of integers and that of two tuples.
template <class Quotient, class ByMode>
IntTuple shape_quotient(const IntTuple& a, const IntTuple& b, Quotient&& quotient, ByMode&& by_mode) {
  if (a.is_leaf()) return quotient(a.number(), product_of(b));
  if (!b.is_leaf()) return by_mode(a, b);
  Number rest = b.number();
  return transform_modes(a, [&](const IntTuple& mode, int) {
    IntTuple divided = shape_quotient(mode, rest, quotient, by_mode);
    rest = quotient(rest, product_of(mode));
    return divided;
  });
}

/// Whether the mode at `first` is faster than that at `second`, which is after it.
bool is_faster(const std::vector<Number>& order, std::size_t first, std::size_t second) {
  const Decision is_slower = decide(less(order[second], order[first]));
  if (is_slower != Decision::unknown) return is_slower == Decision::no;
  require(less_equal(order[first], order[second]), [&] {
    return fmt::format("compact_order: whether {} is at most {}, so that its mode is faster", to_string(order[first]),
                       to_string(order[second]));
  });
  return true;
}

/// compact_order of a part of the shape. flat_shape and flat_order have the size and the order of every leaf of the
/// whole order; `at` is the next leaf.
IntTuple compact_part(const IntTuple& shape, const IntTuple& order, const std::vector<Number>& flat_shape,
                      const std::vector<Number>& flat_order, std::size_t& at) {
  if (!order.is_leaf()) {
    require_same_rank("compact_order", shape, order);
    return transform_modes(
        shape, [&](const IntTuple& mode, int i) { return compact_part(mode, order[i], flat_shape, flat_order, at); });
  }
  Number start = 1;
  for (std::size_t i = 0; i < flat_order.size(); ++i) {
    if (i < at ? is_faster(flat_order, i, at) : i > at && !is_faster(flat_order, at, i)) start *= flat_shape[i];
  }
  ++at;
  return prefix_product(shape, start);
}

/// Appends the product of the mode of t at each leaf of `guide`.
void collect_products(const IntTuple& t, const IntTuple& guide, std::vector<Number>& out) {
  if (guide.is_leaf()) {
    out.push_back(product_of(t));
    return;
  }
  require_same_rank("compact_order", t, guide);
  for (int i = 0; i < guide.rank(); ++i) collect_products(t[i], guide[i], out);
}

IntTuple basis_below(const IntTuple& shape, const Basis& path) {
  if (shape.is_leaf()) return IntTuple::scaled_basis(1, path);
  return transform_modes(shape, [&](const IntTuple& mode, int i) { return basis_below(mode, path.child(i)); });
}

bool is_zero(const IntTuple& t) { return t.is_integer() && t.number() == 0; }

/// Whether a condition holds. @throws InvalidArgument if that is known only at run time
bool decided(const Number& condition) {
  const Decision decision = decide(condition);
  if (decision == Decision::unknown)
    throw InvalidArgument(fmt::format("whether {} is known only at run time", to_string(condition)));
  return decision == Decision::yes;
}

void require_comparable(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() != b.is_leaf())
    throw InvalidArgument(fmt::format("comparison of {} with {}", to_string(a), to_string(b)));
}

/// Whether a precedes b by the first mode that differs, in the order of mode_of(t, i).
template <class ModeOf>
bool precedes(const IntTuple& a, const IntTuple& b, ModeOf&& mode_of) {
  require_comparable(a, b);
  if (a.is_leaf()) return decided(less(a.number(), b.number()));
  for (int i = 0; i < std::min(a.rank(), b.rank()); ++i) {
    const IntTuple& x = mode_of(a, i);
    const IntTuple& y = mode_of(b, i);
    if (precedes(x, y, mode_of)) return true;
    if (x != y) return false;
  }
  return a.rank() < b.rank();
}

}  // namespace

Number product_of(const IntTuple& t) {
  if (t.is_leaf()) return t.number();
  Number result = 1;
  for (int i = 0; i < t.rank(); ++i) result *= product_of(t[i]);
  return result;
}

std::int64_t product(const IntTuple& t) { return product_of(t).value(); }

IntTuple product_each(const IntTuple& t) {
  return transform_modes(t, [](const IntTuple& mode, int) { return product_of(mode); });
}

Number tuple_max_of(const IntTuple& t) {
  const std::vector<Number> all = numbers_of(t);
  if (all.empty()) throw InvalidArgument("tuple_max of ()");
  Number most = all.front();
  for (const Number& leaf : all) most = maximum(most, leaf);
  return most;
}

std::int64_t tuple_max(const IntTuple& t) { return tuple_max_of(t).value(); }

Number inner_product_of(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() && b.is_leaf()) return a.number() * b.number();
  require_same_rank("inner product", a, b);
  Number result = 0;
  for (int i = 0; i < a.rank(); ++i) result += inner_product_of(a[i], b[i]);
  return result;
}

std::int64_t inner_product(const IntTuple& a, const IntTuple& b) { return inner_product_of(a, b).value(); }

IntTuple elem_scale(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf()) return a.number() * product_of(b);
  require_same_rank("elem_scale", a, b);
  return transform_modes(a, [&](const IntTuple& mode, int i) { return elem_scale(mode, b[i]); });
}

IntTuple prefix_product(const IntTuple& t, const Number& init) {
  Number running = init;
  return transform_leaves(t, [&](const IntTuple& leaf) -> IntTuple {
    const Number before = running;
    running *= leaf.number();
    return before;
  });
}

IntTuple suffix_product(const IntTuple& t, const Number& init) {
  const std::vector<Number> extents = numbers_of(t);
  std::vector<Number> products(extents.size());
  Number running = init;
  for (std::size_t i = extents.size(); i > 0; --i) {
    products[i - 1] = running;
    running *= extents[i - 1];
  }
  return unflatten(IntTuple::tuple(products), t);
}

IntTuple compact_order(const IntTuple& shape, const IntTuple& order) {
  std::vector<Number> flat_shape;
  collect_products(shape, order, flat_shape);
  std::size_t at = 0;
  return compact_part(shape, order, flat_shape, numbers_of(order), at);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  TILEWRIGHT_CHECK(b > 0, "ceil_div of {} by {}", a, b);
  return a / b + (a % b > 0 ? 1 : 0);
}

IntTuple ceil_div(const IntTuple& a, const IntTuple& b) {
  return shape_quotient(a, b, ceil_div_leaf, [](const IntTuple& x, const IntTuple& y) {
    const IntTuple divisors = append(y, x.rank(), 1);
    return transform_modes(x, [&](const IntTuple& mode, int i) { return ceil_div(mode, divisors[i]); });
  });
}

IntTuple shape_div(const IntTuple& a, const IntTuple& b) {
  return shape_quotient(a, b, shape_div_leaf, [](const IntTuple& x, const IntTuple& y) {
    require_same_rank("shape_div", x, y);
    return transform_modes(x, [&](const IntTuple& mode, int i) { return shape_div(mode, y[i]); });
  });
}

IntTuple operator+(const IntTuple& a, const IntTuple& b) {
  if (a.is_integer() && b.is_integer()) return a.number() + b.number();
  if (is_zero(a)) return as_arithmetic_tuple(b);
  if (is_zero(b)) return as_arithmetic_tuple(a);
  const IntTuple x = as_arithmetic_tuple(a);
  const IntTuple y = as_arithmetic_tuple(b);
  if (x.is_leaf() || y.is_leaf())
    throw InvalidArgument(
        fmt::format("{} + {}: the only integer that may be added to a coordinate is 0", to_string(a), to_string(b)));
  const int rank = std::max(x.rank(), y.rank());
  const IntTuple tail = append(y, rank, 0);
  return transform_modes(append(x, rank, 0), [&](const IntTuple& mode, int i) { return mode + tail[i]; });
}

IntTuple scaled(const Number& n, const IntTuple& t) {
  return transform_leaves(
      t, [&](const IntTuple& leaf) { return IntTuple::scaled_basis(n * leaf.basis_number(), leaf.basis()); });
}

IntTuple as_arithmetic_tuple(const IntTuple& t) {
  if (!t.is_leaf()) return transform_modes(t, [](const IntTuple& mode, int) { return as_arithmetic_tuple(mode); });
  IntTuple result = t.basis().empty() ? t : IntTuple(t.basis_number());
  for (int i = t.basis().depth() - 1; i >= 0; --i) {
    std::vector<IntTuple> modes(static_cast<std::size_t>(t.basis()[i]), IntTuple(0));
    modes.push_back(std::move(result));
    result = IntTuple::tuple(std::move(modes));
  }
  return result;
}

IntTuple make_basis_like(const IntTuple& shape) { return basis_below(shape, Basis()); }

bool congruent(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf()) return a.is_leaf() && b.is_leaf();
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!congruent(a[i], b[i])) return false;
  }
  return true;
}

bool weakly_congruent(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf()) return true;
  if (b.is_leaf() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!weakly_congruent(a[i], b[i])) return false;
  }
  return true;
}

bool compatible(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf()) return holds(equal(a.number(), product_of(b)));
  if (b.is_leaf() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!compatible(a[i], b[i])) return false;
  }
  return true;
}

bool evenly_divides(const IntTuple& shape, const IntTuple& tile) {
  if (tile.is_leaf()) return holds(equal(product_of(shape), product_of(tile) * product_of(ceil_div(shape, tile))));
  if (tile.rank() > shape.rank()) return false;
  for (int i = 0; i < tile.rank(); ++i) {
    if (!evenly_divides(shape[i], tile[i])) return false;
  }
  return true;
}

bool lex_less(const IntTuple& a, const IntTuple& b) {
  return precedes(a, b, [](const IntTuple& t, int i) -> const IntTuple& { return t[i]; });
}

bool colex_less(const IntTuple& a, const IntTuple& b) {
  return precedes(a, b, [](const IntTuple& t, int i) -> const IntTuple& { return t[t.rank() - 1 - i]; });
}

Number elem_less_of(const IntTuple& a, const IntTuple& b) {
  require_comparable(a, b);
  if (a.is_leaf()) return less(a.number(), b.number());
  if (a.rank() > b.rank()) return 0;
  Number all = 1;
  for (int i = 0; i < a.rank() && all != 0; ++i) all = both(all, elem_less_of(a[i], b[i]));
  return all;
}

bool elem_less(const IntTuple& a, const IntTuple& b) { return decided(elem_less_of(a, b)); }

bool elem_leq(const IntTuple& a, const IntTuple& b) { return !elem_less(b, a); }
bool elem_gtr(const IntTuple& a, const IntTuple& b) { return elem_less(b, a); }
bool elem_geq(const IntTuple& a, const IntTuple& b) { return !elem_less(a, b); }

}  // namespace tilewright::layout
