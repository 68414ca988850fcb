#include "tilewright/emulator/global_shadow.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "tilewright/base/fork.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// Pages of former launches, which later launches use again: a page has more memory than what it is the shadow of, and
/// the kernel of the host would clear it for each launch.
class FreePages {
 public:
  std::unique_ptr<SharedMemory> take() {
    const std::lock_guard lock(mutex_);
    if (pages_.empty()) return std::make_unique<SharedMemory>();
    std::unique_ptr<SharedMemory> page = std::move(pages_.back());
    pages_.pop_back();
    bytes_ -= page->shadow_bytes();
    return page;
  }
  void give(std::unique_ptr<SharedMemory> page) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + page->shadow_bytes() > kMostBytes) return;
    bytes_ += page->shadow_bytes();
    pages_.push_back(std::move(page));
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{512} << 20;
  std::size_t bytes_ = 0;
  ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<SharedMemory>> pages_;
};

/// Never destroyed, because threads may launch while the process exits.
FreePages& free_pages() {
  static auto* const pages = new FreePages;
  return *pages;
}

std::uint32_t warps_per_cta(Warp& warp) { return static_cast<std::uint32_t>(warp.cta().warps().size()); }

runtime::Dim3 ctaid(std::uint32_t cta, const runtime::Dim3& grid) {
  return {cta % grid.x, cta / grid.x % grid.y, cta / grid.x / grid.y};
}

}  // namespace

GlobalShadow::~GlobalShadow() {
  for (auto& [number, shadow] : pages_) free_pages().give(std::move(shadow));
}

std::uint64_t GlobalShadow::number_of(Warp& warp) {
  const runtime::Dim3& index = warp.cta().index();
  const runtime::Dim3& grid = warp.cta().launch().grid;
  const std::uint64_t cta = index.x + std::uint64_t{grid.x} * (index.y + std::uint64_t{grid.y} * index.z);
  return cta * warps_per_cta(warp) + static_cast<std::uint64_t>(warp.index());
}

void GlobalShadow::start(Warp& warp) {
  const auto agent = static_cast<Agent>(number_of(warp) % kMaxWarps);
  if (agent >= clocks_.size()) {
    clocks_.resize(agent + 1);
    warps_.resize(agent + 1);
  }
  warp.grid_agent = agent;
  warp.clocks.grid[agent] = ++clocks_[agent];
  warps_[agent].emplace_back(clocks_[agent], number_of(warp));
}

void GlobalShadow::advance_clock(Warp& warp) { clocks_[warp.grid_agent] = ++warp.clocks.grid[warp.grid_agent]; }

void GlobalShadow::restart_clocks() {
  for (auto& [number, shadow] : pages_) shadow->restart_clocks();
}

std::uint64_t GlobalShadow::warp_of(const Accessor& accessor) const {
  std::uint64_t number = 0;
  for (const auto& [first, warp] : warps_[accessor.agent]) {
    if (first <= std::max(accessor.clock, 1U)) number = warp;
  }
  return number;
}

SharedMemory& GlobalShadow::find_page(Warp& warp, std::uint64_t number) {
  std::unique_ptr<SharedMemory>& found = pages_[number];
  RecentPage& recent = recent_[number % std::size(recent_)];
  if (found) {
    recent = {number, found.get()};
    return *found;
  }
  found = free_pages().take();
  found->set_checks(check_races_, check_uninitialised_, check_warps_);
  found->reset_shadow(kPageBytes);
  const UnwrittenBytes* const unwritten = warp.cta().launch().unwritten;
  if (unwritten == nullptr) return *found;
  const std::uint64_t begin = number * kPageBytes;
  for (const auto& [low, high] : unwritten->within(begin, begin + kPageBytes))
    found->mark_undefined(kSharedBase + (low - begin), static_cast<std::uint32_t>(high - low));
  return *found;
}

bool GlobalShadow::is_any_undefined(Warp& warp, std::uint64_t address, std::uint32_t bytes) {
  if (!check_uninitialised_) return false;
  const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kPageBytes - address % kPageBytes));
  return is_undefined(warp, address, first) || (first < bytes && is_undefined(warp, address + first, bytes - first));
}

void GlobalShadow::mark_defined(Warp& warp, std::uint64_t address, std::uint64_t bytes, bool overwrites) {
  if (!check_uninitialised_ && !check_races_) return;
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const std::uint64_t next = std::min(end, (address / kPageBytes + 1) * kPageBytes);
    SharedMemory& shadow = page(warp, address / kPageBytes);
    const std::uint64_t in_page = kSharedBase + address % kPageBytes;
    const auto count = static_cast<std::uint32_t>(next - address);
    overwrites ? shadow.mark_overwritten(in_page, count) : shadow.mark_defined(in_page, count);
    address = next;
  }
}

