// Which decoder reads which opcode. One table a file of this folder.
#pragma once

#include <span>
#include <string_view>

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

/// The operands an opcode's row is for: `add` is three instructions, by its type.
enum class OperandClass : std::uint8_t { any, predicate, integer, floating, small_float };

struct OpcodeRow {
  std::string_view opcode;  // dotted; the longest that begins the instruction wins
  OperandClass operands = OperandClass::any;
  void (*decode)(InstructionReader& reader) = nullptr;
};

std::span<const OpcodeRow> integer_opcodes();
std::span<const OpcodeRow> bit_opcodes();
std::span<const OpcodeRow> float_opcodes();
std::span<const OpcodeRow> small_float_opcodes();
std::span<const OpcodeRow> comparison_opcodes();
std::span<const OpcodeRow> conversion_opcodes();
std::span<const OpcodeRow> move_opcodes();
std::span<const OpcodeRow> memory_opcodes();
std::span<const OpcodeRow> atomic_opcodes();
std::span<const OpcodeRow> cp_async_opcodes();
std::span<const OpcodeRow> matrix_move_opcodes();
std::span<const OpcodeRow> mma_opcodes();
std::span<const OpcodeRow> warp_opcodes();
std::span<const OpcodeRow> barrier_opcodes();
std::span<const OpcodeRow> control_opcodes();
std::span<const OpcodeRow> mbarrier_opcodes();
std::span<const OpcodeRow> fence_opcodes();
std::span<const OpcodeRow> cluster_opcodes();
std::span<const OpcodeRow> wgmma_opcodes();
std::span<const OpcodeRow> register_count_opcodes();
std::span<const OpcodeRow> bulk_copy_opcodes();
std::span<const OpcodeRow> tensor_copy_opcodes();

struct FoundOpcode {
  const OpcodeRow* row = nullptr;
  std::string_view modifiers;  // what follows the row's opcode, without the first dot
};

/// row is null when no table has the opcode for these operands.
FoundOpcode find_opcode(std::string_view dotted);

}  // namespace tilewright::emulator
