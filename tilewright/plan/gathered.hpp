// Registers that kernels need to find the vectors of im2col and folded operands.
#pragma once

#include "tilewright/op/gemm_signature.hpp"

namespace tilewright::plan {

/// Registers per thread to reach an operand whose tile is copied in `passes` passes, beyond those of a strided one.
inline int gathered_registers(const op::TensorSignature& operand, int passes) {
  constexpr int kMaxKept = 4;  // passes whose line or place is kept; see copy/gathered_vectors.cuh
  // Registers of what is kept of a pass, and coordinates and addresses on the way.
  constexpr int kKeptOfImage = 4, kOfImage = 28;
  constexpr int kKeptOfModes = 4, kOfModes = 10, kOfCoordinate = 4;
  if (operand.im2col != op::Im2colAccess::none) return kOfImage + kKeptOfImage * (passes <= kMaxKept ? passes : 0);
  // ptxas keeps the offsets along M or N of all passes: kernels with 16 passes an operand spilled up to 232 bytes if
  // two registers were counted for each.
  return operand.folded_modes == 0 ? 0 : kOfModes + kOfCoordinate * operand.folded_modes + kKeptOfModes * passes;
}

/// Registers per thread to reach C and D if they are folded. The mainloop does not need them.
inline int folded_output_registers(const op::GemmSignature& operands) {
  constexpr int kOfModes = 8, kOfCoordinate = 2;
  const auto registers = [](const op::TensorSignature& tensor) {
    return tensor.folded_modes == 0 ? 0 : kOfModes + kOfCoordinate * tensor.folded_modes;
  };
  return registers(operands.d) + (operands.has_c ? registers(operands.c) : 0);
}

}  // namespace tilewright::plan
