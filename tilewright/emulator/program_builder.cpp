// Lays out registers and variables, decodes instructions, inlines calls, links branches.
#include "tilewright/emulator/program_builder.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <ranges>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/emulator/instructions/builtin.hpp"
#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kMaxCallDepth = 96;
constexpr int kMaxRecursionLevels = 64;
constexpr int kMaxBodiesOfLevel = 1 << 11;              // of a recursive function
constexpr int kMaxRecursiveCalls = 1 << 14;             // inlined calls of functions that are being called
constexpr std::size_t kMaxCode = std::size_t{1} << 22;  // instructions after inlining
constexpr int kMaxCalls = 1 << 16;                      // inlined calls, also of functions without instructions
constexpr std::uint64_t kMaxSharedBytes = 1U << 20;
constexpr std::uint64_t kSharedRedZone = 64;  // bytes between two variables
constexpr std::uint64_t kLocalRedZone = 16;
constexpr std::uint64_t kMaxLocalBytes = 1U << 20;               // per thread
constexpr std::size_t kMaxRegisterBytes = std::size_t{1} << 25;  // per warp: 2^18 registers of 32 bits
constexpr std::uint64_t kMaxParameterBytes = 32764;              // PTX ISA 8.1 and later

struct SpecialRow {
  std::string_view name;
  SpecialRegister what;
};

constexpr std::array kSpecials = {
    SpecialRow{"%tid.x", SpecialRegister::tid_x},
    SpecialRow{"%tid.y", SpecialRegister::tid_y},
    SpecialRow{"%tid.z", SpecialRegister::tid_z},
    SpecialRow{"%ntid.x", SpecialRegister::ntid_x},
    SpecialRow{"%ntid.y", SpecialRegister::ntid_y},
    SpecialRow{"%ntid.z", SpecialRegister::ntid_z},
    SpecialRow{"%ctaid.x", SpecialRegister::ctaid_x},
    SpecialRow{"%ctaid.y", SpecialRegister::ctaid_y},
    SpecialRow{"%ctaid.z", SpecialRegister::ctaid_z},
    SpecialRow{"%nctaid.x", SpecialRegister::nctaid_x},
    SpecialRow{"%nctaid.y", SpecialRegister::nctaid_y},
    SpecialRow{"%nctaid.z", SpecialRegister::nctaid_z},
    SpecialRow{"%clusterid.x", SpecialRegister::clusterid_x},
    SpecialRow{"%clusterid.y", SpecialRegister::clusterid_y},
    SpecialRow{"%clusterid.z", SpecialRegister::clusterid_z},
    SpecialRow{"%nclusterid.x", SpecialRegister::nclusterid_x},
    SpecialRow{"%nclusterid.y", SpecialRegister::nclusterid_y},
    SpecialRow{"%nclusterid.z", SpecialRegister::nclusterid_z},
    SpecialRow{"%cluster_ctaid.x", SpecialRegister::cluster_ctaid_x},
    SpecialRow{"%cluster_ctaid.y", SpecialRegister::cluster_ctaid_y},
    SpecialRow{"%cluster_ctaid.z", SpecialRegister::cluster_ctaid_z},
    SpecialRow{"%cluster_nctaid.x", SpecialRegister::cluster_nctaid_x},
    SpecialRow{"%cluster_nctaid.y", SpecialRegister::cluster_nctaid_y},
    SpecialRow{"%cluster_nctaid.z", SpecialRegister::cluster_nctaid_z},
    SpecialRow{"%cluster_ctarank", SpecialRegister::cluster_ctarank},
    SpecialRow{"%cluster_nctarank", SpecialRegister::cluster_nctarank},
    SpecialRow{"%is_explicit_cluster", SpecialRegister::is_explicit_cluster},
    SpecialRow{"%laneid", SpecialRegister::laneid},
    SpecialRow{"%warpid", SpecialRegister::warpid},
    SpecialRow{"%nwarpid", SpecialRegister::nwarpid},
    SpecialRow{"%smid", SpecialRegister::smid},
    SpecialRow{"%nsmid", SpecialRegister::nsmid},
    SpecialRow{"%gridid", SpecialRegister::gridid},
    SpecialRow{"%envreg1", SpecialRegister::envreg1},
    SpecialRow{"%envreg2", SpecialRegister::envreg2},
    SpecialRow{"%lanemask_eq", SpecialRegister::lanemask_eq},
    SpecialRow{"%lanemask_le", SpecialRegister::lanemask_le},
    SpecialRow{"%lanemask_lt", SpecialRegister::lanemask_lt},
    SpecialRow{"%lanemask_ge", SpecialRegister::lanemask_ge},
    SpecialRow{"%lanemask_gt", SpecialRegister::lanemask_gt},
    SpecialRow{"%dynamic_smem_size", SpecialRegister::dynamic_smem_size},
    SpecialRow{"%total_smem_size", SpecialRegister::total_smem_size},
    SpecialRow{"%reserved_smem_offset_begin", SpecialRegister::reserved_smem_offset_begin},
    SpecialRow{"%reserved_smem_offset_end", SpecialRegister::reserved_smem_offset_end},
    SpecialRow{"%reserved_smem_offset_cap", SpecialRegister::reserved_smem_offset_cap},
    SpecialRow{"%reserved_smem_offset_1", SpecialRegister::reserved_smem_offset_1},
};

