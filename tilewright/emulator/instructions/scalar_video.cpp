// Scalar video instructions, whose sources may be bytes and halves of registers: vadd, vsub, vabsdiff, vmin, vmax,
// vshl, vshr, vset, vmad.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

using Wide = __int128;

/// A word, a half or a byte of a register of 32 bits, and how it is extended.
struct Part {
  int shift = 0;
  int bits = 32;
  bool is_signed = false;

  std::uint32_t mask() const { return static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1); }
  Wide of(std::uint32_t word) const {
    const std::uint32_t part = word >> shift & mask();
    const bool negative = is_signed && part >> (bits - 1) != 0;
    return static_cast<Wide>(part) - (negative ? Wide{1} << bits : Wide{0});
  }
  Wide clamped(Wide value) const {
    const Wide low = is_signed ? -(Wide{1} << (bits - 1)) : Wide{0};
    return std::clamp(value, low, low + mask());
  }
};

using Combine = Wide (*)(Wide a, Wide b);

Wide sum(Wide a, Wide b) { return a + b; }
Wide difference(Wide a, Wide b) { return a - b; }
Wide distance(Wide a, Wide b) { return a < b ? b - a : a - b; }
Wide least(Wide a, Wide b) { return std::min(a, b); }
Wide most(Wide a, Wide b) { return std::max(a, b); }
Wide second(Wide, Wide b) { return b; }
Wide shifted_left(Wide a, Wide b) { return a << static_cast<int>(std::min<Wide>(b, 32)); }
Wide shifted_left_wrapping(Wide a, Wide b) { return a << static_cast<int>(b & 31); }
Wide shifted_right(Wide a, Wide b) { return a >> static_cast<int>(std::min<Wide>(b, 32)); }
Wide shifted_right_wrapping(Wide a, Wide b) { return a >> static_cast<int>(b & 31); }
Wide equal(Wide a, Wide b) { return a == b ? 1 : 0; }
Wide not_equal(Wide a, Wide b) { return a != b ? 1 : 0; }
Wide less(Wide a, Wide b) { return a < b ? 1 : 0; }
Wide less_or_equal(Wide a, Wide b) { return a <= b ? 1 : 0; }
Wide greater(Wide a, Wide b) { return a > b ? 1 : 0; }
Wide greater_or_equal(Wide a, Wide b) { return a >= b ? 1 : 0; }

/// d = c op2 (a op b), where c is 0 and op2 gives its second operand unless the instruction names an operation; or the
/// part of d is a op b, and the rest is that of c.
struct ScalarOperation {
  Combine combine = nullptr;
  Combine with_c = &second;
  Part a, b, c, d;
  bool saturates = false;
};

/// Operands: d, a, b, c. table: the ScalarOperation.
void execute_scalar(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& how = *static_cast<const ScalarOperation*>(in.table);
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  each_lane(lanes, [&](int l) {
    Wide result = how.combine(how.a.of(a[l]), how.b.of(b[l]));
    if (how.saturates) result = how.d.clamped(result);
    const auto word = static_cast<std::uint32_t>(how.with_c(how.c.of(c[l]), result));
    const std::uint32_t written = how.d.mask() << how.d.shift;
    d[l] = (word << how.d.shift & written) | (c[l] & ~written);
  });
}

