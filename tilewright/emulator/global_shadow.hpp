// Race detection in global memory, for the CTAs of a cooperative launch.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tilewright/emulator/access.hpp"

namespace tilewright::emulator {

/// Checks accesses by ld, st and atomics, but not asynchronous copies. Its agents are the launch's warps, numbered in
/// the order of their CTAs. It misses accesses of warps beyond kMaxWarps and races across a restart of the clocks.
class GlobalShadow {
 public:
  static constexpr Agent kMaxWarps = SharedMemory::kMaxAgents;

  /// Starts the warp's clock; called before its CTA runs.
  void start(Warp& warp) const;
  /// Called after a release: the warp's later accesses are not covered by it.
  void advance_clock(Warp& warp) const;

  /// See SharedMemory::kClockLimit.
  void restart_clocks() { pages_.clear(); }

  /// Checks and records one lane's access. Strong accesses synchronise through the address. `value` is what a store
  /// writes, or null; a race with a write of the same value is a warning.
  /// @throws EmulationFinding global_race
  void access(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes, AccessKind kind,
              const std::byte* value);

 private:
  // A page has the same shadow as the shared memory of a CTA.
  static constexpr std::uint64_t kPageBytes = 4096;
  static Agent agent_of(Warp& warp);

  SharedMemory& page(std::uint64_t number);
  static void report(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                     AccessKind kind, const SharedMemory& shadow, const std::byte* value);

  std::unordered_map<std::uint64_t, std::unique_ptr<SharedMemory>> pages_;
};

}  // namespace tilewright::emulator
