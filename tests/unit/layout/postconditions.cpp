// The post-conditions of each function of the algebra.
#include "postconditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tilewright::layout {
namespace {

std::int64_t points = 0;

/// "" when r(i) == expected(i) for i < count.
template <class R, class Expected>
std::string differs(const char* what, std::int64_t count, R&& r, Expected&& expected) {
  points += count;
  for (std::int64_t i = 0; i < count; ++i) {
    if (r(i) != expected(i)) return fmt::format("{}: at {} it is {}, not {}", what, i, r(i), expected(i));
  }
  return "";
}

std::set<std::int64_t> image(const Layout& layout) {
  points += size(layout);
  std::set<std::int64_t> offsets;
  for (std::int64_t i = 0; i < size(layout); ++i) offsets.insert(layout(i));
  return offsets;
}

std::string increases(const Layout& layout) {
  points += size(layout);
  for (std::int64_t i = 1; i < size(layout); ++i) {
    if (layout(i) <= layout(i - 1)) return fmt::format("{} is not ordered at {}", layout, i);
  }
  return "";
}

template <class A, class B, class R>
std::string is_composition(const A& a, const B& b, const R& r) {
  const std::string what = fmt::format("{} o {} = {}", a, b, r);
  if (!compatible(b.shape(), r.shape())) return what + ": not compatible";
  return differs(what.c_str(), size(b), r, [&](std::int64_t i) { return a(b(i)); });
}

/// The same for a b with scaled-basis strides.
std::string is_composition_by_coordinates(const Layout& a, const Layout& b, const Layout& r) {
  const std::string what = fmt::format("{} o {} = {}", a, b, r);
  if (!compatible(b.shape(), r.shape())) return what + ": not compatible";
  return differs(what.c_str(), size(b), r, [&](std::int64_t i) { return a(coordinate(b, i)); });
}

template <class L, class R>
std::string is_right_inverse(const L& layout, const R& r) {
  const std::string what = fmt::format("right_inverse of {} = {}", layout, r);
  return differs(
      what.c_str(), size(r), [&](std::int64_t i) { return layout(r(i)); }, [](std::int64_t i) { return i; });
}

template <class L, class R>
std::string is_left_inverse(const L& layout, const R& r) {
  const std::string what = fmt::format("left_inverse of {} = {}", layout, r);
  return differs(
      what.c_str(), size(layout), [&](std::int64_t i) { return layout(r(layout(i))); }, layout);
}

}  // namespace

std::int64_t points_checked() { return points; }

std::size_t image_size(const Layout& layout) { return image(layout).size(); }

std::string coalesce_breaks(const Layout& layout) {
  const Layout r = coalesce(layout);
  const std::string what = fmt::format("coalesce of {} = {}", layout, r);
  if (depth(r) > 1 || size(r) != size(layout)) return what + ": wrong depth or size";
  for (int i = 0; i + 1 < r.rank(); ++i) {
    if (size(r.mode(i)) * r.stride()[i].value() == r.stride()[i + 1].value()) return what + ": not the fewest modes";
  }
  std::string broken = differs(what.c_str(), size(layout), r, layout);
  if (broken.empty()) {
    const Layout past = coalesce_past_end(layout);
    broken = differs("coalesce_past_end", 3 * size(layout), past, layout);
  }
  return broken;
}

std::string composition_breaks(const Layout& a, const Layout& b) {
  const Layout r = composition(a, b);
  return has_basis(b.stride()) ? is_composition_by_coordinates(a, b, r) : is_composition(a, b, r);
}
std::string composition_breaks(const Layout& a, const ComposedLayout& b) {
  return is_composition(a, b, composition(a, b));
}
std::string composition_breaks(const ComposedLayout& a, const ComposedLayout& b) {
  return is_composition(a, b, composition(a, b));
}

std::string complement_breaks(const Layout& layout, std::int64_t cotarget) {
  const Layout r = complement(layout, cotarget);
  const std::string what = fmt::format("complement of {} in {} = {}", layout, cotarget, r);
  const Layout completed = concatenate({layout, r});
  const bool is_compact = size(filter_zeros(completed)) == cosize(completed);
  if (is_compact && cosize(completed) < cotarget) return what + ": does not cover";
  if (size(complement(completed)) != 1) return what + ": there is more";
  if (image(completed).size() != image(layout).size() * static_cast<std::size_t>(size(r)))
    return what + ": copies overlap";
  return increases(r);
}