/// A variable's demangled name: "kernel(float*)::tile".
std::string source_name(std::string_view symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(demangled.get()) : printable(symbol, 80);
}

}  // namespace

ProgramBuilder::ProgramBuilder(const Module& module, const std::vector<std::uint64_t>& global_addresses,
                               const Target& target)
    : module_(module), global_addresses_(global_addresses), target_(target) {}

void ProgramBuilder::refuse(const ParsedInstruction&, std::string reason) const {
  throw Refusal{"the emulator does not support " + std::move(reason)};
}

void ProgramBuilder::require(const Support& support) {
  if (!support) throw Refusal{support.reason()};
}

void ProgramBuilder::refuse_kernel(const ParsedInstruction& parsed, std::string reason) const {
  throw EmulationFinding(Finding{FindingKind::unsupported_instruction,
                                 fmt::format("the emulator does not support {}", reason),
                                 std::nullopt,
                                 module_.locate(parsed),
                                 0,
                                 {}});
}

// Registers -------------------------------------------------------------------------------------------------------

Slot ProgramBuilder::new_slot(int width) {
  const std::size_t size = width == 0 ? sizeof(Mask) : static_cast<std::size_t>(width) * kWarpSize;
  // Predicates are packed; any other register starts a cache line.
  const std::size_t alignment = width == 0 ? sizeof(Mask) : kSlotAlignment;
  const std::size_t slot = round_up(program_.register_bytes, alignment);
  program_.register_bytes = slot + size;
  if (program_.register_bytes > kMaxRegisterBytes) {
    throw EmulationFinding(
        Finding{FindingKind::malformed_ptx,
                fmt::format("the registers of a warp take more than the limit of {} bytes", kMaxRegisterBytes),
                std::nullopt,
                {},
                0,
                {}});
  }
  if (width != 0) {
    program_.register_widths.resize(slot / kSlotAlignment + 1);
    program_.register_widths.back() = static_cast<std::uint8_t>(width);
  }
  return static_cast<Slot>(slot);
}

Slot ProgramBuilder::constant(int width, std::uint64_t bits, bool is_shared_address) {
  if (width == 0) bits = bits != 0 ? ~std::uint64_t{0} : 0;
  if (width > 0 && width < 8) bits &= (std::uint64_t{1} << (8 * width)) - 1;
  const auto [entry, inserted] = constants_.try_emplace({width, bits, is_shared_address}, 0);
  if (inserted) {
    entry->second = new_slot(width);
    program_.constants.push_back({entry->second, static_cast<std::uint8_t>(width), is_shared_address, bits});
  }
  return entry->second;
}

Slot ProgramBuilder::scratch(int width) {
  const auto [entry, inserted] = scratch_.try_emplace(width, 0);
  if (inserted) entry->second = new_slot(width);
  return entry->second;
}

Slot ProgramBuilder::carry_flag() {
  if (carry_flag_ == kNone) carry_flag_ = new_slot(0);
  return carry_flag_;
}

std::uint64_t ProgramBuilder::function_address(const Operand& function) const {
  if (function.index == kNone) return 0;
  const Function& found = module_.functions[function.index];
  return found.declared_only || found.entry ? 0 : emulator::function_address(function.index);
}

