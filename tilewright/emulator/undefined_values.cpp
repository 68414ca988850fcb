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

void UndefinedValues::define(Slot slot, Mask lanes, Mask undefined, std::uint32_t origin) {
  const auto found = registers_.find(slot);
  const Mask before = found == registers_.end() ? 0 : found->second.lanes & ~lanes;
  const Mask after = before | (undefined & lanes);
  if (after == 0) {
    if (found != registers_.end()) registers_.erase(found);
    return;
  }
  Marks& marks = registers_[slot];
  marks.lanes = after;
  if ((undefined & lanes) != 0) marks.origin = origin;
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
    if (is_written(i)) define(slots[i], lanes, mask, origin);
  }
}

}  // namespace tilewright::emulator
