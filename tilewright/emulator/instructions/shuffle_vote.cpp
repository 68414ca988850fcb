// Warp-wide operations: shfl vote match redux activemask elect.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/member_masks.hpp"

namespace tilewright::emulator {
namespace {

/// Calls f(group) for each set of lanes with the same member mask.
template <class F>
void each_group(Warp& warp, Mask lanes, Slot member_masks, F&& f) {
  const auto* const members = warp.reg<Mask>(member_masks);
  while (lanes != 0) {
    const Mask wanted = members[std::countr_zero(lanes)];
    Mask group = 0;
    each_lane(lanes, [&](int l) { group |= Mask{members[l] == wanted} << l; });
    f(group);
    lanes &= ~group;
  }
}

enum class Shuffle : std::uint8_t { up, down, butterfly, index };

/// Marks the results that are undefined: those of undefined values, and of lanes that do not execute the shuffle.
void follow_shuffle(Warp& warp, const Instruction& in, Mask lanes, const int* sources) {
  if (warp.undefined_values() == nullptr && lanes == kAllLanes) return;
  const Mask absent = warp.cta().launch().options.check_warps ? ~lanes : 0;
  const UndefinedValues* const known = warp.undefined_values();
  const std::pair<Mask, std::uint32_t> source =
      known == nullptr ? std::pair<Mask, std::uint32_t>() : known->undefined(in.op[2]);
  const Mask marked = source.first;
  Mask moved = 0, missing = 0;
  each_lane(lanes, [&](int l) {
    if (((absent >> sources[l]) & 1) != 0) missing |= Mask{1} << l;
    if (((marked >> sources[l]) & 1) != 0) moved |= Mask{1} << l;
  });
  if (missing == 0 && warp.undefined_values() == nullptr) return;
  UndefinedValues& values = warp.track_undefined_values();
  std::uint32_t origin = source.second;
  if (missing != 0) {
    std::vector<std::string> details(kWarpSize);
    each_lane(missing, [&](int l) {
      details[static_cast<std::size_t>(l)] =
          fmt::format("a shuffle reads from lane {}, which does not execute it", sources[l]);
    });
    origin = values.new_origin(FindingKind::bad_warp_mask, warp.code_index(in), std::move(details));
  }
  constexpr std::size_t kWidth = sizeof(std::uint32_t);
  const UndefinedBits& from = values.bits(in.op[2]);
  UndefinedBits to;
  each_lane(moved, [&](int l) {
    std::memcpy(to.at.data() + kWidth * static_cast<std::size_t>(l),
                from.at.data() + kWidth * static_cast<std::size_t>(sources[l]), kWidth);
  });
  each_lane(missing, [&](int l) { std::memset(to.at.data() + kWidth * static_cast<std::size_t>(l), 0xff, kWidth); });
  values.define(in.op[0], lanes, to, origin);
  values.define(in.op[1], lanes, 0, origin);
}

/// Operands: d, p, a, b, c, member mask.
void execute_shuffle(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[5])) return;
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[3]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[4]);
  std::uint32_t result[kWarpSize];
  int sources[kWarpSize];
  Mask in_range = 0;
  each_lane(lanes, [&](int l) {
    const int by = static_cast<int>(b[l] & 31);
    const int segment = static_cast<int>((c[l] >> 8) & 31);
    const int clamp = static_cast<int>(c[l] & 31);
    const int last = (l & segment) | (clamp & ~segment);
    int from = l;
    bool inside = false;
    switch (static_cast<Shuffle>(in.mode)) {
      case Shuffle::up:
        from = l - by;
        inside = from >= last;
        break;
      case Shuffle::down:
        from = l + by;
        inside = from <= last;
        break;
      case Shuffle::butterfly:
        from = l ^ by;
        inside = from <= last;
        break;
      case Shuffle::index:
        from = (l & segment) | (by & ~segment);
        inside = from <= last;
        break;
    }
    if (inside) in_range |= Mask{1} << l;
    sources[l] = inside ? from : l;
    result[l] = a[sources[l]];
  });
  follow_shuffle(warp, in, lanes, sources);
  each_lane(lanes, [&](int l) { d[l] = result[l]; });
  warp.set_predicate(in.op[1], in_range, lanes);
}

void decode_shuffle(InstructionReader& reader) {
  if (!reader.take("sync")) reader.refuse("shfl without .sync");
  const int mode = reader.take_one_of({"up", "down", "bfly", "idx"});
  if (mode < 0) reader.refuse("this shuffle mode");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(5);
  const Operand& destination = reader.operand(0);
  const bool pair = destination.kind == Operand::Kind::pair;
  reader.destination(pair ? destination.elements[0] : destination, type);
  reader.destination(pair ? destination.elements[1] : Operand(), PtxType::pred);
  for (std::size_t i = 1; i < 5; ++i) reader.source(reader.operand(i), PtxType::b32);
  reader.out().mode = static_cast<std::uint8_t>(mode);
  reader.out().execute = &execute_shuffle;
}

enum class Vote : std::uint8_t { all, any, uniform, ballot };

