// Conversions between coordinates and indices; slice and dice.
#include <fmt/format.h>

#include <cstdlib>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {
namespace {

void require_congruent(const IntTuple& shape, const IntTuple& stride) {
  if (!congruent(shape, stride))
    throw InvalidArgument(fmt::format("stride {} is not congruent to shape {}", to_string(stride), to_string(shape)));
}

void require_rank(const IntTuple& coord, const IntTuple& t) {
  if (t.is_leaf() || coord.rank() != t.rank())
    throw InvalidArgument(fmt::format("coordinate {} of {}: ranks differ", to_string(coord), to_string(t)));
}

/// The size of a part of a shape. @throws InvalidArgument unless it is at least 1
[[noreturn]] void refuse_extent(const IntTuple& part, const Number& extent) {
  throw InvalidArgument(
      fmt::format("coordinates need extents of at least 1, got {} in {}", to_string(extent), to_string(part)));
}
inline Number extent_of(const IntTuple& part) {
  const Number extent = part.is_integer() ? part.number() : product_of(part);
  if (extent.lower() < 1) refuse_extent(part, extent);
  return extent;
}

/// The digit of an index in a leaf of a compact layout.
Number digit_of(const Number& index, const IntTuple& shape, const Number& stride) {
  const Number extent = extent_of(shape);
  if (extent == 1 || stride == 0) return 0;
  return (stride == -1 ? index * -1 : index / stride) % extent;  // index / -1 may overflow
}

/// Calls visit(digit, stride) for the digit of an index in each leaf of a shape. Only the last leaf does not wrap.
template <class Visit>
void visit_index(Number index, const IntTuple& shape, const IntTuple& stride, Visit&& visit) {
  if (shape.is_leaf()) return visit(index, stride);
  for (int i = 0; i < shape.rank(); ++i) {
    const bool last = i + 1 == shape.rank();
    const Number extent = extent_of(shape[i]);
    visit_index(last ? index : index % extent, shape[i], stride[i], visit);
    if (!last) index = index / extent;
  }
}

template <class Visit>
void visit_coord(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride, Visit&& visit) {
  if (coord.is_leaf()) return visit_index(coord.number(), shape, stride, visit);
  require_rank(coord, shape);
  for (int i = 0; i < coord.rank(); ++i) visit_coord(coord[i], shape[i], stride[i], visit);
}

/// Appends the modes of t at whose place the coordinate has `_` (or has something else), as a flat list.
void collect_named(const IntTuple& coord, const IntTuple& t, bool by_underscore, std::vector<IntTuple>& out) {
  if (coord.is_leaf()) {
    if (coord.is_underscore() == by_underscore) out.push_back(t);
    return;
  }
  require_rank(coord, t);
  for (int i = 0; i < coord.rank(); ++i) collect_named(coord[i], t[i], by_underscore, out);
}

IntTuple named(const IntTuple& coord, const IntTuple& t, bool by_underscore) {
  std::vector<IntTuple> modes;
  collect_named(coord, t, by_underscore, modes);
  return coord.is_leaf() && !modes.empty() ? t : IntTuple::tuple(std::move(modes));
}

}  // namespace

Number index_of(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
  require_congruent(shape, stride);
  Number index = 0;
  visit_coord(coord, shape, stride, [&](const Number& digit, const IntTuple& step) { index += digit * step.number(); });
  return index;
}

Number index_of(const IntTuple& coord, const IntTuple& shape) {
  if (coord.is_leaf()) return coord.number();
  return index_of(coord, shape, prefix_product(shape));
}

std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
  return index_of(coord, shape, stride).value();
}

std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape) { return index_of(coord, shape).value(); }

IntTuple coordinate(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
  require_congruent(shape, stride);
  IntTuple sum;
  visit_coord(coord, shape, stride, [&](const Number& digit, const IntTuple& step) {
    const bool is_broadcast = step.basis_number() == 0;
    if (!is_broadcast) sum = sum + digit * step;
  });
  return sum;
}

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape) {
  if (!index.is_leaf()) {
    require_rank(index, shape);
    return transform_modes(index, [&](const IntTuple& mode, int i) { return idx2crd(mode, shape[i]); });
  }
  std::vector<Number> digits;
  visit_index(index.number(), shape, shape, [&](const Number& digit, const IntTuple&) { digits.push_back(digit); });
  return shape.is_leaf() ? index : unflatten(IntTuple::tuple(digits), shape);
}

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride) {
  if (!index.is_leaf()) {
    require_rank(index, shape);
    require_rank(index, stride);
    return transform_modes(index, [&](const IntTuple& mode, int i) { return idx2crd(mode, shape[i], stride[i]); });
  }
  if (shape.is_leaf() && stride.is_leaf()) return digit_of(index.number(), shape, stride.number());
  require_rank(shape, stride);
  return transform_modes(shape, [&](const IntTuple& mode, int i) { return idx2crd(index, mode, stride[i]); });
}

IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to) {
  if (coord.is_leaf() || from.is_leaf() || to.is_leaf()) return idx2crd(index_of(coord, from), to);
  require_rank(coord, from);
  require_rank(coord, to);
  return transform_modes(coord, [&](const IntTuple& mode, int i) { return crd2crd(mode, from[i], to[i]); });
}

IntTuple slice(const IntTuple& coord, const IntTuple& t) { return named(coord, t, true); }
IntTuple dice(const IntTuple& coord, const IntTuple& t) { return named(coord, t, false); }

}  // namespace tilewright::layout
