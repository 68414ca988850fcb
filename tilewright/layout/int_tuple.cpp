// Recursions over trees of integers.
#include "tilewright/layout/int_tuple.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw InvalidArgument(fmt::format("{} * {} does not fit in 63 bits", a, b));
  return result;
}

void collect(const IntTuple& t, std::vector<std::int64_t>& out) {
  if (t.is_leaf()) {
    out.push_back(t.value());
    return;
  }
  for (int i = 0; i < t.rank(); ++i) collect(t[i], out);
}

void require_same_rank(const char* what, const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf() || a.rank() != b.rank())
    throw InvalidArgument(fmt::format("{} of {} and {}: ranks differ", what, to_string(a), to_string(b)));
}

IntTuple prefix_product_from(const IntTuple& t, std::int64_t& running) {
  if (t.is_leaf()) {
    const std::int64_t before = running;
    running = checked_product(running, t.value());
    return before;
  }
  std::vector<IntTuple> modes;
  for (int i = 0; i < t.rank(); ++i) modes.push_back(prefix_product_from(t[i], running));
  return IntTuple::tuple(std::move(modes));
}

std::int64_t shape_div_leaf(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0 || (a % b != 0 && b % a != 0))
    throw InvalidArgument(fmt::format("shape_div of {} by {}: neither divides the other", a, b));
  return ceil_div(a, b);
}

/// Digits of an index in the leaves of a tuple shape; only the very last leaf is not wrapped.
std::int64_t index_to_offset(std::int64_t index, const IntTuple& shape, const IntTuple& stride) {
  if (shape.is_leaf()) return index * stride.value();
  std::int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool last = i + 1 == shape.rank();
    const std::int64_t extent = product(shape[i]);
    offset += index_to_offset(last ? index : index % extent, shape[i], stride[i]);
    index /= extent;
  }
  return offset;
}

std::int64_t coord_to_offset(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
  if (coord.is_leaf()) return index_to_offset(coord.value(), shape, stride);
  require_same_rank("coordinate", coord, shape);
  std::int64_t offset = 0;
  for (int i = 0; i < coord.rank(); ++i) offset += coord_to_offset(coord[i], shape[i], stride[i]);
  return offset;
}

}  // namespace

IntTuple IntTuple::tuple(std::vector<IntTuple> modes) {
  IntTuple result;
  result.modes_ = std::move(modes);
  result.is_leaf_ = false;
  return result;
}

IntTuple IntTuple::tuple(const std::vector<std::int64_t>& leaves) {
  return tuple(std::vector<IntTuple>(leaves.begin(), leaves.end()));
}

std::int64_t IntTuple::value() const {
  if (!is_leaf_) throw InvalidArgument(fmt::format("{} is a tuple where an integer is needed", to_string(*this)));
  return value_;
}

const IntTuple& IntTuple::operator[](int i) const {
  if (i < 0 || i >= rank())
    throw InvalidArgument(fmt::format("mode {} of {}, of rank {}", i, to_string(*this), rank()));
  return is_leaf_ ? *this : modes_[static_cast<std::size_t>(i)];
}

int depth(const IntTuple& t) {
  if (t.is_leaf()) return 0;
  int deepest = 0;
  for (int i = 0; i < t.rank(); ++i) deepest = std::max(deepest, depth(t[i]));
  return deepest + 1;
}

std::vector<std::int64_t> leaves(const IntTuple& t) {
  std::vector<std::int64_t> result;
  collect(t, result);
  return result;
}

IntTuple flatten(const IntTuple& t) { return t.is_leaf() ? t : IntTuple::tuple(leaves(t)); }

std::int64_t product(const IntTuple& t) {
  if (t.is_leaf()) return t.value();
  std::int64_t result = 1;
  for (int i = 0; i < t.rank(); ++i) result = checked_product(result, product(t[i]));
  return result;
}

std::int64_t inner_product(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() && b.is_leaf()) return a.value() * b.value();
  require_same_rank("inner product", a, b);
  std::int64_t result = 0;
  for (int i = 0; i < a.rank(); ++i) result += inner_product(a[i], b[i]);
  return result;
}

IntTuple prefix_product(const IntTuple& t, std::int64_t init) { return prefix_product_from(t, init); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  TILEWRIGHT_CHECK(b > 0, "ceil_div of {} by {}", a, b);
  return a / b + (a % b > 0 ? 1 : 0);
}

IntTuple shape_div(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf()) return shape_div_leaf(a.value(), product(b));
  std::vector<IntTuple> modes;
  if (b.is_leaf()) {
    std::int64_t rest = b.value();
    for (int i = 0; i < a.rank(); ++i) {
      modes.push_back(shape_div(a[i], rest));
      rest = shape_div_leaf(rest, product(a[i]));
    }
  } else {
    require_same_rank("shape_div", a, b);
    for (int i = 0; i < a.rank(); ++i) modes.push_back(shape_div(a[i], b[i]));
  }
  return IntTuple::tuple(std::move(modes));
}

bool congruent(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf()) return a.is_leaf() && b.is_leaf();
  return a.rank() == b.rank() && weakly_congruent(a, b) && weakly_congruent(b, a);
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

std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
  if (!congruent(shape, stride))
    throw InvalidArgument(fmt::format("stride {} is not congruent to shape {}", to_string(stride), to_string(shape)));
  return coord_to_offset(coord, shape, stride);
}

std::int64_t crd2idx(const IntTuple& coord, const IntTuple& shape) {
  return coord_to_offset(coord, shape, prefix_product(shape));
}

IntTuple idx2crd(std::int64_t index, const IntTuple& shape) {
  if (shape.is_leaf()) return index;
  std::vector<IntTuple> modes;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool last = i + 1 == shape.rank();
    const std::int64_t extent = product(shape[i]);
    modes.push_back(idx2crd(last ? index : index % extent, shape[i]));
    index /= extent;
  }
  return IntTuple::tuple(std::move(modes));
}

std::string to_string(const IntTuple& t) {
  if (t.is_leaf()) return fmt::format("{}", t.value());
  std::string text = "(";
  for (int i = 0; i < t.rank(); ++i) {
    if (i > 0) text += ',';
    text += to_string(t[i]);
  }
  return text + ')';
}

}  // namespace tilewright::layout
