// Conversions between layouts and flat lists of modes.
#include "tilewright/layout/modes.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

void collect(const IntTuple& shape, const IntTuple& stride, Modes& out) {
  if (shape.is_leaf()) {
    out.push_back({shape.number(), stride.basis_number(), stride.basis()});
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) collect(shape[i], stride[i], out);
}

/// Multiplies `count` by the extents of this part and adds its largest offset to `last`, without stride-0 modes.
void count_offsets(const IntTuple& shape, const IntTuple& stride, Number& count, Number& last) {
  if (!shape.is_leaf()) {
    for (int i = 0; i < shape.rank(); ++i) count_offsets(shape[i], stride[i], count, last);
  } else if (stride.number() != 0) {
    count *= shape.number();
    last += (shape.number() - 1) * magnitude(stride.number());
  }
}

/// Merges `next` into `mode` if it continues it and the result fits in 63 bits. Returns whether it did.
bool extend(Mode& mode, const Mode& next) {
  if (mode.basis != next.basis) return false;
  if (!mode.extent.is_static() || !mode.stride.is_static() || !next.extent.is_static() || !next.stride.is_static()) {
    if (!holds(equal(mode.extent * mode.stride, next.stride))) return false;
    mode.extent *= next.extent;
    return true;
  }
  std::int64_t end = 0;
  std::int64_t extent = 0;
  if (__builtin_mul_overflow(mode.extent.value(), mode.stride.value(), &end) || end != next.stride.value() ||
      __builtin_mul_overflow(mode.extent.value(), next.extent.value(), &extent))
    return false;
  mode.extent = extent;
  return true;
}

IntTuple stride_of(const Mode& mode) { return IntTuple::scaled_basis(mode.stride, mode.basis); }

}  // namespace

Modes flat_modes(const Layout& layout) {
  Modes modes;
  collect(layout.shape(), layout.stride(), modes);
  return modes;
}

Modes integer_modes(const char* verb, const Layout& layout) {
  Modes modes = flat_modes(layout);
  for (const Mode& mode : modes) {
    if (!mode.basis.empty())
      throw InvalidArgument(
          fmt::format("{} of {}: stride {} is not an integer", verb, to_string(layout), to_string(stride_of(mode))));
  }
  return modes;
}

ShapeAndStride shape_and_stride(const Modes& modes) {
  if (modes.empty()) return {1, 0};
  if (modes.size() == 1) return {modes[0].extent, stride_of(modes[0])};
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  shape.reserve(modes.size());
  stride.reserve(modes.size());
  for (const Mode& mode : modes) {
    shape.emplace_back(mode.extent);
    stride.push_back(stride_of(mode));
  }
  return {IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))};
}

Layout from_modes(const Modes& modes) {
  ShapeAndStride parts = shape_and_stride(modes);
  return Layout(std::move(parts.shape), std::move(parts.stride));
}

Layout with_profile(const Modes& modes, const IntTuple& profile) {
  auto extent = modes.begin();
  auto stride = modes.begin();
  return Layout(transform_leaves(profile, [&](const IntTuple&) { return IntTuple((extent++)->extent); }),
                transform_leaves(profile, [&](const IntTuple&) { return stride_of(*stride++); }));
}

Layout pair_of(Layout first, Layout second) {
  LayoutBuilder modes(2);
  modes.append(std::move(first));
  modes.append(std::move(second));
  return std::move(modes).layout();
}

Number fill_offsets(const Layout& first, const Layout& second) {
  Number count = 1;
  Number last = 0;
  count_offsets(first.shape(), first.stride(), count, last);
  count_offsets(second.shape(), second.stride(), count, last);
  return equal(last + 1, count);
}

void append_merged(Modes& modes, const Mode& next) {
  if (next.extent != 1 && (modes.empty() || !extend(modes.back(), next))) modes.push_back(next);
}

void merge(Modes& modes) {
  std::size_t count = 0;
  for (const Mode& next : modes) {
    if (next.extent != 1 && (count == 0 || !extend(modes[count - 1], next))) modes[count++] = next;
  }
  modes.truncate(count);
}

void merge_past_end(Modes& modes) {
  if (!modes.empty() && modes.back().extent == 1) modes.back().extent = 2;
  merge(modes);
}

}  // namespace tilewright::layout
