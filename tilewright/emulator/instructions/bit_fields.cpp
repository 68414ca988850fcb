// bmsk szext fns, and lop3 with a predicate.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t limited(std::uint32_t value, bool clamps) {
  return clamps ? std::min(value, 32U) : value & 31U;
}

/// b ones from bit a on.
template <bool kClamps>
struct BitMask {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const std::uint64_t ones = (std::uint64_t{1} << limited(b, kClamps)) - 1;
    return static_cast<std::uint32_t>(ones << limited(a, kClamps));
  }
};

/// The b low bits of a, extended by zeros or by their sign.
template <bool kClamps, bool kSigned>
struct Extend {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t width = limited(b, kClamps);
    if (width == 0) return 0;
    const auto ones = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
    const bool negative = kSigned && ((a >> (width - 1)) & 1) != 0;
    return negative ? a | ~ones : a & ones;
  }
};

/// The position of the n-th set bit of `mask` from `base` on; PTX ISA, fns.
struct FindNthSet {
  std::uint32_t operator()(std::uint32_t mask, std::uint32_t base, std::int32_t offset) const {
    const auto is_set = [&](std::int64_t at) { return ((mask >> at) & 1) != 0; };
    if (offset == 0) return base < 32 && is_set(base) ? base : ~std::uint32_t{0};
    std::int64_t left = std::abs(static_cast<std::int64_t>(offset));
    for (std::int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
      if (is_set(at) && --left == 0) return static_cast<std::uint32_t>(at);
    }
    return ~std::uint32_t{0};
  }
};

using U = std::uint32_t;

void decode_bit_mask(InstructionReader& reader) {
  const int mode = reader.take_one_of({"clamp", "wrap"});
  if (mode < 0) reader.refuse("bmsk without .clamp or .wrap");
  const PtxType type = reader.type();
  decode_uniform(reader, type, 3,
                 mode == 0 ? Handler{&binary<U, U, U, BitMask<true>>} : &binary<U, U, U, BitMask<false>>);
}

void decode_extend(InstructionReader& reader) {
  const int mode = reader.take_one_of({"clamp", "wrap"});
  if (mode < 0) reader.refuse("szext without .clamp or .wrap");
  const PtxType type = reader.type();
  if (bytes(type) != 4) reader.refuse(fmt::format("type .{} of szext", name(type)));
  Handler handler = nullptr;
  if (is_signed(type)) {
    handler = mode == 0 ? Handler{&binary<U, U, U, Extend<true, true>>} : &binary<U, U, U, Extend<false, true>>;
  } else {
    handler = mode == 0 ? Handler{&binary<U, U, U, Extend<true, false>>} : &binary<U, U, U, Extend<false, false>>;
  }
  decode_uniform(reader, type, 3, handler);
}

void decode_find_nth_set(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 4, &ternary<U, U, U, std::int32_t, FindNthSet>);
}

/// Operands: d, p, a, b, c, q and the mask to xor it with. immediate: the table. mode: 0 for .or, 1 for .and.
void execute_lop3_predicate(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<U>(in.op[0]);
  const auto* const a = warp.reg<U>(in.op[2]);
  const auto* const b = warp.reg<U>(in.op[3]);
  const auto* const c = warp.reg<U>(in.op[4]);
  const Mask q = warp.predicate(in.op[5]) ^ warp.predicate(in.op[6]);
  Mask nonzero = 0;
  each_lane(lanes, [&](int l) {
    U result = 0;
    for (unsigned row = 0; row < 8; ++row) {
      if (((in.immediate >> row) & 1) == 0) continue;
      result |= ((row & 4) != 0 ? a[l] : ~a[l]) & ((row & 2) != 0 ? b[l] : ~b[l]) & ((row & 1) != 0 ? c[l] : ~c[l]);
    }
    d[l] = result;
    nonzero |= Mask{result != 0} << l;
  });
  warp.set_predicate(in.op[1], in.mode == 0 ? nonzero | q : nonzero & q, lanes);
}

void decode_lop3_predicate(InstructionReader& reader) {
  const int operation = reader.parsed().opcode.starts_with("lop3.or") ? 0 : 1;
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(6);
  const Operand& results = reader.operand(0);
  if (results.kind != Operand::Kind::pair)
    reader.refuse("lop3 with a Boolean operation but without a predicate result");
  reader.destination(results.elements[0], type);
  reader.destination(results.elements[1], PtxType::pred);
  for (std::size_t i = 1; i < 4; ++i) reader.source(reader.operand(i), type);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(4)) & 0xff);
  reader.predicate_source(reader.operand(5));
  reader.out().mode = static_cast<std::uint8_t>(operation);
  reader.out().execute = &execute_lop3_predicate;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"bmsk", OperandClass::integer, decode_bit_mask},
    OpcodeRow{"szext", OperandClass::integer, decode_extend},
    OpcodeRow{"fns", OperandClass::integer, decode_find_nth_set},
    OpcodeRow{"lop3.or", OperandClass::integer, decode_lop3_predicate},
    OpcodeRow{"lop3.and", OperandClass::integer, decode_lop3_predicate},
};

}  // namespace

std::span<const OpcodeRow> bit_field_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
