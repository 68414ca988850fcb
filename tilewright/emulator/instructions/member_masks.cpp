#include "tilewright/emulator/instructions/member_masks.hpp"

#include <bit>

#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// Each lane must be in its mask, and the lanes that it names must give the same mask.
void check_members(Warp& warp, const Instruction& in, Mask lanes, const Mask* members) {
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto report = [&](auto&& why) {
      warp.report(Severity::error, FindingKind::bad_warp_mask, in, lane, 0,
                  [&] { return fmt::format("the mask {:#010x} {}", members[lane], why()); });
    };
    if (((members[lane] >> lane) & 1) == 0) {
      report([&] { return fmt::format("does not name lane {}, which executes the instruction", lane); });
      continue;
    }
    Mask others = 0;
    each_lane(members[lane] & lanes, [&](int l) {
      if (members[l] != members[lane]) others |= Mask{1} << l;
    });
    if (others == 0) continue;
    const int other = std::countr_zero(others);
    report([&] { return fmt::format("names lane {}, whose mask is {:#010x}", other, members[other]); });
  }
}

}  // namespace

bool converge_members(Warp& warp, const Instruction& in, Mask lanes, Slot member_masks) {
  const auto* const members = warp.reg<Mask>(member_masks);
  // Most masks name the whole warp: then there is nothing to check.
  Mask common = kAllLanes;
  for (int l = 0; l < kWarpSize; ++l) common &= members[l];
  if (common == kAllLanes && lanes == kAllLanes) return true;
  Mask wanted = 0;
  each_lane(lanes, [&](int l) { wanted |= members[l]; });
  if (!warp.converge(in, lanes, wanted & warp.present() & ~warp.exited())) return false;
  if (warp.cta().launch().options.check_warps) check_members(warp, in, lanes, members);
  return true;
}

}  // namespace tilewright::emulator
