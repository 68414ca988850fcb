// A problem as one line for tables, reports and messages.
#pragma once

#include <string>

#include "tilewright/op/problem.hpp"

namespace tilewright::op {

/// "gemm A(64,32):f16 B(32,48):(1,32):f16 D(64,48):f16, linear_combination_relu": the operation, each operand that the
/// call reads or writes, and what else tells the problem from others. Strides are left out where a tensor is packed
/// with its last mode contiguous, and what has its default value is left out, too. f16* is the type of the matrices of
/// a pointer array. Values of scalars, and an epilogue beyond its name, are not in the text. @pre validate(problem)
std::string problem_text(const Problem& problem);

}  // namespace tilewright::op
