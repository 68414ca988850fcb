#include "tilewright/program/offset.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

using layout::IntTuple;

/// Adds the offset of `index` in a mode. `index` becomes what is left for the modes after it.
void add_offset(const IntTuple& shape, const IntTuple& stride, bool is_last, Number& index, Number& offset) {
  if (shape.is_leaf()) {
    const std::int64_t extent = shape.value();
    const Number digit = is_last ? index : index % extent;
    offset += digit * stride.value();
    if (!is_last) index = index / extent;
    return;
  }
  for (int i = 0; i < shape.rank(); ++i)
    add_offset(shape[i], stride[i], is_last && i + 1 == shape.rank(), index, offset);
}

}  // namespace

Number offset_of(const layout::Layout& layout, const std::vector<Number>& coordinates) {
  if (static_cast<int>(coordinates.size()) != layout.rank()) {
    throw InvalidArgument(fmt::format("the layout {} takes {} coordinates, got {}", to_string(layout), layout.rank(),
                                      coordinates.size()));
  }
  Number offset = 0;
  for (int mode = 0; mode < layout.rank(); ++mode) {
    Number index = coordinates[static_cast<std::size_t>(mode)];
    add_offset(layout.shape()[mode], layout.stride()[mode], true, index, offset);
  }
  return offset;
}

Number offset_of(const layout::ComposedLayout& layout, const std::vector<Number>& coordinates) {
  const Number offset = offset_of(layout.layout, coordinates) + layout.offset;
  const std::int64_t source = source_bits(layout.swizzle);
  if (source == 0) return offset;
  const int shift = layout.swizzle.shift();
  return offset ^ (shift >= 0 ? (offset & source) >> shift : (offset & source) << -shift);
}

}  // namespace tilewright::program
