#include "tilewright/emulator/undefined_values.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {
namespace {

/// Origins that are kept; later ones share the last, which makes their report less exact.
constexpr std::size_t kMaxOrigins = 1024;

std::span<const Slot> operands_of(const Instruction& instruction) {
  return {instruction.op, instruction.operand_count};
}

bool is_written(const Instruction& instruction, std::size_t i) {
  return i < 32 && ((instruction.written >> i) & 1) != 0;
}

/// A lane's bits of a register of up to 8 bytes per lane.
std::uint64_t lane_bits(const std::byte* registers, std::size_t width, int lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, registers + static_cast<std::size_t>(lane) * width, std::min(width, sizeof(bits)));
  return bits;
}

void set_lane_bits(UndefinedBits& bits, std::size_t width, int lane, std::uint64_t value) {
  std::memcpy(bits.at.data() + static_cast<std::size_t>(lane) * width, &value, std::min(width, sizeof(value)));
}

void set_lane(UndefinedBits& bits, std::size_t width, int lane) {
  std::memset(bits.at.data() + static_cast<std::size_t>(lane) * width, 0xff, width);
}

/// The truth table of an instruction that combines bits: bit 4 * a + 2 * b + c is the result.
std::uint8_t truth_table(const Instruction& instruction) {
  constexpr std::uint8_t kA = 0xf0, kB = 0xcc;
  switch (instruction.flow) {
    case ValueFlow::logic_and:
      return kA & kB;
    case ValueFlow::logic_or:
      return kA | kB;
    case ValueFlow::logic_xor:
      return kA ^ kB;
    case ValueFlow::logic_not:
      return static_cast<std::uint8_t>(~kA);
    default:
      return static_cast<std::uint8_t>(instruction.immediate);
  }
}

}  // namespace

void UndefinedValues::clear() {
  registers_.clear();
  origins_.clear();
}

std::uint32_t UndefinedValues::new_origin(FindingKind kind, std::uint32_t code, std::vector<std::string> details,
                                          std::vector<std::uint64_t> addresses) {
  if (registers_.empty()) origins_.clear();
  if (origins_.size() >= kMaxOrigins) return static_cast<std::uint32_t>(kMaxOrigins - 1);
  origins_.push_back({kind, code, std::move(details), std::move(addresses)});
  return static_cast<std::uint32_t>(origins_.size() - 1);
}

bool UndefinedValues::has_loaded(int lane, std::uint64_t address) const {
  return std::ranges::any_of(origins_, [&](const Origin& origin) {
    return !origin.addresses.empty() && origin.addresses[static_cast<std::size_t>(lane)] == address;
  });
}

void UndefinedValues::define(Slot slot, Mask lanes, Mask undefined, std::uint32_t origin) {
  undefined &= lanes;
  const auto found = registers_.find(slot);
  const Mask before = found == registers_.end() ? 0 : found->second.lanes & ~lanes;
  if ((before | undefined) == 0) {
    if (found != registers_.end()) registers_.erase(found);
    return;
  }
  Marks& marks = registers_[slot];
  marks.lanes = before | undefined;
  if (undefined != 0) {
    marks.origin = origin;
    marks.is_copy = false;
  }
  const std::size_t width = program_.width(slot);
  std::byte* const bits = marks.bits.at.data();
  for (Mask left = lanes; left != 0 && width != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::memset(bits + static_cast<std::size_t>(lane) * width, ((undefined >> lane) & 1) != 0 ? 0xff : 0, width);
  }
}

void UndefinedValues::define(Slot slot, Mask lanes, const UndefinedBits& bits, std::uint32_t origin, bool is_copy) {
  const std::size_t width = program_.width(slot);
  Mask undefined = 0;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::byte* const of_lane = bits.at.data() + static_cast<std::size_t>(lane) * width;
    if (std::any_of(of_lane, of_lane + width, [](std::byte byte) { return byte != std::byte{0}; }))
      undefined |= Mask{1} << lane;
  }
  define(slot, lanes, undefined, origin);
  if (undefined == 0) return;
  Marks& marks = registers_[slot];
  marks.is_copy = is_copy;
  for (; undefined != 0; undefined &= undefined - 1) {
    const auto at = static_cast<std::size_t>(std::countr_zero(undefined)) * width;
    std::memcpy(marks.bits.at.data() + at, bits.at.data() + at, width);
  }
}

std::pair<Mask, std::uint32_t> UndefinedValues::undefined(Slot slot) const {
  const auto found = registers_.find(slot);
  return found == registers_.end() ? std::pair<Mask, std::uint32_t>()
                                   : std::pair(found->second.lanes, found->second.origin);
}

