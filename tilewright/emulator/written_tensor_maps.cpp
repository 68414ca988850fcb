#include "tilewright/emulator/written_tensor_maps.hpp"

#include <algorithm>

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {
namespace {

std::uint64_t linear(const runtime::Dim3& at, const runtime::Dim3& extents) {
  return at.x + std::uint64_t{extents.x} * (at.y + std::uint64_t{extents.y} * at.z);
}

}  // namespace

WrittenTensorMaps::Thread WrittenTensorMaps::thread_of(Warp& warp, int lane) {
  return {linear(warp.cta().index(), warp.cta().launch().grid), warp.index() * kWarpSize + lane};
}

// The coordinates of the cluster in the grid are smaller than those of a CTA, so that the extents may be the grid's.
std::uint64_t WrittenTensorMaps::cluster_of(Warp& warp) {
  return linear(warp.cta().cluster().index(), warp.cta().launch().grid);
}

void WrittenTensorMaps::write(Warp& warp, const Instruction& in, int lane, std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  any_ = true;
  Written& map = written_[address];
  map.acquired.clear();
  map.acquires.clear();
  if (map.cluster == cluster_of(warp)) {
    for (const Accessor& copy : map.copies) {
      if (copy.clock <= warp.clocks.ordered[copy.agent]) continue;
      warp.fail(FindingKind::async_read_in_flight, in, lane, address,
                fmt::format("the tensor map at address {:#x} is overwritten, but a copy through it is in flight: {}",
                            address, warp.cta().cluster().describe(copy)));
    }
  }
  map.copies.clear();
}

void WrittenTensorMaps::acquire(Warp& warp, int lane, std::uint64_t address) {
  if (!any_) return;
  const std::scoped_lock lock(mutex_);
  const auto found = written_.find(address);
  if (found == written_.end()) return;
  const Thread thread = thread_of(warp, lane);
  found->second.acquired.insert(thread);
  found->second.acquires.try_emplace({thread.first, warp.agent()}, warp.clocks.ordered[warp.agent()]);
}

void WrittenTensorMaps::check_acquired(Warp& warp, const Instruction& in, int lane, std::uint64_t address) {
  if (!any_) return;
  const std::scoped_lock lock(mutex_);
  const auto found = written_.find(address);
  if (found == written_.end()) return;
  const Thread thread = thread_of(warp, lane);
  if (found->second.acquired.contains(thread)) return;
  const std::map<WarpOfCta, std::uint32_t>& acquires = found->second.acquires;
  for (auto each = acquires.lower_bound({thread.first, 0}); each != acquires.end(); ++each) {
    const auto& [cta, agent] = each->first;
    if (cta != thread.first) break;
    // Another lane of the warp has acquired it before a barrier if the warp's clock has grown since.
    const std::uint32_t now = warp.clocks.ordered[agent];
    if (agent == warp.agent() ? each->second < now : each->second <= now) return;
  }
  warp.fail(FindingKind::missing_tensor_map_fence, in, lane, address,
            fmt::format("a copy through the tensor map at address {:#x}, which the kernel wrote, with no "
                        "fence.proxy.tensormap::generic.acquire since, of this thread or of one of its CTA that it has "
                        "synchronised with",
                        address));
}

void WrittenTensorMaps::note_copy(Warp& warp, std::uint64_t address, const Accessor& copy) {
  if (!any_) return;
  const std::scoped_lock lock(mutex_);
  const auto found = written_.find(address);
  if (found == written_.end()) return;
  Written& map = found->second;
  const std::uint64_t cluster = cluster_of(warp);
  if (map.cluster != cluster) map.copies.clear();
  map.cluster = cluster;
  for (Accessor& each : map.copies) {
    if (each.agent != copy.agent) continue;
    each = copy;  // copies of one agent complete in the order of their clocks
    return;
  }
  map.copies.push_back(copy);
}

void WrittenTensorMaps::restart_clocks() {
  const std::scoped_lock lock(mutex_);
  for (auto& [address, map] : written_) {
    map.copies.clear();
    for (auto& [warp, clock] : map.acquires) clock = 0;
  }
}

}  // namespace tilewright::emulator
