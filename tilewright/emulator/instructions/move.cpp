// mov, which also packs and unpacks vectors and reads clocks; cvta and isspacep.
#include <array>
#include <chrono>

#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

struct Copy {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

/// Operands: in.elements sources of in.element_bytes each, the first for the low bits, then d.
void execute_pack(Warp& warp, const Instruction& in, Mask lanes) {
  const std::size_t width = in.element_bytes;
  std::byte* const d = warp.reg<std::byte>(in.op[in.elements]);
  for (std::size_t i = 0; i < in.elements; ++i) {
    const std::byte* const part = warp.reg<std::byte>(in.op[i]);
    each_lane(lanes, [&](int l) {
      const auto lane = static_cast<std::size_t>(l);
      std::memcpy(d + (lane * in.elements + i) * width, part + lane * width, width);
    });
  }
}

void execute_unpack(Warp& warp, const Instruction& in, Mask lanes) {
  const std::size_t width = in.element_bytes;
  const std::byte* const whole = warp.reg<std::byte>(in.op[in.elements]);
  for (std::size_t i = 0; i < in.elements; ++i) {
    std::byte* const part = warp.reg<std::byte>(in.op[i]);
    each_lane(lanes, [&](int l) {
      const auto lane = static_cast<std::size_t>(l);
      std::memcpy(part + lane * width, whole + (lane * in.elements + i) * width, width);
    });
  }
}

template <class T>
void execute_clock(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  // %clock counts the instructions of the warp. %globaltimer is the host's clock in nanoseconds.
  const auto host = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  };
  const std::uint64_t now = warp.read_clock(in, in.mode == 0 ? warp.steps() : host());
  each_lane(lanes, [=](int l) { d[l] = static_cast<T>(in.mode == 2 ? now >> 32 : now); });
}

void execute_mov_predicate(Warp& warp, const Instruction& in, Mask lanes) {
  const Mask a = warp.predicate(in.op[1]) ^ warp.predicate(in.op[2]);
  warp.set_predicate(in.op[0], a, lanes);
}

PtxType part_type(InstructionReader& reader, PtxType whole, std::size_t parts) {
  const int width = parts == 0 ? 0 : bytes(whole) / static_cast<int>(parts);
  if (parts != 0 && width * static_cast<int>(parts) == bytes(whole)) {
    if (width == 1) return PtxType::b8;
    if (width == 2) return PtxType::b16;
    if (width == 4) return PtxType::b32;
    if (width == 8) return PtxType::b64;
  }
  reader.refuse(fmt::format("mov of {} elements as .{}", parts, name(whole)));
}

void decode_vector_move(InstructionReader& reader, PtxType type) {
  const bool packs = reader.operand(1).kind == Operand::Kind::vector;
  const Operand& vector = reader.operand(packs ? 1 : 0);
  const PtxType part = part_type(reader, type, vector.elements.size());
  for (const Operand& element : vector.elements) {
    if (packs) {
      reader.source(element, part);
    } else {
      reader.destination(element, part);
    }
  }
  if (packs) {
    reader.destination(reader.operand(0), type);
  } else {
    reader.source(reader.operand(1), type);
  }
  reader.out().elements = static_cast<std::uint8_t>(vector.elements.size());
  reader.out().element_bytes = static_cast<std::uint8_t>(bytes(part));
  reader.out().execute = packs ? &execute_pack : &execute_unpack;
}

bool decode_clock(InstructionReader& reader, PtxType type) {
  const Operand& from = reader.operand(1);
  if (from.kind != Operand::Kind::special) return false;
  int mode = 0;
  if (from.name == "%globaltimer" || from.name == "%globaltimer_lo") {
    mode = 1;
  } else if (from.name == "%globaltimer_hi") {
    mode = 2;
  } else if (from.name != "%clock" && from.name != "%clock64" && from.name != "%clock_hi") {
    return false;
  }
  reader.destination(reader.operand(0), type);
  reader.out().mode = static_cast<std::uint8_t>(mode);
  reader.out().execute = bytes(type) == 8 ? &execute_clock<std::uint64_t> : &execute_clock<std::uint32_t>;
  return true;
}

