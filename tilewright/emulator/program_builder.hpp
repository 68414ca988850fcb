// Builds the Program of a kernel: lays out registers, constants and variables while it decodes instructions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/emulator/instructions/builtin.hpp"
#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class ProgramBuilder {
 public:
  ProgramBuilder(const Module& module, const std::vector<std::uint64_t>& global_addresses, const Target& target);

  Program build(const Function& kernel);

  // For InstructionReader.
  Slot register_slot(std::uint32_t index) const { return (*frame_->registers)[index]; }
  PtxType register_type(std::uint32_t index) const { return frame_->function->registers[index].type; }
  Slot constant(int width, std::uint64_t bits, bool is_shared_address = false);
  /// A register for results that are not used.
  Slot scratch(int width);
  /// The predicate for the carry flag.
  Slot carry_flag();
  const void* keep(std::shared_ptr<const void> table) {
    program_.tables.push_back(std::move(table));
    return program_.tables.back().get();
  }
  /// The value of a pointer to the function; 0 if the module does not define it.
  std::uint64_t function_address(const Operand& function) const;
  /// kNone when there is no such special register.
  Slot special(std::string_view name);
  /// The variable's address in its own state space. Parameters of called functions are in local memory.
  std::uint64_t address_of(const Operand& variable) const;
  /// The variable's state space: local for parameters of called functions.
  Space space_of(const Operand& variable) const;
  bool in_kernel() const { return frame_->function->entry; }
  const Module& module() const { return module_; }
  const Target& target() const { return target_; }
  void add_operand(Slot slot) { program_.operands.push_back(slot); }
  std::size_t operand_count() const { return program_.operands.size(); }

  /// Ends the decoding of an instruction. The kernel loads; it is a finding to execute the instruction.
  [[noreturn]] void refuse(const ParsedInstruction& parsed, std::string reason) const;
  /// As refuse(), unless the target has what the instruction needs.
  static void require(const Support& support);

 private:
  /// One inlined function body.
  struct Frame {
    const Function* function = nullptr;
    const std::vector<Slot>* registers = nullptr;                   // of Function::registers
    std::vector<std::uint64_t> addresses;                           // of Function::variables
    std::vector<std::uint32_t> starts;                              // index in Program::code of each instruction
    std::vector<std::uint32_t> returns;                             // indices of branches to the body's end
    std::vector<std::pair<std::uint32_t, std::uint32_t>> branches;  // (index in Program::code, label)
  };

  /// Registers and local memory of a function at one level of its recursion. All its inlined bodies of the level share
  /// them: a thread executes one of these at a time.
  struct Storage {
    std::vector<Slot> registers;
    std::vector<std::uint64_t> addresses;
  };

  [[noreturn]] static void refuse_too_large(const Variable& variable, std::string_view what, std::uint64_t limit);
  Slot new_slot(int width);
  /// How many calls of the function are being inlined at this place.
  int recursion_level(const Function& function) const;
  const Storage& storage(const Function& function);
  /// The functions that a launch of the kernel may call, and the module's variables that they use.
  struct Reachable {
    std::set<const Function*> functions;
    std::set<const Variable*> variables;
    bool uses_reserved_shared = false;  // reads a special register that tells where it is
  };
  Reachable reachable_from(const Function& kernel) const;
  void place_shared_variables(const Function& kernel);
  void place_parameters(const Function& kernel, Storage& storage);
  void emit_body(Frame& frame, int depth);
  /// Thrown by refuse() and require(). `what` is a sentence.
  struct Refusal {
    std::string what;
  };

  /// Appends the decoded instruction or, if its decoder refuses it, one that reports that.
  void emit(const ParsedInstruction& parsed, int depth);
  void decode(const ParsedInstruction& parsed, int depth);
  void emit_refused(const ParsedInstruction& parsed, const std::string& reason);
  /// @throws EmulationFinding unsupported_instruction, at load
  [[noreturn]] void refuse_kernel(const ParsedInstruction& parsed, std::string reason) const;
  void emit_call(const ParsedInstruction& parsed, int depth);
  /// Refuses a call of a function that is being called where inlining it would take too much.
  void check_recursion(const ParsedInstruction& parsed, const Function& function);
  /// Inlines `function`, if the guard of the call holds. `results` and `arguments` are those of the call.
  void emit_inlined(const ParsedInstruction& parsed, const Function& function, const std::vector<Operand>& results,
                    const std::vector<Operand>& arguments, int depth);
  /// A call through a register: inlines all functions that it can reach, each behind a comparison with its address.
  void emit_indirect_call(const ParsedInstruction& parsed, const Operand& pointer, const std::vector<Operand>& results,
                          const std::vector<Operand>& arguments, int depth);
  /// Whether a call with these operands fits the function.
  bool fits(const Function& function, const std::vector<Operand>& results, const std::vector<Operand>& arguments) const;
  void emit_builtin(const ParsedInstruction& parsed, const BuiltinFunction& builtin,
                    const std::vector<Operand>& results, const std::vector<Operand>& arguments);
  Instruction& append(const ParsedInstruction& parsed);
  void set_guard(const ParsedInstruction& parsed, Instruction& instruction, bool flip);
  void link(Frame& frame);

  const Module& module_;
  const std::vector<std::uint64_t>& global_addresses_;
  const Target target_;
  Program program_;
  int calls_ = 0;  // number of calls inlined so far
  PeriodicCheck check_;
  Frame* frame_ = nullptr;
  std::vector<const Function*> calling_;
  int recursive_calls_ = 0;                                      // of calls_
  std::map<std::pair<const Function*, int>, Storage> storages_;  // by function and recursion level
  std::unordered_map<const Function*, int> most_levels_;         // of recursive functions
  std::unordered_map<const Variable*, std::uint32_t> shared_addresses_;
  std::map<std::tuple<int, std::uint64_t, bool>, Slot> constants_;
  std::map<SpecialRegister, Slot> specials_;
  std::map<int, Slot> scratch_;
  Slot carry_flag_ = kNone;
};

}  // namespace tilewright::emulator
