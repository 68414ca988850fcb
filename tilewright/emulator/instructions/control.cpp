// Control flow: bra brx ret exit trap call; nanosleep and griddepcontrol.
#include "tilewright/emulator/instructions/control.hpp"

#include <array>
#include <bit>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

void execute_yield(Warp& warp, const Instruction&, Mask) { warp.yield(); }

void execute_trap(Warp& warp, const Instruction& in, Mask lanes) {
  warp.fail(FindingKind::trap, in, std::countr_zero(lanes), 0, "a trap instruction was executed");
}

void execute_breakpoint(Warp& warp, const Instruction& in, Mask lanes) {
  warp.fail(FindingKind::trap, in, std::countr_zero(lanes), 0, "a breakpoint (brkpt) was executed");
}

void decode_breakpoint(InstructionReader& reader) {
  reader.finish();
  reader.out().execute = &execute_breakpoint;
}

void decode_exit(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_exit;
}

void decode_trap(InstructionReader& reader) {
  reader.finish();
  reader.out().execute = &execute_trap;
}

void decode_nanosleep(InstructionReader& reader) {
  reader.type();
  reader.finish();
  reader.expect_operands(1);
  reader.out().execute = &execute_yield;
}

void execute_grid_wait(Warp& warp, const Instruction&, Mask) { warp.clocks.follows_grids = true; }

/// Launches on the emulator never overlap. But accesses before the wait are not ordered after the grids before.
void decode_grid_dependency(InstructionReader& reader) {
  const int what = reader.take_one_of({"launch_dependents", "wait"});
  if (what < 0) reader.refuse("this griddepcontrol");
  reader.finish();
  reader.out().execute = what == 0 ? &execute_nothing : &execute_grid_wait;
}

void decode_event(InstructionReader& reader) { reader.out().execute = &execute_nothing; }

constexpr std::array kOpcodes = {
    OpcodeRow{"bra", OperandClass::any, decode_branch},
    OpcodeRow{"brx.idx", OperandClass::any, decode_indexed_branch},
    OpcodeRow{"ret", OperandClass::any, decode_return},
    OpcodeRow{"call", OperandClass::any, decode_call},
    OpcodeRow{"exit", OperandClass::any, decode_exit},
    OpcodeRow{"trap", OperandClass::any, decode_trap},
    OpcodeRow{"brkpt", OperandClass::any, decode_breakpoint},
    OpcodeRow{"nanosleep", OperandClass::any, decode_nanosleep},
    OpcodeRow{"griddepcontrol", OperandClass::any, decode_grid_dependency},
    OpcodeRow{"pmevent", OperandClass::any, decode_event},
};

}  // namespace

void execute_nothing(Warp&, const Instruction&, Mask) {}

void execute_branch(Warp& warp, const Instruction& in, Mask lanes) { warp.branch(lanes, in.target); }

void execute_indexed_branch(Warp& warp, const Instruction& in, Mask lanes) {
  const auto* const index = warp.reg<std::uint32_t>(in.op[0]);
  const std::vector<std::uint32_t>& table = warp.program().branch_tables[in.target];
  while (lanes != 0) {
    const int lane = std::countr_zero(lanes);
    const std::uint32_t entry = index[lane];
    if (entry >= table.size()) {
      warp.fail(FindingKind::trap, in, lane, 0,
                fmt::format("brx.idx to entry {} of a table of {} targets", entry, table.size()));
    }
    Mask same = 0;
    each_lane(lanes, [&](int l) { same |= Mask{index[l] == entry} << l; });
    warp.branch(same, table[entry]);
    lanes &= ~same;
  }
}

void execute_compare_function(Warp& warp, const Instruction& in, Mask lanes) {
  const auto* const pointer = warp.reg<std::uint64_t>(in.op[1]);
  Mask equal = 0;
  each_lane(lanes, [&](int l) { equal |= Mask{pointer[l] == static_cast<std::uint64_t>(in.immediate)} << l; });
  warp.set_predicate(in.op[0], equal, lanes);
}

void execute_exit(Warp& warp, const Instruction&, Mask lanes) { warp.exit(lanes); }

void execute_refused(Warp& warp, const Instruction& in, Mask lanes) {
  warp.fail(FindingKind::unsupported_instruction, in, std::countr_zero(lanes), 0,
            warp.program().refusals[static_cast<std::size_t>(in.immediate)]);
}

void decode_branch(InstructionReader& reader) {
  reader.take("uni");
  reader.finish();
  reader.expect_operands(1);
  if (reader.operand(0).kind != Operand::Kind::label) reader.refuse("a branch to an unknown label");
  reader.out().execute = &execute_branch;
}

void decode_indexed_branch(InstructionReader& reader) {
  reader.take("uni");
  reader.finish();
  reader.expect_operands(2);
  if (reader.operand(1).kind != Operand::Kind::label) reader.refuse("a brx.idx with an unknown branch table");
  reader.source(reader.operand(0), PtxType::u32);
  reader.out().execute = &execute_indexed_branch;
}

void decode_return(InstructionReader& reader) {
  reader.take("uni");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_exit;
}

void decode_call(InstructionReader& reader) { reader.refuse("this form of call"); }

std::span<const OpcodeRow> control_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
