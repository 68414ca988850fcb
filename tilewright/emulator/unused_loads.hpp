// Which values that a warp has loaded from shared memory no instruction has used yet.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// A load whose value an instruction has used is complete, so that its bytes may be overwritten through the async proxy
/// once that is ordered after it. A load that only precedes, say, an arrival at an mbarrier may still be reading. A mov
/// is taken as a renaming, not as a use. Sets Clocks::completed_reads of the warp.
class UnusedLoads {
 public:
  explicit UnusedLoads(const Program& program);
  void reset();

  /// Called before each instruction.
  void step(Warp& warp, const Instruction& instruction);
  /// Called when the warp's clock has changed.
  void update(Warp& warp) const;

 private:
  static std::size_t index_of(Slot slot) { return slot / kSlotAlignment; }
  void use(std::size_t at);
  void load(std::size_t at, std::uint32_t clock);

  std::vector<std::uint32_t> loaded_at_;  // by register: the warp's clock at the load of an unused value, or 0
  std::uint32_t unused_ = 0;              // registers with an unused value
  std::uint32_t oldest_ = 0;              // if there are some: no such value was loaded before this clock
};

}  // namespace tilewright::emulator
