// The interface of a decoder to a parsed instruction: takes its modifiers, turns operands into slots, refuses the rest.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/vector_clock.hpp"

namespace tilewright::emulator {

class ProgramBuilder;

class InstructionReader {
 public:
  InstructionReader(ProgramBuilder& builder, const ParsedInstruction& parsed, Instruction& out,
                    std::string_view modifiers);

  const ParsedInstruction& parsed() const { return parsed_; }
  Instruction& out() { return out_; }

  /// Throws an unsupported_instruction finding at this line: "the emulator does not support {reason}".
  [[noreturn]] void refuse(std::string reason) const;

  /// Refuses the instruction on targets without the features of `least`.
  void require(const Target& least) const;

  // Modifiers. Each may be taken once; finish() refuses those that the decoder has not taken.
  /// False when the instruction does not have the modifier.
  bool take(std::string_view modifier);
  /// Index of the modifier that was taken, -1 when the instruction has none of them.
  int take_one_of(std::initializer_list<std::string_view> modifiers);
  /// Takes the first modifier that is a type.
  std::optional<PtxType> try_type();
  /// Takes the modifier that names the scope of a strong access or of a fence; without one it is the GPU.
  MemoryScope memory_scope();
  /// As try_type(), but refuses an instruction without one.
  PtxType type();
  /// Takes every modifier that begins with one of these prefixes: cache and eviction hints.
  void ignore_prefixed(std::initializer_list<std::string_view> prefixes);
  /// @throws EmulationFinding: a modifier was not taken
  void finish() const;

  // Operands. Functions that take one append its slot to the instruction's operands.
  std::size_t operands() const { return parsed_.operands.size(); }
  const Operand& operand(std::size_t i) const;
  void expect_operands(std::size_t min, std::size_t max);
  void expect_operands(std::size_t count) { expect_operands(count, count); }
  /// A register of the type's width; `_` becomes a scratch register.
  void destination(const Operand& operand, PtxType type);
  /// A register, number, special register or variable's address, as a value of the type.
  void source(const Operand& operand, PtxType type);
  /// As source(), but a register may have any width. Returns the width in bytes, 0 for a predicate.
  int source_of_any_width(const Operand& operand, PtxType type);
  /// As destination(), but the register may have any width. Returns the width in bytes, 0 for a predicate.
  int destination_of_any_width(const Operand& operand, PtxType type);
  /// A predicate register, negated or not: appends its slot and that of the mask to xor it with.
  void predicate_source(const Operand& operand);
  /// [base + offset]: appends the base's slot, and fills the next element of Instruction::address.
  void address(const Operand& operand, Space space);
  /// [tensor map, {coordinates}]: a generic address, then the coordinates' slots. Returns the number of coordinates.
  std::size_t tensor_address(const Operand& operand);
  /// Index in Instruction::op of the next operand.
  std::uint8_t next_operand() const;
  /// The state space of a .param address: param for the kernel's parameters, local for those of a call.
  Space parameter_space(const Operand& address) const;
  /// The elements of a vector operand { ... }; of any other operand, itself.
  std::vector<Operand> elements(const Operand& operand) const;

  /// Appends the predicate that holds the carry flag of each thread.
  void carry_flag();
  /// Keeps a table for as long as the program exists, for Instruction::table.
  const void* keep(std::shared_ptr<const void> table);

  bool is_predicate(const Operand& operand) const;
  /// The value of an integer operand.
  std::uint64_t number(const Operand& operand) const;

 private:
  void address_of_base(const Operand& operand, Space space);

  ProgramBuilder& builder_;
  const ParsedInstruction& parsed_;
  Instruction& out_;
  std::vector<std::string_view> modifiers_;
  std::size_t addresses_ = 0;
};

}  // namespace tilewright::emulator
