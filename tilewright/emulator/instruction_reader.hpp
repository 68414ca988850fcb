// What an instruction's decoder sees: modifiers to take one by one, operands to turn into slots, and a way to refuse.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class ProgramBuilder;

class InstructionReader {
 public:
  InstructionReader(ProgramBuilder& builder, const ParsedInstruction& parsed, Instruction& out,
                    std::string_view modifiers);

  const ParsedInstruction& parsed() const { return parsed_; }
  Instruction& out() { return out_; }

  /// Unknown-instruction finding at this line.
  [[noreturn]] void refuse(std::string reason) const;

  // Modifiers: each may be taken once; what no decoder took is unknown.
  bool take(std::string_view modifier);
  /// Index of the one that is there, -1 when none is.
  int take_one_of(std::initializer_list<std::string_view> modifiers);
  std::optional<PtxType> try_type();
  PtxType type();
  /// Takes every modifier that begins with one of these: cache and eviction hints.
  void ignore_prefixed(std::initializer_list<std::string_view> prefixes);
  /// @throws when a modifier was not taken.
  void finish() const;

  // Operands. Each call appends to the instruction's operand list.
  std::size_t operands() const { return parsed_.operands.size(); }
  const Operand& operand(std::size_t i) const;
  void expect_operands(std::size_t least, std::size_t most);
  void expect_operands(std::size_t count) { expect_operands(count, count); }
  /// A register of the type's width; `_` is a register nobody reads.
  void destination(const Operand& operand, PtxType type);
  /// A register, number, special register or symbol's address, as a value of the type.
  void source(const Operand& operand, PtxType type);
  /// A register of any width, or a number as the type. Returns the width in bytes.
  int source_of_any_width(const Operand& operand, PtxType type);
  int destination_of_any_width(const Operand& operand, PtxType type);
  /// A predicate register, negated or not: appends its slot and a slot with the mask to flip it by.
  void predicate_source(const Operand& operand);
  /// [base + offset]: appends the base's slot; fills the next of the instruction's addresses.
  void address(const Operand& operand, Space space);
  /// [tensor map, {coordinates}]: an address in the generic space, then the coordinates' slots. Returns their number.
  std::size_t tensor_address(const Operand& operand);
  /// The slot number, among the instruction's operands, that the next operand gets.
  std::uint8_t next_operand() const;
  /// Where an address of .param points: a kernel's parameters, or a call's, which are in local memory.
  Space parameter_space(const Operand& address) const;
  /// Elements of { }, or the operand itself as the only one.
  std::vector<Operand> elements(const Operand& operand) const;

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
