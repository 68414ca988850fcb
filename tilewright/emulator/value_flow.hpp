// How undefined bits of the operands of an instruction reach its results.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright::emulator {

enum class ValueFlow : std::uint8_t {
  whole,              // all bits of the results depend on all bits of the sources
  uses,               // the instruction does something with its operands that outlives the registers
  access,             // ld, st, ldmatrix, stmatrix: their handlers follow the values, as they know the state space
  shuffle,            // shfl: its handler moves the undefined bits between the lanes
  warp_wide,          // vote, match, redux: the result of each lane depends on all lanes
  moves,              // each bit of the result is a bit of a source, or a constant
  moves_by_last,      // the same, by positions that the last operand gives: shl, shr, shf, prmt, szext
  moves_by_last_two,  // the same, by the last two operands: bfe, bfi
  logic_and,          // each bit of the result depends on the same bits of the sources
  logic_or,
  logic_xor,
  logic_not,
  logic_table,  // lop3, whose truth table is Instruction::immediate
  carries,      // each bit of the result depends on the same and the lower bits of the sources: add, sub, mul.lo
  halves,       // the halves of the result depend on those of the sources: add.f16x2
  select,       // selp
  conjunction,  // and.pred
  disjunction,  // or.pred
  compare,      // setp and set of integers
  combine,      // setp and set of floats, whose result may be combined with a predicate
};

/// The flow of an instruction by its opcode, such as "add.s32".
ValueFlow value_flow(std::string_view opcode);

}  // namespace tilewright::emulator
