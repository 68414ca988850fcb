// The table of instruction_forms.txt: each form is one instruction with its modifiers, and the kinds of its operands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "operand_kind.hpp"

namespace tilewright::differential {

/// One operand of an instruction: a register, or a vector of several.
struct OperandGroup {
  OperandKind kind;
  int registers = 1;
  bool is_vector = false;
};

/// The largest of the differences that are allowed. All zero: results must be equal bit for bit.
struct Tolerance {
  double ulp = 0;  // units in the last place
  double absolute = 0;
  double relative = 0;
  double of_sum = 0;  // relative to the result for the absolute values of all sources

  bool is_exact() const { return ulp == 0 && absolute == 0 && relative == 0 && of_sum == 0; }
};

struct InstructionForm {
  std::string text;    // the instruction; with its operands if it has a '%'
  std::string opcode;  // of the instruction that is compared: "add.rn.ftz.f32"
  std::vector<OperandGroup> destinations;
  std::vector<OperandGroup> sources;
  Tolerance tolerance;
  std::string tolerance_text;

  std::vector<OperandKind> destination_registers() const;
  std::vector<OperandKind> source_registers() const;
};

/// @throws std::invalid_argument with the line
std::vector<InstructionForm> parse_forms(std::string_view table);

/// The forms of instruction_forms.txt, which is part of the program.
const std::vector<InstructionForm>& instruction_forms();

}  // namespace tilewright::differential