void GlobalShadow::check_async_read(Warp& warp, const Instruction& in, int lane, std::uint64_t address,
                                    std::uint64_t bytes, std::string_view verb) {
  if (!check_races_) return;
  const std::uint64_t end = address + bytes;
  for (std::uint64_t at = address; at < end;) {
    const std::uint64_t next = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    const SharedMemory& shadow = page(warp, at / kPageBytes);
    const std::uint64_t in_page = kSharedBase + at % kPageBytes;
    const auto count = static_cast<std::uint32_t>(next - at);
    at = next;
    const auto unfenced = shadow.find_write_after(warp.clocks.grid_proxy_fenced, in_page, count);
    if (!unfenced) continue;
    if (const auto unordered = shadow.find_write_after(warp.clocks.grid, in_page, count)) {
      warp.report(Severity::error, FindingKind::global_race, in, lane, address, [&] {
        return fmt::format("{} of {} bytes at global address {:#x}, not ordered after the write by {}", verb, bytes,
                           address, describe(warp, *unordered));
      });
    } else {
      warp.report(Severity::error, FindingKind::missing_proxy_fence, in, lane, address, [&] {
        return fmt::format(
            "{} of {} bytes at global address {:#x} through the async proxy, with no fence.proxy.async after the write "
            "by {}",
            verb, bytes, address, describe(warp, *unfenced));
      });
    }
    return;
  }
}

void GlobalShadow::check_non_coherent(Warp& warp, const Instruction& in, int lane, std::uint64_t address,
                                      std::uint32_t bytes) {
  static const VectorClock kStart;
  const auto write =
      page(warp, address / kPageBytes).find_write_after(kStart, kSharedBase + address % kPageBytes, bytes);
  if (!write) return;
  warp.report(Severity::warning, FindingKind::non_coherent_read, in, lane, address, [&] {
    return fmt::format(
        "read of {} bytes at global address {:#x} through the non-coherent cache, which may have the bytes from before "
        "the write by {}",
        bytes, address, describe(warp, *write));
  });
}

void GlobalShadow::note_async(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool writes) {
  if (early_ != nullptr) note_early(warp, address, bytes, writes);
  (writes ? async_.writes : async_.reads).add(address, address + bytes);
}

void GlobalShadow::note_early(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool writes,
                              bool is_strong) {
  if (warp.clocks.follows_grids) return;
  ByteRanges& ranges = is_strong && writes ? early_->updates : writes ? early_->writes : early_->reads;
  ranges.add(address, address + bytes);
  constexpr std::size_t kManyRanges = std::size_t{1} << 16;  // most often of the same bytes
  if (ranges.ranges().size() % kManyRanges == 0) ranges.normalise();
}

void GlobalShadow::add_to(Footprint& footprint) const {
  footprint = async_;
  for (const auto& [number, shadow] : pages_) shadow->add_to(footprint, number * kPageBytes);
  footprint.normalise();
}

void GlobalShadow::remove_written(UnwrittenBytes& unwritten) {
  for (const auto& [number, shadow] : pages_) {
    const std::uint64_t begin = number * kPageBytes;
    for (const auto& [low, high] : unwritten.within(begin, begin + kPageBytes)) {
      shadow->each_written(kSharedBase + (low - begin), static_cast<std::uint32_t>(high - low),
                           [&, page = begin](std::uint64_t from, std::uint64_t to) {
                             unwritten.remove(page + (from - kSharedBase), page + (to - kSharedBase));
                           });
    }
  }
}

Mask GlobalShadow::access_lanes(Warp& warp, const Instruction& in, Mask lanes, const std::uint64_t* addresses,
                                std::uint32_t bytes, bool writes) {
  const Accessor accessor = accessor_of(warp, in, 0);
  if (early_ != nullptr) each_lane(lanes, [&](int l) { note_early(warp, addresses[l], bytes, writes); });
  Mask others = 0;
  if (lanes == kAllLanes) {  // most often all lanes are on one page
    std::uint64_t differences = 0;
    for (int l = 1; l < kWarpSize; ++l) differences |= addresses[l] ^ addresses[0];
    const std::uint64_t number = addresses[0] / kPageBytes;
    if (differences < kPageBytes) {
      return page(warp, number)
          .access_lanes(warp.clocks.grid, accessor, addresses, number * kPageBytes - kSharedBase, lanes, bytes, writes);
    }
  }
  while (lanes != 0) {
    // The first lanes whose addresses are on one page.
    const std::uint64_t number = addresses[std::countr_zero(lanes)] / kPageBytes;
    Mask same = 0;
    for (Mask left = lanes; left != 0 && addresses[std::countr_zero(left)] / kPageBytes == number; left &= left - 1) {
      same |= left & (~left + 1);
    }
    others |= page(warp, number)
                  .access_lanes(warp.clocks.grid, accessor, addresses, number * kPageBytes - kSharedBase, same, bytes,
                                writes);
    lanes &= ~same;
  }
  return others;
}