bool UndefinedValues::is_copy(Slot slot) const {
  const auto found = registers_.find(slot);
  return found != registers_.end() && found->second.is_copy;
}

const UndefinedBits& UndefinedValues::bits(Slot slot) const {
  static constexpr UndefinedBits kNoBits{};
  const auto found = registers_.find(slot);
  return found == registers_.end() ? kNoBits : found->second.bits;
}

void UndefinedValues::report(Warp& warp, const Instruction& instruction, Mask lanes, std::uint32_t origin,
                             std::string_view use) {
  const Origin from = origins_[origin];
  int lane = std::countr_zero(lanes);
  if (from.details[static_cast<std::size_t>(lane)].empty()) {  // the value came from another lane
    const auto given = std::ranges::find_if(from.details, [](const std::string& detail) { return !detail.empty(); });
    if (given != from.details.end()) lane = static_cast<int>(given - from.details.begin());
  }
  const std::string note =
      fmt::format("the value {} at {}", use, warp.cta().describe_location(warp.code_index(instruction)));
  std::erase_if(registers_, [&](const auto& each) { return each.second.origin == origin; });
  warp.cta().defer_finding(from.kind, from.code, warp.index() * kWarpSize + lane, 0,
                           from.details[static_cast<std::size_t>(lane)] + ": " + note);
}

// Results of instructions with undefined sources --------------------------------------------------------------------

/// The undefined bits of the result are the result of the instruction on the undefined bits of its sources: a bit of
/// the result is undefined if the bit that it is a copy of is.
void UndefinedValues::follow_moves(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources,
                                   std::size_t controls) {
  const std::span<const Slot> operands = operands_of(instruction);
  const std::span<const Slot> positions = operands.last(controls);
  Mask unknown = 0;  // lanes in which undefined bits decide which bits are moved
  for (const Slot slot : positions) unknown |= undefined(slot).first & lanes;
  bool copies = instruction.registers == RegisterUse::copies || instruction.elements > 1;  // a mov
  std::vector<std::pair<Slot, UndefinedBits>> saved;                                       // the sources' values
  for (std::size_t i = 0; i + controls < operands.size(); ++i) {
    if (is_written(instruction, i)) continue;
    // A register that is a position, too, cannot have the undefined bits in the place of its value.
    if (std::ranges::find(positions, operands[i]) != positions.end()) unknown = sources.lanes;
    if (undefined(operands[i]).first != 0) copies = copies && is_copy(operands[i]);
    if (std::ranges::find(saved, operands[i], &std::pair<Slot, UndefinedBits>::first) != saved.end()) continue;
    const std::size_t bytes = program_.width(operands[i]) * kWarpSize;
    std::byte* const registers = warp.reg<std::byte>(operands[i]);
    auto& [slot, values] = saved.emplace_back(operands[i], UndefinedBits{});
    std::memcpy(values.at.data(), registers, bytes);
    std::memcpy(registers, bits(slot).at.data(), bytes);
  }
  instruction.execute(warp, instruction, lanes);
  std::vector<std::pair<Slot, UndefinedBits>> results;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_written(instruction, i)) continue;
    auto& [slot, result] = results.emplace_back(operands[i], UndefinedBits{});
    std::memcpy(result.at.data(), warp.reg<std::byte>(slot), program_.width(slot) * kWarpSize);
    for (Mask left = unknown; left != 0; left &= left - 1)
      set_lane(result, program_.width(slot), std::countr_zero(left));
  }
  for (const auto& [slot, values] : saved)
    std::memcpy(warp.reg<std::byte>(slot), values.at.data(), program_.width(slot) * kWarpSize);
  for (const auto& [slot, result] : results) define(slot, lanes, result, sources.origin, copies);
}

/// A bit of the result is undefined if it is 0 for some values of the undefined bits of the sources, and 1 for others.
void UndefinedValues::follow_logic(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources,
                                   std::uint8_t truth_table) {
  constexpr std::size_t kSources = 3;
  static constexpr UndefinedBits kZeros{};
  const std::span<const Slot> operands = operands_of(instruction);
  const std::size_t bytes = program_.width(operands[0]) * kWarpSize;
  const std::byte* values[kSources];
  const std::byte* undefined_bits[kSources];
  for (std::size_t i = 0; i < kSources; ++i) {
    const bool exists = i + 1 < operands.size();
    values[i] = exists ? warp.reg<std::byte>(operands[i + 1]) : kZeros.at.data();
    undefined_bits[i] = exists ? bits(operands[i + 1]).at.data() : kZeros.at.data();
  }
  UndefinedBits can_be_zero, can_be_one;
  for (unsigned row = 0; row < 8; ++row) {
    UndefinedBits& reached = ((truth_table >> row) & 1) != 0 ? can_be_one : can_be_zero;
    for (std::size_t at = 0; at < bytes; ++at) {
      std::byte in_row{0xff};
      for (std::size_t i = 0; i < kSources; ++i) {
        const bool is_one = ((row >> (kSources - 1 - i)) & 1) != 0;
        in_row &= (is_one ? values[i][at] : ~values[i][at]) | undefined_bits[i][at];
      }
      reached.at[at] |= in_row;
    }
  }
  for (std::size_t at = 0; at < bytes; ++at) can_be_one.at[at] &= can_be_zero.at[at];
  define(operands[0], lanes, can_be_one, sources.origin);
}

