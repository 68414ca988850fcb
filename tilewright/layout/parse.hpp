// CuTe's notation read back: what to_string prints, and what CuTe C++ prints of static layouts.
//
//   8   _8   ((2,2),8)   1@0   (_,3)          IntTuple
//   ((2,2),8):((1,4),2)   _8:_1               Layout
//   Sw<3,4,3>                                 Swizzle
//   Sw<3,4,3> o 0 o (8,64):(64,1)             ComposedLayout
//   <3:3,(2,4):(1,8)>   <8,_>                 Tiler: 8 stands for 8:1, _ for a whole mode
//
// Spaces may stand between the words. Refused, with the column and what was expected: anything else, an integer that
// does not fit in 63 bits, a layout whose stride is not congruent to its shape, and what is longer than
// max_expression_length or nested deeper than max_expression_depth.
#pragma once

#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/value.hpp"

namespace tilewright::layout {

/// @post to_string(*r) reads back as *r
Result<IntTuple> parse_int_tuple(std::string_view text);
Result<Layout> parse_layout(std::string_view text);
Result<Swizzle> parse_swizzle(std::string_view text);
/// A layout without a swizzle reads as one with the identity.
Result<ComposedLayout> parse_composed_layout(std::string_view text);
/// A layout reads as the tiler that it is, a tuple of integers and `_` as make_tiler has it.
Result<Tiler> parse_tiler(std::string_view text);

}  // namespace tilewright::layout
