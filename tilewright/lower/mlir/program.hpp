// Writes a program as MLIR: dialects llvm, nvvm and arith. No MLIR library is needed; the text is compiled by
// compile/mlir.
#pragma once

#include <string>

#include "tilewright/program/program.hpp"

namespace tilewright::lower::mlir {

/// The complete module. Each operation has the location "SYMBOL.tw":LINE:1 of its statement in program::to_string().
/// Instructions are `llvm.inline_asm` with the PTX that lower/cuda writes, so that both lowerings execute the same
/// instructions; Numbers are operations of arith; loops and branches are blocks.
std::string lower(const program::Program& program);

}  // namespace tilewright::lower::mlir