/// The bits from the lowest undefined one on are undefined.
void UndefinedValues::follow_carries(const Instruction& instruction, Mask lanes, const Sources& sources) {
  const std::span<const Slot> operands = operands_of(instruction);
  UndefinedBits result;
  for (Mask left = sources.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::uint64_t all = 0;
    for (const Slot slot : operands.subspan(1)) all |= lane_bits(bits(slot).at.data(), program_.width(slot), lane);
    set_lane_bits(result, program_.width(operands[0]), lane, all | (~all + 1));
  }
  define(operands[0], lanes, result, sources.origin);
}

void UndefinedValues::follow_halves(const Instruction& instruction, Mask lanes, const Sources& sources) {
  const std::span<const Slot> operands = operands_of(instruction);
  const std::size_t width = program_.width(operands[0]);
  UndefinedBits result;
  for (Mask left = sources.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::uint64_t all = 0;
    for (const Slot slot : operands.subspan(1)) all |= lane_bits(bits(slot).at.data(), program_.width(slot), lane);
    const std::uint64_t low = (std::uint64_t{1} << (4 * width)) - 1;
    set_lane_bits(result, width, lane, ((all & low) != 0 ? low : 0) | ((all & ~low) != 0 ? ~low : 0));
  }
  define(operands[0], lanes, result, sources.origin);
}

/// selp. Operands: d, a, b, the predicate and the mask to xor it with.
void UndefinedValues::follow_selection(Warp& warp, const Instruction& instruction, Mask lanes, const Sources& sources) {
  const Slot* const op = instruction.op;
  const std::size_t width = program_.width(op[0]);
  const Mask chosen = warp.predicate(op[3]) ^ warp.predicate(op[4]);
  const Mask unknown = undefined(op[3]).first;
  const auto bytes_of = [&](const std::byte* registers, int lane) {
    return registers + static_cast<std::size_t>(lane) * width;
  };
  const std::byte* const a = bits(op[1]).at.data();
  const std::byte* const b = bits(op[2]).at.data();
  UndefinedBits result;
  for (Mask left = sources.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::byte* const to = result.at.data() + static_cast<std::size_t>(lane) * width;
    std::memcpy(to, bytes_of(((chosen >> lane) & 1) != 0 ? a : b, lane), width);
    if (((unknown >> lane) & 1) == 0) continue;
    const std::byte* const of_a = bytes_of(warp.reg<std::byte>(op[1]), lane);
    const std::byte* const of_b = bytes_of(warp.reg<std::byte>(op[2]), lane);
    for (std::size_t i = 0; i < width; ++i) to[i] = bytes_of(a, lane)[i] | bytes_of(b, lane)[i] | (of_a[i] ^ of_b[i]);
  }
  define(op[0], lanes, result, sources.origin);
}

bool UndefinedValues::is_decided(Warp& warp, const Instruction& instruction, int lane) const {
  const std::string_view opcode = warp.program().origins[warp.code_index(instruction)]->opcode;
  const Slot a = instruction.op[2], b = instruction.op[3];
  const std::size_t width = program_.width(a);
  if (width == 0 || width > sizeof(std::uint64_t)) return false;
  const std::uint64_t of_a = lane_bits(bits(a).at.data(), width, lane);
  const std::uint64_t of_b = lane_bits(bits(b).at.data(), width, lane);
  std::uint64_t x = lane_bits(warp.reg<std::byte>(a), width, lane);
  std::uint64_t y = lane_bits(warp.reg<std::byte>(b), width, lane);
  const std::size_t first = opcode.find('.') + 1;
  const std::string_view comparison = opcode.substr(first, 2);
  if (comparison == "eq" || comparison == "ne") return ((x ^ y) & ~of_a & ~of_b) != 0;
  if (opcode[opcode.rfind('.') + 1] == 's') {  // with the highest bit inverted, they compare as unsigned numbers
    const std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
    x ^= sign;
    y ^= sign;
  }
  const std::uint64_t least_x = x & ~of_a, most_x = x | of_a, least_y = y & ~of_b, most_y = y | of_b;
  if (comparison == "lt" || comparison == "lo" || comparison == "ge" || comparison == "hs")
    return most_x < least_y || least_x >= most_y;
  return least_x > most_y || most_x <= least_y;
}

