// From the addresses in a warp's registers to host pointers, through every check of a memory access.
#pragma once

#include <cstdint>
#include <string_view>

#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/shared_memory.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

enum class AccessKind : std::uint8_t {
  read,
  write,
  synchronising_read,   // volatile, acquire, relaxed: orders, and races with nothing of its kind
  synchronising_write,  // and atomics
  unshadowed,           // bounds and alignment only: the caller tells the shadow itself
};

struct LanePointers {
  std::byte* at[kWarpSize];
  std::uint64_t address[kWarpSize];  // in its own space
  Mask shared = 0;                   // lanes whose address is in shared memory
};

/// How much each lane accesses.
struct AccessSize {
  std::uint32_t bytes = 0;
  std::uint32_t alignment = 0;
};

/// Resolves in.address[which] for the lanes of the mask.
/// @throws EmulationFinding: misaligned, out of bounds, uninitialised, race, in flight
void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, AccessSize size,
             AccessKind kind, LanePointers& out);
/// With an alignment of the access's size, as every access but some asynchronous ones needs.
inline void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, std::size_t bytes,
                    AccessKind kind, LanePointers& out) {
  const auto size = static_cast<std::uint32_t>(bytes);
  resolve(warp, in, lanes, space, which, AccessSize{size, size}, kind, out);
}

/// A place in the shared memory of a CTA of the cluster.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t address = 0;
};

/// Where a shared::cluster address points; `bytes` of it exist. `verb` is what a finding calls the access.
/// @throws EmulationFinding: out of bounds, of an exited CTA
SharedPlace locate_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                          std::string_view verb);

/// Where in.address[which], in shared memory or as a generic address of it, points for one lane.
/// @throws EmulationFinding: misaligned, and what locate_shared throws
SharedPlace resolve_shared_place(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                 std::string_view verb);

/// The finding that a verdict of the shadow stands for: thrown, but for an uninitialised read, which the CTA keeps in
/// mind until it is certain that it is no race with a write to come.
void report_shared(Warp& warp, const Instruction& in, int lane, const SharedPlace& place, std::uint32_t bytes,
                   std::string_view verb, SharedVerdict verdict);

}  // namespace tilewright::emulator
