// mbarrier: init, inval, arrivals, transaction counts and waits; and cp.async.mbarrier.arrive.
// A try_wait waits for as long as anybody else can go on; when nobody can, it ends with no result, as on a GPU after
// its time limit.
#include <array>
#include <bit>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

namespace tilewright::emulator {
namespace {

/// Instruction::mode of arrivals.
struct ArrivalMode {
  bool drops = false;
  bool expects = false;
  bool relaxed = false;
  bool no_complete = false;

  std::uint8_t pack() const {
    return static_cast<std::uint8_t>((drops ? 1 : 0) | (expects ? 2 : 0) | (relaxed ? 4 : 0) | (no_complete ? 8 : 0));
  }
  static ArrivalMode unpack(std::uint8_t mode) {
    return {(mode & 1) != 0, (mode & 2) != 0, (mode & 4) != 0, (mode & 8) != 0};
  }
};

/// The opaque state that an arrival returns: the phase it arrived in, and what was pending before.
std::uint64_t state_of(const Mbarrier& barrier) { return (std::uint64_t{barrier.pending} << 32) | barrier.phase; }

// Operands: address, count.
void execute_init(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const SharedPlace place = resolve_shared_place(warp, in, lane, 0, kMbarrierSize, "mbarrier.init");
    const std::uint32_t count = warp.reg<std::uint32_t>(in.op[1])[lane];
    init_mbarrier(warp, in, lane, place, count);
  }
}

void execute_inval(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const MbarrierPlace at = find_mbarrier(warp, in, lane, 0);
    at.place.cta->mbarriers().erase(at.place.address);
  }
}

// Operands: state, address, count or bytes.
void execute_arrive(Warp& warp, const Instruction& in, Mask lanes) {
  const ArrivalMode mode = ArrivalMode::unpack(in.mode);
  auto* const state = warp.reg<std::uint64_t>(in.op[0]);
  const auto* const amount = warp.reg<std::uint32_t>(in.op[2]);
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const MbarrierPlace at = find_mbarrier(warp, in, lane, 0);
    Mbarrier& barrier = *at.barrier;
    state[lane] = state_of(barrier);
    barrier.gathering.join(mode.relaxed ? warp.released : warp.past);
    if (mode.no_complete && amount[lane] >= barrier.pending) {
      fail_mbarrier(warp, in, lane, at, "an arrival that must not complete the phase does");
    }
    MbarrierResult result;
    if (mode.expects) {
      result = arrive_expecting(barrier, 1, amount[lane], mode.drops);
    } else {
      result = mode.drops ? arrive_and_drop(barrier, amount[lane]) : arrive(barrier, amount[lane]);
    }
    finish_mbarrier(warp, in, lane, at, result);
  }
  warp.advance_clock();
}

// Operands: address, bytes. mode: 0 expect_tx, 1 complete_tx.
void execute_transaction(Warp& warp, const Instruction& in, Mask lanes) {
  const auto* const bytes = warp.reg<std::uint32_t>(in.op[1]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const MbarrierPlace at = find_mbarrier(warp, in, lane, 0);
    finish_mbarrier(
        warp, in, lane, at,
        in.mode == 0 ? expect_transactions(*at.barrier, bytes[lane]) : complete_transactions(*at.barrier, bytes[lane]));
  }
}

/// Instruction::mode of waits.
constexpr std::uint8_t kParity = 1;
constexpr std::uint8_t kMayBlock = 2;
constexpr std::uint8_t kRelaxed = 4;

bool is_over(const Mbarrier& barrier, bool parity, std::uint64_t awaited) {
  if (parity) return barrier.passed_parity(static_cast<std::uint32_t>(awaited));
  return barrier.phase != static_cast<std::uint32_t>(awaited);
}

// Operands: p, address, state or parity.
void execute_wait(Warp& warp, const Instruction& in, Mask lanes) {
  const bool parity = (in.mode & kParity) != 0;
  Mask over = 0;
  std::uint32_t address = 0;
  std::uint32_t phase = 0;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const MbarrierPlace at = find_mbarrier(warp, in, lane, 0);
    const std::uint64_t awaited =
        parity ? warp.reg<std::uint32_t>(in.op[2])[lane] : warp.reg<std::uint64_t>(in.op[2])[lane];
    if (is_over(*at.barrier, parity, awaited)) {
      over |= Mask{1} << lane;
      if ((in.mode & kRelaxed) == 0) warp.past.join(at.barrier->completed);
    } else if (address == 0) {
      address = at.place.address;
      phase = at.barrier->phase;
    }
  }
  const bool ended = warp.timed_out(lanes);
  if (over == 0 && (in.mode & kMayBlock) != 0 && !ended) {
    return warp.wait_at_mbarrier(in, lanes, address, phase);
  }
  warp.set_predicate(in.op[0], over, lanes);
  if (over != lanes) warp.note_poll(in, lanes & ~over, address, phase);
}

// Operands: d, state.
void execute_pending_count(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const state = warp.reg<std::uint64_t>(in.op[1]);
  each_lane(lanes, [&](int l) { d[l] = static_cast<std::uint32_t>(state[l] >> 32); });
}

