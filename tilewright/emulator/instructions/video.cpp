// SIMD video instructions on two halves or four bytes of 32 bits: vadd2, vadd4, vsub, vavrg, vabsdiff, vmin, vmax,
// vset. Without masks and selectors of operands.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

using Combine = std::int32_t (*)(std::int32_t a, std::int32_t b);

std::int32_t sum(std::int32_t a, std::int32_t b) { return a + b; }
std::int32_t difference(std::int32_t a, std::int32_t b) { return a - b; }
std::int32_t average(std::int32_t a, std::int32_t b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }
std::int32_t distance(std::int32_t a, std::int32_t b) { return std::abs(a - b); }
std::int32_t least(std::int32_t a, std::int32_t b) { return std::min(a, b); }
std::int32_t most(std::int32_t a, std::int32_t b) { return std::max(a, b); }
std::int32_t equal(std::int32_t a, std::int32_t b) { return a == b ? 1 : 0; }
std::int32_t not_equal(std::int32_t a, std::int32_t b) { return a != b ? 1 : 0; }
std::int32_t less(std::int32_t a, std::int32_t b) { return a < b ? 1 : 0; }
std::int32_t less_or_equal(std::int32_t a, std::int32_t b) { return a <= b ? 1 : 0; }
std::int32_t greater(std::int32_t a, std::int32_t b) { return a > b ? 1 : 0; }
std::int32_t greater_or_equal(std::int32_t a, std::int32_t b) { return a >= b ? 1 : 0; }

/// Instruction::mode: the types, and what is done with the results of the parts.
constexpr std::uint8_t kSignedD = 1, kSignedA = 2, kSignedB = 4;
constexpr std::uint8_t kSaturates = 8;  // each is clamped to its part of d, else cut
constexpr std::uint8_t kAdds = 16;      // their sum and c are d

std::int32_t part_of(std::uint32_t word, int shift, int bits, bool is_signed) {
  const std::uint32_t part = (word >> shift) & ((1U << bits) - 1);
  const bool negative = is_signed && (part >> (bits - 1)) != 0;
  return static_cast<std::int32_t>(part) - (negative ? 1 << bits : 0);
}

/// Operands: d, a, b, c. element_bytes: of a part. immediate: the function Combine.
void execute_parts(Warp& warp, const Instruction& in, Mask lanes) {
  const auto combine = reinterpret_cast<Combine>(in.immediate);
  const int bits = 8 * in.element_bytes;
  const bool is_signed = (in.mode & kSignedD) != 0;
  const std::int32_t low = is_signed ? -(1 << (bits - 1)) : 0;
  const std::int32_t high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  each_lane(lanes, [&](int l) {
    std::uint32_t packed = 0, total = c[l];
    for (int shift = 0; shift < 32; shift += bits) {
      std::int32_t result = combine(part_of(a[l], shift, bits, (in.mode & kSignedA) != 0),
                                    part_of(b[l], shift, bits, (in.mode & kSignedB) != 0));
      if ((in.mode & kSaturates) != 0) result = std::clamp(result, low, high);
      packed |= (static_cast<std::uint32_t>(result) & ((1U << bits) - 1)) << shift;
      total += static_cast<std::uint32_t>(result);
    }
    d[l] = (in.mode & kAdds) != 0 ? total : packed;
  });
}

void decode_operands(InstructionReader& reader, Combine combine, int bytes, std::uint8_t mode) {
  if (reader.take("sat")) mode |= kSaturates;
  if (reader.take("add")) mode |= kAdds;
  reader.finish();
  reader.expect_operands(4);
  reader.destination(reader.operand(0), PtxType::b32);
  for (std::size_t i = 1; i < 4; ++i) reader.source(reader.operand(i), PtxType::b32);
  reader.out().mode = mode;
  reader.out().element_bytes = static_cast<std::uint8_t>(bytes);
  reader.out().immediate = reinterpret_cast<std::int64_t>(combine);
  reader.out().execute = &execute_parts;
}

bool take_signedness(InstructionReader& reader) {
  const PtxType type = reader.type();
  if (type != PtxType::s32 && type != PtxType::u32) reader.refuse(fmt::format("parts of .{}", name(type)));
  return is_signed(type);
}

template <Combine kCombine, int kBytes>
void decode_parts(InstructionReader& reader) {
  std::uint8_t mode = take_signedness(reader) ? kSignedD : std::uint8_t{0};
  if (take_signedness(reader)) mode |= kSignedA;
  if (take_signedness(reader)) mode |= kSignedB;
  decode_operands(reader, kCombine, kBytes, mode);
}

template <int kBytes>
void decode_set(InstructionReader& reader) {
  static constexpr Combine kComparisons[] = {equal, not_equal, less, less_or_equal, greater, greater_or_equal};
  std::uint8_t mode = take_signedness(reader) ? kSignedA : std::uint8_t{0};
  if (take_signedness(reader)) mode |= kSignedB;
  const int comparison = reader.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (comparison < 0) reader.refuse("this comparison");
  decode_operands(reader, kComparisons[comparison], kBytes, mode);
}

constexpr std::array kOpcodes = {
    OpcodeRow{"vadd2", OperandClass::any, decode_parts<sum, 2>},
    OpcodeRow{"vadd4", OperandClass::any, decode_parts<sum, 1>},
    OpcodeRow{"vsub2", OperandClass::any, decode_parts<difference, 2>},
    OpcodeRow{"vsub4", OperandClass::any, decode_parts<difference, 1>},
    OpcodeRow{"vavrg2", OperandClass::any, decode_parts<average, 2>},
    OpcodeRow{"vavrg4", OperandClass::any, decode_parts<average, 1>},
    OpcodeRow{"vabsdiff2", OperandClass::any, decode_parts<distance, 2>},
    OpcodeRow{"vabsdiff4", OperandClass::any, decode_parts<distance, 1>},
    OpcodeRow{"vmin2", OperandClass::any, decode_parts<least, 2>},
    OpcodeRow{"vmin4", OperandClass::any, decode_parts<least, 1>},
    OpcodeRow{"vmax2", OperandClass::any, decode_parts<most, 2>},
    OpcodeRow{"vmax4", OperandClass::any, decode_parts<most, 1>},
    OpcodeRow{"vset2", OperandClass::any, decode_set<2>},
    OpcodeRow{"vset4", OperandClass::any, decode_set<1>},
};

}  // namespace

std::span<const OpcodeRow> video_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
