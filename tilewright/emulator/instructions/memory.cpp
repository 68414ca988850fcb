// ld and st in all state spaces, with vectors, cache hints and memory order; prefetches and cache policies.
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/undefined_source.hpp"

namespace tilewright::emulator {
namespace {

/// Instruction::mode of ld and st.
struct AccessMode {
  Space space = Space::generic;
  bool strong = false;    // .volatile, .relaxed, .acquire, .release, .mmio
  bool releases = false;  // .release
  MemoryScope scope = MemoryScope::gpu;

  std::uint8_t pack() const {
    return static_cast<std::uint8_t>(static_cast<int>(space) | (strong ? 16 : 0) | (releases ? 32 : 0) |
                                     static_cast<int>(scope) << 6);
  }
  static AccessMode unpack(std::uint8_t mode) {
    return {static_cast<Space>(mode & 15), (mode & 16) != 0, (mode & 32) != 0, static_cast<MemoryScope>(mode >> 6)};
  }
};

/// Marks the registers of a load whose elements no one has written, at least in part. A register that is wider than its
/// element is extended by the element's sign, if E has one.
template <class E>
void note_undefined(Warp& warp, const Instruction& in, Mask lanes, const LanePointers& from) {
  const UndefinedSource source(warp, from);
  UndefinedValues& values = warp.track_undefined_values();
  const std::uint32_t origin = source.new_origin(values, in, sizeof(E) * in.elements);
  const auto width = static_cast<std::size_t>(in.immediate);
  for (std::size_t i = 0; i < in.elements; ++i) {
    UndefinedBits undefined;
    each_lane(from.undefined, [&](int l) {
      if (!source.is_undefined(l, i * sizeof(E), sizeof(E))) return;
      std::byte* const to = undefined.at.data() + static_cast<std::size_t>(l) * width;
      for (std::size_t byte = 0; byte < sizeof(E); ++byte)
        to[byte] = std::byte{source.undefined_bits(l, i * sizeof(E) + byte)};
      if (std::is_signed_v<E> && (to[sizeof(E) - 1] & std::byte{0x80}) != std::byte{0})
        std::memset(to + sizeof(E), 0xff, width - sizeof(E));
    });
    values.define(in.op[i], lanes, undefined, origin, true);
  }
}

/// How much of a value that is stored is undefined.
enum class Undefined : std::uint8_t { nothing, some_bits, some_bytes, everything };

Undefined how_undefined(std::span<const std::byte> value) {
  std::size_t defined = 0, undefined = 0;
  for (const std::byte bits : value) {
    defined += bits == std::byte{0} ? 1 : 0;
    undefined += bits == std::byte{0xff} ? 1 : 0;
  }
  if (defined == value.size()) return Undefined::nothing;
  if (undefined == value.size()) return Undefined::everything;
  return defined + undefined == value.size() ? Undefined::some_bytes : Undefined::some_bits;
}

/// Called after a store of undefined values: the shared or local memory that it wrote is undefined. Stores to global
/// memory are reported, but for words that have padding or bit-fields, most likely: those that are defined in part, and
/// have 8 bytes, or were loaded from the same address, or have a byte that is defined in part and either are copies of
/// what memory contains or have no defined highest bit, as a number that was taken out of a word has.
void follow_stored(Warp& warp, const Instruction& in, Mask lanes, const LanePointers& to, std::uint32_t bytes) {
  constexpr std::uint32_t kBytesWithPadding = 8;
  UndefinedValues* const values = warp.undefined_values();
  Cta& cta = warp.cta();
  GlobalShadow* const shadow = cta.launch().global_shadow;
  for (std::uint32_t i = 0; i < in.elements; ++i) {
    const auto [marked, origin] = values->undefined(in.op[1 + i]);
    const UndefinedBits& bits = values->bits(in.op[1 + i]);
    const bool is_copy = values->is_copy(in.op[1 + i]);
    Mask reported = 0;
    each_lane(marked & lanes, [&](int l) {
      const std::span<const std::byte> value(bits.at.data() + l * in.immediate, bytes);
      const Undefined how = how_undefined(value);
      if (how == Undefined::nothing) return;
      const std::uint64_t address = to.address[l] + std::uint64_t{i} * bytes;
      const bool is_shared = ((to.shared >> l) & 1) != 0, is_local = ((to.local >> l) & 1) != 0;
      const bool is_global = !is_shared && !is_local && address >> 32 != 0;
      const bool is_word_with_gaps =
          bytes >= kBytesWithPadding ||
          (how == Undefined::some_bits && (is_copy || (value.back() & std::byte{0x80}) != std::byte{0})) ||
          values->has_loaded(l, to.address[l]);
      if (is_global && (how == Undefined::everything || !is_word_with_gaps)) {
        reported |= Mask{1} << l;
        return;
      }
      for (std::uint32_t byte = 0; byte < bytes; ++byte) {
        const auto undefined = std::to_integer<std::uint8_t>(value[byte]);
        if (undefined == 0) continue;
        if (is_shared) cta.shared().mark_undefined_bits(address + byte, undefined);
        if (is_local) cta.mark_local(warp.index() * kWarpSize + l, address + byte, 1, undefined);
        if (is_global && shadow != nullptr) shadow->mark_undefined(warp, address + byte, undefined);
      }
    });
    if (reported != 0) values->report(warp, in, reported, origin, "is stored to global memory");
  }
}

/// Copies kElements elements of each lane, which are one after the other in memory, from or to the registers.
template <class E, int kElements, bool kLoads>
void move_consecutive(Warp& warp, const Slot* registers, std::byte* memory) {
  for (int i = 0; i < kElements; ++i) {
    E* const element = warp.reg<E>(registers[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::byte* const at = memory + static_cast<std::size_t>(lane * kElements + i) * sizeof(E);
      if constexpr (kLoads) {
        std::memcpy(&element[lane], at, sizeof(E));
      } else {
        std::memcpy(at, &element[lane], sizeof(E));
      }
    }
  }
}

template <class E, bool kLoads>
void move_consecutive(Warp& warp, const Slot* registers, int elements, std::byte* memory) {
  if (elements == 1) return move_consecutive<E, 1, kLoads>(warp, registers, memory);
  if (elements == 2) return move_consecutive<E, 2, kLoads>(warp, registers, memory);
  return move_consecutive<E, 4, kLoads>(warp, registers, memory);
}

/// ld.global.nc must not read what the launch has written. at[l] is the host pointer of lane l, which is the address.
void check_non_coherent(Warp& warp, const Instruction& in, Mask lanes, const std::byte* const* at,
                        std::uint32_t bytes) {
  const Launch& launch = warp.cta().launch();
  if (launch.global_shadow == nullptr || launch.log == nullptr || !launch.options.check_races) return;
  each_lane(lanes, [&](int l) {
    launch.global_shadow->check_non_coherent(warp, in, l, reinterpret_cast<std::uint64_t>(at[l]), bytes);
  });
}

/// Operands: destinations, then the address. immediate: width of the registers, which may be wider than E.
/// kNonCoherent: ld.global.nc.
template <class E, bool kNonCoherent>
void execute_load(Warp& warp, const Instruction& in, Mask lanes) {
  const AccessMode mode = AccessMode::unpack(in.mode);
  if (lanes == kAllLanes && !mode.strong && in.immediate == sizeof(E)) {
    std::byte* const from = resolve_consecutive(warp, in, mode.space, sizeof(E) * in.elements, false);
    if (kNonCoherent && from != nullptr) {
      const std::byte* at[kWarpSize];
      for (std::size_t l = 0; l < kWarpSize; ++l) at[l] = from + l * sizeof(E) * in.elements;
      check_non_coherent(warp, in, lanes, at, sizeof(E) * in.elements);
    }
    if (from != nullptr) return move_consecutive<E, true>(warp, in.op, in.elements, from);
  }
  if (mode.space == Space::param && in.immediate == sizeof(E)) {
    const std::byte* const from = resolve_parameter(warp, in, sizeof(E) * in.elements);
    for (std::size_t i = 0; from != nullptr && i < in.elements; ++i) {
      E* const d = warp.reg<E>(in.op[i]);
      E element;
      std::memcpy(&element, from + i * sizeof(E), sizeof(E));
      each_lane(lanes, [&](int l) { d[l] = element; });
    }
    if (from != nullptr) return;
  }
  LanePointers from;
  from.follows_undefined = true;
  from.scope = mode.scope;
  resolve(warp, in, lanes, mode.space, 0, sizeof(E) * in.elements,
          mode.strong ? AccessKind::strong_read : AccessKind::read, from);
  if (kNonCoherent) check_non_coherent(warp, in, lanes, from.at, sizeof(E) * in.elements);
  if (from.undefined != 0) note_undefined<E>(warp, in, lanes, from);
  if (const Mask global = lanes & ~from.shared; mode.strong && global != 0) {
    warp.note_global_poll(in, global, from.address[std::countr_zero(global)]);
  }
  for (std::size_t i = 0; i < in.elements; ++i) {
    if (in.immediate == sizeof(E)) {
      E* const d = warp.reg<E>(in.op[i]);
      each_lane(lanes, [&](int l) { std::memcpy(&d[l], from.at[l] + i * sizeof(E), sizeof(E)); });
      continue;
    }
    if constexpr (sizeof(E) <= sizeof(std::uint64_t)) {
      std::byte* const d = warp.reg<std::byte>(in.op[i]);
      each_lane(lanes, [&](int l) {
        E element;
        std::memcpy(&element, from.at[l] + i * sizeof(E), sizeof(E));
        const auto extended = static_cast<std::uint64_t>(static_cast<std::int64_t>(element));
        std::memcpy(d + l * in.immediate, &extended, static_cast<std::size_t>(in.immediate));
      });
    }
  }
}

/// Lanes of one store that write different values to the same byte race with each other. Does the store for the lanes
/// in shared memory when lanes overlap.
void check_lanes_agree(Warp& warp, const Instruction& in, const LanePointers& to, const std::byte* values,
                       std::uint32_t bytes) {
  SharedMemory& shared = warp.cta().shared();
  std::uint64_t next = 0;
  bool disjoint = true;
  for (Mask left = to.shared; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    disjoint = disjoint && to.address[lane] >= next;
    next = to.address[lane] + bytes;
  }
  if (disjoint) return;
  for (Mask left = to.shared; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::byte* const value = values + static_cast<std::size_t>(lane) * bytes;
    const bool overlaps = shared.mark_written(to.address[lane], bytes);
    if (overlaps && std::memcmp(to.at[lane], value, bytes) != 0) {
      warp.report(Severity::error, FindingKind::shared_race, in, lane, to.address[lane], [&] {
        return fmt::format(
            "write of {} bytes at shared address {:#x}{}, where another thread of the warp writes a different value in "
            "the same instruction",
            bytes, to.address[lane], warp.cta().describe_shared(to.address[lane]));
      });
    }
    std::memcpy(to.at[lane], value, bytes);
  }
  for (Mask left = to.shared; left != 0; left &= left - 1)
    shared.clear_written(to.address[std::countr_zero(left)], bytes);
}

/// The same for the lanes that store to global memory, as far as they store to equal addresses.
void check_global_lanes_agree(Warp& warp, const Instruction& in, Mask lanes, const LanePointers& to,
                              const std::byte* values, std::uint32_t bytes) {
  std::uint64_t next = 0;
  bool ascending = true;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const std::uint64_t address = to.address[std::countr_zero(left)];
    ascending = ascending && address >= next;
    next = address + bytes;
  }
  if (ascending) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (to.address[lane] >> 32 == 0) continue;  // local memory, which each lane has to itself
    for (Mask others = lanes & (lanes - 1); others != 0; others &= others - 1) {
      const int other = std::countr_zero(others);
      if (to.address[other] != to.address[lane]) continue;
      if (std::memcmp(values + static_cast<std::size_t>(lane) * bytes, values + static_cast<std::size_t>(other) * bytes,
                      bytes) == 0)
        continue;
      warp.report(Severity::error, FindingKind::global_race, in, other, to.address[other], [&] {
        return fmt::format(
            "write of {} bytes at global address {:#x}, where another thread of the warp writes a different value in "
            "the same instruction",
            bytes, to.address[other]);
      });
      return;
    }
  }
}

/// Operands: the address, then the sources. immediate: width of the registers.
template <class E>
void execute_store(Warp& warp, const Instruction& in, Mask lanes) {
  const AccessMode mode = AccessMode::unpack(in.mode);
  if (lanes == kAllLanes && !mode.strong && in.immediate == sizeof(E) && warp.undefined_values() == nullptr) {
    std::byte* const to = resolve_consecutive(warp, in, mode.space, sizeof(E) * in.elements, true);
    if (to != nullptr) return move_consecutive<E, false>(warp, in.op + 1, in.elements, to);
  }
  const std::size_t bytes = sizeof(E) * in.elements;
  alignas(16) std::byte values[kWarpSize * 16];
  for (std::size_t i = 0; i < in.elements; ++i) {
    const std::byte* const a = warp.reg<std::byte>(in.op[1 + i]);
    each_lane(lanes, [&](int l) {
      std::memcpy(values + static_cast<std::size_t>(l) * bytes + i * sizeof(E), a + l * in.immediate, sizeof(E));
    });
  }
  LanePointers to;
  to.values = values;
  to.releases = mode.releases;
  to.scope = mode.scope;
  resolve(warp, in, lanes, mode.space, 0, bytes, mode.strong ? AccessKind::strong_write : AccessKind::write, to);
  if (mode.strong) warp.cta().cluster().note_event();
  if (to.shared != 0 && !mode.strong && warp.cta().launch().options.check_races) {
    check_lanes_agree(warp, in, to, values, static_cast<std::uint32_t>(bytes));
  }
  if (warp.cta().launch().options.check_warps && (lanes & ~to.shared) != 0) {
    check_global_lanes_agree(warp, in, lanes & ~to.shared, to, values, static_cast<std::uint32_t>(bytes));
  }
  each_lane(lanes, [&](int l) { std::memcpy(to.at[l], values + static_cast<std::size_t>(l) * bytes, bytes); });
  if (warp.undefined_values() != nullptr) follow_stored(warp, in, lanes, to, sizeof(E));
}

Space take_space(InstructionReader& reader, const Operand& address) {
  if (reader.take("global")) return Space::global;
  if (reader.take("const")) return Space::constant;
  if (reader.take("shared") || reader.take("shared::cta") || reader.take("shared::cluster")) return Space::shared;
  if (reader.take("local")) return Space::local;
  if (reader.take("param") || reader.take("param::entry") || reader.take("param::func")) {
    return reader.parameter_space(address);
  }
  return Space::generic;
}

struct Access {
  AccessMode mode;
  bool is_non_coherent = false;
  std::size_t elements = 1;
  PtxType type = PtxType::b32;
};

Access take_access(InstructionReader& reader, const Operand& address) {
  Access access;
  const bool is_volatile = reader.take("volatile");
  const int order = reader.take_one_of({"relaxed", "acquire", "release", "mmio"});
  reader.take("weak");
  access.mode.scope = reader.memory_scope();
  access.mode.strong = is_volatile || order >= 0;
  access.mode.releases = order == 2;
  access.mode.space = take_space(reader, address);
  access.is_non_coherent = reader.take("nc") && access.mode.space == Space::global;
  reader.take_one_of({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  reader.ignore_prefixed({"L1::", "L2::"});
  const int vector = reader.take_one_of({"v2", "v4"});
  if (vector >= 0) access.elements = vector == 0 ? 2 : 4;
  access.type = reader.type();
  reader.finish();
  if (access.elements * static_cast<std::size_t>(bytes(access.type)) > 16) {
    reader.refuse("an access of more than 16 bytes");
  }
  return access;
}

/// Calls f with a value of the host type of an element in memory.
template <class F>
Handler for_element(PtxType type, F&& f) {
  const bool extends_sign = is_signed(type);
  switch (bytes(type)) {
    case 1:
      return extends_sign ? f(std::int8_t()) : f(std::uint8_t());
    case 2:
      return extends_sign ? f(std::int16_t()) : f(std::uint16_t());
    case 4:
      return extends_sign ? f(std::int32_t()) : f(std::uint32_t());
    case 8:
      return f(std::uint64_t());
    default:
      return f(Quadword());
  }
}

void set_width(InstructionReader& reader, int width, PtxType type) {
  if (width < bytes(type)) reader.refuse("a register that is narrower than its type");
  if (reader.out().immediate != 0 && reader.out().immediate != width)
    reader.refuse("a vector of registers of different widths");
  reader.out().immediate = width;
}

void decode_load(InstructionReader& reader) {
  reader.expect_operands(2, 3);  // the third is a cache policy
  const Access access = take_access(reader, reader.operand(1));
  const std::vector<Operand> destinations = reader.elements(reader.operand(0));
  if (destinations.size() != access.elements)
    reader.refuse("a vector operand whose length differs from the instruction's");
  for (const Operand& destination : destinations) {
    set_width(reader, reader.destination_of_any_width(destination, access.type), access.type);
  }
  reader.address(reader.operand(1), access.mode.space);
  reader.out().elements = static_cast<std::uint8_t>(access.elements);
  reader.out().mode = access.mode.pack();
  if (access.mode.space == Space::shared || access.mode.space == Space::generic)
    reader.out().registers = RegisterUse::loads;
  reader.out().execute = for_element(access.type, [&](auto t) -> Handler {
    using T = decltype(t);
    return access.is_non_coherent ? &execute_load<T, true> : &execute_load<T, false>;
  });
}

void decode_store(InstructionReader& reader) {
  reader.expect_operands(2, 3);
  const Access access = take_access(reader, reader.operand(0));
  if (access.mode.space == Space::param) reader.refuse("a store to the parameters of a kernel");
  const std::vector<Operand> sources = reader.elements(reader.operand(1));
  if (sources.size() != access.elements) reader.refuse("a vector operand whose length differs from the instruction's");
  reader.address(reader.operand(0), access.mode.space);
  for (const Operand& source : sources) {
    set_width(reader, reader.source_of_any_width(source, access.type), access.type);
  }
  reader.out().elements = static_cast<std::uint8_t>(access.elements);
  reader.out().mode = access.mode.pack();
  reader.out().execute = for_element(access.type, [](auto t) -> Handler { return &execute_store<decltype(t)>; });
}

/// createpolicy: the value does not matter, as cache policies are ignored.
void execute_policy(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint64_t>(in.op[0]);
  each_lane(lanes, [=](int l) { d[l] = 0; });
}

void decode_policy(InstructionReader& reader) {
  reader.expect_operands(1, 4);
  reader.destination(reader.operand(0), PtxType::b64);
  reader.out().execute = &execute_policy;
}

/// Prefetches and cache hints have no effect that a program can observe.
void decode_hint(InstructionReader& reader) { reader.out().execute = &execute_nothing; }

constexpr std::array kOpcodes = {
    OpcodeRow{"ld", OperandClass::any, decode_load},
    OpcodeRow{"ldu", OperandClass::any, decode_load},
    OpcodeRow{"st", OperandClass::any, decode_store},
    OpcodeRow{"prefetch", OperandClass::any, decode_hint},
    OpcodeRow{"prefetchu", OperandClass::any, decode_hint},
    OpcodeRow{"discard", OperandClass::any, decode_hint},
    OpcodeRow{"applypriority", OperandClass::any, decode_hint},
    OpcodeRow{"createpolicy", OperandClass::any, decode_policy},
};

}  // namespace

std::span<const OpcodeRow> memory_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
