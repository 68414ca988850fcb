// The mbarrier objects of a CTA: phases, pending arrivals and the tx-count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tilewright/emulator/shared_memory.hpp"
#include "tilewright/emulator/vector_clock.hpp"

namespace tilewright::emulator {

/// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", contents of the object.
inline constexpr std::uint32_t kMaxMbarrierCount = (1U << 20) - 1;
inline constexpr std::int64_t kMaxTransactionBytes = (1 << 20) - 1;

struct Mbarrier {
  std::uint32_t count = 0;        // arrival count: arrivals that each coming phase waits for
  std::uint32_t pending = 0;      // arrivals that the current phase still waits for
  std::int64_t transactions = 0;  // tx-count: bytes that the current phase expects, less those that have arrived
  std::uint32_t phase = 0;        // number of completed phases; its lowest bit is the parity of the current phase
  Agent agent = 0;                // of the cp.async that complete here; async_of(agent): of the bulk copies
  Accessor initialiser;           // the mbarrier.init
  std::optional<std::uint32_t> init_fence;  // clock of the initialiser's agent at its fence.mbarrier_init
  Clocks arrival_clocks;                    // joined at each arrival of the current phase
  Clocks completed_clocks;                  // joined over the completed phases; acquired by a wait
  std::uint64_t bits = 0;                   // what the object's 8 bytes hold; opaque, programs must not access them

  /// The clock of this phase's asynchronous copies: a warp may access their bytes once it has waited for the phase.
  std::uint32_t copies_clock() const { return phase + 1; }
  /// Whether a wait for this phase parity returns: the phase of that parity has completed.
  bool is_parity_complete(std::uint32_t parity) const { return (phase & 1) != (parity & 1); }
};

/// The outcome of an operation on an mbarrier.
struct MbarrierResult {
  bool completed = false;  // it completed the phase
  std::string error;       // the rule it broke; empty when none
};

MbarrierResult arrive(Mbarrier& barrier, std::uint32_t count);
/// Arrives, and lowers the arrival count of all later phases by `count`.
MbarrierResult arrive_and_drop(Mbarrier& barrier, std::uint32_t count);
MbarrierResult expect_tx(Mbarrier& barrier, std::uint64_t bytes);
MbarrierResult complete_tx(Mbarrier& barrier, std::uint64_t bytes);
/// expect_tx, then an arrival, as one operation. With `drops`, the arrival is an arrive_drop.
MbarrierResult arrive_expect_tx(Mbarrier& barrier, std::uint32_t count, std::uint64_t bytes, bool drops = false);

/// "phase 3, 1 of 2 arrivals and 4096 transaction bytes pending"
std::string describe(const Mbarrier& barrier);

/// By shared address.
using Mbarriers = std::map<std::uint32_t, Mbarrier>;

}  // namespace tilewright::emulator
