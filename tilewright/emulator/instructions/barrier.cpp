// bar and barrier: named barriers of the CTA (sync, arrive, red); bar.warp.sync.
// It is a finding when an .aligned barrier is not executed by all threads of a warp together that have not exited.
#include <array>
#include <bit>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/member_masks.hpp"

namespace tilewright::emulator {
namespace {

enum class Reduction : std::uint8_t { none, count, all, any };

/// Instruction::mode of the handlers.
struct BarrierMode {
  bool aligned = true;
  bool waits = true;
  Reduction reduction = Reduction::none;

  std::uint8_t pack() const {
    return static_cast<std::uint8_t>((aligned ? 1 : 0) | (waits ? 2 : 0) | (static_cast<int>(reduction) << 2));
  }
  static BarrierMode unpack(std::uint8_t mode) {
    return {(mode & 1) != 0, (mode & 2) != 0, static_cast<Reduction>(mode >> 2)};
  }
};

struct BarrierOperands {
  int barrier = 0;
  std::uint32_t expected = 0;
};

/// The barrier's number and thread count, which are uniform over the lanes that execute together.
BarrierOperands read_operands(Warp& warp, const Instruction& in, Mask lanes) {
  const int lane = std::countr_zero(lanes);
  const std::uint32_t barrier = warp.reg<std::uint32_t>(in.op[0])[lane];
  const std::uint32_t expected = warp.reg<std::uint32_t>(in.op[1])[lane];
  if (barrier >= kBarriers) {
    warp.fail(FindingKind::barrier_divergence, in, lane, 0,
              fmt::format("barrier {}: a CTA has barriers 0 to {}", barrier, kBarriers - 1));
  }
  if (expected % kWarpSize != 0) {
    warp.fail(FindingKind::barrier_divergence, in, lane, 0,
              fmt::format("barrier {} with a thread count of {}, which must be a multiple of {}", barrier, expected,
                          kWarpSize));
  }
  return {static_cast<int>(barrier), expected};
}

/// Operands: barrier, count.
void execute_barrier(Warp& warp, const Instruction& in, Mask lanes) {
  const BarrierMode mode = BarrierMode::unpack(in.mode);
  if (mode.aligned && !warp.converge(in, lanes, warp.present() & ~warp.exited())) return;
  const BarrierOperands operands = read_operands(warp, in, lanes);
  warp.cta().arrive(warp, in, lanes, operands.barrier, operands.expected,
                    mode.waits ? Cta::BarrierOperation::sync : Cta::BarrierOperation::arrive);
}

/// Operands: barrier, count, d, predicate and the mask to xor it with.
void execute_reducing_barrier(Warp& warp, const Instruction& in, Mask lanes) {
  const BarrierMode mode = BarrierMode::unpack(in.mode);
  if (mode.aligned && !warp.converge(in, lanes, warp.present() & ~warp.exited())) return;
  const BarrierOperands operands = read_operands(warp, in, lanes);
  Cta& cta = warp.cta();
  if (!warp.is_reexecuting(lanes)) {
    const Mask votes = (warp.predicate(in.op[3]) ^ warp.predicate(in.op[4])) & lanes;
    cta.barrier(operands.barrier).votes += static_cast<std::uint32_t>(std::popcount(votes));
    cta.arrive(warp, in, lanes, operands.barrier, operands.expected, Cta::BarrierOperation::red);
    return;
  }
  const Barrier& completed = cta.completed_phase(operands.barrier);
  if (mode.reduction == Reduction::count) {
    auto* const d = warp.reg<std::uint32_t>(in.op[2]);
    each_lane(lanes, [&](int l) { d[l] = completed.votes; });
    return;
  }
  const bool holds = mode.reduction == Reduction::any ? completed.votes != 0 : completed.votes >= completed.arrived;
  warp.set_predicate(in.op[2], holds ? lanes : 0, lanes);
}

/// Operand: the member mask.
void execute_warp_barrier(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[0])) return;
  // bar.warp.sync orders the lanes' accesses before and after it. Shuffles and votes do not: "they do not imply a
  // memory barrier" (CUDA C++ Programming Guide).
  if (warp.cta().launch().options.check_warps) warp.advance_clock();
}

void decode_reduction(InstructionReader& reader, BarrierMode mode) {
  const int operation = reader.take_one_of({"popc", "and", "or"});
  if (operation < 0) reader.refuse("this barrier reduction");
  mode.reduction = static_cast<Reduction>(operation + 1);
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(3, 4);
  reader.source(reader.operand(1), PtxType::u32);
  reader.source(reader.operands() == 4 ? reader.operand(2) : integer_operand(0), PtxType::u32);
  reader.destination(reader.operand(0), type);
  reader.predicate_source(reader.operand(reader.operands() - 1));
  reader.out().mode = mode.pack();
  reader.out().execute = &execute_reducing_barrier;
}

void decode(InstructionReader& reader, bool always_aligned) {
  BarrierMode mode;
  reader.take("cta");
  const int what = reader.take_one_of({"sync", "arrive", "red"});
  if (what < 0) reader.refuse("this barrier operation");
  mode.aligned = reader.take("aligned") || always_aligned;
  mode.waits = what != 1;
  if (what == 2) return decode_reduction(reader, mode);
  reader.finish();
  reader.expect_operands(what == 1 ? 2 : 1, 2);
  reader.source(reader.operand(0), PtxType::u32);
  reader.source(reader.operands() == 2 ? reader.operand(1) : integer_operand(0), PtxType::u32);
  reader.out().mode = mode.pack();
  reader.out().execute = &execute_barrier;
}

void decode_bar(InstructionReader& reader) { decode(reader, true); }
void decode_barrier(InstructionReader& reader) { decode(reader, false); }

void decode_warp_barrier(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(1);
  reader.source(reader.operand(0), PtxType::b32);
  reader.out().execute = &execute_warp_barrier;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"bar", OperandClass::any, decode_bar},
    OpcodeRow{"barrier", OperandClass::any, decode_barrier},
    OpcodeRow{"bar.warp.sync", OperandClass::any, decode_warp_barrier},
};

}  // namespace

std::span<const OpcodeRow> barrier_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
