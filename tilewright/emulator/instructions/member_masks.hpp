// The member masks of warp-wide instructions: one for each lane, which names the lanes that execute the instruction.
#pragma once

#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

/// True when all lanes that the member masks name, and that have not exited, execute the instruction together; else the
/// lanes wait for the others. Reports bad_warp_mask for a lane that its mask does not name, or that names a lane with
/// another mask. `member_masks` is the register of the masks.
bool converge_members(Warp& warp, const Instruction& in, Mask lanes, Slot member_masks);

}  // namespace tilewright::emulator