/// Operands: d, a and the mask to xor it with, member mask.
void execute_vote(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[3])) return;
  const Mask a = warp.predicate(in.op[1]) ^ warp.predicate(in.op[2]);
  each_group(warp, lanes, in.op[3], [&](Mask group) {
    const Mask votes = a & group;
    bool holds = false;
    switch (static_cast<Vote>(in.mode)) {
      case Vote::all:
        holds = votes == group;
        break;
      case Vote::any:
        holds = votes != 0;
        break;
      case Vote::uniform:
        holds = votes == group || votes == 0;
        break;
      case Vote::ballot: {
        auto* const d = warp.reg<std::uint32_t>(in.op[0]);
        each_lane(group, [&](int l) { d[l] = votes; });
        return;
      }
    }
    warp.set_predicate(in.op[0], holds ? group : 0, group);
  });
}

void decode_vote(InstructionReader& reader) {
  if (!reader.take("sync")) reader.refuse("vote without .sync");
  const int mode = reader.take_one_of({"all", "any", "uni", "ballot"});
  if (mode < 0) reader.refuse("this vote mode");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(3);
  reader.destination(reader.operand(0), type);
  reader.predicate_source(reader.operand(1));
  reader.source(reader.operand(2), PtxType::b32);
  reader.out().mode = static_cast<std::uint8_t>(mode);
  reader.out().execute = &execute_vote;
}

/// Operands: d, p, a, member mask. mode 0: match.any, 1: match.all.
template <class T>
void execute_match(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[3])) return;
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[2]);
  each_group(warp, lanes, in.op[3], [&](Mask group) {
    Mask equal[kWarpSize] = {};
    each_lane(group, [&](int l) { each_lane(group, [&](int other) { equal[l] |= Mask{a[other] == a[l]} << other; }); });
    const bool all = equal[std::countr_zero(group)] == group;
    each_lane(group, [&](int l) { d[l] = in.mode == 0 ? equal[l] : all ? group : 0; });
    warp.set_predicate(in.op[1], all ? group : 0, group);
  });
}

void decode_match(InstructionReader& reader) {
  const int mode = reader.take_one_of({"any", "all"});
  if (!reader.take("sync") || mode < 0) reader.refuse("this match mode");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(3);
  const Operand& destination = reader.operand(0);
  const bool pair = destination.kind == Operand::Kind::pair;
  reader.destination(pair ? destination.elements[0] : destination, PtxType::b32);
  reader.destination(pair ? destination.elements[1] : Operand(), PtxType::pred);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), PtxType::b32);
  reader.out().mode = static_cast<std::uint8_t>(mode);
  reader.out().execute = bytes(type) == 8 ? &execute_match<std::uint64_t> : &execute_match<std::uint32_t>;
}

enum class Reduction : std::uint8_t { add, min, max, bitwise_and, bitwise_or, bitwise_xor };

template <class T>
T reduced(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::add:
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    case Reduction::bitwise_and:
      return a & b;
    case Reduction::bitwise_or:
      return a | b;
    case Reduction::bitwise_xor:
      return a ^ b;
  }
  return a;
}

/// Operands: d, a, member mask.
template <class T>
void execute_reduction(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[2])) return;
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  each_group(warp, lanes, in.op[2], [&](Mask group) {
    T result = a[std::countr_zero(group)];
    each_lane(group & (group - 1), [&](int l) { result = reduced(static_cast<Reduction>(in.mode), result, a[l]); });
    each_lane(group, [&](int l) { d[l] = result; });
  });
}

void decode_reduction(InstructionReader& reader) {
  const int operation = reader.take_one_of({"add", "min", "max", "and", "or", "xor"});
  if (!reader.take("sync") || operation < 0) reader.refuse("this redux operation");
  const PtxType type = reader.type();
  reader.finish();
  if (bytes(type) != 4 || !is_integer(type)) reader.refuse("redux of this type");
  reader.expect_operands(3);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), PtxType::b32);
  reader.out().mode = static_cast<std::uint8_t>(operation);
  reader.out().execute = is_signed(type) ? &execute_reduction<std::int32_t> : &execute_reduction<std::uint32_t>;
}

void execute_active_mask(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  each_lane(lanes, [=](int l) { d[l] = lanes; });
}

void decode_active_mask(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(1);
  reader.destination(reader.operand(0), type);
  reader.out().execute = &execute_active_mask;
}

/// Operands: the elected lane, p, member mask. Elects the lowest lane of each group.
void execute_elect(Warp& warp, const Instruction& in, Mask lanes) {
  if (!converge_members(warp, in, lanes, in.op[2])) return;
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  each_group(warp, lanes, in.op[2], [&](Mask group) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
    each_lane(group, [&](int l) { d[l] = leader; });
    warp.set_predicate(in.op[1], group & (~group + 1), group);
  });
}

void decode_elect(InstructionReader& reader) {
  if (!reader.take("sync")) reader.refuse("elect without .sync");
  reader.finish();
  reader.expect_operands(2);
  const Operand& destination = reader.operand(0);
  if (destination.kind != Operand::Kind::pair) reader.refuse("elect without a predicate");
  reader.destination(destination.elements[0], PtxType::b32);
  reader.destination(destination.elements[1], PtxType::pred);
  reader.source(reader.operand(1), PtxType::b32);
  reader.out().execute = &execute_elect;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"shfl", OperandClass::any, decode_shuffle},
    OpcodeRow{"vote", OperandClass::any, decode_vote},
    OpcodeRow{"match", OperandClass::any, decode_match},
    OpcodeRow{"redux", OperandClass::any, decode_reduction},
    OpcodeRow{"activemask", OperandClass::any, decode_active_mask},
    OpcodeRow{"elect", OperandClass::any, decode_elect},
};

}  // namespace

std::span<const OpcodeRow> warp_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
