// Resolves the addresses in a warp's registers to host pointers, and checks bounds, alignment and races on the way.
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
  strong_read,    // .volatile, .relaxed, .acquire: synchronises, and does not race with other strong accesses
  strong_write,   // also .release
  strong_update,  // atomics: both
  unshadowed,     // checks bounds and alignment only; the caller updates the shadow itself
};

struct LanePointers {
  std::byte* at[kWarpSize];
  std::uint64_t address[kWarpSize];  // in the address's own state space
  Mask shared = 0;                   // lanes whose address is in the shared memory of their own CTA
  Mask local = 0;                    // lanes whose address is in their local memory
  Mask undefined = 0;     // of a read: lanes that read bytes which no one has written, if `follows_undefined`
  bool releases = false;  // a strong write has the semantics of a release
  MemoryScope scope = MemoryScope::gpu;  // of a strong access
  bool follows_undefined = false;        // the caller marks registers as undefined; else such a read is a finding
  const std::byte* values = nullptr;     // before a store: what each lane writes, AccessSize::bytes apart; or null
};

/// The bytes that each lane accesses, and the alignment that the instruction requires of the address.
struct AccessSize {
  std::uint32_t bytes = 0;
  std::uint32_t alignment = 0;
};

/// Resolves in.address[which] for the lanes of the mask, and records the accesses in the shadow. If the launch
/// continues after a finding, lanes whose address is misaligned or out of bounds access other bytes, which are
/// nobody's.
/// @throws EmulationFinding: misaligned, out of bounds, uninitialised, race, asynchronous copy in flight
void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, AccessSize size,
             AccessKind kind, LanePointers& out);
/// As above; offsets[lane] is added to the address of the lane.
void resolve_with_offsets(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which,
                          const std::int64_t* offsets, AccessSize size, AccessKind kind, LanePointers& out);
/// As above, for the accesses that must be aligned to their size: all but some asynchronous copies.
inline void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, std::size_t bytes,
                    AccessKind kind, LanePointers& out) {
  const auto size = static_cast<std::uint32_t>(bytes);
  resolve(warp, in, lanes, space, which, AccessSize{size, size}, kind, out);
}

/// The address of the first of kWarpSize * bytes bytes in shared or global memory, if lane l of all lanes reads or
/// writes the `bytes` bytes at l * bytes from there and resolve() would find nothing; the accesses are then recorded.
/// Else null, or if it is not known at once, and nothing is recorded.
std::byte* resolve_consecutive(Warp& warp, const Instruction& in, Space space, std::uint32_t bytes, bool writes);

/// The bytes of the kernel's parameters that all lanes read, if the address is a constant and resolve() would find
/// nothing. Else null.
const std::byte* resolve_parameter(Warp& warp, const Instruction& in, std::uint32_t bytes);

/// An address in the shared memory of one CTA of the cluster.
struct SharedLocation {
  Cta* cta = nullptr;
  std::uint32_t address = 0;
};

/// Resolves a shared::cluster address, and checks that `bytes` bytes exist there. `verb` names the access in findings.
/// @throws EmulationFinding: out of bounds, or in an exited CTA
SharedLocation locate_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                             std::string_view verb);

/// As resolve_shared_location(); but if the launch continues after a finding, the result has no CTA.
SharedLocation find_shared_location(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                    std::string_view verb);

/// Resolves in.address[which] of one lane: a shared address, or a generic address of shared memory.
/// @throws EmulationFinding: misaligned, and as locate_shared
SharedLocation resolve_shared_location(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                       std::string_view verb);

/// Reports a verdict of the shadow as a finding. Throws unless the launch continues, except for an uninitialised read:
/// the CTA defers that one, as a write that is still to come may prove it to be a race. `value` is what a store writes;
/// a race with a write of the same value is a warning.
void report_shared(Warp& warp, const Instruction& in, int lane, const SharedLocation& location, std::uint32_t bytes,
                   std::string_view verb, SharedVerdict verdict, const std::byte* value = nullptr);

}  // namespace tilewright::emulator