Mask UndefinedValues::undecided(Warp& warp, const Instruction& instruction, const Sources& sources) const {
  const Slot* const op = instruction.op;
  const auto marks = [&](std::size_t i) { return undefined(op[i]).first; };
  const auto holds = [&](std::size_t i) { return warp.predicate(op[i]) ^ warp.predicate(op[i + 1]); };
  Mask mask = sources.lanes;
  if (instruction.flow == ValueFlow::conjunction || instruction.flow == ValueFlow::disjunction) {
    const bool conjunction = instruction.flow == ValueFlow::conjunction;
    const Mask a = holds(1), b = holds(3);
    return mask & ~((conjunction ? ~a : a) & ~marks(1)) & ~((conjunction ? ~b : b) & ~marks(3));
  }
  const bool is_combined = instruction.operand_count > 5 && instruction.mode != 0;
  if (instruction.flow == ValueFlow::compare) {
    for (Mask left = mask; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (is_decided(warp, instruction, lane)) mask &= ~(Mask{1} << lane);
    }
    if (is_combined) mask |= sources.lanes & marks(4);
  }
  if (!is_combined) return mask;
  const std::string_view opcode = warp.program().origins[warp.code_index(instruction)]->opcode;
  if (opcode.find(".and.") != std::string_view::npos) mask &= holds(4) | marks(4);
  if (opcode.find(".or.") != std::string_view::npos) mask &= ~holds(4) | marks(4);
  return mask;
}

void UndefinedValues::step(Warp& warp, const Instruction& instruction, Mask lanes, Mask guarded) {
  const std::span<const Slot> operands = operands_of(instruction);
  if (instruction.guard != kNone) {
    const auto [guard, origin] = undefined(instruction.guard);
    const Mask decided = guard & guarded;
    if (decided != 0)
      return report(warp, instruction, decided, origin, "decides which threads execute the instruction");
  }
  if (lanes == 0) return;
  Sources sources;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (is_written(instruction, i)) continue;
    const auto [marked, from] = undefined(operands[i]);
    if ((marked & lanes) == 0) continue;
    sources.lanes |= marked & lanes;
    sources.origin = from;
  }
  Mask result = sources.lanes;
  if (instruction.flow == ValueFlow::access) {
    const auto [marked, from] = undefined(operands[instruction.address[0].operand]);
    if ((marked & lanes) != 0) return report(warp, instruction, marked & lanes, from, "is an address");
    result = 0;  // the handler marks what it loads, and follows what it stores
  } else if (sources.lanes != 0) {
    switch (instruction.flow) {
      case ValueFlow::uses:
        return report(warp, instruction, sources.lanes, sources.origin,
                      fmt::format("is an operand of {}", warp.program().origins[warp.code_index(instruction)]->opcode));
      case ValueFlow::shuffle:
        return;
      case ValueFlow::moves:
        return follow_moves(warp, instruction, lanes, sources, 0);
      case ValueFlow::moves_by_last:
        return follow_moves(warp, instruction, lanes, sources, 1);
      case ValueFlow::moves_by_last_two:
        return follow_moves(warp, instruction, lanes, sources, 2);
      case ValueFlow::logic_and:
      case ValueFlow::logic_or:
      case ValueFlow::logic_xor:
      case ValueFlow::logic_not:
      case ValueFlow::logic_table:
        return follow_logic(warp, instruction, lanes, sources, truth_table(instruction));
      case ValueFlow::carries:
        return follow_carries(instruction, lanes, sources);
      case ValueFlow::halves:
        return follow_halves(instruction, lanes, sources);
      case ValueFlow::select:
        return follow_selection(warp, instruction, lanes, sources);
      case ValueFlow::conjunction:
      case ValueFlow::disjunction:
      case ValueFlow::compare:
      case ValueFlow::combine:
        result = undecided(warp, instruction, sources);
        break;
      case ValueFlow::warp_wide:
        result = lanes;
        break;
      case ValueFlow::whole:
      case ValueFlow::access:
        break;
    }
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (is_written(instruction, i)) define(operands[i], lanes, result, sources.origin);
  }
}

}  // namespace tilewright::emulator
