// setmaxnreg: how many registers the threads of a warpgroup may use from here on.
#include <array>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {
namespace {

/// The warps of a warpgroup must execute the same ones: the CTA compares what they counted.
void execute_set_registers(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.gather(in, lanes, warp.present())) return;
  warp.register_counts.push_back(static_cast<std::uint32_t>(in.immediate));
}

void decode_set_registers(InstructionReader& reader) {
  if (reader.take_one_of({"inc", "dec"}) < 0 || !reader.take("sync") || !reader.take("aligned")) {
    reader.refuse("this setmaxnreg");
  }
  reader.type();
  reader.finish();
  reader.expect_operands(1);
  const std::uint64_t count = reader.number(reader.operand(0));
  if (count < 24 || count > 256 || count % 8 != 0) {
    reader.refuse(fmt::format("setmaxnreg of {} registers: a multiple of 8 from 24 to 256", count));
  }
  reader.out().immediate = static_cast<std::int64_t>(count);
  reader.out().execute = &execute_set_registers;
}

constexpr std::array kRows = {
    OpcodeRow{"setmaxnreg", OperandClass::any, decode_set_registers},
};

}  // namespace

std::span<const OpcodeRow> register_count_opcodes() { return kRows; }

}  // namespace tilewright::emulator