/// The part that an operand like %r.b1 or %r.h0 selects.
Part part_of(InstructionReader& reader, const Operand& operand, bool is_signed) {
  static constexpr std::string_view kParts[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
  if (operand.part.empty()) return {0, 32, is_signed};
  const auto* const found = std::ranges::find(kParts, operand.part);
  if (found == std::end(kParts)) reader.refuse(fmt::format("part .{} of a register", operand.part));
  const auto index = static_cast<int>(found - kParts);
  return index < 4 ? Part{8 * index, 8, is_signed} : Part{16 * (index - 4), 16, is_signed};
}

/// The operand without the part and the sign, which the instruction applies.
Operand whole(Operand operand) {
  operand.part = {};
  operand.negated = false;
  return operand;
}

/// Refuses a form for which the code that ptxas 13.0 makes for sm_90 computes something else than the PTX ISA says, so
/// that neither result would be right for all users. 400 forms were compared with an H100 (2026-11-28); 111 differed.
void refuse_disputed(InstructionReader& reader, bool is_disputed, std::string_view what) {
  if (is_disputed) reader.refuse(fmt::format("{}, which ptxas computes otherwise than the PTX ISA says", what));
}

bool take_signedness(InstructionReader& reader) {
  const PtxType type = reader.type();
  if (type != PtxType::s32 && type != PtxType::u32) reader.refuse(fmt::format("operands of .{}", name(type)));
  return is_signed(type);
}

/// Returns the number of the operation on c: .add, .min, .max; -1 if there is none.
int decode_scalar(InstructionReader& reader, ScalarOperation how, bool signed_d, bool signed_a, bool signed_b) {
  static constexpr Combine kWithC[] = {&sum, &least, &most};
  const int with_c = reader.take_one_of({"add", "min", "max"});
  if (with_c >= 0) how.with_c = kWithC[with_c];
  reader.finish();
  const bool merges = reader.operands() > 0 && !reader.operand(0).part.empty();
  if (merges && with_c >= 0) reader.refuse("a part of d with an operation on c");
  refuse_disputed(reader, merges && reader.operand(0).part == "h1", "part .h1 of d");
  refuse_disputed(reader, merges && how.saturates, ".sat of a part of d");
  reader.expect_operands(merges || with_c >= 0 ? 4 : 3);
  how.d = part_of(reader, reader.operand(0), signed_d);
  how.a = part_of(reader, reader.operand(1), signed_a);
  how.b = part_of(reader, reader.operand(2), signed_b);
  how.c.is_signed = signed_d;
  for (std::size_t i = 1; i < reader.operands(); ++i) {
    if (reader.operand(i).negated || (i == 3 && !reader.operand(i).part.empty())) reader.refuse("this operand");
  }
  reader.destination(whole(reader.operand(0)), PtxType::b32);
  reader.source(whole(reader.operand(1)), PtxType::b32);
  reader.source(whole(reader.operand(2)), PtxType::b32);
  reader.source(reader.operands() == 4 ? reader.operand(3) : integer_operand(0), PtxType::b32);
  reader.out().table = reader.keep(std::make_shared<ScalarOperation>(how));
  reader.out().execute = &execute_scalar;
  return with_c;
}

template <Combine kCombine>
void decode_arithmetic(InstructionReader& reader) {
  ScalarOperation how;
  how.combine = kCombine;
  const bool d = take_signedness(reader), a = take_signedness(reader), b = take_signedness(reader);
  how.saturates = reader.take("sat");
  const bool is_disputed = kCombine == &sum || (kCombine == &distance && (a || b));
  refuse_disputed(reader, how.saturates && !d && is_disputed, ".sat of an unsigned result");
  decode_scalar(reader, how, d, a, b);
}

/// vshl and vshr, whose amount is an unsigned number.
template <Combine kClamps, Combine kWraps>
void decode_shift(InstructionReader& reader) {
  constexpr bool kIsLeft = kClamps == &shifted_left;
  ScalarOperation how;
  const bool d = take_signedness(reader), a = take_signedness(reader);
  if (take_signedness(reader)) reader.refuse("a signed shift amount");
  how.saturates = reader.take("sat");
  refuse_disputed(reader, how.saturates && (kIsLeft || !d), kIsLeft ? ".sat" : ".sat of an unsigned result");
  const int mode = reader.take_one_of({"clamp", "wrap"});
  if (mode < 0) reader.refuse("a shift without .clamp or .wrap");
  how.combine = mode == 0 ? kClamps : kWraps;
  decode_scalar(reader, how, d, a, false);
}

/// vset, whose result is 1 or 0.
void decode_set(InstructionReader& reader) {
  static constexpr Combine kComparisons[] = {equal, not_equal, less, less_or_equal, greater, greater_or_equal};
  ScalarOperation how;
  const bool a = take_signedness(reader), b = take_signedness(reader);
  const int comparison = reader.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (comparison < 0) reader.refuse("this comparison");
  how.combine = kComparisons[comparison];
  const bool is_extreme = decode_scalar(reader, how, false, a, b) >= 1;
  refuse_disputed(reader, (a || b) && is_extreme, ".min or .max of a comparison of signed numbers");
}

/// d = (+-(a * b) +- c + plus_one) >> shift
struct MultiplyAdd {
  Part a, b, c, d;
  bool negates_product = false, negates_c = false, adds_one = false;
  int shift = 0;
  bool saturates = false;
};

/// Operands: d, a, b, c. table: the MultiplyAdd.
void execute_multiply_add(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& how = *static_cast<const MultiplyAdd*>(in.table);
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  each_lane(lanes, [&](int l) {
    const Wide product = how.a.of(a[l]) * how.b.of(b[l]), addend = how.c.of(c[l]);
    Wide result = (how.negates_product ? -product : product) + (how.negates_c ? -addend : addend) + how.adds_one;
    result >>= how.shift;
    if (how.saturates) result = how.d.clamped(result);
    d[l] = static_cast<std::uint32_t>(result);
  });
}

void decode_multiply_add(InstructionReader& reader) {
  MultiplyAdd how;
  take_signedness(reader);  // of d; the signs of the other operands decide how it is saturated
  const bool signed_a = take_signedness(reader), signed_b = take_signedness(reader);
  how.adds_one = reader.take("po");
  how.saturates = reader.take("sat");
  const int scale = reader.take_one_of({"shr7", "shr15"});
  how.shift = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  refuse_disputed(reader, (how.saturates || how.shift != 0) && !(signed_a && signed_b),
                  ".sat, .shr7 or .shr15 of unsigned factors");
  reader.finish();
  reader.expect_operands(4);
  how.negates_product = reader.operand(1).negated != reader.operand(2).negated;
  how.negates_c = reader.operand(3).negated;
  if (!reader.operand(0).part.empty() || !reader.operand(3).part.empty()) reader.refuse("a part of d or c");
  if (static_cast<int>(how.negates_product) + how.negates_c + how.adds_one > 1)
    reader.refuse("two of -(a * b), -c and .po");
  const bool signed_product = signed_a || signed_b || how.negates_product;
  how.a = part_of(reader, reader.operand(1), signed_a);
  how.b = part_of(reader, reader.operand(2), signed_b);
  how.c.is_signed = signed_product;
  how.d.is_signed = signed_product || how.negates_c;
  reader.destination(reader.operand(0), PtxType::b32);
  for (std::size_t i = 1; i < 4; ++i) reader.source(whole(reader.operand(i)), PtxType::b32);
  reader.out().table = reader.keep(std::make_shared<MultiplyAdd>(how));
  reader.out().execute = &execute_multiply_add;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"vadd", OperandClass::any, decode_arithmetic<sum>},
    OpcodeRow{"vsub", OperandClass::any, decode_arithmetic<difference>},
    OpcodeRow{"vabsdiff", OperandClass::any, decode_arithmetic<distance>},
    OpcodeRow{"vmin", OperandClass::any, decode_arithmetic<least>},
    OpcodeRow{"vmax", OperandClass::any, decode_arithmetic<most>},
    OpcodeRow{"vshl", OperandClass::any, decode_shift<shifted_left, shifted_left_wrapping>},
    OpcodeRow{"vshr", OperandClass::any, decode_shift<shifted_right, shifted_right_wrapping>},
    OpcodeRow{"vset", OperandClass::any, decode_set},
    OpcodeRow{"vmad", OperandClass::any, decode_multiply_add},
};

}  // namespace

std::span<const OpcodeRow> scalar_video_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
