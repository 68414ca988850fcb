#include "tilewright/emulator/global_shadow.hpp"

#include <cstring>
#include <utility>

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {
namespace {

std::uint32_t warps_per_cta(Warp& warp) { return static_cast<std::uint32_t>(warp.cta().warps().size()); }

runtime::Dim3 ctaid(std::uint32_t cta, const runtime::Dim3& grid) {
  return {cta % grid.x, cta / grid.x % grid.y, cta / grid.x / grid.y};
}

}  // namespace

Agent GlobalShadow::agent_of(Warp& warp) {
  const runtime::Dim3& index = warp.cta().index();
  const runtime::Dim3& grid = warp.cta().launch().grid;
  const std::uint32_t cta = index.x + grid.x * (index.y + grid.y * index.z);
  return cta * warps_per_cta(warp) + static_cast<std::uint32_t>(warp.index());
}

void GlobalShadow::start(Warp& warp) const {
  if (const Agent agent = agent_of(warp); agent < kMaxWarps) warp.clocks.grid[agent] = 1;
}

void GlobalShadow::advance_clock(Warp& warp) const {
  if (const Agent agent = agent_of(warp); agent < kMaxWarps) ++warp.clocks.grid[agent];
}

SharedMemory& GlobalShadow::page(std::uint64_t number) {
  std::unique_ptr<SharedMemory>& found = pages_[number];
  if (!found) {
    found = std::make_unique<SharedMemory>(true, false);
    found->reset(kPageBytes);
  }
  return *found;
}

void GlobalShadow::access(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                          AccessKind kind, const std::byte* value) {
  const Agent agent = agent_of(warp);
  if (agent >= kMaxWarps) return;
  SharedMemory& shadow = page(address / kPageBytes);
  Accessor accessor = warp.accessor(in, lane);
  accessor.agent = agent;
  const std::uint64_t in_page = kSharedBase + address % kPageBytes;
  SharedVerdict verdict = SharedVerdict::ok;
  if (kind == AccessKind::read) {
    verdict = shadow.read(warp.clocks.grid, accessor, in_page, bytes);
  } else if (kind == AccessKind::write) {
    verdict = shadow.write(warp.clocks.grid, accessor, in_page, bytes);
  } else {
    const bool writes = kind == AccessKind::strong_write;
    Clocks clocks{std::move(warp.clocks.grid), {}, {}};
    verdict = shadow.strong_access(clocks, accessor, in_page, bytes, writes);
    warp.clocks.grid = std::move(clocks.ordered);
    if (writes) advance_clock(warp);
  }
  if (verdict != SharedVerdict::ok) report(warp, in, lane, address, bytes, kind, shadow, value);
}

void GlobalShadow::report(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                          AccessKind kind, const SharedMemory& shadow, const std::byte* value) {
  const Accessor& other = shadow.other();
  const Cta& cta = warp.cta();
  const auto thread = static_cast<int>(other.agent % warps_per_cta(warp) * kWarpSize + other.lane);
  const bool reads = kind == AccessKind::read || kind == AccessKind::strong_read;
  const bool same_value = value != nullptr && !shadow.other_reads() &&
                          std::memcmp(reinterpret_cast<const std::byte*>(address), value, bytes) == 0;
  const Severity severity = same_value ? Severity::warning : Severity::error;
  warp.report(severity, FindingKind::global_race, in, lane, address, [&] {
    return fmt::format("{} of {} bytes at global address {:#x}, not ordered after the {} by thread {} of CTA {} at {}",
                       reads ? "read" : "write", bytes, address,
                       shadow.other_reads() ? "read"
                       : same_value         ? "write of the same value"
                                            : "write",
                       to_string(cta.thread_index(thread)),
                       to_string(ctaid(other.agent / warps_per_cta(warp), cta.launch().grid)),
                       cta.describe_location(other.code));
  });
}

}  // namespace tilewright::emulator
