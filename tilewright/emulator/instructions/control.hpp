// Control-flow instructions that ProgramBuilder links: branches, returns and calls.
#pragma once

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

void execute_nothing(Warp& warp, const Instruction& in, Mask lanes);
void execute_branch(Warp& warp, const Instruction& in, Mask lanes);
/// Instruction::target is an index into Program::branch_tables. Operand: the index of the table's entry.
void execute_indexed_branch(Warp& warp, const Instruction& in, Mask lanes);
/// Operands: a predicate, and the pointer that it says of whether it is `immediate`.
void execute_compare_function(Warp& warp, const Instruction& in, Mask lanes);
void execute_exit(Warp& warp, const Instruction& in, Mask lanes);
/// An instruction that no decoder took. immediate: index in Program::refusals.
/// @throws EmulationFinding unsupported_instruction
void execute_refused(Warp& warp, const Instruction& in, Mask lanes);

void decode_branch(InstructionReader& reader);
void decode_indexed_branch(InstructionReader& reader);
void decode_return(InstructionReader& reader);
void decode_call(InstructionReader& reader);

}  // namespace tilewright::emulator
