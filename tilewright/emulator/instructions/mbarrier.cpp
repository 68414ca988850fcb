// mbarrier: init, inval, arrive, expect_tx, complete_tx, test_wait, try_wait; cp.async.mbarrier.arrive.
// A try_wait blocks for as long as other threads make progress; when none does, it returns false, as on a GPU after its
// time limit.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

namespace tilewright::emulator {
namespace {

/// Instruction::mode of arrivals.
struct ArrivalMode {
  bool drops = false;        // arrive_drop
  bool expects = false;      // .expect_tx
  bool relaxed = false;      // .relaxed
  bool no_complete = false;  // .noComplete

  std::uint8_t pack() const {
    return static_cast<std::uint8_t>((drops ? 1 : 0) | (expects ? 2 : 0) | (relaxed ? 4 : 0) | (no_complete ? 8 : 0));
  }
  static ArrivalMode unpack(std::uint8_t mode) {
    return {(mode & 1) != 0, (mode & 2) != 0, (mode & 4) != 0, (mode & 8) != 0};
  }
};

/// The phases that one instruction of a warp completes. Its lanes arrive in no order that a program could know, so that
/// a phase for which some of them are too late orders nothing.
class CompletedPhases {
 public:
  CompletedPhases(Warp& warp, const Instruction& in) : warp_(warp), in_(in) {}

  /// Before a lane arrives. @throws EmulationFinding mbarrier_misuse when an earlier lane has completed a phase
  void check(int lane, const MbarrierObject& at) const {
    if (std::ranges::find(completed_, at.barrier) == completed_.end()) return;
    fail_mbarrier(
        warp_, in_, lane, at,
        "a phase has completed before this thread arrived, by arrivals of other threads in the same instruction "
        "of its warp; the arrival count must be that of all threads that arrive");
  }
  void note(const MbarrierObject& at, const MbarrierResult& result) {
    if (result.completed) completed_.push_back(at.barrier);
  }

 private:
  Warp& warp_;
  const Instruction& in_;
  std::vector<const Mbarrier*> completed_;
};

/// The opaque state that an arrival returns: the phase it belongs to, and the pending count before it.
std::uint64_t state_of(const Mbarrier& barrier) { return (std::uint64_t{barrier.pending} << 32) | barrier.phase; }

/// Operands: address, count. Lanes that initialise the same mbarrier with the same count write the same bytes at the
/// same time, which is a warning: ThunderKittens does so with all lanes of a warp.
void execute_init(Warp& warp, const Instruction& in, Mask lanes) {
  struct Initialised {
    SharedLocation location;
    std::uint32_t count = 0;
  };
  std::array<Initialised, kWarpSize> initialised;
  std::size_t size = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const SharedLocation location = resolve_shared_location(warp, in, lane, 0, kMbarrierSize, "mbarrier.init");
    const std::uint32_t count = warp.reg<std::uint32_t>(in.op[1])[lane];
    const auto end = initialised.begin() + static_cast<std::ptrdiff_t>(size);
    const bool is_repeated = std::any_of(initialised.begin(), end, [&](const Initialised& other) {
      return other.location.cta == location.cta && other.location.address == location.address && other.count == count;
    });
    if (is_repeated) {
      warn_of_repeated_init(warp, in, lane, location);
    } else {
      init_mbarrier(warp, in, lane, location, count);
      initialised[size++] = {location, count};
    }
  }
}

void execute_inval(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const MbarrierObject at = find_mbarrier(warp, in, lane, 0);
    at.location.cta->mbarriers().erase(at.location.address);
  }
}

/// Operands: state, address, arrival count or expect-tx bytes.
void execute_arrive(Warp& warp, const Instruction& in, Mask lanes) {
  const ArrivalMode mode = ArrivalMode::unpack(in.mode);
  auto* const state = warp.reg<std::uint64_t>(in.op[0]);
  const auto* const amount = warp.reg<std::uint32_t>(in.op[2]);
  CompletedPhases completed(warp, in);
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedLocation location = find_shared_location(warp, in, lane, 0, kMbarrierSize, "mbarrier arrival");
    if (location.cta == nullptr) continue;  // an arrival at a CTA that has exited is reported, and has no effect
    const MbarrierObject at = find_mbarrier(warp, in, lane, location);
    completed.check(lane, at);
    Mbarrier& barrier = *at.barrier;
    state[lane] = state_of(barrier);
    barrier.arrival_clocks.join(mode.relaxed ? warp.released.at(MemoryScope::cta) : warp.clocks);
    if (mode.no_complete && amount[lane] >= barrier.pending) {
      fail_mbarrier(warp, in, lane, at, fmt::format("{} arrivals with .noComplete complete the phase", amount[lane]));
    }
    MbarrierResult result;
    if (mode.expects) {
      result = arrive_expect_tx(barrier, 1, amount[lane], mode.drops);
    } else {
      result = mode.drops ? arrive_and_drop(barrier, amount[lane]) : arrive(barrier, amount[lane]);
    }
    finish_mbarrier(warp, in, lane, at, result);
    completed.note(at, result);
  }
  warp.advance_clock();
}

