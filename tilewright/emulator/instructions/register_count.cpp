// setmaxnreg. Has no effect but the check that all warps of a warpgroup execute the same ones.
#include <array>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {
namespace {

/// Records the count; Cta::check_warpgroups() compares the warps of a warpgroup.
void execute_setmaxnreg(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, warp.present())) return;
  warp.register_counts.push_back(static_cast<std::uint32_t>(in.immediate));
}

void decode_setmaxnreg(InstructionReader& reader) {
  if (reader.take_one_of({"inc", "dec"}) < 0 || !reader.take("sync") || !reader.take("aligned")) {
    reader.refuse("this setmaxnreg");
  }
  reader.type();
  reader.finish();
  reader.expect_operands(1);
  const std::uint64_t count = reader.number(reader.operand(0));
  if (count < 24 || count > 256 || count % 8 != 0) {
    reader.refuse(fmt::format("setmaxnreg of {} registers, which must be a multiple of 8 from 24 to 256", count));
  }
  reader.out().immediate = static_cast<std::int64_t>(count);
  reader.out().execute = &execute_setmaxnreg;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"setmaxnreg", OperandClass::any, decode_setmaxnreg},
};

}  // namespace

std::span<const OpcodeRow> register_count_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
