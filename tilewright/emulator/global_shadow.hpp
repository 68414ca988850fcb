// Race detection in global memory, for cooperative launches and for others with EmulatorOptions::check_global.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/unwritten_bytes.hpp"

namespace tilewright::emulator {

/// Checks accesses by ld, st and atomics, and that the writes among them are visible to the asynchronous copies that
/// read the bytes. The writes of asynchronous copies count as ordered before all accesses. Its agents are the launch's
/// warps, numbered in the order of their CTAs. Beyond kMaxWarps, warps share the agent of an earlier one, and races
/// between the two are missed, as are races across a restart of the clocks.
class GlobalShadow {
 public:
  static constexpr Agent kMaxWarps = SharedMemory::kMaxAgents;

  GlobalShadow(bool check_races, bool check_uninitialised, bool check_warps)
      : check_races_(check_races), check_uninitialised_(check_uninitialised), check_warps_(check_warps) {}
  GlobalShadow(const GlobalShadow&) = delete;
  GlobalShadow& operator=(const GlobalShadow&) = delete;
  ~GlobalShadow();

  /// Whether no one has written some of the bytes.
  bool is_undefined(Warp& warp, std::uint64_t address, std::uint32_t bytes) {
    return page(warp, address / kPageBytes).is_undefined(kSharedBase + address % kPageBytes, bytes);
  }
  /// The same for bytes that may be on two pages.
  bool is_any_undefined(Warp& warp, std::uint64_t address, std::uint32_t bytes);
  /// The bits of the byte that no one has written.
  std::uint8_t undefined_bits(Warp& warp, std::uint64_t address) {
    return page(warp, address / kPageBytes).undefined_bits(kSharedBase + address % kPageBytes);
  }
  /// A store has written a byte of which these bits are undefined.
  void mark_undefined(Warp& warp, std::uint64_t address, std::uint8_t bits) {
    page(warp, address / kPageBytes).mark_undefined_bits(kSharedBase + address % kPageBytes, bits);
  }
  /// An asynchronous copy writes bytes: all of them, or those that were uninitialised count as written by it.
  void mark_defined(Warp& warp, std::uint64_t address, std::uint64_t bytes, bool overwrites);
  /// Checks that the writes of the bytes happen before a read through the async proxy, and are proxy-fenced.
  /// @throws EmulationFinding global_race, missing_proxy_fence
  void check_async_read(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                        std::string_view verb);
  /// An asynchronous copy accesses bytes, which only add_to() looks at.
  void note_async(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool writes);
  /// From now on, accesses that no griddepcontrol.wait happens before are added to the footprint, if it is not null.
  void record_early(Footprint* early) { early_ = early; }
  /// Reports a lane's load through the non-coherent cache of bytes that an instruction of the launch has written.
  void check_non_coherent(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes);
  /// Adds the accesses of the launch.
  void add_to(Footprint& footprint) const;
  /// Removes the bytes that the launch has written, also those of which it has written some bits.
  void remove_written(UnwrittenBytes& unwritten);
  /// Starts the warp's clock; called before its CTA runs.
  void start(Warp& warp);
  /// Called after a release: the warp's later accesses are not covered by it.
  void advance_clock(Warp& warp);

  /// See SharedMemory::kClockLimit.
  void restart_clocks();

  /// Checks and records one lane's access. Strong accesses synchronise through the address, as `how` says. `value` is
  /// what a store writes, or null; a race with a write of the same value is a warning. False when the bytes are read
  /// and no one has written them. @throws EmulationFinding global_race
  bool access(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes, AccessKind kind,
              const std::byte* value, const LanePointers& how);
  /// The same for all lanes, of which lane l accesses the `bytes` bytes at address + l * bytes: see
  /// SharedMemory::access_consecutive().
  bool access_consecutive(Warp& warp, const Instruction& in, std::uint64_t address, std::uint32_t bytes, bool writes) {
    const std::uint64_t number = address / kPageBytes;
    if ((address + kWarpSize * bytes - 1) / kPageBytes != number) return false;
    if (early_ != nullptr) note_early(warp, address, std::uint64_t{kWarpSize} * bytes, writes);
    return page(warp, number)
        .access_consecutive(warp.clocks.grid, accessor_of(warp, in, 0), kSharedBase + address % kPageBytes, bytes,
                            writes);
  }
  /// The same for the lanes whose read or write is plain: see SharedMemory::access_lanes(). Returns the others.
  Mask access_lanes(Warp& warp, const Instruction& in, Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes,
                    bool writes);

 private:
  // A page has the same shadow as the shared memory of a CTA.
  static constexpr std::uint64_t kPageBytes = 4096;
  static std::uint64_t number_of(Warp& warp);
  static Accessor accessor_of(const Warp& warp, const Instruction& in, int lane) {
    return {warp.grid_agent, static_cast<std::uint32_t>(lane), warp.code_index(in)};
  }

  /// An allocation that is uninitialised until it is written is that on the pages that are made for it.
  SharedMemory& page(Warp& warp, std::uint64_t number) {
    const RecentPage& recent = recent_[number % std::size(recent_)];
    return recent.number == number ? *recent.shadow : find_page(warp, number);
  }
  SharedMemory& find_page(Warp& warp, std::uint64_t number);
  /// The warp whose access this is, by its number in the launch.
  std::uint64_t warp_of(const Accessor& accessor) const;
  /// "thread (0,0,0) of CTA (1,0,0) at ..."
  std::string describe(const Warp& warp, const Accessor& accessor) const;
  /// See record_early().
  void note_early(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool writes, bool is_strong = false);
  void report(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes, AccessKind kind,
              const SharedMemory& shadow, const std::byte* value, SharedVerdict verdict) const;

  struct RecentPage {
    std::uint64_t number = ~std::uint64_t{0};
    SharedMemory* shadow = nullptr;
  };

  std::unordered_map<std::uint64_t, std::unique_ptr<SharedMemory>> pages_;
  Footprint async_;                    // the accesses of asynchronous copies
  Footprint* early_ = nullptr;         // see record_early()
  RecentPage recent_[2048];            // a cache of pages_
  std::vector<std::uint32_t> clocks_;  // by agent: the last clock of its last warp
  /// By agent: the warps that have shared it, with the first clock of each.
  std::vector<std::vector<std::pair<std::uint32_t, std::uint64_t>>> warps_;
  bool check_races_ = true;
  bool check_uninitialised_ = false;
  bool check_warps_ = false;
};

}  // namespace tilewright::emulator