/// Operands: address, bytes. mode 0: expect_tx, 1: complete_tx.
void execute_transaction(Warp& warp, const Instruction& in, Mask lanes) {
  const auto* const bytes = warp.reg<std::uint32_t>(in.op[1]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const MbarrierObject at = find_mbarrier(warp, in, lane, 0);
    finish_mbarrier(warp, in, lane, at,
                    in.mode == 0 ? expect_tx(*at.barrier, bytes[lane]) : complete_tx(*at.barrier, bytes[lane]));
  }
}

/// Instruction::mode of waits.
constexpr std::uint8_t kParity = 1;    // waits for a phase parity, else for the phase of a state
constexpr std::uint8_t kMayBlock = 2;  // try_wait
constexpr std::uint8_t kRelaxed = 4;   // .relaxed

bool is_phase_complete(const Mbarrier& barrier, bool parity, std::uint64_t awaited) {
  if (parity) return barrier.is_parity_complete(static_cast<std::uint32_t>(awaited));
  return barrier.phase != static_cast<std::uint32_t>(awaited);
}

/// Operands: p, address, state or parity.
void execute_wait(Warp& warp, const Instruction& in, Mask lanes) {
  const bool parity = (in.mode & kParity) != 0;
  Mask complete = 0;
  std::uint32_t address = 0;
  std::uint32_t phase = 0;
  const Mbarrier* joined = nullptr;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const MbarrierObject at = find_mbarrier(warp, in, lane, 0);
    const std::uint64_t awaited =
        parity ? warp.reg<std::uint32_t>(in.op[2])[lane] : warp.reg<std::uint64_t>(in.op[2])[lane];
    if (is_phase_complete(*at.barrier, parity, awaited)) {
      complete |= Mask{1} << lane;
      // The lanes of a warp share its clocks, and most often wait for one mbarrier.
      if ((in.mode & kRelaxed) == 0 && joined != at.barrier) warp.clocks.join(at.barrier->completed_clocks);
      joined = at.barrier;
    } else if (address == 0) {
      address = at.location.address;
      phase = at.barrier->phase;
    }
  }
  if (Profile* const profile = warp.cta().launch().profile) profile->count_wait(warp.code_index(in), complete == lanes);
  const bool timed_out = warp.timed_out(lanes);
  if (complete == 0 && (in.mode & kMayBlock) != 0 && !timed_out) {
    return warp.wait_at_mbarrier(in, lanes, address, phase);
  }
  warp.set_predicate(in.op[0], complete, lanes);
  if (complete != lanes) warp.note_poll(in, lanes & ~complete, address, phase);
}

/// Operands: d, state.
void execute_pending_count(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const state = warp.reg<std::uint64_t>(in.op[1]);
  each_lane(lanes, [&](int l) { d[l] = static_cast<std::uint32_t>(state[l] >> 32); });
}

/// cp.async.mbarrier.arrive: all earlier cp.async of the lanes complete on the mbarrier. mode: .noinc, with which the
/// arrival is part of the mbarrier's arrival count.
void execute_cp_async_arrive(Warp& warp, const Instruction& in, Mask lanes) {
  Cta& cta = warp.cta();
  CompletedPhases completed(warp, in);
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const MbarrierObject at = find_mbarrier(warp, in, lane, 0);
    completed.check(lane, at);
    const auto mine = [&](const PendingCopy& copy) { return copy.accessor.lane == static_cast<std::uint32_t>(lane); };
    for (const PendingCopy& copy : warp.pending_copies) {
      if (!mine(copy)) continue;
      const Accessor accessor{at.barrier->agent, copy.accessor.lane, copy.accessor.code, at.barrier->copies_clock()};
      cta.complete(copy, warp.clocks.ordered, accessor);
    }
    std::erase_if(warp.pending_copies, mine);
    // Without .noinc the instruction first increments the pending count, which cancels its arrival.
    if (in.mode == 0) continue;
    const MbarrierResult result = arrive(*at.barrier, 1);
    finish_mbarrier(warp, in, lane, at, result);
    completed.note(at, result);
  }
}

// Decoders ---------------------------------------------------------------------------------------------------------

