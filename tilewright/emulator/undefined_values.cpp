#include "tilewright/emulator/undefined_values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {
namespace {

/// Origins that are kept; later ones share the last, which makes their report less exact.
constexpr std::size_t kMaxOrigins = 1024;

/// Instructions that do something with their operands which outlives the registers. Loads and stores are not among
/// them: their handlers know which state space they access.
bool uses_operands(std::string_view opcode) {
  static constexpr std::array<std::string_view, 15> kPrefixes{"atom", "red.", "bar.",      "barrier", "mbarrier",
                                                              "cp.",  "mma",  "wgmma",     "mapa",    "tensormap",
                                                              "brx",  "call", "nanosleep", "fence",   "st.async"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return opcode.starts_with(prefix); });
}

bool is_access(std::string_view opcode) {
  return opcode.starts_with("ld") || opcode.starts_with("stmatrix") ||
         (opcode.starts_with("st.") && !opcode.starts_with("st.async"));
}

}  // namespace

void UndefinedValues::clear() {
  registers_.clear();
  origins_.clear();
}

std::uint32_t UndefinedValues::new_origin(FindingKind kind, std::uint32_t code, std::vector<std::string> details) {
  if (registers_.empty()) origins_.clear();
  if (origins_.size() >= kMaxOrigins) return static_cast<std::uint32_t>(kMaxOrigins - 1);
  origins_.push_back({kind, code, std::move(details)});
  return static_cast<std::uint32_t>(origins_.size() - 1);
}

void UndefinedValues::define(Slot slot, Mask lanes, Mask undefined, std::uint32_t origin, Bytes bytes) {
  const auto found = registers_.find(slot);
  const Mask before = found == registers_.end() ? 0 : found->second.lanes & ~lanes;
  if (bytes == 0) undefined = 0;
  const Mask after = before | (undefined & lanes);
  if (after == 0) {
    if (found != registers_.end()) registers_.erase(found);
    return;
  }
  Marks& marks = registers_[slot];
  marks.lanes = after;
  if (before == 0) marks.bytes = 0;
  if ((undefined & lanes) == 0) return;
  marks.bytes |= bytes;
  marks.origin = origin;
}

UndefinedValues::Bytes UndefinedValues::undefined_bytes(Slot slot) const {
  const auto found = registers_.find(slot);
  return found == registers_.end() ? 0 : found->second.bytes;
}

std::pair<Mask, std::uint32_t> UndefinedValues::undefined(Slot slot) const {
  const auto found = registers_.find(slot);
  return found == registers_.end() ? std::pair<Mask, std::uint32_t>()
                                   : std::pair(found->second.lanes, found->second.origin);
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

UndefinedValues::Bytes UndefinedValues::bytes_of_result(Warp& warp, const Instruction& instruction,
                                                        std::string_view opcode, std::size_t written) const {
  const auto slots = std::span(instruction.op, instruction.operand_count);
  const auto bytes = [&](std::size_t i) { return undefined_bytes(slots[i]); };
  const auto low = [](std::uint32_t count) { return (Bytes{1} << count) - 1; };
  // "mov.b64", "shr.u64": the type at the end.
  const auto width_of = [](std::string_view type) -> std::uint32_t {
    return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : type.ends_with("8") ? 1 : 0;
  };
  const bool is_integer = opcode.find('f', opcode.find('.')) == opcode.npos;
  const auto constant = [&](std::size_t i) { return warp.reg<std::uint32_t>(slots[i])[0]; };
  if (opcode.starts_with("mov.b") && instruction.elements > 1) {
    const std::uint32_t part = instruction.element_bytes;
    const bool packs = written == instruction.elements;
    if (!packs) return bytes(instruction.elements) >> (written * part) & low(part);
    Bytes all = 0;
    for (std::uint32_t i = 0; i < instruction.elements; ++i) all |= (bytes(i) & low(part)) << (i * part);
    return all;
  }
  const bool is_binary = slots.size() == 3;
  if ((opcode.starts_with("mov.") && slots.size() == 2) || opcode.starts_with("selp"))
    return bytes(1) | bytes(2 % slots.size());
  if (is_binary && (opcode.starts_with("or.b") || opcode.starts_with("xor.b"))) return bytes(1) | bytes(2);
  if (is_binary && opcode.starts_with("and.b")) {
    Bytes all = bytes(1) | bytes(2);
    const auto* const a = warp.reg<std::uint8_t>(slots[1]);
    const auto* const b = warp.reg<std::uint8_t>(slots[2]);
    const std::uint32_t width = width_of(opcode);
    for (std::uint32_t i = 0; i < width; ++i) {
      // A byte that is zero in all lanes, and defined.
      const auto clears = [&](const std::uint8_t* values, Bytes undefined) {
        if ((undefined >> i & 1) != 0) return false;
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
          if (values[lane * width + i] != 0) return false;
        }
        return true;
      };
      if (clears(a, bytes(1)) || clears(b, bytes(2))) all &= ~(Bytes{1} << i);
    }
    return all;
  }
  if (is_binary && bytes(2) == 0 && (opcode.starts_with("shr.") || opcode.starts_with("shl."))) {
    const std::uint32_t width = width_of(opcode), count = constant(2);
    const auto* const counts = warp.reg<std::uint32_t>(slots[2]);
    if (!std::all_of(counts, counts + kWarpSize, [&](std::uint32_t each) { return each == count; })) return kAllBytes;
    if (count >= 8 * width) return opcode.starts_with("shr.s") ? bytes(1) : 0;
    const Bytes from = bytes(1) & low(width);
    if (opcode.starts_with("shl.")) return (from << (count / 8) | from << ((count + 7) / 8)) & low(width);
    if (opcode.starts_with("shr.s") && (from >> (width - 1) & 1) != 0) return kAllBytes;
    return from >> (count / 8) | from >> ((count + 7) / 8);
  }
  if (opcode.starts_with("cvt.") && is_integer && slots.size() >= 2) {
    const std::size_t dot = opcode.rfind('.');
    const std::uint32_t from = width_of(opcode.substr(dot)), to = width_of(opcode.substr(0, dot));
    if (from == 0 || to == 0 || opcode.find("sat") != opcode.npos) return kAllBytes;
    const Bytes read = bytes(1) & low(std::min(from, to));
    const bool extends = to > from && opcode[dot + 1] == 's' && (read >> (from - 1) & 1) != 0;
    return extends ? kAllBytes : read;
  }
  return kAllBytes;
}