std::string right_inverse_breaks(const Layout& layout) { return is_right_inverse(layout, right_inverse(layout)); }
std::string left_inverse_breaks(const Layout& layout) { return is_left_inverse(layout, left_inverse(layout)); }
std::string right_inverse_breaks(const ComposedLayout& layout) {
  return is_right_inverse(layout, right_inverse(layout));
}
std::string left_inverse_breaks(const ComposedLayout& layout) { return is_left_inverse(layout, left_inverse(layout)); }

std::string logical_divide_breaks(const Layout& layout, const Layout& tile) {
  const Layout r = logical_divide(layout, tile);
  const std::string what = fmt::format("{} / {} = {}", layout, tile, r);
  if (r.rank() != 2 || !compatible(tile.shape(), r.mode(0).shape())) return what + ": mode 0 is not the tile";
  const std::set<std::int64_t> reached = image(r);
  const std::set<std::int64_t> wanted = image(layout);
  if (!std::includes(reached.begin(), reached.end(), wanted.begin(), wanted.end())) return what + ": misses offsets";
  return differs(what.c_str(), size(tile), r.mode(0), [&](std::int64_t i) { return layout(tile(i)); });
}

std::string logical_product_breaks(const Layout& block, const Layout& copies) {
  const Layout r = logical_product(block, copies);
  const std::string what = fmt::format("{} x {} = {}", block, copies, r);
  if (r.rank() != 2 || r.mode(0) != block) return what + ": mode 0 is not the block";
  if (!compatible(copies.shape(), r.mode(1).shape())) return what + ": mode 1 is not the copies";
  return image(r).size() == image(block).size() * image(copies).size() ? "" : what + ": copies overlap";
}

std::string nullspace_breaks(const Layout& layout) {
  const Layout r = nullspace(layout);
  const std::string what = fmt::format("nullspace of {} = {}", layout, r);
  if (size(r) != size(layout) / size(filter(layout))) return what + ": wrong size";
  return differs(
      what.c_str(), size(r), [&](std::int64_t i) { return layout(r(i)); }, [](std::int64_t) { return 0; });
}

std::string domain_distribute_breaks(const IntTuple& shape, std::int64_t n) {
  const Layout r = domain_distribute(shape, n);
  const std::string what = fmt::format("domain_distribute of {} over {} = {}", n, shape, r);
  if (n % size(r) != 0) return what + ": does not divide";
  if (!compatible(size(r), zipped_divide(make_layout(shape), r).mode(0).shape())) return what + ": does not tile";
  return increases(r);
}

std::string max_common_layout_breaks(const Layout& a, const Layout& b) {
  const Layout r = max_common_layout(a, b);
  const std::string what = fmt::format("max_common_layout of {} and {} = {}", a, b, r);
  if (max_common_vector(a, b) != size(r)) return what + ": not the size of max_common_vector";
  const auto same = [](std::int64_t i) { return i; };
  const std::string in_a = differs(
      what.c_str(), size(r), [&](std::int64_t i) { return a(r(i)); }, same);
  return in_a.empty() ? differs(
                            what.c_str(), size(r), [&](std::int64_t i) { return b(r(i)); }, same)
                      : in_a;
}

std::string slices_break(const ComposedLayout& layout) {
  for (std::int64_t i = 0; i < size(layout.mode(0)); ++i) {
    const ComposedLayout row = slice({i, _}, layout);
    const std::string what = fmt::format("{}({},_) = {}", layout, i, row);
    std::string broken = differs(what.c_str(), size(row), row, [&](std::int64_t j) { return layout(IntTuple{i, j}); });
    if (const auto plain = decay(row); plain && broken.empty()) {
      if (!compatible(row.shape(), plain->layout.shape())) return what + ": decays to another shape";
      broken = differs(
          what.c_str(), size(row), [&](std::int64_t j) { return plain->offset.value() + plain->layout(j); }, row);
    }
    if (!broken.empty()) return broken;
  }
  return "";
}

}  // namespace tilewright::layout
