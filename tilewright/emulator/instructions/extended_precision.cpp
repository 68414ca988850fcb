// Integer arithmetic with the carry flag CC.CF: add.cc addc sub.cc subc mad.cc madc. The flag of a thread is a bit of a
// predicate that no instruction names. As in the hardware, a - b is a + ~b + 1, so that the flag after a subtraction is
// set if there was no borrow. The PTX ISA calls it the borrow, which only differs if an addition reads the flag of a
// subtraction or the reverse; nvcc's division of 128-bit integers does.
#include <array>
#include <type_traits>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// Instruction::mode of these handlers.
constexpr std::uint8_t kReadsCarry = 1;
constexpr std::uint8_t kWritesCarry = 2;

/// a + b + carry, or a + ~b + carry. Sets the carry.
template <class T, bool kSubtracts>
T sum(T a, T b, bool& carry) {
  if constexpr (kSubtracts) b = static_cast<T>(~b);
  const T first = a + b;
  const T second = first + (carry ? 1 : 0);
  carry = first < a || second < first;
  return second;
}

template <class T, bool kSubtracts>
void each_sum(Warp& warp, const Instruction& in, Mask lanes, Slot flag, T* d, const T* a, const T* b) {
  constexpr Mask kWithoutFlag = kSubtracts ? ~Mask{0} : 0;
  const Mask before = (in.mode & kReadsCarry) != 0 ? warp.predicate(flag) : kWithoutFlag;
  Mask after = 0;
  each_lane(lanes, [&](int l) {
    bool carry = ((before >> l) & 1) != 0;
    d[l] = sum<T, kSubtracts>(a[l], b[l], carry);
    after |= Mask{carry} << l;
  });
  if ((in.mode & kWritesCarry) != 0) warp.set_predicate(flag, after, lanes);
}

/// Operands: d, a, b, the flag.
template <class T, bool kSubtracts>
void execute_sum(Warp& warp, const Instruction& in, Mask lanes) {
  each_sum<T, kSubtracts>(warp, in, lanes, in.op[3], warp.reg<T>(in.op[0]), warp.reg<T>(in.op[1]),
                          warp.reg<T>(in.op[2]));
}

/// Operands: d, a, b, c, the flag. A is the signed or unsigned type of a and b.
template <class A, bool kHigh>
void execute_product(Warp& warp, const Instruction& in, Mask lanes) {
  using T = std::make_unsigned_t<A>;
  using Wide = std::conditional_t<sizeof(A) == 4, std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>,
                                  std::conditional_t<std::is_signed_v<A>, __int128, unsigned __int128>>;
  const A* const a = warp.reg<A>(in.op[1]);
  const A* const b = warp.reg<A>(in.op[2]);
  T product[kWarpSize];
  each_lane(lanes, [&](int l) {
    const Wide whole = static_cast<Wide>(a[l]) * static_cast<Wide>(b[l]);
    product[l] = static_cast<T>(kHigh ? whole >> (8 * sizeof(A)) : whole);
  });
  each_sum<T, false>(warp, in, lanes, in.op[4], warp.reg<T>(in.op[0]), product, warp.reg<T>(in.op[3]));
}

std::uint8_t take_mode(InstructionReader& reader) {
  const bool reads = reader.parsed().opcode.substr(0, reader.parsed().opcode.find('.')).ends_with('c');
  const bool writes = reader.take("cc") || !reads;  // a row that does not read the flag has .cc in its name
  return static_cast<std::uint8_t>((reads ? kReadsCarry : 0) | (writes ? kWritesCarry : 0));
}

template <bool kSubtracts>
void decode_sum(InstructionReader& reader) {
  const std::uint8_t mode = take_mode(reader);
  const PtxType type = reader.type();
  if (bytes(type) < 4) reader.refuse(fmt::format("type .{} of {}", name(type), reader.parsed().opcode));
  decode_uniform(
      reader, type, 3,
      bytes(type) == 4 ? Handler{&execute_sum<std::uint32_t, kSubtracts>} : &execute_sum<std::uint64_t, kSubtracts>);
  reader.carry_flag();
  reader.out().mode = mode;
}

template <bool kHigh>
void decode_product(InstructionReader& reader) {
  const std::uint8_t mode = take_mode(reader);
  const PtxType type = reader.type();
  const Handler handler = for_integer(reader, type, [&](auto t) -> Handler {
    using T = decltype(t);
    if constexpr (sizeof(T) < 4) {
      reader.refuse(fmt::format("type .{} of {}", name(type), reader.parsed().opcode));
    } else {
      return &execute_product<T, kHigh>;
    }
  });
  decode_uniform(reader, type, 4, handler);
  reader.carry_flag();
  reader.out().mode = mode;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"add.cc", OperandClass::integer, decode_sum<false>},
    OpcodeRow{"addc", OperandClass::integer, decode_sum<false>},
    OpcodeRow{"sub.cc", OperandClass::integer, decode_sum<true>},
    OpcodeRow{"subc", OperandClass::integer, decode_sum<true>},
    OpcodeRow{"mad.lo.cc", OperandClass::integer, decode_product<false>},
    OpcodeRow{"mad.hi.cc", OperandClass::integer, decode_product<true>},
    OpcodeRow{"madc.lo", OperandClass::integer, decode_product<false>},
    OpcodeRow{"madc.hi", OperandClass::integer, decode_product<true>},
};

}  // namespace

std::span<const OpcodeRow> extended_precision_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
