// Bit operations: and or xor not (also on predicates) cnot shl shr shf lop3 prmt bfe bfi popc clz brev bfind.
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  T operator()(T a) const {
    return a == 0 ? T{1} : T{0};
  }
};

/// Shift amounts are clamped to the width: larger ones shift out all bits.
struct ShiftLeft {
  template <class T>
  T operator()(T a, std::uint32_t by) const {
    return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << by);
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, std::uint32_t by) const {
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (by >= kBits ? kBits - 1 : by));
    } else {
      return by >= kBits ? T{0} : static_cast<T>(a >> by);
    }
  }
};

// Funnel shifts of the 64 bits {b, a}: a left shift returns the high word, a right shift the low word.
struct FunnelLeftWrap {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return static_cast<std::uint32_t>((((std::uint64_t{b} << 32) | a) << (c & 31)) >> 32);
  }
};
struct FunnelLeftClamp {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return c >= 32 ? a : FunnelLeftWrap()(a, b, c);
  }
};
struct FunnelRightWrap {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return static_cast<std::uint32_t>(((std::uint64_t{b} << 32) | a) >> (c & 31));
  }
};
struct FunnelRightClamp {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return c >= 32 ? b : FunnelRightWrap()(a, b, c);
  }
};

/// prmt: each nibble of c selects a byte of {b, a}; with its high bit set, that byte's sign bit is replicated instead.
struct Permute {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint64_t bytes = (std::uint64_t{b} << 32) | a;
    std::uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t selector = (c >> (4 * i)) & 15;
      auto byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7))) & 0xff;
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};

/// The selectors of prmt's modes: one row per mode, indexed by c & 3; nibble i selects byte i.
constexpr std::array<std::array<std::uint32_t, 4>, 6> kPermuteModes = {{
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
}};

void execute_permute_mode(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  const auto& selectors = kPermuteModes[in.mode];
  each_lane(lanes, [&](int l) { d[l] = Permute()(a[l], b[l], selectors[c[l] & 3]); });
}

/// The position or the length of a field: the low byte for 32-bit types, the whole number for 64-bit ones, as on an
/// H200. Lengths and positions beyond 255 are alike.
template <class T>
std::uint32_t field_number(std::uint32_t value) {
  return sizeof(T) == 4 ? value & 0xff : std::min(value, 255U);
}

/// bfe: bits [position, position + length) of a. Signed types extend the field's highest bit, or the highest bit of a
/// when the field reaches beyond it.
struct ExtractField {
  template <class T>
  T operator()(T a, std::uint32_t b, std::uint32_t c) const {
    using U = std::make_unsigned_t<T>;
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    const std::uint32_t position = field_number<T>(b);
    const std::uint32_t length = field_number<T>(c);
    if (length == 0) return 0;
    const std::uint32_t top = std::min(position + length - 1, kBits - 1);
    const bool fill = std::is_signed_v<T> && ((static_cast<U>(a) >> top) & 1) != 0;
    const U field = position >= kBits ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    const std::uint32_t taken = position >= kBits ? 0 : std::min(length, kBits - position);
    const U mask = taken >= kBits ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << taken) - 1);
    return static_cast<T>((field & mask) | (fill ? static_cast<U>(~mask) : U{0}));
  }
};

/// bfi: the low `length` bits of a are inserted into b at a position. Operands: d, a, b, position, length.
template <class T>
void execute_insert_field(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  const T* const b = warp.reg<T>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  const auto* const e = warp.reg<std::uint32_t>(in.op[4]);
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  each_lane(lanes, [&](int l) {
    const std::uint32_t position = field_number<T>(c[l]);
    const std::uint32_t length = field_number<T>(e[l]);
    if (length == 0 || position >= kBits) {
      d[l] = b[l];
      return;
    }
    const T ones = length >= kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    const T mask = static_cast<T>(ones << position);
    d[l] = static_cast<T>((b[l] & ~mask) | (static_cast<T>(a[l] << position) & mask));
  });
}

