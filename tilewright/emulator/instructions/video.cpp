// SIMD video instructions on two halves or four bytes of 32 bits: vadd2, vadd4, vsub, vavrg, vabsdiff, vmin, vmax,
// vset.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

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

/// What is done with the parts of the operands, and with the results.
struct PartsOperation {
  Combine combine = nullptr;
  int bits = 16;  // of a part
  bool signed_d = false, signed_a = false, signed_b = false;
  bool saturates = false;  // each result is clamped to its part of d, else cut
  bool adds = false;       // the sum of the results and c is d
  // By part of d: the parts of the 64 bits {b, a} that are combined, and whether the result is used; if not, d has the
  // part of c.
  std::array<std::uint8_t, 4> a{}, b{};
  std::array<bool, 4> is_used{};
};

std::int32_t part_of(std::uint64_t words, int part, int bits, bool is_signed) {
  const auto value = static_cast<std::int32_t>(words >> (part * bits) & ((1U << bits) - 1));
  const bool negative = is_signed && (value >> (bits - 1)) != 0;
  return value - (negative ? 1 << bits : 0);
}

/// Operands: d, a, b, c. table: the PartsOperation.
void execute_parts(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& how = *static_cast<const PartsOperation*>(in.table);
  const int bits = how.bits;
  const std::uint32_t ones = (1U << bits) - 1;
  const std::int32_t low = how.signed_d ? -(1 << (bits - 1)) : 0;
  const std::int32_t high = how.signed_d ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::uint32_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  each_lane(lanes, [&](int l) {
    const std::uint64_t words = std::uint64_t{b[l]} << 32 | a[l];
    std::uint32_t merged = c[l], total = c[l];
    for (int part = 0; part < 32 / bits; ++part) {
      const auto i = static_cast<std::size_t>(part);
      if (!how.is_used[i]) continue;
      std::int32_t result =
          how.combine(part_of(words, how.a[i], bits, how.signed_a), part_of(words, how.b[i], bits, how.signed_b));
      if (how.saturates) result = std::clamp(result, low, high);
      merged = (merged & ~(ones << (part * bits))) | (static_cast<std::uint32_t>(result) & ones) << (part * bits);
      total += static_cast<std::uint32_t>(result);
    }
    d[l] = how.adds ? total : merged;
  });
}

/// The numbers of parts in a selection such as .h10 or .b3210, from the lowest part on, for which the last stands.
std::vector<std::uint8_t> selected_parts(InstructionReader& reader, const Operand& operand, int bits, int limit) {
  std::vector<std::uint8_t> parts;
  const std::string_view text = operand.part;
  if (text.front() != (bits == 16 ? 'h' : 'b')) reader.refuse(fmt::format("part .{} of a register", text));
  for (std::size_t i = text.size() - 1; i > 0; --i) {
    if (text[i] < '0' || text[i] - '0' >= limit) reader.refuse(fmt::format("part .{} of a register", text));
    parts.push_back(static_cast<std::uint8_t>(text[i] - '0'));
  }
  return parts;
}

void select(InstructionReader& reader, const Operand& operand, int bits, int first,
            std::array<std::uint8_t, 4>& parts) {
  const auto count = static_cast<std::size_t>(32 / bits);
  for (std::size_t i = 0; i < count; ++i) parts[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(first) + i);
  if (operand.part.empty()) return;
  const std::vector<std::uint8_t> selected = selected_parts(reader, operand, bits, 64 / bits);
  if (selected.size() != count) reader.refuse(fmt::format("part .{} of a register", operand.part));
  for (std::size_t i = 0; i < count; ++i) parts[i] = selected[i];
}

/// The operand without the selection of parts.
Operand whole(Operand operand) {
  operand.part = {};
  return operand;
}

void decode_operands(InstructionReader& reader, PartsOperation how) {
  how.saturates = reader.take("sat");
  how.adds = reader.take("add");
  reader.finish();
  reader.expect_operands(4);
  const Operand& d = reader.operand(0);
  how.is_used.fill(d.part.empty());
  if (!d.part.empty()) {
    for (const std::uint8_t part : selected_parts(reader, d, how.bits, 32 / how.bits)) how.is_used[part] = true;
  }
  select(reader, reader.operand(1), how.bits, 0, how.a);
  select(reader, reader.operand(2), how.bits, 32 / how.bits, how.b);
  reader.destination(whole(d), PtxType::b32);
  reader.source(whole(reader.operand(1)), PtxType::b32);
  reader.source(whole(reader.operand(2)), PtxType::b32);
  reader.source(reader.operand(3), PtxType::b32);
  reader.out().table = reader.keep(std::make_shared<PartsOperation>(how));
  reader.out().execute = &execute_parts;
}

bool take_signedness(InstructionReader& reader) {
  const PtxType type = reader.type();
  if (type != PtxType::s32 && type != PtxType::u32) reader.refuse(fmt::format("parts of .{}", name(type)));
  return is_signed(type);
}

template <Combine kCombine, int kBytes>
void decode_parts(InstructionReader& reader) {
  PartsOperation how;
  how.combine = kCombine;
  how.bits = 8 * kBytes;
  how.signed_d = take_signedness(reader);
  how.signed_a = take_signedness(reader);
  how.signed_b = take_signedness(reader);
  decode_operands(reader, how);
}

template <int kBytes>
void decode_set(InstructionReader& reader) {
  static constexpr Combine kComparisons[] = {equal, not_equal, less, less_or_equal, greater, greater_or_equal};
  PartsOperation how;
  how.bits = 8 * kBytes;
  how.signed_a = take_signedness(reader);
  how.signed_b = take_signedness(reader);
  const int comparison = reader.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (comparison < 0) reader.refuse("this comparison");
  how.combine = kComparisons[comparison];
  decode_operands(reader, how);
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
