// Fences: membar, fence, fence.mbarrier_init, fence.proxy. Warps execute one at a time and see each other's writes at
// once, so that fences do not change what a kernel reads; they only change what the race checks take as ordered.
#include <array>

#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

namespace tilewright::emulator {
namespace {

/// mode: the MemoryScope.
void execute_fence(Warp& warp, const Instruction& in, Mask) { warp.release(static_cast<MemoryScope>(in.mode)); }

void execute_init_fence(Warp& warp, const Instruction&, Mask lanes) {
  fence_mbarrier_inits(warp, lanes);
  warp.release(MemoryScope::cluster);
}

/// mode: kFencesShared, kFencesGlobal or both.
constexpr std::uint8_t kFencesShared = 1, kFencesGlobal = 2;
void execute_proxy_fence(Warp& warp, const Instruction& in, Mask) {
  warp.fence_proxy((in.mode & kFencesShared) != 0, (in.mode & kFencesGlobal) != 0);
}

void decode_fence(InstructionReader& reader) {
  const bool only_acquires = reader.take_one_of({"sc", "acq_rel", "release", "acquire"}) == 3;
  reader.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
  reader.out().mode = static_cast<std::uint8_t>(reader.memory_scope());
  reader.take("gl");  // membar.gl: all threads of the GPU
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = only_acquires ? &execute_nothing : &execute_fence;
}

/// fence.mbarrier_init.release.cluster
void decode_init_fence(InstructionReader& reader) {
  if (!reader.take("release") || !reader.take("cluster")) reader.refuse("this form of fence.mbarrier_init");
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_init_fence;
}

/// fence.proxy, membar.proxy. async::generic is the fence of one direction, with .acquire or .release; the emulator
/// orders both.
void decode_proxy_fence(InstructionReader& reader) {
  const bool one_way = reader.take("async::generic");
  if (one_way) {
    reader.take_one_of({"acquire", "release"});
    reader.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
    reader.take("cluster");
  }
  const bool async = one_way || reader.take("async");
  const bool global = reader.take("global");
  const bool shared = reader.take_one_of({"shared::cta", "shared::cluster"}) >= 0;
  if (!async && !reader.take("alias")) reader.refuse("a fence of this proxy");
  reader.finish();
  reader.expect_operands(0);
  reader.out().mode = global ? kFencesGlobal : shared ? kFencesShared : kFencesShared | kFencesGlobal;
  reader.out().execute = async ? &execute_proxy_fence : &execute_nothing;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"membar", OperandClass::any, decode_fence},
    OpcodeRow{"fence", OperandClass::any, decode_fence},
    OpcodeRow{"fence.mbarrier_init", OperandClass::any, decode_init_fence},
    OpcodeRow{"fence.proxy", OperandClass::any, decode_proxy_fence},
    OpcodeRow{"membar.proxy", OperandClass::any, decode_proxy_fence},
};

}  // namespace

std::span<const OpcodeRow> fence_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
