// membar and fence: of memory, of an mbarrier's init, and between the generic and the asynchronous proxy.
// Warps run one instruction at a time and see each other's writes at once, so that every order is kept; what a fence
// changes is what the checks hold against those who left it out.
#include <array>

#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

void execute_fence(Warp& warp, const Instruction&, Mask) {
  warp.released = warp.past;
  warp.advance_clock();
}

void execute_proxy_fence(Warp& warp, const Instruction&, Mask) { warp.fence_proxy(); }

void decode_fence(InstructionReader& reader) {
  reader.take_one_of({"sc", "acq_rel", "acquire", "release"});
  reader.take_one_of({"cta", "cluster", "gpu", "sys", "gl"});
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

/// fence.mbarrier_init.release.cluster
void decode_init_fence(InstructionReader& reader) {
  if (!reader.take("release") || !reader.take("cluster")) reader.refuse("this fence of mbarrier.init");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

void decode_proxy_fence(InstructionReader& reader) {
  const bool async = reader.take("async");
  const bool global = reader.take("global");
  reader.take_one_of({"shared::cta", "shared::cluster"});
  if (!async && !reader.take("alias")) reader.refuse("this proxy");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = async && !global ? &execute_proxy_fence : &execute_nothing;
}

/// fence.proxy.tensormap::generic: tensor maps are read when they are used.
void decode_tensor_map_fence(InstructionReader& reader) {
  if (reader.take_one_of({"acquire", "release"}) < 0) reader.refuse("this fence of tensor maps");
  reader.take_one_of({"cta", "cluster", "gpu", "sys"});
  reader.finish();
  reader.expect_operands(0, 2);
  reader.out().execute = &execute_nothing;
}

constexpr std::array kRows = {
    OpcodeRow{"membar", OperandClass::any, decode_fence},
    OpcodeRow{"fence", OperandClass::any, decode_fence},
    OpcodeRow{"fence.mbarrier_init", OperandClass::any, decode_init_fence},
    OpcodeRow{"fence.proxy", OperandClass::any, decode_proxy_fence},
    OpcodeRow{"fence.proxy.tensormap::generic", OperandClass::any, decode_tensor_map_fence},
};

}  // namespace

std::span<const OpcodeRow> fence_opcodes() { return kRows; }

}  // namespace tilewright::emulator
