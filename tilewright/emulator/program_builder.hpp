// Lays out registers, constants and variables of one kernel while its instructions are decoded.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>

#include "tilewright/base/interruption.hpp"
#include "tilewright/emulator/instructions/builtin.hpp"
#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class ProgramBuilder {
 public:
  ProgramBuilder(const Module& module, const std::vector<std::uint64_t>& global_addresses);

  Program build(const Function& kernel);

  // For InstructionReader.
  Slot register_slot(std::uint32_t index) const { return (*frame_->registers)[index]; }
  PtxType register_type(std::uint32_t index) const { return frame_->function->registers[index].type; }
  Slot constant(int width, std::uint64_t bits);
  /// A register nobody reads.
  Slot scratch(int width);
  /// @throws nothing; kNone when there is no such register
  Slot special(std::string_view name);
  /// The variable's address in its own space; a parameter of a called function lives in local memory.
  std::uint64_t address_of(const Operand& variable) const;
  /// local for the parameters of calls
  Space space_of(const Operand& variable) const;
  bool in_kernel() const { return frame_->function->entry; }
  const Module& module() const { return module_; }
  void add_operand(Slot slot) { program_.operands.push_back(slot); }
  std::size_t operand_count() const { return program_.operands.size(); }

  [[noreturn]] void refuse(const ParsedInstruction& parsed, std::string reason) const;

 private:
  /// One inlined body.
  struct Frame {
    const Function* function = nullptr;
    const std::vector<Slot>* registers = nullptr;                   // of Function::registers
    std::vector<std::uint64_t> addresses;                           // of Function::variables
    std::vector<std::uint32_t> starts;                              // index in code of each parsed instruction
    std::vector<std::uint32_t> returns;                             // branches to the end
    std::vector<std::pair<std::uint32_t, std::uint32_t>> branches;  // (index in code, label)
  };

  /// Places of a function that all its inlined bodies share: a thread is in one of them at a time.
  struct Storage {
    std::vector<Slot> registers;
    std::vector<std::uint64_t> addresses;
  };

  [[noreturn]] static void refuse_too_large(const Variable& variable, std::string_view what, std::uint64_t limit);
  Slot new_slot(int width);
  const Storage& storage(const Function& function);
  void place_shared_variables(const Function& kernel);
  void place_parameters(const Function& kernel, Storage& storage);
  void emit_body(Frame& frame, int depth);
  void emit(const ParsedInstruction& parsed, int depth);
  void emit_call(const ParsedInstruction& parsed, int depth);
  void emit_builtin(const ParsedInstruction& parsed, const BuiltinFunction& builtin,
                    const std::vector<Operand>& results, const std::vector<Operand>& arguments);
  Instruction& append(const ParsedInstruction& parsed);
  void set_guard(const ParsedInstruction& parsed, Instruction& instruction, bool flip);
  void link(Frame& frame);

  const Module& module_;
  const std::vector<std::uint64_t>& global_addresses_;
  Program program_;
  int calls_ = 0;  // inlined so far
  PeriodicCheck check_;
  Frame* frame_ = nullptr;
  std::vector<const Function*> calling_;
  std::unordered_map<const Function*, Storage> storages_;
  std::unordered_map<const Variable*, std::uint32_t> shared_addresses_;
  std::map<std::tuple<int, std::uint64_t>, Slot> constants_;
  std::map<SpecialRegister, Slot> specials_;
  std::map<int, Slot> scratch_;
};

}  // namespace tilewright::emulator
