// Tracks the registers that wgmma groups use, and checks the operands of other instructions against them.
#include "tilewright/emulator/register_hazards.hpp"

#include <algorithm>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

RegisterHazards::RegisterHazards(const Program& program)
    : in_flight_(index_of(static_cast<Slot>(program.register_bytes)) + 1),
      issued_by_(in_flight_.size()),
      written_at_(in_flight_.size()) {}

void RegisterHazards::reset() {
  std::ranges::fill(in_flight_, 0U);
  std::ranges::fill(written_at_, std::uint64_t{0});
  in_flight_registers_.clear();
  fenced_at_ = 0;
}

void RegisterHazards::report(Warp& warp, const Instruction& instruction, std::size_t at, bool writes) const {
  warp.report(Severity::error, FindingKind::wgmma_register_in_flight, instruction, 0, 0, [&] {
    return fmt::format("{} of a register that the wgmma at {} still {}: no wgmma.wait_group has waited for it",
                       writes ? "write" : "read", warp.cta().describe_location(issued_by_[at]),
                       (in_flight_[at] & kAccumulator) != 0 ? "accumulates in" : "reads");
  });
}

void RegisterHazards::copy(Warp& warp, const Instruction& mov) {
  const std::size_t to = index_of(mov.op[0]);
  const std::size_t from = index_of(mov.op[1]);
  if (in_flight_[to] != 0 && in_flight_[from] == 0) report(warp, mov, to, true);
  if (in_flight_[from] != 0 && in_flight_[to] == 0) in_flight_registers_.push_back(to);
  in_flight_[to] = in_flight_[from];
  issued_by_[to] = issued_by_[from];
  written_at_[to] = written_at_[from];
}

void RegisterHazards::check(Warp& warp, const Instruction& instruction) {
  if (instruction.registers == RegisterUse::wgmma) return;
  if (instruction.registers == RegisterUse::copies) return copy(warp, instruction);
  for (std::uint32_t i = 0; i < instruction.operand_count; ++i) {
    const std::size_t at = index_of(instruction.op[i]);
    const bool writes = i < 32 && ((instruction.written >> i) & 1) != 0;
    if (writes) written_at_[at] = warp.steps();
    if (in_flight_[at] != 0) report(warp, instruction, at, writes);
  }
}

void RegisterHazards::retire(std::uint32_t group) {
  std::erase_if(in_flight_registers_, [&](std::size_t at) {
    const bool retires = (in_flight_[at] & ~kAccumulator) <= group;
    if (retires) in_flight_[at] = 0;
    return retires;
  });
}

}  // namespace tilewright::emulator
