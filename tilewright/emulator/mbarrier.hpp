// The mbarrier objects of a CTA: phases, arrivals and transaction bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tilewright/emulator/order.hpp"
#include "tilewright/emulator/shared_memory.hpp"

namespace tilewright::emulator {

/// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", contents of the object.
inline constexpr std::uint32_t kMaxMbarrierCount = (1U << 20) - 1;
inline constexpr std::int64_t kMaxTransactionBytes = (1 << 20) - 1;

struct Mbarrier {
  std::uint32_t count = 0;        // arrivals that each coming phase waits for
  std::uint32_t pending = 0;      // of them, those this phase still waits for
  std::int64_t transactions = 0;  // bytes this phase expects, less those that arrived
  std::uint32_t phase = 0;        // phases completed
  Agent agent = 0;                // of cp.async that complete here; async_of() it: of the bulk copies
  Accessor initialiser;
  Past gathering;          // of who arrived in this phase
  Past completed;          // of all who arrived in the phases before
  std::uint64_t bits = 0;  // what the object's 8 bytes hold: not for a program to read, nor to write

  /// The clock at which this phase's asynchronous copies are waited for.
  std::uint32_t copies_clock() const { return phase + 1; }
  /// A wait for this parity is over: the phase that has it is complete.
  bool passed_parity(std::uint32_t parity) const { return (phase & 1) != (parity & 1); }
};

/// What an operation did: completed the phase, or broke a rule.
struct MbarrierResult {
  bool completed = false;
  std::string broken;  // empty when no rule was
};

MbarrierResult arrive(Mbarrier& barrier, std::uint32_t count);
/// Arrives, and no later phase waits for these arrivals.
MbarrierResult arrive_and_drop(Mbarrier& barrier, std::uint32_t count);
MbarrierResult expect_transactions(Mbarrier& barrier, std::uint64_t bytes);
MbarrierResult complete_transactions(Mbarrier& barrier, std::uint64_t bytes);
/// Expects and arrives in one operation.
MbarrierResult arrive_expecting(Mbarrier& barrier, std::uint32_t count, std::uint64_t bytes, bool drops = false);

/// "phase 3, 1 of 2 arrivals and 4096 transaction bytes pending"
std::string describe(const Mbarrier& barrier);

/// By shared address.
using Mbarriers = std::map<std::uint32_t, Mbarrier>;

}  // namespace tilewright::emulator
