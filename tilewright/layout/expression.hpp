// Evaluation of layout-algebra expressions: "composition((20,2):(16,4), (4,5):(1,4))".
#pragma once

#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/syntax.hpp"
#include "tilewright/layout/value.hpp"

namespace tilewright::layout {

/// The value of an expression: the notation of parse.hpp, with calls of functions() nested anywhere in it; L(5), L(2,3)
/// for the offset at an index or a coordinate, L(2,_) for a slice, Sw<3,4,3>(1024) for a swizzled offset; and `o` for
/// composition: layout o layout, swizzle o layout, swizzle o offset o layout. Refused, with the column: syntax errors,
/// unknown functions, arguments of the wrong kind, what the algebra refuses, and expressions or values beyond the
/// limits of length, depth and size.
Result<Value> evaluate(std::string_view text);

/// The value of a syntax tree. @throws InvalidArgument with the column
Value value_of(const SyntaxNode& node);

/// The limit of integers in a value, so that a short expression cannot take much memory.
inline constexpr int max_value_leaves = 1024;

}  // namespace tilewright::layout
