// Writes a program as CUDA C++: each PTX instruction as an asm statement, Numbers as unsigned integers.
#pragma once

#include <string>

#include "tilewright/program/program.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `#line` directives name the file "SYMBOL.tw" and the lines of
/// program::to_string().
std::string lower(const program::Program& program);

}  // namespace tilewright::lower::cuda
