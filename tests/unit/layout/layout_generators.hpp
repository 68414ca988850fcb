// Random shapes and layouts for property tests.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/layout/print.hpp"

namespace tilewright::layout {

/// Shapes of one to three modes, one of which may be a pair; extents are from 1 to 6.
inline rc::Gen<IntTuple> any_shape() {
  const auto extent = rc::gen::inRange<std::int64_t>(1, 7);
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::size_t>(0, 4), rc::gen::container<std::vector<std::int64_t>>(4, extent)),
      [](const std::tuple<std::size_t, std::vector<std::int64_t>>& drawn) {
        const auto& [kind, e] = drawn;
        switch (kind) {
          case 0:
            return IntTuple(e[0]);
          case 1:
            return IntTuple{e[0], e[1]};
          case 2:
            return IntTuple{e[0], {e[1], e[2]}};
          default:
            return IntTuple{{e[0], e[1]}, e[2], e[3]};
        }
      });
}

/// The profile of `shape` with leaves drawn from `leaf`.
inline IntTuple draw_leaves(const IntTuple& shape, const rc::Gen<std::int64_t>& leaf) {
  if (shape.is_leaf()) return *leaf;
  std::vector<IntTuple> modes;
  for (int i = 0; i < shape.rank(); ++i) modes.push_back(draw_leaves(shape[i], leaf));
  return IntTuple::tuple(std::move(modes));
}

/// A layout with small strides in any order.
inline Layout any_layout() {
  const IntTuple shape = *any_shape();
  return make_layout(shape, draw_leaves(shape, rc::gen::element<std::int64_t>(0, 1, 2, 3, 4, 5, 6, 8, 12, 24)));
}

/// A compact layout with modes in a random order.
inline Layout any_compact_layout() {
  const IntTuple shape = *any_shape();
  std::vector<std::int64_t> order;
  for (int i = 0; i < shape.rank(); ++i) order.push_back(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  return make_ordered_layout(shape, shape.is_leaf() ? IntTuple(0) : IntTuple::tuple(order));
}

}  // namespace tilewright::layout
