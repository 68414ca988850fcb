// Fences: membar, fence, fence.mbarrier_init, fence.proxy. Warps execute one at a time and see each other's writes at
// once, so that fences do not change what a kernel reads; they only change what the race checks take as ordered.
#include <array>

#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

void execute_fence(Warp& warp, const Instruction&, Mask) {
  warp.released = warp.clocks;
  warp.advance_clock();
}

void execute_proxy_fence(Warp& warp, const Instruction&, Mask) { warp.fence_proxy(); }

void decode_fence(InstructionReader& reader) {
  reader.take_one_of({"sc", "acq_rel", "acquire", "release"});
  reader.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
  reader.take_one_of({"cta", "cluster", "gpu", "sys", "gl"});
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

/// fence.mbarrier_init.release.cluster
void decode_init_fence(InstructionReader& reader) {
  if (!reader.take("release") || !reader.take("cluster")) reader.refuse("this form of fence.mbarrier_init");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

void decode_proxy_fence(InstructionReader& reader) {
  const bool async = reader.take("async");
  const bool global = reader.take("global");
  reader.take_one_of({"shared::cta", "shared::cluster"});
  if (!async && !reader.take("alias")) reader.refuse("a fence of this proxy");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = async && !global ? &execute_proxy_fence : &execute_nothing;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"membar", OperandClass::any, decode_fence},
    OpcodeRow{"fence", OperandClass::any, decode_fence},
    OpcodeRow{"fence.mbarrier_init", OperandClass::any, decode_init_fence},
    OpcodeRow{"fence.proxy", OperandClass::any, decode_proxy_fence},
};

}  // namespace

std::span<const OpcodeRow> fence_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
