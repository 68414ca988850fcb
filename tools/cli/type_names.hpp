// Parses the names of element types and math operations on the command line.
#pragma once

#include <string>

#include "tilewright/base/dtype.hpp"
#include "tilewright/op/math_operation.hpp"

namespace tilewright::cli {

/// @throws InvalidArgument, naming the option, the text and the types that tensors can have
DType parse_type(const std::string& option, const std::string& text);

/// The names that op::parse_math_operation() knows, for messages.
inline constexpr const char* kMathOperationNames =
    "multiply_add, multiply_add_tf32, multiply_add_fast_f16, multiply_add_fast_bf16, multiply_add_fast_f32 or "
    "multiply_add_fast_accumulate";

/// @throws InvalidArgument, naming the option, the text and kMathOperationNames
op::MathOperation parse_math(const std::string& option, const std::string& text);

}  // namespace tilewright::cli