bool GlobalShadow::access(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                          AccessKind kind, const std::byte* value, const LanePointers& how) {
  SharedMemory& shadow = page(warp, address / kPageBytes);
  const Accessor accessor = accessor_of(warp, in, lane);
  const std::uint64_t in_page = kSharedBase + address % kPageBytes;
  if (early_ != nullptr && kind > AccessKind::write)
    note_early(warp, address, bytes, kind != AccessKind::strong_read, true);
  SharedVerdict verdict = SharedVerdict::ok;
  bool undefined = false;
  if (kind == AccessKind::read) {
    verdict = shadow.read(warp.clocks.grid, accessor, in_page, bytes);
  } else if (kind == AccessKind::write) {
    verdict = shadow.write(warp.clocks.grid, accessor, in_page, bytes);
  } else {
    const bool writes = kind != AccessKind::strong_read;
    undefined = kind != AccessKind::strong_write && shadow.is_undefined(in_page, bytes);
    Clocks clocks;
    clocks.ordered = std::move(warp.clocks.grid);
    clocks.proxy_fenced = std::move(warp.clocks.grid_proxy_fenced);
    clocks.follows_grids = warp.clocks.follows_grids;
    const std::uint64_t number = number_of(warp);
    const auto cta = static_cast<std::uint32_t>(number / warps_per_cta(warp));
    const auto cluster = static_cast<std::uint32_t>(warp.cta().cluster().linear_index());
    const StrongAccess strong{{how.scope, cta, cluster}, writes, how.releases, &warp.released, true, number};
    verdict = shadow.strong_access(clocks, strong, accessor, in_page, bytes);
    warp.clocks.grid = std::move(clocks.ordered);
    warp.clocks.grid_proxy_fenced = std::move(clocks.proxy_fenced);
    warp.clocks.follows_grids = clocks.follows_grids;
    if (writes) advance_clock(warp);
  }
  if (verdict == SharedVerdict::uninitialised) {
    undefined = true;
  } else if (verdict != SharedVerdict::ok) {
    report(warp, in, lane, address, bytes, kind, shadow, value, verdict);
  }
  return !undefined;
}

std::string GlobalShadow::describe(const Warp& warp, const Accessor& accessor) const {
  const Cta& cta = warp.cta();
  const std::uint64_t number = warp_of(accessor);
  const auto warps = static_cast<std::uint64_t>(cta.warps().size());
  const auto thread = static_cast<int>(number % warps * kWarpSize + accessor.lane);
  return fmt::format("thread {} of CTA {} at {}", to_string(cta.thread_index(thread)),
                     to_string(ctaid(static_cast<std::uint32_t>(number / warps), cta.launch().grid)),
                     cta.describe_location(accessor.code));
}

void GlobalShadow::report(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                          AccessKind kind, const SharedMemory& shadow, const std::byte* value,
                          SharedVerdict verdict) const {
  const Accessor& other = shadow.other();
  const bool reads = kind == AccessKind::read || kind == AccessKind::strong_read;
  const bool same_value = value != nullptr && !shadow.other_reads() &&
                          std::memcmp(reinterpret_cast<const std::byte*>(address), value, bytes) == 0;
  const bool is_mixed = verdict == SharedVerdict::mixed_race;
  if (is_mixed && tests_before_update(warp.program(), reads ? warp.code_index(in) : other.code)) return;
  const Severity severity = same_value || is_mixed ? Severity::warning : Severity::error;
  const auto other_thread = [&] { return describe(warp, other); };
  if (verdict == SharedVerdict::narrow_scope) {
    return warp.report(Severity::error, FindingKind::global_race, in, lane, address, [&] {
      return fmt::format(
          "{} of {} bytes at global address {:#x}, and the write by {}: the scope of one of them does not include the "
          "other thread",
          reads ? "read" : "write", bytes, address, other_thread());
    });
  }
  warp.report(severity, FindingKind::global_race, in, lane, address, [&] {
    return fmt::format("{} of {} bytes at global address {:#x}, not ordered after the {} by {}{}",
                       reads ? "read" : "write", bytes, address,
                       shadow.other_reads() ? "read"
                       : same_value         ? "write of the same value"
                                            : "write",
                       other_thread(), is_mixed ? ": one of them is atomic or volatile, the other is not" : "");
  });
}

}  // namespace tilewright::emulator