Slot ProgramBuilder::special(std::string_view name) {
  const auto row = std::ranges::find(kSpecials, name, &SpecialRow::name);
  if (row == kSpecials.end()) return kNone;
  const auto [entry, inserted] = specials_.try_emplace(row->what, 0);
  if (inserted) {
    entry->second = new_slot(4);
    program_.specials.push_back({entry->second, row->what});
  }
  return entry->second;
}

// Variables -------------------------------------------------------------------------------------------------------

std::uint64_t ProgramBuilder::address_of(const Operand& variable) const {
  if (variable.local_scope) {
    const Variable& own = frame_->function->variables[variable.index];
    if (own.space == Space::shared) return shared_addresses_.at(&own);
    return frame_->addresses[variable.index];
  }
  const Variable& shared = module_.variables[variable.index];
  if (shared.space == Space::shared) return shared_addresses_.at(&shared);
  return global_addresses_[variable.index];
}

Space ProgramBuilder::space_of(const Operand& variable) const {
  if (!variable.local_scope) return module_.variables[variable.index].space;
  const Function& function = *frame_->function;
  const Space space = function.variables[variable.index].space;
  const bool is_kernel_parameter =
      in_kernel() && std::ranges::find(function.parameters, variable.index) != function.parameters.end();
  return space == Space::param && !is_kernel_parameter ? Space::local : space;
}

ProgramBuilder::Reachable ProgramBuilder::reachable_from(const Function& kernel) const {
  Reachable found;
  std::vector<const Function*> pending;
  const auto add = [&](const Function& function) {
    if (found.functions.insert(&function).second) pending.push_back(&function);
  };
  const auto visit = [&](const auto& self, const Operand& operand) -> void {
    if (operand.kind == Operand::Kind::variable && !operand.local_scope)
      found.variables.insert(&module_.variables[operand.index]);
    if (operand.kind == Operand::Kind::function && operand.index != kNone) add(module_.functions[operand.index]);
    if (operand.kind == Operand::Kind::special && operand.name.starts_with("%reserved_smem_"))
      found.uses_reserved_shared = true;
    for (const Operand& element : operand.elements) self(self, element);
  };
  add(kernel);
  for (const Function& function : module_.functions) {
    if (function.address_taken) add(function);
  }
  while (!pending.empty()) {
    const Function* const function = pending.back();
    pending.pop_back();
    for (const ParsedInstruction& instruction : function->instructions) {
      for (const Operand& operand : instruction.operands) visit(visit, operand);
    }
  }
  return found;
}

void ProgramBuilder::place_shared_variables(const Function& kernel) {
  std::uint64_t at = kSharedBase;
  std::uint64_t used = 0;
  std::uint64_t dynamic_alignment = 16;
  std::vector<const Variable*> dynamic;
  const auto place = [&](const Variable& variable) {
    if (variable.space != Space::shared) return;
    if (variable.external && variable.size == 0) {
      dynamic.push_back(&variable);
      dynamic_alignment = std::max(dynamic_alignment, variable.alignment);
      return;
    }
    if (used != 0) at += kSharedRedZone;
    at = round_up(at, variable.alignment);
    used = round_up(used, variable.alignment) + variable.size;
    shared_addresses_[&variable] = static_cast<std::uint32_t>(at);
    program_.shared_variables.push_back(
        {source_name(variable.name), static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(variable.size)});
    at += variable.size;
    if (at > kMaxSharedBytes) refuse_too_large(variable, "shared memory", kMaxSharedBytes);
  };
  const Reachable reachable = reachable_from(kernel);
  if (reachable.uses_reserved_shared) {
    program_.has_reserved_shared = true;
    program_.shared_variables.push_back({"reserved shared memory", kSharedBase, kReservedSharedBytes});
    at += kReservedSharedBytes + kSharedRedZone;
  }
  for (const Variable& variable : module_.variables) {
    if (reachable.variables.contains(&variable)) place(variable);
  }
  for (const Function& function : module_.functions) {
    if (!reachable.functions.contains(&function)) continue;
    for (const Variable& variable : function.variables) place(variable);
  }
  if (!dynamic.empty()) {
    if (used != 0) at += kSharedRedZone;
    at = round_up(at, dynamic_alignment);
    used = round_up(used, dynamic_alignment);
  }
  program_.static_shared_bytes = static_cast<std::uint32_t>(used);
  program_.dynamic_shared_begin = static_cast<std::uint32_t>(at);
  for (const Variable* variable : dynamic) {
    shared_addresses_[variable] = program_.dynamic_shared_begin;
    program_.shared_variables.push_back({source_name(variable->name), program_.dynamic_shared_begin, 0});
  }
}

