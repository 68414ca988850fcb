// The targets that have an instruction: the "Target ISA Notes" of the PTX ISA.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::emulator {

/// Refuses an instruction, given with its modifiers, that the target does not have: "stmatrix needs sm_90, the target
/// is sm_86". The shapes and types of mma are not looked at: arch::MmaAtom has their targets.
Support check_instruction(std::string_view opcode, const Target& target);

/// The devices "emulator:sm_75", ..., of all targets that are emulated, separated by commas.
std::string emulated_devices();

/// The targets that are emulated, by name: sm_75, which CUDA 13 still compiles for, to sm_100a. "90" is sm_90a.
Result<Target> parse_emulated_target(std::string_view text);

}  // namespace tilewright::emulator
