// Offsets of layouts at coordinates that are Numbers.
#pragma once

#include <vector>

#include "tilewright/layout/number.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::program {

using layout::Number;

/// layout(coordinates), with one coordinate for each mode. A coordinate counts the elements of its mode, however
/// nested.
/// @throws InvalidArgument for another number of coordinates, and for strides that are negative or scaled bases
Number offset_of(const layout::Layout& layout, const std::vector<Number>& coordinates);
/// The same, with the swizzle.
Number offset_of(const layout::ComposedLayout& layout, const std::vector<Number>& coordinates);

}  // namespace tilewright::program
