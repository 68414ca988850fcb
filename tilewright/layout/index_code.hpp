// Code generation for layouts: C expressions and Numbers for the offset of run-time coordinates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/layout/swizzle.hpp"

namespace tilewright::layout {

/// A run-time coordinate in the code.
struct IndexVariable {
  IndexVariable(const char* variable) : name(variable) {}             // NOLINT: a name is a variable
  IndexVariable(std::string variable) : name(std::move(variable)) {}  // NOLINT: so is this
  IndexVariable(std::string variable, std::int64_t values) : name(std::move(variable)), extent(values) {}

  std::string name;         // "lane", "threadIdx.x": printed as it is
  std::int64_t extent = 0;  // its values are 0 to extent - 1; 0 stands for the size of its mode
};

/// How the parts of an expression are joined.
enum class IndexStyle : std::uint8_t {
  shortest,  // by + and products, or by | and shifts, whichever text is shorter
  sums,      // by +, of products, quotients and remainders: compilers make shorter code of these than of | and shifts
};

/// layout(v0, v1, ...) as the shortest C expression found, with one variable for each mode or one index for the whole
/// layout. Powers of two become shifts and masks; other extents take one division each. Masks, divisions and swizzles
/// that have no effect for values below the extents are left out.
///
/// The code is correct for values below the extents, of an unsigned type that holds the offset. With negative strides,
/// or of a signed type, the type must also hold twice the largest stride times the largest extent. The code of a layout
/// that is 0 everywhere is "0".
/// @throws InvalidArgument for a number of variables other than 1 or the rank, for names that are not C names, for
/// extents past the size of their mode, and for strides that are scaled bases.
/// @post evaluated in C, the text equals layout(v0, v1, ...)
std::string index_code(const Layout& layout, const std::vector<IndexVariable>& variables,
                       IndexStyle style = IndexStyle::shortest);
/// The swizzle is part of the expression: (row, chunk) -> "row << 7 | (chunk ^ row) << 4".
/// @throws also if the layout may have negative offsets
std::string index_code(const ComposedLayout& layout, const std::vector<IndexVariable>& variables,
                       IndexStyle style = IndexStyle::shortest);

/// The coordinate that a layout with scaled-basis strides maps to: one expression for each leaf, in order:
/// (4,(8,2)):(1@1,(1@0,64@1)) of (i,j) -> "j & 7", "i | j >> 3 << 6". @throws as index_code does.
std::vector<std::string> coordinate_code(const Layout& layout, const std::vector<IndexVariable>& variables,
                                         IndexStyle style = IndexStyle::shortest);

/// layout(c0, c1, ...) as a Number, with one coordinate for each mode or one index for the whole layout. Modes are
/// coalesced first, and divisions and masks that have no effect for the ranges of the coordinates are left out. Unlike
/// index_code, it accepts run-time layouts; its C text (c_text) and its arith operations are normalised, not shortest.
/// @throws InvalidArgument for a number of coordinates other than 1 or the rank, for coordinates that may be negative
/// or past the size of their mode, and for strides that are scaled bases
Number index_number(const Layout& layout, const std::vector<Number>& coordinates);
Number index_number(const ComposedLayout& layout, const std::vector<Number>& coordinates);

}  // namespace tilewright::layout