void UndefinedValues::step(Warp& warp, const Instruction& instruction, Mask lanes, Mask guarded) {
  const std::string_view opcode = warp.program().origins[warp.code_index(instruction)]->opcode;
  const auto slots = std::span(instruction.op, instruction.operand_count);
  const auto is_written = [&](std::size_t i) { return i < 32 && ((instruction.written >> i) & 1) != 0; };
  if (instruction.guard != kNone) {
    const auto [guard, origin] = undefined(instruction.guard);
    const Mask decided = guard & guarded;
    if (decided != 0)
      return report(warp, instruction, decided, origin, "decides which threads execute the instruction");
  }
  if (lanes == 0) return;
  Mask mask = 0;
  std::uint32_t origin = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (is_written(i)) continue;
    const auto [marked, from] = undefined(slots[i]);
    if ((marked & lanes) == 0) continue;
    mask |= marked & lanes;
    origin = from;
  }
  if (is_access(opcode)) {
    const auto [marked, from] = undefined(slots[instruction.address[0].operand]);
    if ((marked & lanes) != 0) return report(warp, instruction, marked & lanes, from, "is an address");
    mask = 0;  // the handler marks what it loads, and follows what it stores
  } else if (mask != 0 && uses_operands(opcode)) {
    return report(warp, instruction, mask, origin, fmt::format("is an operand of {}", opcode));
  }
  if (mask != 0) {
    const auto marks = [&](std::size_t i) { return undefined(slots[i]).first; };
    if (opcode.starts_with("selp")) {
      const Mask chosen = warp.predicate(slots[3]) ^ warp.predicate(slots[4]);
      const Mask unknown = marks(3);
      mask &= unknown | (chosen & marks(1)) | (~chosen & marks(2));
    } else if (opcode == "and.pred" || opcode == "or.pred") {
      const bool conjunction = opcode[0] == 'a';
      const Mask a = warp.predicate(slots[1]) ^ warp.predicate(slots[2]);
      const Mask b = warp.predicate(slots[3]) ^ warp.predicate(slots[4]);
      mask &= ~((conjunction ? ~a : a) & ~marks(1)) & ~((conjunction ? ~b : b) & ~marks(3));
    } else if (opcode.starts_with("setp") && slots.size() > 5 && instruction.mode != 0) {
      const Mask with = warp.predicate(slots[4]) ^ warp.predicate(slots[5]);
      if (opcode.find(".and.") != opcode.npos) mask &= with | marks(4);
      if (opcode.find(".or.") != opcode.npos) mask &= ~with | marks(4);
    } else if (opcode.starts_with("vote") || opcode.starts_with("match") || opcode.starts_with("redux")) {
      mask = lanes;
    } else if (opcode.starts_with("shfl")) {
      return;  // the handler moves the marks between lanes
    }
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!is_written(i)) continue;
    define(slots[i], lanes, mask, origin, mask == 0 ? kAllBytes : bytes_of_result(warp, instruction, opcode, i));
  }
}

}  // namespace tilewright::emulator