/// Takes scope, state space and type, which end the modifiers.
void take_mbarrier_modifiers(InstructionReader& reader) {
  reader.take_one_of({"cta", "cluster", "gpu", "sys"});
  reader.take_one_of({"shared", "shared::cta", "shared::cluster"});
  if (reader.type() != PtxType::b64) reader.refuse("an mbarrier of this type");
  reader.finish();
}

void mbarrier_address(InstructionReader& reader, const Operand& operand) { reader.address(operand, Space::generic); }

void decode_init(InstructionReader& reader) {
  take_mbarrier_modifiers(reader);
  reader.expect_operands(2);
  mbarrier_address(reader, reader.operand(0));
  reader.source(reader.operand(1), PtxType::u32);
  reader.out().execute = &execute_init;
}

void decode_inval(InstructionReader& reader) {
  take_mbarrier_modifiers(reader);
  reader.expect_operands(1);
  mbarrier_address(reader, reader.operand(0));
  reader.out().execute = &execute_inval;
}

void decode_arrival(InstructionReader& reader, bool drops) {
  ArrivalMode mode;
  mode.drops = drops;
  mode.expects = reader.take("expect_tx");
  mode.no_complete = reader.take("noComplete");
  mode.relaxed = reader.take_one_of({"release", "relaxed"}) == 1;
  take_mbarrier_modifiers(reader);
  const bool counted = mode.expects || mode.no_complete;
  // The destination may be omitted for an mbarrier of another CTA.
  const bool returns = reader.operands() > 0 && reader.operand(0).kind != Operand::Kind::address;
  const std::size_t first = returns ? 1 : 0;
  reader.expect_operands(first + (counted ? 2U : 1U), first + 2);
  reader.destination(returns ? reader.operand(0) : Operand(), PtxType::b64);
  mbarrier_address(reader, reader.operand(first));
  reader.source(reader.operands() == first + 2 ? reader.operand(first + 1) : integer_operand(1), PtxType::u32);
  reader.out().mode = mode.pack();
  reader.out().execute = &execute_arrive;
}

void decode_arrive(InstructionReader& reader) { decode_arrival(reader, false); }
void decode_arrive_drop(InstructionReader& reader) { decode_arrival(reader, true); }

void decode_transaction(InstructionReader& reader, std::uint8_t mode) {
  reader.take("relaxed");
  take_mbarrier_modifiers(reader);
  reader.expect_operands(2);
  mbarrier_address(reader, reader.operand(0));
  reader.source(reader.operand(1), PtxType::u32);
  reader.out().mode = mode;
  reader.out().execute = &execute_transaction;
}

void decode_expect(InstructionReader& reader) { decode_transaction(reader, 0); }
void decode_complete(InstructionReader& reader) { decode_transaction(reader, 1); }

void decode_wait(InstructionReader& reader, std::uint8_t mode) {
  if (reader.take("parity")) mode |= kParity;
  if (reader.take_one_of({"acquire", "relaxed"}) == 1) mode |= kRelaxed;
  take_mbarrier_modifiers(reader);
  reader.expect_operands(3, (mode & kMayBlock) != 0 ? 4 : 3);  // the fourth is a time limit
  reader.destination(reader.operand(0), PtxType::pred);
  mbarrier_address(reader, reader.operand(1));
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

void decode_cp_async_arrive(InstructionReader& reader) {
  const bool no_increment = reader.take("noinc");
  take_mbarrier_modifiers(reader);
  reader.expect_operands(1);
  mbarrier_address(reader, reader.operand(0));
  reader.out().mode = no_increment ? 1 : 0;
  reader.out().execute = &execute_cp_async_arrive;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"mbarrier.init", OperandClass::any, decode_init},
    OpcodeRow{"mbarrier.inval", OperandClass::any, decode_inval},
    OpcodeRow{"mbarrier.arrive", OperandClass::any, decode_arrive},
    OpcodeRow{"mbarrier.arrive_drop", OperandClass::any, decode_arrive_drop},
    OpcodeRow{"mbarrier.expect_tx", OperandClass::any, decode_expect},
    OpcodeRow{"mbarrier.complete_tx", OperandClass::any, decode_complete},
    OpcodeRow{"mbarrier.test_wait", OperandClass::any, decode_test_wait},
    OpcodeRow{"mbarrier.try_wait", OperandClass::any, decode_try_wait},
    OpcodeRow{"mbarrier.pending_count", OperandClass::any, decode_pending_count},
    OpcodeRow{"cp.async.mbarrier.arrive", OperandClass::any, decode_cp_async_arrive},
};

}  // namespace

std::span<const OpcodeRow> mbarrier_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
