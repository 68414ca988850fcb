// Parses PTX text into a Module.
#pragma once

#include <memory>
#include <string_view>

#include "tilewright/emulator/ptx_module.hpp"

namespace tilewright::emulator {

/// Parses PTX of any version, as compilers emit it and as inline assembly writes it. Opcodes and modifiers are checked
/// later, by build_program(). The text may be that of several translation units, of which each begins with .version:
/// they are linked, so that one may use the functions and variables that another defines.
/// @throws EmulationFinding: malformed_ptx, with the line
std::unique_ptr<const Module> parse_ptx(std::string_view text);

}  // namespace tilewright::emulator
