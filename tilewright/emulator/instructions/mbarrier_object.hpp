// The mbarrier that an instruction operates on: finds and checks the object, and wakes its waiters.
#pragma once

#include <string>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/mbarrier.hpp"

namespace tilewright::emulator {

inline constexpr AccessSize kMbarrierSize{8, 8};

struct MbarrierObject {
  SharedLocation location;
  Mbarrier* barrier = nullptr;
};

/// @throws EmulationFinding: mbarrier_misuse when the count is out of range or the mbarrier is live, and as for a write
void init_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedLocation& location, std::uint32_t count);
/// Reports an init that another lane of the warp makes in the same instruction.
void warn_of_repeated_init(Warp& warp, const Instruction& in, int lane, const SharedLocation& location);

/// The mbarrier at in.address[which] of one lane.
/// @throws EmulationFinding: mbarrier_misuse when there is none, or no barrier orders its init before this use
MbarrierObject find_mbarrier(Warp& warp, const Instruction& in, int lane, std::size_t which);
/// As above, for the mbarrier at a location.
MbarrierObject find_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedLocation& location);

/// Reports missing_proxy_fence if no fence has made the init of the mbarrier, whose phase a bulk copy of the lane
/// completes, visible to the async proxy.
void check_init_is_fenced(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at);

/// Notes a fence.mbarrier_init of the lanes, which covers the mbarriers that each of them has initialised.
void fence_mbarrier_inits(const Warp& warp, Mask lanes);

/// Ends an operation: stores the object's new state, and wakes waiters when the phase is complete.
/// @throws EmulationFinding mbarrier_misuse when the operation broke a rule
void finish_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at,
                     const MbarrierResult& result);

[[noreturn]] void fail_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at,
                                const std::string& why);

}  // namespace tilewright::emulator
