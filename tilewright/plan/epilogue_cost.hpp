// The work of an epilogue that cost models count: its special functions, and the tensors that it reads and writes
// beside D.
#pragma once

#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

/// Approximate number of instructions per element that the epilogue's special functions take. Plain arithmetic is not
/// counted because its cost is negligible.
double function_instructions(const op::Epilogue& epilogue);
/// Bytes per element of A*B that an epilogue reads and writes in m x n tensors other than D.
int beside_bytes(const op::GemmSignature& operands);
/// Bytes of an element of C if its rows or columns allow only loads of less than 16 bytes, or are not those of D; else
/// 0.
int slow_source_bytes(const op::GemmSignature& operands);
/// Rate at which an SM loads such a C. For 880 kernels of 55 problems with a C, the root mean square of the errors is
/// 18 % with it and 25 % without; from 2 to 5 bytes it is 18 to 20 % (H200, 2026-11-27).
inline constexpr double kSlowSourceBytesPerClock = 3.1;

}  // namespace tilewright::plan
