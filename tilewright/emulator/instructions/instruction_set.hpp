// Maps opcodes to decoders. Each .cpp file of this folder has a table.
#pragma once

#include <span>
#include <string_view>

#include "tilewright/emulator/instruction_reader.hpp"

namespace tilewright::emulator {

/// The operand types that a row is for: `add` has three rows, for integers, f32/f64 and 16-bit floats.
enum class OperandClass : std::uint8_t { any, predicate, integer, floating, small_float };

struct OpcodeRow {
  std::string_view opcode;  // the instruction up to some dot; the longest match wins
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
std::span<const OpcodeRow> sparse_mma_opcodes();
std::span<const OpcodeRow> wmma_opcodes();
std::span<const OpcodeRow> extended_precision_opcodes();
std::span<const OpcodeRow> bit_field_opcodes();
std::span<const OpcodeRow> packed_integer_opcodes();
std::span<const OpcodeRow> warp_opcodes();
std::span<const OpcodeRow> barrier_opcodes();
std::span<const OpcodeRow> control_opcodes();
std::span<const OpcodeRow> mbarrier_opcodes();
std::span<const OpcodeRow> fence_opcodes();
std::span<const OpcodeRow> cluster_opcodes();
std::span<const OpcodeRow> wgmma_opcodes();
std::span<const OpcodeRow> register_count_opcodes();
std::span<const OpcodeRow> bulk_copy_opcodes();
std::span<const OpcodeRow> async_store_opcodes();
std::span<const OpcodeRow> video_opcodes();
std::span<const OpcodeRow> scalar_video_opcodes();
std::span<const OpcodeRow> tensor_copy_opcodes();
std::span<const OpcodeRow> tensor_map_opcodes();

struct FoundOpcode {
  const OpcodeRow* row = nullptr;
  std::string_view modifiers;  // the rest of the instruction after the row's opcode and a dot
};

/// `dotted` is an instruction with its modifiers: "ld.global.u32". Returns a null row when no table has it.
FoundOpcode find_opcode(std::string_view dotted);

}  // namespace tilewright::emulator