void ProgramBuilder::place_parameters(const Function& kernel, Storage& storage) {
  std::uint64_t at = 0;
  for (const std::uint32_t index : kernel.parameters) {
    const Variable& parameter = kernel.variables[index];
    at = round_up(at, parameter.alignment);
    storage.addresses[index] = at;
    program_.parameters.push_back({at, parameter.size});
    at += parameter.size;
    if (at > kMaxParameterBytes) refuse_too_large(parameter, "parameters", kMaxParameterBytes);
  }
  program_.parameter_bytes = static_cast<std::uint32_t>(at);
}

void ProgramBuilder::refuse_too_large(const Variable& variable, std::string_view what, std::uint64_t limit) {
  throw EmulationFinding(
      Finding{FindingKind::malformed_ptx,
              fmt::format("variable {} exceeds the limit of {} bytes of {}", printable(variable.name, 80), limit, what),
              std::nullopt,
              {variable.line, {}, {}},
              0,
              {}});
}

int ProgramBuilder::recursion_level(const Function& function) const {
  return static_cast<int>(std::ranges::count(calling_, &function));
}

const ProgramBuilder::Storage& ProgramBuilder::storage(const Function& function) {
  const auto [entry, inserted] = storages_.try_emplace({&function, recursion_level(function)});
  Storage& storage = entry->second;
  if (!inserted) return storage;
  storage.registers.reserve(function.registers.size());
  for (const Register& reg : function.registers) {
    storage.registers.push_back(new_slot(reg.type == PtxType::pred ? 0 : bytes(reg.type)));
  }
  storage.addresses.assign(function.variables.size(), 0);
  if (function.entry) place_parameters(function, storage);
  std::uint64_t at = program_.local_bytes;
  for (std::size_t i = 0; i < function.variables.size(); ++i) {
    const Variable& variable = function.variables[i];
    const bool parameter = std::ranges::find(function.parameters, i) != function.parameters.end();
    const bool call_argument = variable.space == Space::param && !parameter;
    if (variable.space == Space::global || variable.space == Space::constant) {
      throw EmulationFinding(Finding{FindingKind::unsupported_instruction,
                                     "the emulator does not support global variables declared inside functions",
                                     std::nullopt,
                                     {variable.line, {}, {}},
                                     0,
                                     {}});
    }
    if (variable.space != Space::local && !call_argument) continue;
    at = round_up(at, variable.alignment);
    storage.addresses[i] = at;
    program_.local_variables.push_back({at, variable.size});
    at += variable.size;
    if (at > kMaxLocalBytes) refuse_too_large(variable, "local memory", kMaxLocalBytes);
    at += kLocalRedZone;
  }
  program_.local_bytes = static_cast<std::uint32_t>(round_up(at, std::uint64_t{16}));
  return storage;
}

// Code ------------------------------------------------------------------------------------------------------------

Program ProgramBuilder::build(const Function& kernel) {
  place_shared_variables(kernel);
  const Storage& own = storage(kernel);
  Frame frame{&kernel, &own.registers, own.addresses, {}, {}, {}};
  emit_body(frame, 0);
  static const ParsedInstruction kImplicitReturn{"ret", "end of the kernel", kNone, false, 0, kNone, {}};
  append(kImplicitReturn).execute = execute_exit;
  std::size_t end = program_.operands.size();
  for (Instruction& instruction : std::views::reverse(program_.code)) {
    instruction.op = program_.operands.data() + instruction.first_operand;
    instruction.operand_count = static_cast<std::uint16_t>(end - instruction.first_operand);
    end = instruction.first_operand;
    program_.uses_wgmma |= instruction.registers == RegisterUse::wgmma;
  }
  program_.launches_dependents = std::ranges::any_of(program_.origins, [](const ParsedInstruction* origin) {
    return origin->opcode == "griddepcontrol.launch_dependents";
  });
  std::copy(std::begin(kernel.required_cluster), std::end(kernel.required_cluster), program_.required_cluster);
  std::copy(std::begin(kernel.required_block), std::end(kernel.required_block), program_.required_block);
  program_.maximum_block = kernel.maximum_block;
  program_.register_bytes = round_up(program_.register_bytes, kSlotAlignment);
  return std::move(program_);
}

