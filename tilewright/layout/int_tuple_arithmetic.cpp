// Products, quotients, sums and comparisons of IntTuples.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {
namespace {

void require_same_rank(const char* what, const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf() || a.rank() != b.rank())
    throw InvalidArgument(fmt::format("{} of {} and {}: ranks differ", what, to_string(a), to_string(b)));
}

std::int64_t shape_div_leaf(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0 || (a % b != 0 && b % a != 0))
    throw InvalidArgument(fmt::format("shape_div of {} by {}: neither divides the other", a, b));
  return ceil_div(a, b);
}

std::int64_t ceil_div_leaf(std::int64_t a, std::int64_t b) {
  if (a < 0 || b <= 0) throw InvalidArgument(fmt::format("ceil_div of {} by {}", a, b));
  return ceil_div(a, b);
}

/// The quotient of shapes, given that of integers and that of two tuples.
template <class Quotient, class ByMode>
IntTuple shape_quotient(const IntTuple& a, const IntTuple& b, Quotient&& quotient, ByMode&& by_mode) {
  if (a.is_leaf()) return quotient(a.value(), product(b));
  if (!b.is_leaf()) return by_mode(a, b);
  std::int64_t rest = b.value();
  return transform_modes(a, [&](const IntTuple& mode, int) {
    IntTuple divided = shape_quotient(mode, rest, quotient, by_mode);
    rest = quotient(rest, product(mode));
    return divided;
  });
}

/// compact_order of a part of the shape. flat_shape and flat_order have the size and the order of every leaf of the
/// whole order; `at` is the next leaf.
IntTuple compact_part(const IntTuple& shape, const IntTuple& order, const std::vector<std::int64_t>& flat_shape,
                      const std::vector<std::int64_t>& flat_order, std::size_t& at) {
  if (!order.is_leaf()) {
    require_same_rank("compact_order", shape, order);
    return transform_modes(
        shape, [&](const IntTuple& mode, int i) { return compact_part(mode, order[i], flat_shape, flat_order, at); });
  }
  std::int64_t start = 1;
  for (std::size_t i = 0; i < flat_order.size(); ++i) {
    if (flat_order[i] < flat_order[at] || (flat_order[i] == flat_order[at] && i < at))
      start = checked_product(start, flat_shape[i]);
  }
  ++at;
  return prefix_product(shape, start);
}

/// Appends the product of the mode of t at each leaf of `guide`.
void collect_products(const IntTuple& t, const IntTuple& guide, std::vector<std::int64_t>& out) {
  if (guide.is_leaf()) {
    out.push_back(product(t));
    return;
  }
  require_same_rank("compact_order", t, guide);
  for (int i = 0; i < guide.rank(); ++i) collect_products(t[i], guide[i], out);
}

IntTuple basis_below(const IntTuple& shape, const Basis& path) {
  if (shape.is_leaf()) return IntTuple::scaled_basis(1, path);
  return transform_modes(shape, [&](const IntTuple& mode, int i) { return basis_below(mode, path.child(i)); });
}

bool is_zero(const IntTuple& t) { return t.is_integer() && t.value() == 0; }

void require_comparable(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() != b.is_leaf())
    throw InvalidArgument(fmt::format("comparison of {} with {}", to_string(a), to_string(b)));
}

/// Whether a precedes b by the first mode that differs, in the order of mode_of(t, i).
template <class ModeOf>
bool precedes(const IntTuple& a, const IntTuple& b, ModeOf&& mode_of) {
  require_comparable(a, b);
  if (a.is_leaf()) return a.value() < b.value();
  for (int i = 0; i < std::min(a.rank(), b.rank()); ++i) {
    const IntTuple& x = mode_of(a, i);
    const IntTuple& y = mode_of(b, i);
    if (precedes(x, y, mode_of)) return true;
    if (x != y) return false;
  }
  return a.rank() < b.rank();
}

}  // namespace

std::int64_t product(const IntTuple& t) {
  if (t.is_leaf()) return t.value();
  std::int64_t result = 1;
  for (int i = 0; i < t.rank(); ++i) result = checked_product(result, product(t[i]));
  return result;
}

IntTuple product_each(const IntTuple& t) {
  return transform_modes(t, [](const IntTuple& mode, int) { return product(mode); });
}

std::int64_t tuple_max(const IntTuple& t) {
  const std::vector<std::int64_t> all = leaves(t);
  if (all.empty()) throw InvalidArgument("tuple_max of ()");
  return *std::max_element(all.begin(), all.end());
}

std::int64_t inner_product(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() && b.is_leaf()) return checked_product(a.value(), b.value());
  require_same_rank("inner product", a, b);
  std::int64_t result = 0;
  for (int i = 0; i < a.rank(); ++i) result = checked_sum(result, inner_product(a[i], b[i]));
  return result;
}

IntTuple elem_scale(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf()) return checked_product(a.value(), product(b));
  require_same_rank("elem_scale", a, b);
  return transform_modes(a, [&](const IntTuple& mode, int i) { return elem_scale(mode, b[i]); });
}

IntTuple prefix_product(const IntTuple& t, std::int64_t init) {
  return transform_leaves(t, [&](const IntTuple& leaf) -> IntTuple {
    const std::int64_t before = init;
    init = checked_product(init, leaf.value());
    return before;
  });
}

IntTuple suffix_product(const IntTuple& t, std::int64_t init) {
  const std::vector<std::int64_t> extents = leaves(t);
  std::vector<std::int64_t> products(extents.size());
  for (std::size_t i = extents.size(); i > 0; --i) {
    products[i - 1] = init;
    init = checked_product(init, extents[i - 1]);
  }
  return unflatten(IntTuple::tuple(products), t);
}

IntTuple compact_order(const IntTuple& shape, const IntTuple& order) {
  std::vector<std::int64_t> flat_shape;
  collect_products(shape, order, flat_shape);
  std::size_t at = 0;
  return compact_part(shape, order, flat_shape, leaves(order), at);
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
  if (a.is_integer() && b.is_integer()) return checked_sum(a.value(), b.value());
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

IntTuple operator*(std::int64_t n, const IntTuple& t) {
  return transform_leaves(t, [&](const IntTuple& leaf) {
    return IntTuple::scaled_basis(checked_product(n, leaf.basis_value()), leaf.basis());
  });
}

IntTuple as_arithmetic_tuple(const IntTuple& t) {
  if (!t.is_leaf()) return transform_modes(t, [](const IntTuple& mode, int) { return as_arithmetic_tuple(mode); });
  IntTuple result = t.basis().empty() ? t : IntTuple(t.basis_value());
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
  if (a.is_leaf()) return a.value() == product(b);
  if (b.is_leaf() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!compatible(a[i], b[i])) return false;
  }
  return true;
}

bool evenly_divides(const IntTuple& shape, const IntTuple& tile) {
  if (tile.is_leaf()) return product(shape) == product(tile) * product(ceil_div(shape, tile));
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

bool elem_less(const IntTuple& a, const IntTuple& b) {
  require_comparable(a, b);
  if (a.is_leaf()) return a.value() < b.value();
  if (a.rank() > b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!elem_less(a[i], b[i])) return false;
  }
  return true;
}

bool elem_leq(const IntTuple& a, const IntTuple& b) { return !elem_less(b, a); }
bool elem_gtr(const IntTuple& a, const IntTuple& b) { return elem_less(b, a); }
bool elem_geq(const IntTuple& a, const IntTuple& b) { return !elem_less(a, b); }

}  // namespace tilewright::layout
