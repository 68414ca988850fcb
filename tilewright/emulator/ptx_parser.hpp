// PTX text to a Module.
#pragma once

#include <memory>
#include <string_view>

#include "tilewright/emulator/ptx_module.hpp"

namespace tilewright::emulator {

/// Parses PTX ISA text (any version; the grammar that compilers emit and inline assembly uses).
/// Opcodes and modifiers are not judged here: see Program.
/// @throws EmulationFinding of kind malformed_ptx with the line.
std::unique_ptr<const Module> parse_ptx(std::string_view text);

}  // namespace tilewright::emulator