void ProgramBuilder::emit_body(Frame& frame, int depth) {
  Frame* const caller = frame_;
  frame_ = &frame;
  calling_.push_back(frame.function);
  for (const ParsedInstruction& parsed : frame.function->instructions) {
    program_.uses_bulk_copies |= parsed.opcode.starts_with("cp.async.bulk");
    frame.starts.push_back(static_cast<std::uint32_t>(program_.code.size()));
    check_();
    if (program_.code.size() > kMaxCode)
      refuse_kernel(parsed, fmt::format("kernels of more than {} instructions after inlining", kMaxCode));
    emit(parsed, depth);
  }
  link(frame);
  calling_.pop_back();
  frame_ = caller;
}

void ProgramBuilder::link(Frame& frame) {
  const auto end = static_cast<std::uint32_t>(program_.code.size());
  const auto start_of = [&](std::uint32_t label) {
    const std::uint32_t instruction = frame.function->labels[label].instruction;
    return instruction < frame.starts.size() ? frame.starts[instruction] : end;
  };
  for (const auto& [code, label] : frame.branches) {
    Instruction& branch = program_.code[code];
    if (branch.execute != execute_indexed_branch) {
      branch.target = start_of(label);
      continue;
    }
    branch.target = static_cast<std::uint32_t>(program_.branch_tables.size());
    auto& table = program_.branch_tables.emplace_back();
    for (const std::uint32_t target : frame.function->labels[label].targets) table.push_back(start_of(target));
  }
  for (const std::uint32_t code : frame.returns) program_.code[code].target = end;
}

Instruction& ProgramBuilder::append(const ParsedInstruction& parsed) {
  Instruction& instruction = program_.code.emplace_back();
  instruction.first_operand = static_cast<std::uint32_t>(program_.operands.size());
  program_.origins.push_back(&parsed);
  return instruction;
}

void ProgramBuilder::set_guard(const ParsedInstruction& parsed, Instruction& instruction, bool flip) {
  if (parsed.guard == kNone) return;
  if (register_type(parsed.guard) != PtxType::pred) refuse(parsed, "a guard that is not a predicate register");
  instruction.guard = register_slot(parsed.guard);
  instruction.guard_flip = parsed.guard_negated != flip ? kAllLanes : 0;
}

void ProgramBuilder::emit(const ParsedInstruction& parsed, int depth) {
  const std::size_t code = program_.code.size();
  const std::size_t operands = program_.operands.size();
  try {
    decode(parsed, depth);
  } catch (const Refusal& refusal) {
    program_.code.resize(code);
    program_.origins.resize(code);
    program_.operands.resize(operands);
    emit_refused(parsed, refusal.what);
  }
}

void ProgramBuilder::emit_refused(const ParsedInstruction& parsed, const std::string& reason) {
  Instruction& instruction = append(parsed);
  instruction.execute = execute_refused;
  instruction.immediate = static_cast<std::int64_t>(program_.refusals.size());
  program_.refusals.push_back(reason);
  if (parsed.guard != kNone && register_type(parsed.guard) == PtxType::pred) set_guard(parsed, instruction, false);
}

void ProgramBuilder::decode(const ParsedInstruction& parsed, int depth) {
  require(check_instruction(parsed.opcode, target_));
  const auto [row, modifiers] = find_opcode(parsed.opcode);
  if (row == nullptr) refuse(parsed, fmt::format("instruction {}", printable(parsed.opcode, 80)));
  if (row->decode == decode_call) return emit_call(parsed, depth);
  const auto code = static_cast<std::uint32_t>(program_.code.size());
  Instruction& instruction = append(parsed);
  InstructionReader reader(*this, parsed, instruction, modifiers);
  instruction.flow = value_flow(parsed.opcode);
  row->decode(reader);
  set_guard(parsed, instruction, false);
  if (row->decode == decode_branch || row->decode == decode_indexed_branch) {
    frame_->branches.emplace_back(code, parsed.operands.back().index);
  } else if (row->decode == decode_return && !in_kernel()) {
    instruction.execute = execute_branch;
    frame_->returns.push_back(code);
  }
}

