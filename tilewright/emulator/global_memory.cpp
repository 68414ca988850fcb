// Allocation of host memory as device memory, and lookups by address.
#include "tilewright/emulator/global_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::size_t kRedZone = runtime::kAllocationAlignment;  // also keeps allocations aligned
/// Most red zone on one side of an allocation. It costs address space only, as no one touches its pages.
constexpr std::size_t kMostRedZone = std::size_t{64} << 20;
constexpr unsigned char kFill = 0xff;
constexpr std::size_t kMostFreed = 256;

constexpr std::size_t index(Owner owner) { return static_cast<std::size_t>(owner); }

/// Whether the process has memory at this address. Allocations of the device are not told from others.
bool is_host_memory(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t begin = 0, end = 0;
  char dash = 0;
  std::string access;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    if (fields >> std::hex >> begin >> dash >> end >> access && begin <= address && address < end)
      return access.starts_with('r');
  }
  return false;
}

/// Bytes on each side of an allocation: as many as it has, so that an index which is off by a whole array is found.
std::size_t red_zone(std::size_t bytes) { return std::clamp(round_up(bytes, kRedZone), kRedZone, kMostRedZone); }

void free_host_memory(const Region& region) {
  if (region.owner == Owner::host) return;
  std::free(reinterpret_cast<std::byte*>(region.begin) - red_zone(region.end - region.begin));
}

}  // namespace

const Region* RegionMap::find(std::uint64_t address, std::uint64_t bytes) const {
  const auto after = std::ranges::upper_bound(regions_, address, {}, &Region::begin);
  if (after == regions_.begin()) return nullptr;
  const Region& candidate = *(after - 1);
  return candidate.contains(address, bytes) ? &candidate : nullptr;
}

std::string RegionMap::describe(std::uint64_t address) const {
  constexpr std::uint64_t kFirstPage = 4096;  // no process has memory there
  if (address == 0) return "a null pointer";
  if (address < kFirstPage) return fmt::format("{} bytes after a null pointer", address);
  const auto after = std::ranges::upper_bound(regions_, address, {}, &Region::begin);
  const Region* const below = after == regions_.begin() ? nullptr : &*(after - 1);
  const Region* const above = after == regions_.end() ? nullptr : &*after;
  if (below != nullptr && address < below->end) {
    return fmt::format("the last {} bytes of a {}-byte allocation", below->end - address, below->end - below->begin);
  }
  const std::uint64_t past = below != nullptr ? address - below->end : ~std::uint64_t{0};
  const std::uint64_t before = above != nullptr ? above->begin - address : ~std::uint64_t{0};
  const bool in_red_zone = past < kRedZone || before <= kRedZone;
  if (!in_red_zone) {
    const auto freed = std::ranges::find_if(freed_, [&](const Region& each) { return each.contains(address, 1); });
    if (freed != freed_.end()) {
      return fmt::format("{} bytes into a {}-byte allocation that was freed", address - freed->begin,
                         freed->end - freed->begin);
    }
  }
  constexpr std::uint64_t kNear = std::uint64_t{1} << 32;
  std::string near;
  if (past <= before && past < kNear) {
    near = fmt::format("{} bytes past the end of a {}-byte allocation", past, below->end - below->begin);
  } else if (before < kNear) {
    near = fmt::format("{} bytes before the start of a {}-byte allocation", before, above->end - above->begin);
  }
  if (in_red_zone || !is_host_memory(address)) return near.empty() ? "in no allocation" : near;
  return near.empty() ? "in memory of the host" : fmt::format("in memory of the host, or {}", near);
}

GlobalMemory::~GlobalMemory() { std::ranges::for_each(regions_, free_host_memory); }

runtime::DeviceAddress GlobalMemory::allocate(std::size_t bytes, Owner owner) {
  const auto fail = [&](std::size_t free_bytes) {
    throw OutOfMemory(
        fmt::format("emulator: cannot allocate {} bytes: {} of {} bytes are free", bytes, free_bytes, limit_));
  };
  const std::size_t free_bytes = this->free_bytes();
  if (bytes > free_bytes) fail(free_bytes);
  const std::size_t rounded = round_up(bytes, kRedZone);
  std::unique_ptr<void, decltype(&std::free)> storage(std::aligned_alloc(kRedZone, rounded + 2 * red_zone(bytes)),
                                                      &std::free);
  if (!storage) fail(free_bytes);
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(storage.get()) + red_zone(bytes);
  fill_bytes(reinterpret_cast<std::byte*>(begin), kFill, rounded);
  const std::lock_guard lock(mutex_);
  // Checked again under the lock, as another thread may have allocated meanwhile.
  if (bytes > limit_ - allocated_[0] - allocated_[1]) fail(limit_ - allocated_[0] - allocated_[1]);
  regions_.insert(std::ranges::upper_bound(regions_, begin, {}, &Region::begin), Region{begin, begin + bytes, owner});
  static_cast<void>(storage.release());
  forget_freed(begin, begin + bytes);
  allocated_[index(owner)] += bytes;
  return begin;
}

bool GlobalMemory::lend(std::byte* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto after = std::ranges::upper_bound(regions_, begin, {}, &Region::begin);
  if (after != regions_.end() && after->begin < begin + bytes) return false;
  if (after != regions_.begin() && (after - 1)->end > begin) return false;
  regions_.insert(after, Region{begin, begin + bytes, Owner::host});
  forget_freed(begin, begin + bytes);
  allocated_[index(Owner::host)] += bytes;
  return true;
}

bool GlobalMemory::deallocate(runtime::DeviceAddress address, bool ends_its_life) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::lower_bound(regions_, address, {}, &Region::begin);
  if (found == regions_.end() || found->begin != address) return false;
  allocated_[index(found->owner)] -= found->end - found->begin;
  free_host_memory(*found);
  if (found->owner != Owner::module && ends_its_life && found->begin != found->end) {
    if (freed_.size() == kMostFreed) freed_.erase(freed_.begin());
    freed_.push_back(*found);
  }
  regions_.erase(found);
  return true;
}

void GlobalMemory::forget_freed(std::uint64_t begin, std::uint64_t end) {
  std::erase_if(freed_, [&](const Region& each) { return each.begin < end && begin < each.end; });
}

DeviceHeap& GlobalMemory::heap() {
  if (!heap_) heap_ = std::make_unique<DeviceHeap>(allocate(DeviceHeap::kBytes, Owner::module));
  return *heap_;
}

std::size_t GlobalMemory::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return limit_ - allocated_[0] - allocated_[1];
}

std::size_t GlobalMemory::allocated_bytes(Owner owner) const {
  const std::lock_guard lock(mutex_);
  return allocated_[index(owner)];
}

RegionMap GlobalMemory::snapshot() const {
  const std::lock_guard lock(mutex_);
  return RegionMap(regions_, freed_);
}

std::optional<Region> GlobalMemory::find(runtime::DeviceAddress address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto after = std::ranges::upper_bound(regions_, address, {}, &Region::begin);
  if (after == regions_.begin() || !(after - 1)->contains(address, bytes)) return std::nullopt;
  return *(after - 1);
}

std::byte* GlobalMemory::host_pointer(runtime::DeviceAddress address, std::size_t bytes) const {
  if (find(address, bytes)) return reinterpret_cast<std::byte*>(address);
  throw EmulationError(
      fmt::format("emulator: copy or fill of {} bytes at {:#x} is not inside one allocation", bytes, address));
}

}  // namespace tilewright::emulator