/// All earlier cp.async of the lanes complete on the mbarrier. mode: .noinc, where the arrival was counted at its init.
void execute_copies_arrive(Warp& warp, const Instruction& in, Mask lanes) {
  Cta& cta = warp.cta();
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const MbarrierPlace at = find_mbarrier(warp, in, lane, 0);
    const auto mine = [&](const PendingCopy& copy) { return copy.who.lane == static_cast<std::uint32_t>(lane); };
    for (const PendingCopy& copy : warp.pending_copies) {
      if (!mine(copy)) continue;
      std::memcpy(cta.shared().at(copy.to), copy.data, copy.bytes);
      const Accessor who{at.barrier->agent, copy.who.lane, copy.who.code, at.barrier->copies_clock()};
      if (cta.shared().shadowed()) cta.shared().complete_copy(warp.past.happened, who, copy.to, copy.bytes);
    }
    std::erase_if(warp.pending_copies, mine);
    // Without .noinc the pending count grows by the arrival that it then takes away.
    if (in.mode != 0) finish_mbarrier(warp, in, lane, at, arrive(*at.barrier, 1));
  }
}

// Decoders ---------------------------------------------------------------------------------------------------------

/// State space and type; the address is the next operand.
void take_object(InstructionReader& reader) {
  reader.take_one_of({"cta", "cluster", "gpu", "sys"});
  reader.take_one_of({"shared", "shared::cta", "shared::cluster"});
  if (reader.type() != PtxType::b64) reader.refuse("an mbarrier of this type");
  reader.finish();
}

void object_address(InstructionReader& reader, const Operand& operand) { reader.address(operand, Space::generic); }

void decode_init(InstructionReader& reader) {
  take_object(reader);
  reader.expect_operands(2);
  object_address(reader, reader.operand(0));
  reader.source(reader.operand(1), PtxType::u32);
  reader.out().execute = &execute_init;
}

void decode_inval(InstructionReader& reader) {
  take_object(reader);
  reader.expect_operands(1);
  object_address(reader, reader.operand(0));
  reader.out().execute = &execute_inval;
}

void decode_arrival(InstructionReader& reader, bool drops) {
  ArrivalMode mode;
  mode.drops = drops;
  mode.expects = reader.take("expect_tx");
  mode.no_complete = reader.take("noComplete");
  mode.relaxed = reader.take_one_of({"release", "relaxed"}) == 1;
  take_object(reader);
  const bool counted = mode.expects || mode.no_complete;
  // The state may be left out where the object is in another CTA.
  const bool returns = reader.operands() > 0 && reader.operand(0).kind != Operand::Kind::address;
  const std::size_t first = returns ? 1 : 0;
  reader.expect_operands(first + (counted ? 2U : 1U), first + 2);
  reader.destination(returns ? reader.operand(0) : Operand(), PtxType::b64);
  object_address(reader, reader.operand(first));
  reader.source(reader.operands() == first + 2 ? reader.operand(first + 1) : integer_operand(1), PtxType::u32);
  reader.out().mode = mode.pack();
  reader.out().execute = &execute_arrive;
}

void decode_arrive(InstructionReader& reader) { decode_arrival(reader, false); }
void decode_arrive_drop(InstructionReader& reader) { decode_arrival(reader, true); }

void decode_transaction(InstructionReader& reader, std::uint8_t mode) {
  reader.take("relaxed");
  take_object(reader);
  reader.expect_operands(2);
  object_address(reader, reader.operand(0));
  reader.source(reader.operand(1), PtxType::u32);
  reader.out().mode = mode;
  reader.out().execute = &execute_transaction;
}

void decode_expect(InstructionReader& reader) { decode_transaction(reader, 0); }
void decode_complete(InstructionReader& reader) { decode_transaction(reader, 1); }

void decode_wait(InstructionReader& reader, std::uint8_t mode) {
  if (reader.take("parity")) mode |= kParity;
  if (reader.take_one_of({"acquire", "relaxed"}) == 1) mode |= kRelaxed;
  take_object(reader);
  reader.expect_operands(3, (mode & kMayBlock) != 0 ? 4 : 3);  // the fourth is a time limit
  reader.destination(reader.operand(0), PtxType::pred);
  object_address(reader, reader.operand(1));
  reader.source(reader.operand(2), (mode & kParity) != 0 ? PtxType::b32 : PtxType::b64);
  reader.out().mode = mode;
  reader.out().execute = &execute_wait;
}

void decode_test_wait(InstructionReader& reader) { decode_wait(reader, 0); }
void decode_try_wait(InstructionReader& reader) { decode_wait(reader, kMayBlock); }

void decode_pending_count(InstructionReader& reader) {
  reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::b32);
  reader.source(reader.operand(1), PtxType::b64);
  reader.out().execute = &execute_pending_count;
}

void decode_copies_arrive(InstructionReader& reader) {
  const bool no_increment = reader.take("noinc");
  take_object(reader);
  reader.expect_operands(1);
  object_address(reader, reader.operand(0));
  reader.out().mode = no_increment ? 1 : 0;
  reader.out().execute = &execute_copies_arrive;
}

constexpr std::array kRows = {
    OpcodeRow{"mbarrier.init", OperandClass::any, decode_init},
    OpcodeRow{"mbarrier.inval", OperandClass::any, decode_inval},
    OpcodeRow{"mbarrier.arrive", OperandClass::any, decode_arrive},
    OpcodeRow{"mbarrier.arrive_drop", OperandClass::any, decode_arrive_drop},
    OpcodeRow{"mbarrier.expect_tx", OperandClass::any, decode_expect},
    OpcodeRow{"mbarrier.complete_tx", OperandClass::any, decode_complete},
    OpcodeRow{"mbarrier.test_wait", OperandClass::any, decode_test_wait},
    OpcodeRow{"mbarrier.try_wait", OperandClass::any, decode_try_wait},
    OpcodeRow{"mbarrier.pending_count", OperandClass::any, decode_pending_count},
    OpcodeRow{"cp.async.mbarrier.arrive", OperandClass::any, decode_copies_arrive},
};

}  // namespace

std::span<const OpcodeRow> mbarrier_opcodes() { return kRows; }

}  // namespace tilewright::emulator
