// Parser of CuTe's notation: what to_string prints, and what CuTe C++ prints for static layouts.
//
//   8   _8   ((2,2),8)   1@0   (_,3)          IntTuple
//   ((2,2),8):((1,4),2)   _8:_1               Layout
//   Sw<3,4,3>                                 Swizzle
//   Sw<3,4,3> o 0 o (8,64):(64,1)             ComposedLayout
//   <3:3,(2,4):(1,8)>   <8,_>                 Tiler: 8 means 8:1, _ a whole mode
//
// Spaces are allowed between tokens. Refused, with the column and what was expected: anything else, an integer that
// does not fit in 63 bits, a layout whose stride is not congruent to its shape, text longer than max_expression_length
// or nested deeper than max_expression_depth.
#pragma once

#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/value.hpp"

namespace tilewright::layout {

/// @post to_string(*r) parses to *r
Result<IntTuple> parse_int_tuple(std::string_view text);
Result<Layout> parse_layout(std::string_view text);
Result<Swizzle> parse_swizzle(std::string_view text);
/// A layout without a swizzle gets the identity swizzle.
Result<ComposedLayout> parse_composed_layout(std::string_view text);
/// Also accepts a layout, and a tuple of integers and `_`, which becomes make_tiler of it.
Result<Tiler> parse_tiler(std::string_view text);

}  // namespace tilewright::layout