void ProgramBuilder::emit_call(const ParsedInstruction& parsed, int depth) {
  // call{.uni} (results), function, (arguments); either list may be missing.
  std::vector<Operand> results, arguments;
  const Operand* callee = nullptr;
  for (const Operand& operand : parsed.operands) {
    if (operand.kind == Operand::Kind::list) {
      (callee == nullptr ? results : arguments) = operand.elements;
    } else if (callee == nullptr) {
      callee = &operand;
    } else if (callee->kind != Operand::Kind::reg || operand.kind != Operand::Kind::label) {
      refuse(parsed, "this form of call");
    }
  }
  if (callee != nullptr && callee->kind == Operand::Kind::reg)
    return emit_indirect_call(parsed, *callee, results, arguments, depth);
  if (callee == nullptr || callee->kind != Operand::Kind::function) refuse(parsed, "this form of call");
  if (const BuiltinFunction* const builtin = find_builtin(callee->name)) {
    program_.prints |= callee->name == "vprintf";
    return emit_builtin(parsed, *builtin, results, arguments);
  }
  const Function* const function = callee->index == kNone ? nullptr : &module_.functions[callee->index];
  if (function == nullptr || function->declared_only) {
    // Functions of the runtime on the device, which libcudadevrt has.
    const bool launches = callee->name.starts_with("__cudaCDP2") || callee->name.starts_with("cudaLaunchDevice") ||
                          callee->name.starts_with("cudaGetParameterBuffer");
    refuse(parsed, fmt::format("{} {}", launches ? "launches by kernels: function" : "external function",
                               printable(callee->name, 80)));
  }
  if (depth >= kMaxCallDepth) refuse(parsed, fmt::format("more than {} calls inside of each other", kMaxCallDepth));
  check_recursion(parsed, *function);
  if (++calls_ > kMaxCalls) refuse_kernel(parsed, fmt::format("kernels of more than {} inlined calls", kMaxCalls));
  if (results.size() != function->results.size() || arguments.size() != function->parameters.size()) {
    refuse(parsed, "a call whose number of parameters differs from its function's");
  }
  std::uint32_t skip = kNone;
  if (parsed.guard != kNone) {
    skip = static_cast<std::uint32_t>(program_.code.size());
    Instruction& branch = append(parsed);
    branch.execute = execute_branch;
    set_guard(parsed, branch, true);
  }
  emit_inlined(parsed, *function, results, arguments, depth);
  if (skip != kNone) program_.code[skip].target = static_cast<std::uint32_t>(program_.code.size());
}

void ProgramBuilder::check_recursion(const ParsedInstruction& parsed, const Function& function) {
  const int level = recursion_level(function);
  if (level == 0) return;
  const auto [entry, inserted] = most_levels_.try_emplace(&function, 0);
  int& most_levels = entry->second;
  if (inserted) {
    // Each body has as many bodies of the next level as it has calls.
    const auto calls = std::ranges::count_if(function.instructions, [](const ParsedInstruction& each) {
      return each.opcode.starts_with("call") && std::ranges::any_of(each.operands, [](const Operand& operand) {
               return operand.kind == Operand::Kind::function && find_builtin(operand.name) == nullptr;
             });
    });
    const std::int64_t growth = std::max<std::int64_t>(calls, 1);
    for (std::int64_t bodies = growth; bodies <= kMaxBodiesOfLevel && most_levels < kMaxRecursionLevels;
         bodies *= growth)
      ++most_levels;
  }
  const bool fits = recursive_calls_ < kMaxRecursiveCalls && program_.code.size() < kMaxCode / 4 &&
                    program_.register_bytes < kMaxRegisterBytes / 4 && program_.local_bytes < kMaxLocalBytes / 4;
  if (level > most_levels || !fits) {
    refuse(parsed, fmt::format("recursion of {} into more than {} levels: calls are inlined",
                               printable(function.name, 80), level - 1));
  }
  ++recursive_calls_;
}

void ProgramBuilder::emit_inlined(const ParsedInstruction& parsed, const Function& function,
                                  const std::vector<Operand>& results, const std::vector<Operand>& arguments,
                                  int depth) {
  const Storage& own = storage(function);
  Frame frame{&function, &own.registers, own.addresses, {}, {}, {}};
  const auto bind = [&](const Operand& actual, std::uint32_t formal) {
    if (actual.kind != Operand::Kind::variable || !actual.local_scope) refuse(parsed, "call parameters in registers");
    if (frame_->function->variables[actual.index].size < function.variables[formal].size) {
      refuse(parsed, "an argument that is smaller than the function's parameter");
    }
    frame.addresses[formal] = frame_->addresses[actual.index];
  };
  for (std::size_t i = 0; i < results.size(); ++i) bind(results[i], function.results[i]);
  for (std::size_t i = 0; i < arguments.size(); ++i) bind(arguments[i], function.parameters[i]);
  emit_body(frame, depth + 1);
}