void decode_mov(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2);
  if (reader.operand(0).kind == Operand::Kind::vector || reader.operand(1).kind == Operand::Kind::vector) {
    return decode_vector_move(reader, type);
  }
  if (decode_clock(reader, type)) return;
  reader.destination(reader.operand(0), type);
  if (type == PtxType::pred) {
    reader.predicate_source(reader.operand(1));
    reader.out().execute = &execute_mov_predicate;
    return;
  }
  reader.source(reader.operand(1), type);
  reader.out().registers = RegisterUse::copies;
  if (type == PtxType::b128) {
    if (reader.operand(1).kind != Operand::Kind::reg) reader.refuse("mov.b128 of a number");
    reader.out().execute = &unary<Quadword, Quadword, Copy>;
    return;
  }
  reader.out().execute = for_bits(reader, type, [](auto t) -> Handler {
    using T = decltype(t);
    return &unary<T, T, Copy>;
  });
}

// cvta -------------------------------------------------------------------------------------------------------------

/// Operands: d, a. mode 0: cvta.to, from generic to the state space; 1: to generic. immediate: the state space's
/// window.
template <class T>
void execute_cvta(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<T>(in.op[0]);
  const auto* const a = warp.reg<T>(in.op[1]);
  const auto window = static_cast<T>(in.immediate);
  each_lane(lanes, [=](int l) { d[l] = static_cast<T>(in.mode == 0 ? a[l] - window : a[l] + window); });
}

void decode_cvta(InstructionReader& reader) {
  const bool to_space = reader.take("to");
  const int space = reader.take_one_of(
      {"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
  static constexpr std::uint64_t kWindows[] = {
      0, 0, kSharedWindow, kSharedWindow, kSharedWindow, kLocalWindow, kParamWindow, kParamWindow};
  if (space < 0) reader.refuse("cvta of this state space");
  const PtxType type = reader.type();
  if (bytes(type) != 8) reader.refuse("cvta of 32-bit addresses");
  decode_uniform(reader, type, 2, &execute_cvta<std::uint64_t>);
  reader.out().mode = to_space ? 0 : 1;
  reader.out().immediate = static_cast<std::int64_t>(kWindows[space]);
}

/// immediate: the state space's window. mode 1: .shared::cta, of which the address must have the CTA's own rank.
void execute_isspacep(Warp& warp, const Instruction& in, Mask lanes) {
  const auto* const a = warp.reg<std::uint64_t>(in.op[1]);
  const auto own = static_cast<std::uint64_t>(warp.cta().rank());
  Mask holds = 0;
  each_lane(lanes, [&](int l) {
    const bool is_own = in.mode == 0 || (a[l] & ~kWindowMask) >> kClusterRankShift == own;
    if (is_own && (a[l] & kWindowMask) == static_cast<std::uint64_t>(in.immediate)) holds |= Mask{1} << l;
  });
  warp.set_predicate(in.op[0], holds, lanes);
}

void decode_isspacep(InstructionReader& reader) {
  const int space =
      reader.take_one_of({"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
  static constexpr std::uint64_t kWindows[] = {
      0, kSharedWindow, kSharedWindow, kSharedWindow, kLocalWindow, kParamWindow, kParamWindow};
  if (space < 0) reader.refuse("isspacep of this state space");
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::pred);
  reader.source(reader.operand(1), PtxType::b64);
  reader.out().immediate = static_cast<std::int64_t>(kWindows[space]);
  reader.out().mode = space == 1 || space == 2 ? 1 : 0;
  reader.out().execute = &execute_isspacep;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"mov", OperandClass::any, decode_mov},
    OpcodeRow{"cvta", OperandClass::any, decode_cvta},
    OpcodeRow{"isspacep", OperandClass::any, decode_isspacep},
};

}  // namespace

std::span<const OpcodeRow> move_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
