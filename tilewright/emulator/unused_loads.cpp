#include "tilewright/emulator/unused_loads.hpp"

#include <algorithm>

#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {
namespace {

/// A load of which no value was used until so many releases of the warp later is taken for one that never is.
constexpr std::uint32_t kMostReleases = 4;

}  // namespace

UnusedLoads::UnusedLoads(const Program& program) : load_of_(index_of(static_cast<Slot>(program.register_bytes)) + 1) {}

void UnusedLoads::reset() {
  std::ranges::fill(load_of_, 0U);
  unused_.clear();
}

void UnusedLoads::use(std::size_t at) {
  if (load_of_[at] == 0) return;
  std::erase_if(unused_, [&](const Load& load) { return load.number == load_of_[at]; });
  load_of_[at] = 0;
}

void UnusedLoads::move(std::size_t from, std::size_t to) {
  const std::uint32_t load = load_of_[from];
  if (load_of_[to] != load) use(to);
  load_of_[to] = load;
}

void UnusedLoads::step(Warp& warp, const Instruction& instruction) {
  const bool loads = instruction.registers == RegisterUse::loads;
  if (!loads && unused_.empty()) return;
  if (instruction.registers == RegisterUse::copies)
    return move(index_of(instruction.op[1]), index_of(instruction.op[0]));
  // A value that is overwritten without a use was waited for, too.
  for (std::uint32_t i = 0; i < instruction.operand_count; ++i) use(index_of(instruction.op[i]));
  if (loads) {
    unused_.push_back({++last_, warp.clocks.ordered[warp.agent()]});
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(instruction.operand_count, 32); ++i) {
      if (((instruction.written >> i) & 1) != 0) load_of_[index_of(instruction.op[i])] = last_;
    }
  }
  update(warp);
}

void UnusedLoads::update(Warp& warp) {
  const std::uint32_t now = warp.clocks.ordered[warp.agent()];
  std::erase_if(unused_, [&](const Load& load) { return load.clock + kMostReleases <= now; });
  warp.clocks.completed_reads[warp.agent()] = unused_.empty() ? now : std::min(unused_.front().clock, now) - 1;
}

}  // namespace tilewright::emulator