struct CountOnes {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct Reverse {
  template <class T>
  T operator()(T a) const {
    T result = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>((result << 1) | ((a >> i) & 1));
    return result;
  }
};

/// bfind: position of the highest bit that differs from the sign; ~0 when there is none.
struct FindHighest {
  template <class T>
  std::uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
    if (bits == 0) return ~std::uint32_t{0};
    return static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - static_cast<std::uint32_t>(std::countl_zero(bits));
  }
};
/// bfind.shiftamt: the left shift that moves that bit to the top.
struct FindShift {
  template <class T>
  std::uint32_t operator()(T a) const {
    const std::uint32_t at = FindHighest()(a);
    return at == ~std::uint32_t{0} ? at : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - at;
  }
};

/// immediate: the truth table, as a sum of the minterms whose bits are set.
void execute_lop3(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  std::uint32_t row[8];
  for (int i = 0; i < 8; ++i) row[i] = ((in.immediate >> i) & 1) != 0 ? ~std::uint32_t{0} : 0;
  each_lane(lanes, [&](int l) {
    const std::uint32_t x = a[l], y = b[l], z = c[l];
    d[l] = (row[0] & ~x & ~y & ~z) | (row[1] & ~x & ~y & z) | (row[2] & ~x & y & ~z) | (row[3] & ~x & y & z) |
           (row[4] & x & ~y & ~z) | (row[5] & x & ~y & z) | (row[6] & x & y & ~z) | (row[7] & x & y & z);
  });
}

// A predicate is the mask of its lanes; inactive lanes keep their bits.
template <class Op>
void execute_predicates(Warp& warp, const Instruction& in, Mask lanes) {
  const Mask a = warp.predicate(in.op[1]) ^ warp.predicate(in.op[2]);
  const Mask b = warp.predicate(in.op[3]) ^ warp.predicate(in.op[4]);
  warp.set_predicate(in.op[0], Op()(a, b), lanes);
}

void execute_not_predicate(Warp& warp, const Instruction& in, Mask lanes) {
  const Mask a = warp.predicate(in.op[1]) ^ warp.predicate(in.op[2]);
  warp.set_predicate(in.op[0], ~a, lanes);
}

template <class Op>
void decode_predicates(InstructionReader& reader) {
  reader.type();
  reader.finish();
  reader.expect_operands(3);
  reader.destination(reader.operand(0), PtxType::pred);
  reader.predicate_source(reader.operand(1));
  reader.predicate_source(reader.operand(2));
  reader.out().execute = &execute_predicates<Op>;
}

void decode_not_predicate(InstructionReader& reader) {
  reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::pred);
  reader.predicate_source(reader.operand(1));
  reader.out().execute = &execute_not_predicate;
}

template <class Op>
void decode_binary(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 3, for_bits(reader, type, [](auto t) -> Handler {
                   using T = decltype(t);
                   return &binary<T, T, T, Op>;
                 }));
}

template <class Op>
void decode_unary(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 2, for_bits(reader, type, [](auto t) -> Handler {
                   using T = decltype(t);
                   return &unary<T, T, Op>;
                 }));
}

template <class Op>
void decode_shift(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(3);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), PtxType::u32);
  reader.out().execute = for_integer(reader, type, [](auto t) -> Handler {
    using T = decltype(t);
    return &binary<T, T, std::uint32_t, Op>;
  });
}

void decode_funnel_shift(InstructionReader& reader) {
  const bool right = reader.take_one_of({"l", "r"}) == 1;
  const bool wraps = reader.take_one_of({"clamp", "wrap"}) == 1;
  const PtxType type = reader.type();
  using U = std::uint32_t;
  const Handler left_handler =
      wraps ? Handler{&ternary<U, U, U, U, FunnelLeftWrap>} : &ternary<U, U, U, U, FunnelLeftClamp>;
  const Handler right_handler =
      wraps ? Handler{&ternary<U, U, U, U, FunnelRightWrap>} : &ternary<U, U, U, U, FunnelRightClamp>;
  decode_uniform(reader, type, 4, right ? right_handler : left_handler);
}

