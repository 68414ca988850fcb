// The values that a warp has loaded from shared memory and that no instruction has used yet.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// A load of which an instruction has used a value is complete, so that its bytes may be overwritten through the async
/// proxy once that is ordered after it. A load that only precedes, say, an arrival at an mbarrier may still be reading.
/// A mov is taken as a renaming, not as a use. Sets Clocks::completed_reads of the warp.
class UnusedLoads {
 public:
  explicit UnusedLoads(const Program& program);
  void reset();

  /// Called before each instruction.
  void step(Warp& warp, const Instruction& instruction);
  /// Called when the warp's clock has changed.
  void update(Warp& warp);

 private:
  struct Load {
    std::uint32_t number = 0;
    std::uint32_t clock = 0;  // of the warp
  };
  static std::size_t index_of(Slot slot) { return slot / kSlotAlignment; }
  void use(std::size_t at);
  void move(std::size_t from, std::size_t to);

  std::vector<std::uint32_t> load_of_;  // by register: the number of the load that its value comes from, or 0
  std::vector<Load> unused_;            // by number
  std::uint32_t last_ = 0;              // number of the last load
};

}  // namespace tilewright::emulator
