// Control flow that the program builder links: branches, returns and calls.
#pragma once

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

void execute_nothing(Warp& warp, const Instruction& in, Mask lanes);
void execute_branch(Warp& warp, const Instruction& in, Mask lanes);
/// target is an index into Program::branch_tables; operand: the index of the entry.
void execute_indexed_branch(Warp& warp, const Instruction& in, Mask lanes);
void execute_exit(Warp& warp, const Instruction& in, Mask lanes);

void decode_branch(InstructionReader& reader);
void decode_indexed_branch(InstructionReader& reader);
void decode_return(InstructionReader& reader);
void decode_call(InstructionReader& reader);

}  // namespace tilewright::emulator
