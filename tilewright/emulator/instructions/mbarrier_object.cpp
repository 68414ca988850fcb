// Checks of the mbarrier that an instruction operates on.
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

#include <cstring>

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {
namespace {

std::string name_of(const SharedLocation& location) {
  return fmt::format("mbarrier at shared address {:#x}{}", location.address,
                     location.cta->describe_shared(location.address));
}

/// Writes the mbarrier's state to its 8 bytes, so that a store over a live mbarrier is detected.
void store_bits(const MbarrierObject& at) {
  Mbarrier& barrier = *at.barrier;
  barrier.bits = (std::uint64_t{barrier.phase} << 40) ^ (std::uint64_t{barrier.pending} << 20) ^ barrier.count ^
                 (std::uint64_t{1} << 63);
  std::memcpy(at.location.cta->shared().at(at.location.address), &barrier.bits, sizeof(barrier.bits));
}

}  // namespace

void fail_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at, const std::string& why) {
  warp.fail(FindingKind::mbarrier_misuse, in, lane, at.location.address,
            fmt::format("{}: {}{}", name_of(at.location), why,
                        at.barrier == nullptr ? std::string() : " (" + describe(*at.barrier) + ")"));
}

void init_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedLocation& location, std::uint32_t count) {
  Mbarriers& all = location.cta->mbarriers();
  if (const auto found = all.find(location.address); found != all.end()) {
    fail_mbarrier(warp, in, lane, {location, &found->second},
                  "mbarrier.init of a live mbarrier; mbarrier.inval must come first");
  }
  if (count == 0 || count > kMaxMbarrierCount) {
    fail_mbarrier(warp, in, lane, {location, nullptr},
                  fmt::format("an arrival count of {}, which must be 1 to {}", count, kMaxMbarrierCount));
  }
  const Accessor accessor = warp.accessor(in, lane);
  SharedMemory& shared = location.cta->shared();
  if (shared.shadowed()) {
    const SharedVerdict verdict = shared.write(warp.clocks.ordered, accessor, location.address, kMbarrierSize.bytes);
    if (verdict != SharedVerdict::ok) {
      report_shared(warp, in, lane, location, kMbarrierSize.bytes, "mbarrier.init", verdict);
    }
  }
  Mbarrier& barrier = all[location.address];
  barrier.count = barrier.pending = count;
  barrier.agent =
      warp.cta().cluster().new_agents({AgentRecord::Kind::mbarrier, location.cta->rank(), 0, location.address});
  barrier.initialiser = accessor;
  barrier.initialiser.clock = warp.clocks.ordered[accessor.agent];
  store_bits({location, &barrier});
  warp.cta().cluster().note_event();
}

void warn_of_repeated_init(Warp& warp, const Instruction& in, int lane, const SharedLocation& location) {
  warp.report(Severity::warning, FindingKind::mbarrier_misuse, in, lane, location.address, [&] {
    return fmt::format(
        "{}: several threads of the warp initialise it with the same count in one instruction; one thread should do so",
        name_of(location));
  });
}

MbarrierObject find_mbarrier(Warp& warp, const Instruction& in, int lane, std::size_t which) {
  return find_mbarrier(warp, in, lane,
                       resolve_shared_location(warp, in, lane, which, kMbarrierSize, "mbarrier access"));
}

MbarrierObject find_mbarrier(Warp& warp, const Instruction& in, int lane, const SharedLocation& location) {
  Mbarriers& all = location.cta->mbarriers();
  const auto found = all.find(location.address);
  MbarrierObject at{location, nullptr};
  if (found == all.end()) fail_mbarrier(warp, in, lane, at, "used before mbarrier.init");
  at.barrier = &found->second;
  if (std::memcmp(location.cta->shared().at(location.address), &at.barrier->bits, sizeof(at.barrier->bits)) != 0) {
    fail_mbarrier(warp, in, lane, at, "its 8 bytes were overwritten by an instruction that is no mbarrier operation");
  }
  const Accessor& init = at.barrier->initialiser;
  if (warp.cta().launch().options.check_races && warp.clocks.ordered[init.agent] < init.clock) {
    fail_mbarrier(warp, in, lane, at,
                  fmt::format("used with no barrier after its init by {}", warp.cta().cluster().describe(init)));
  }
  return at;
}

void check_init_is_fenced(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at) {
  if (!warp.cta().launch().options.check_races) return;
  const Accessor& init = at.barrier->initialiser;
  if (init.clock <= warp.clocks.proxy_fenced[init.agent]) return;
  if (at.barrier->init_fence && *at.barrier->init_fence <= warp.clocks.ordered[init.agent]) return;
  // libcu++ has no such fence: cuda::memcpy_async() works on the mbarrier of its own CTA after a __syncthreads().
  const Launch& launch = warp.cta().launch();
  const bool is_tolerated =
      at.location.cta == &warp.cta() && launch.log != nullptr && !launch.options.require_reuse_fences;
  const Severity severity = is_tolerated ? Severity::warning : Severity::error;
  warp.report(severity, FindingKind::missing_proxy_fence, in, lane, at.location.address, [&] {
    return fmt::format(
        "{}: a bulk copy completes on it, but no fence.mbarrier_init or fence.proxy.async follows its init by {}",
        name_of(at.location), warp.cta().cluster().describe(init));
  });
}

void fence_mbarrier_inits(const Warp& warp, Mask lanes) {
  for (auto& [address, barrier] : warp.cta().mbarriers()) {
    const Accessor& init = barrier.initialiser;
    if (init.agent != warp.agent() || ((lanes >> init.lane) & 1) == 0 || barrier.init_fence) continue;
    barrier.init_fence = warp.clocks.ordered[init.agent];
  }
}

void finish_mbarrier(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at,
                     const MbarrierResult& result) {
  if (!result.error.empty()) fail_mbarrier(warp, in, lane, at, result.error);
  store_bits(at);
  warp.cta().cluster().note_event();
  if (result.completed) at.location.cta->release_mbarrier(at.location.address);
}

}  // namespace tilewright::emulator
