// cp.async and its groups. A copy reads its source when it is issued and writes its destination when it is waited for.
// This is the latest time the PTX ISA allows, so that a kernel which does not wait reads stale bytes.
#include <algorithm>
#include <array>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// The form of cp.async that determines how many source bytes it reads; its Instruction::mode.
enum class SourceSize : std::uint8_t { whole, in_register, ignore_src };

/// Finds the bits of a source in global memory that no one has written.
void note_undefined(Warp& warp, PendingCopy& copy, std::uint64_t address, std::uint32_t bytes) {
  copy.has_undefined = true;
  for (std::uint32_t i = 0; i < bytes; ++i)
    copy.undefined[i] = warp.cta().launch().global_shadow->undefined_bits(warp, address + i);
}

/// Operands: destination address, source address, source size or ignore-src predicate and its xor mask. element_bytes:
/// cp-size.
void execute_cp_async(Warp& warp, const Instruction& in, Mask lanes) {
  const std::uint32_t bytes = in.element_bytes;
  LanePointers to;
  resolve(warp, in, lanes, Space::shared, 0, bytes, AccessKind::unshadowed, to);
  std::uint32_t sizes[kWarpSize];
  const auto mode = static_cast<SourceSize>(in.mode);
  const auto* const given = mode == SourceSize::in_register ? warp.reg<std::uint32_t>(in.op[2]) : nullptr;
  const Mask ignored = mode == SourceSize::ignore_src ? warp.predicate(in.op[2]) ^ warp.predicate(in.op[3]) : 0;
  Mask reading = 0;
  each_lane(lanes, [&](int l) {
    sizes[l] = given != nullptr ? std::min(given[l], bytes) : bytes;
    if (((ignored >> l) & 1) != 0) sizes[l] = 0;
    if (sizes[l] != 0) reading |= Mask{1} << l;
  });
  // The source must be aligned to cp-size even when fewer bytes are read, but only the bytes that are read must exist.
  LanePointers from;
  from.follows_undefined = true;
  Mask undefined = 0;
  for (Mask left = reading; left != 0;) {
    const std::uint32_t size = sizes[std::countr_zero(left)];
    Mask same = 0;
    each_lane(left, [&](int l) { same |= Mask{sizes[l] == size} << l; });
    resolve(warp, in, same, Space::global, 1, AccessSize{size, bytes}, AccessKind::read, from);
    undefined |= from.undefined;
    left &= ~same;
  }
  Cta& cta = warp.cta();
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    if (cta.shared().shadowed()) {
      const SharedVerdict verdict =
          cta.shared().begin_copy(warp.clocks.ordered, warp.accessor(in, l), to.address[l], bytes);
      const SharedLocation location{&cta, static_cast<std::uint32_t>(to.address[l])};
      if (verdict != SharedVerdict::ok) report_shared(warp, in, l, location, bytes, "write", verdict);
    }
    PendingCopy copy{warp.accessor(in, l), warp.copy_groups[l], to.address[l], bytes, {}, warp.steps()};
    if (((undefined >> l) & 1) != 0) note_undefined(warp, copy, from.address[l], sizes[l]);
    if (sizes[l] != 0) std::memcpy(copy.data, from.at[l], sizes[l]);
    warp.pending_copies.push_back(copy);
  }
}

void execute_commit_group(Warp& warp, const Instruction&, Mask lanes) {
  each_lane(lanes, [&](int l) { ++warp.copy_groups[l]; });
}

/// Completes the lanes' copies in all groups but the latest `immediate` ones; all copies when it is negative.
void execute_wait_group(Warp& warp, const Instruction& in, Mask lanes) {
  Cta& cta = warp.cta();
  const auto finishes = [&](const PendingCopy& copy) {
    if (((lanes >> copy.accessor.lane) & 1) == 0) return false;
    return in.immediate < 0 || copy.group + in.immediate < warp.copy_groups[copy.accessor.lane];
  };
  for (const PendingCopy& copy : warp.pending_copies) {
    if (!finishes(copy)) continue;
    if (Profile* const profile = cta.launch().profile) {
      profile->count_copy(copy.accessor.code, warp.steps() - copy.step - 1);
    }
    cta.complete(copy, warp.clocks.ordered, copy.accessor);
  }
  std::erase_if(warp.pending_copies, finishes);
}

void decode_cp_async(InstructionReader& reader) {
  const bool global_only = reader.take_one_of({"ca", "cg"}) == 1;
  if (!reader.take("shared") && !reader.take("shared::cta") && !reader.take("shared::cluster")) {
    reader.refuse("cp.async to this state space");
  }
  if (!reader.take("global")) reader.refuse("cp.async from this state space");
  const bool hint = reader.take("L2::cache_hint");
  reader.ignore_prefixed({"L2::"});
  reader.finish();
  reader.expect_operands(hint ? 4 : 3, hint ? 5 : 4);
  reader.address(reader.operand(0), Space::shared);
  reader.address(reader.operand(1), Space::global);
  const std::uint64_t bytes = reader.number(reader.operand(2));
  if (bytes != 16 && (global_only || (bytes != 4 && bytes != 8))) {
    reader.refuse(fmt::format("cp.async of {} bytes", bytes));
  }
  reader.out().element_bytes = static_cast<std::uint8_t>(bytes);
  SourceSize mode = SourceSize::whole;
  if (reader.operands() == (hint ? 5U : 4U)) {
    mode = reader.is_predicate(reader.operand(3)) ? SourceSize::ignore_src : SourceSize::in_register;
    if (mode == SourceSize::ignore_src) {
      reader.predicate_source(reader.operand(3));
    } else {
      reader.source(reader.operand(3), PtxType::u32);
    }
  }
  reader.out().mode = static_cast<std::uint8_t>(mode);
  reader.out().execute = &execute_cp_async;
}

void decode_commit_group(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_commit_group;
}

void decode_wait_group(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(1);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(0)) & 0xffff);
  reader.out().execute = &execute_wait_group;
}

void decode_wait_all(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(0);
  reader.out().immediate = -1;
  reader.out().execute = &execute_wait_group;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"cp.async", OperandClass::any, decode_cp_async},
    OpcodeRow{"cp.async.commit_group", OperandClass::any, decode_commit_group},
    OpcodeRow{"cp.async.wait_group", OperandClass::any, decode_wait_group},
    OpcodeRow{"cp.async.wait_all", OperandClass::any, decode_wait_all},
};

}  // namespace

std::span<const OpcodeRow> cp_async_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
