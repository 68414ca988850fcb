// The object of an mbarrier instruction, through every check.
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

#include <cstring>

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {
namespace {

std::string name_of(const SharedPlace& place) {
  return fmt::format("mbarrier at shared address {:#x}{}", place.address, place.cta->describe_shared(place.address));
}

/// The object's bytes show its state, so that a store into a live object is seen.
void store_bits(const MbarrierPlace& at) {
  Mbarrier& barrier = *at.barrier;
  barrier.bits = (std::uint64_t{barrier.phase} << 40) ^ (std::uint64_t{barrier.pending} << 20) ^ barrier.count ^
                 (std::uint64_t{1} << 63);
  std::memcpy(at.place.cta->shared().at(at.place.address), &barrier.bits, sizeof(barrier.bits));
}

}  // namespace

void fail_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierPlace& at, const std::string& why) {
  warp.fail(FindingKind::mbarrier_misuse, in, lane, at.place.address,
            fmt::format("{}: {}{},", name_of(at.place), why,
                        at.barrier == nullptr ? std::string() : " (" + describe(*at.barrier) + ")"));
}

void init_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedPlace& place, std::uint32_t count) {
  Mbarriers& all = place.cta->mbarriers();
  if (const auto found = all.find(place.address); found != all.end()) {
    fail_mbarrier(warp, in, lane, {place, &found->second}, "initialised while in use, with no mbarrier.inval");
  }
  if (count == 0 || count > kMaxMbarrierCount) {
    fail_mbarrier(warp, in, lane, {place, nullptr},
                  fmt::format("a count of {}, must be 1 to {}", count, kMaxMbarrierCount));
  }
  const Accessor who = warp.accessor(in, lane);
  SharedMemory& shared = place.cta->shared();
  if (shared.shadowed()) {
    const SharedVerdict verdict = shared.write(warp.past.happened, who, place.address, kMbarrierSize.bytes);
    if (verdict != SharedVerdict::ok) {
      report_shared(warp, in, lane, place, kMbarrierSize.bytes, "mbarrier.init", verdict);
    }
  }
  Mbarrier& barrier = all[place.address];
  barrier.count = barrier.pending = count;
  barrier.agent = warp.cta().cluster().new_agents({AgentRecord::Kind::mbarrier, place.cta->rank(), 0, place.address});
  barrier.initialiser = who;
  barrier.initialiser.clock = warp.past.happened[who.agent];
  store_bits({place, &barrier});
  warp.cta().cluster().note_event();
}

MbarrierPlace find_mbarrier(Warp& warp, const Instruction& in, int lane, std::size_t which) {
  return find_mbarrier(warp, in, lane, resolve_shared_place(warp, in, lane, which, kMbarrierSize, "mbarrier access"));
}

MbarrierPlace find_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedPlace& place) {
  Mbarriers& all = place.cta->mbarriers();
  const auto found = all.find(place.address);
  MbarrierPlace at{place, nullptr};
  if (found == all.end()) fail_mbarrier(warp, in, lane, at, "used with no mbarrier.init before");
  at.barrier = &found->second;
  if (std::memcmp(place.cta->shared().at(place.address), &at.barrier->bits, sizeof(at.barrier->bits)) != 0) {
    fail_mbarrier(warp, in, lane, at, "its bytes were overwritten by another instruction");
  }
  const Accessor& init = at.barrier->initialiser;
  if (warp.cta().launch().options.check_races && warp.past.happened[init.agent] < init.clock) {
    fail_mbarrier(warp, in, lane, at,
                  fmt::format("used with no barrier after its init by {}", warp.cta().cluster().describe(init)));
  }
  return at;
}

void finish_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierPlace& at,
                     const MbarrierResult& result) {
  if (!result.broken.empty()) fail_mbarrier(warp, in, lane, at, result.broken);
  store_bits(at);
  warp.cta().cluster().note_event();
  if (result.completed) at.place.cta->release_mbarrier(at.place.address);
}

}  // namespace tilewright::emulator
