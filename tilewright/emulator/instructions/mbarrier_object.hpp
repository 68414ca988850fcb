// An mbarrier as an instruction's operand: found, checked, changed, and its waiters told.
#pragma once

#include <string>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/mbarrier.hpp"

namespace tilewright::emulator {

inline constexpr AccessSize kMbarrierSize{8, 8};

struct MbarrierPlace {
  SharedPlace place;
  Mbarrier* barrier = nullptr;
};

/// @throws EmulationFinding: mbarrier_misuse for a count out of range or an object in use, and those of a write
void init_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedPlace& place, std::uint32_t count);

/// The object that in.address[which] names for one lane.
/// @throws EmulationFinding: mbarrier_misuse where none was initialised that the lane's warp may know of
MbarrierPlace find_mbarrier(Warp& warp, const Instruction& in, int lane, std::size_t which);
/// The same, at an address of a CTA.
MbarrierPlace find_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedPlace& place);

/// After an operation on the object: @throws EmulationFinding mbarrier_misuse when it broke a rule.
void finish_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierPlace& at,
                     const MbarrierResult& result);

[[noreturn]] void fail_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierPlace& at,
                                const std::string& why);

}  // namespace tilewright::emulator
