#include "tilewright/emulator/unused_loads.hpp"

#include <algorithm>

#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

UnusedLoads::UnusedLoads(const Program& program)
    : loaded_at_(index_of(static_cast<Slot>(program.register_bytes)) + 1) {}

void UnusedLoads::reset() {
  std::ranges::fill(loaded_at_, 0U);
  unused_ = 0;
}

void UnusedLoads::use(std::size_t at) {
  if (loaded_at_[at] == 0) return;
  loaded_at_[at] = 0;
  --unused_;
}

void UnusedLoads::load(std::size_t at, std::uint32_t clock) {
  oldest_ = unused_ == 0 ? clock : std::min(oldest_, clock);
  if (loaded_at_[at] == 0) ++unused_;
  loaded_at_[at] = clock;
}

void UnusedLoads::step(Warp& warp, const Instruction& instruction) {
  const bool loads = instruction.registers == RegisterUse::loads;
  if (!loads && unused_ == 0) return;
  if (instruction.registers == RegisterUse::copies) {
    const std::size_t to = index_of(instruction.op[0]), from = index_of(instruction.op[1]);
    const std::uint32_t loaded_at = loaded_at_[from];
    use(to);
    use(from);
    if (loaded_at != 0) load(to, loaded_at);
  } else {
    // A value that is overwritten without a use was waited for, too.
    for (std::uint32_t i = 0; i < instruction.operand_count; ++i) use(index_of(instruction.op[i]));
    for (std::uint32_t i = 0; loads && i < std::min<std::uint32_t>(instruction.operand_count, 32); ++i) {
      if (((instruction.written >> i) & 1) != 0) load(index_of(instruction.op[i]), warp.clocks.ordered[warp.agent()]);
    }
  }
  update(warp);
}

void UnusedLoads::update(Warp& warp) const {
  const std::uint32_t now = warp.clocks.ordered[warp.agent()];
  warp.clocks.completed_reads[warp.agent()] = unused_ == 0 ? now : std::min(oldest_, now) - 1;
}

}  // namespace tilewright::emulator
