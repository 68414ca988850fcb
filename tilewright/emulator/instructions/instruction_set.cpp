// Looks up opcodes in all tables.
#include "tilewright/emulator/instructions/instruction_set.hpp"

#include <optional>
#include <unordered_map>
#include <vector>

namespace tilewright::emulator {
namespace {

using RowsByOpcode = std::unordered_map<std::string_view, std::vector<const OpcodeRow*>>;

const RowsByOpcode& rows_by_opcode() {
  static const RowsByOpcode rows = [] {
    RowsByOpcode all;
    for (const auto table : {integer_opcodes(),
                             bit_opcodes(),
                             float_opcodes(),
                             small_float_opcodes(),
                             comparison_opcodes(),
                             conversion_opcodes(),
                             move_opcodes(),
                             memory_opcodes(),
                             atomic_opcodes(),
                             cp_async_opcodes(),
                             matrix_move_opcodes(),
                             mma_opcodes(),
                             sparse_mma_opcodes(),
                             warp_opcodes(),
                             barrier_opcodes(),
                             control_opcodes(),
                             mbarrier_opcodes(),
                             fence_opcodes(),
                             cluster_opcodes(),
                             wgmma_opcodes(),
                             register_count_opcodes(),
                             bulk_copy_opcodes(),
                             async_store_opcodes(),
                             video_opcodes(),
                             scalar_video_opcodes(),
                             tensor_copy_opcodes(),
                             tensor_map_opcodes(),
                             wmma_opcodes(),
                             extended_precision_opcodes(),
                             bit_field_opcodes(),
                             packed_integer_opcodes()}) {
      for (const OpcodeRow& row : table) all[row.opcode].push_back(&row);
    }
    return all;
  }();
  return rows;
}

/// The class of the instruction's last type modifier; any when it has none.
OperandClass operand_class(std::string_view dotted) {
  while (true) {
    const std::size_t dot = dotted.rfind('.');
    if (dot == std::string_view::npos) return OperandClass::any;
    if (const auto type = parse_ptx_type(dotted.substr(dot + 1))) {
      switch (type_class(*type)) {
        case TypeClass::predicate:
          return OperandClass::predicate;
        case TypeClass::floating:
          return OperandClass::floating;
        case TypeClass::small_float:
          return OperandClass::small_float;
        default:
          return OperandClass::integer;
      }
    }
    dotted = dotted.substr(0, dot);
  }
}

}  // namespace

FoundOpcode find_opcode(std::string_view dotted) {
  constexpr std::size_t kLongest = 256;  // twice the longest instruction; the loop below takes quadratic time
  if (dotted.size() > kLongest) return {};
  const OperandClass operands = operand_class(dotted);
  for (std::size_t length = dotted.size();;) {
    const auto found = rows_by_opcode().find(dotted.substr(0, length));
    if (found != rows_by_opcode().end()) {
      for (const OpcodeRow* row : found->second) {
        if (row->operands != OperandClass::any && row->operands != operands) continue;
        return {row, length == dotted.size() ? std::string_view() : dotted.substr(length + 1)};
      }
    }
    length = dotted.rfind('.', length - 1);
    if (length == std::string_view::npos || length == 0) return {};
  }
}

}  // namespace tilewright::emulator
