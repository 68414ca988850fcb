// Who wrote and read which bytes of global memory in a cooperative launch, and what ordered them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tilewright/emulator/access.hpp"

namespace tilewright::emulator {

/// Sees accesses of threads by ld, st and atomics; not copies. Its agents are the launch's warps in the order of their
/// CTAs; those beyond kMaxWarps it does not see, nor races across a restart of clocks.
class GlobalShadow {
 public:
  static constexpr Agent kMaxWarps = SharedMemory::kMaxAgents;

  /// Begins the warp's clock. Before its CTA runs.
  void start(Warp& warp) const;
  /// Others may know by now what the warp did.
  void advance_clock(Warp& warp) const;

  /// What is ordered by clocks that restart is not known any more.
  void forget() { pages_.clear(); }

  /// Whether one lane's access is in order; records it. Atomic and volatile accesses synchronise through the address.
  /// @throws EmulationFinding global_race
  void access(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes, AccessKind kind);

 private:
  // Each page has the shadow that a CTA's shared memory has.
  static constexpr std::uint64_t kPageBytes = 4096;
  static Agent agent_of(Warp& warp);

  SharedMemory& page(std::uint64_t number);
  [[noreturn]] static void fail(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                                AccessKind kind, const SharedMemory& shadow);

  std::unordered_map<std::uint64_t, std::unique_ptr<SharedMemory>> pages_;
};

}  // namespace tilewright::emulator