void decode_lop3(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(5);
  reader.destination(reader.operand(0), type);
  for (std::size_t i = 1; i < 4; ++i) reader.source(reader.operand(i), type);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(4)) & 0xff);
  reader.out().execute = &execute_lop3;
}

void decode_permute(InstructionReader& reader) {
  const PtxType type = reader.type();
  const int mode = reader.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  using U = std::uint32_t;
  decode_uniform(reader, type, 4, mode < 0 ? Handler{&ternary<U, U, U, U, Permute>} : &execute_permute_mode);
  if (mode >= 0) reader.out().mode = static_cast<std::uint8_t>(mode);
}

void decode_extract_field(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(4);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), PtxType::u32);
  reader.source(reader.operand(3), PtxType::u32);
  reader.out().execute = for_integer(reader, type, [](auto t) -> Handler {
    using T = decltype(t);
    return &ternary<T, T, std::uint32_t, std::uint32_t, ExtractField>;
  });
}

void decode_insert_field(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(5);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), type);
  reader.source(reader.operand(3), PtxType::u32);
  reader.source(reader.operand(4), PtxType::u32);
  reader.out().execute = for_bits(reader, type, [](auto t) -> Handler { return &execute_insert_field<decltype(t)>; });
}

template <class Op>
void decode_count(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::u32);
  reader.source(reader.operand(1), type);
  reader.out().execute =
      for_bits(reader, type, [](auto t) -> Handler { return &unary<std::uint32_t, decltype(t), Op>; });
}

void decode_find_highest(InstructionReader& reader) {
  const bool as_shift = reader.take("shiftamt");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::u32);
  reader.source(reader.operand(1), type);
  reader.out().execute = for_integer(reader, type, [&](auto t) -> Handler {
    using T = decltype(t);
    return as_shift ? Handler{&unary<std::uint32_t, T, FindShift>} : &unary<std::uint32_t, T, FindHighest>;
  });
}

constexpr std::array kOpcodes = {
    OpcodeRow{"and", OperandClass::predicate, decode_predicates<And>},
    OpcodeRow{"or", OperandClass::predicate, decode_predicates<Or>},
    OpcodeRow{"xor", OperandClass::predicate, decode_predicates<Xor>},
    OpcodeRow{"not", OperandClass::predicate, decode_not_predicate},
    OpcodeRow{"and", OperandClass::integer, decode_binary<And>},
    OpcodeRow{"or", OperandClass::integer, decode_binary<Or>},
    OpcodeRow{"xor", OperandClass::integer, decode_binary<Xor>},
    OpcodeRow{"not", OperandClass::integer, decode_unary<Not>},
    OpcodeRow{"cnot", OperandClass::integer, decode_unary<LogicalNot>},
    OpcodeRow{"shl", OperandClass::integer, decode_shift<ShiftLeft>},
    OpcodeRow{"shr", OperandClass::integer, decode_shift<ShiftRight>},
    OpcodeRow{"shf", OperandClass::integer, decode_funnel_shift},
    OpcodeRow{"lop3", OperandClass::integer, decode_lop3},
    OpcodeRow{"prmt", OperandClass::integer, decode_permute},
    OpcodeRow{"bfe", OperandClass::integer, decode_extract_field},
    OpcodeRow{"bfi", OperandClass::integer, decode_insert_field},
    OpcodeRow{"popc", OperandClass::integer, decode_count<CountOnes>},
    OpcodeRow{"clz", OperandClass::integer, decode_count<CountLeadingZeros>},
    OpcodeRow{"brev", OperandClass::integer, decode_unary<Reverse>},
    OpcodeRow{"bfind", OperandClass::integer, decode_find_highest},
};

}  // namespace

std::span<const OpcodeRow> bit_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
