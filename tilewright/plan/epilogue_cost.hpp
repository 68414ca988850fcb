// The work of an epilogue that cost models count: its special functions, and the tensors that it reads and writes
// beside C and D.
#pragma once

#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

/// Approximate number of instructions per element that the epilogue's special functions take. Plain arithmetic is not
/// counted because its cost is negligible.
double function_instructions(const op::Epilogue& epilogue);
/// Bytes per element of A*B that an epilogue reads and writes in m x n tensors other than C and D.
int beside_bytes(const op::GemmSignature& operands);

}  // namespace tilewright::plan
