// Conversion of packed weights to the 16-bit floats that wgmma multiplies, in registers.
#pragma once

#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/program/kernel_builder.hpp"

namespace tilewright::program {

/// Converts the packed elements of one fragment of A of wgmma.m64nNk16: one b32 of s4, or two b32 of s8 or e4m3, in the
/// order of WeightPacking::positions. The result is the fragment, four b32 of f16 or bf16 pairs. All values are exact,
/// except that an e4m3 NaN becomes 480 or -480 in bf16.
/// Instructions: s4 to bf16 11, to f16 9; s8 to bf16 14, to f16 10; e4m3 to bf16 18, to f16 6, 4 of which are cvt.
/// @throws InvalidArgument for other types
Value widen(KernelBuilder& k, DType from, DType to, const std::vector<Value>& packed);

/// Multiplies a fragment by the pairs {s, s} of its two rows: registers 0 and 2 are of the first row, 1 and 3 of the
/// row 8 below. Products are rounded to the type. Four instructions.
Value scale_fragment(KernelBuilder& k, DType type, const Value& fragment, const Value& first, const Value& second);

/// {element, element}: one b32 of a b16.
Value duplicate(KernelBuilder& k, const Value& element);

}  // namespace tilewright::program