bool ProgramBuilder::fits(const Function& function, const std::vector<Operand>& results,
                          const std::vector<Operand>& arguments) const {
  if (function.entry || function.declared_only || !function.address_taken) return false;
  const auto agree = [&](const std::vector<Operand>& actual, const std::vector<std::uint32_t>& formal) {
    if (actual.size() != formal.size()) return false;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (actual[i].kind != Operand::Kind::variable || !actual[i].local_scope) return false;
      if (frame_->function->variables[actual[i].index].size != function.variables[formal[i]].size) return false;
    }
    return true;
  };
  return agree(results, function.results) && agree(arguments, function.parameters);
}

void ProgramBuilder::emit_indirect_call(const ParsedInstruction& parsed, const Operand& pointer,
                                        const std::vector<Operand>& results, const std::vector<Operand>& arguments,
                                        int depth) {
  if (depth >= kMaxCallDepth) refuse(parsed, "an indirect call at this depth");
  const auto here = [&] { return static_cast<std::uint32_t>(program_.code.size()); };
  std::vector<std::uint32_t> to_end;
  if (parsed.guard != kNone) {
    to_end.push_back(here());
    Instruction& branch = append(parsed);
    branch.execute = execute_branch;
    set_guard(parsed, branch, true);
  }
  for (std::size_t i = 0; i < module_.functions.size(); ++i) {
    const Function& function = module_.functions[i];
    if (!fits(function, results, arguments)) continue;
    if (std::ranges::find(calling_, &function) != calling_.end()) continue;  // recursion
    if (++calls_ > kMaxCalls) refuse_kernel(parsed, fmt::format("kernels of more than {} inlined calls", kMaxCalls));
    const Slot is_callee = new_slot(0);
    Instruction& comparison = append(parsed);
    comparison.execute = execute_compare_function;
    comparison.immediate = static_cast<std::int64_t>(emulator::function_address(static_cast<std::uint32_t>(i)));
    comparison.written = 1;
    add_operand(is_callee);
    add_operand(register_slot(pointer.index));
    const std::uint32_t to_next = here();
    Instruction& branch = append(parsed);
    branch.execute = execute_branch;
    branch.guard = is_callee;
    branch.guard_flip = kAllLanes;
    emit_inlined(parsed, function, results, arguments, depth);
    to_end.push_back(here());
    append(parsed).execute = execute_branch;
    program_.code[to_next].target = here();
  }
  Instruction& none = append(parsed);
  none.execute = execute_refused;
  none.immediate = static_cast<std::int64_t>(program_.refusals.size());
  program_.refusals.push_back(
      "a call through a pointer that is no function of this signature, or one that is being called: the emulator does "
      "not support recursion");
  for (const std::uint32_t branch : to_end) program_.code[branch].target = here();
}

void ProgramBuilder::emit_builtin(const ParsedInstruction& parsed, const BuiltinFunction& builtin,
                                  const std::vector<Operand>& results, const std::vector<Operand>& arguments) {
  if (results.size() != builtin.results || arguments.size() != builtin.parameters) {
    refuse(parsed, "a call whose number of parameters differs from its function's");
  }
  Instruction& call = append(parsed);
  call.execute = builtin.execute;
  program_.uses_heap |= builtin.uses_heap;
  set_guard(parsed, call, false);
  for (const std::vector<Operand>* const list : {&arguments, &results}) {
    for (const Operand& actual : *list) {
      if (actual.kind != Operand::Kind::variable || !actual.local_scope) refuse(parsed, "call parameters in registers");
      add_operand(constant(8, frame_->addresses[actual.index]));
    }
  }
}

Program build_program(const Module& module, const Function& kernel, const std::vector<std::uint64_t>& global_addresses,
                      const Target& target) {
  return ProgramBuilder(module, global_addresses, target).build(kernel);
}

}  // namespace tilewright::emulator
