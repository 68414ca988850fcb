// The emulated device's global memory: host memory, allocations with red zones between them, and bounds checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/emulator/device_heap.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// The owner of an allocation: a caller of the device, a module for its variables, or the host, which lends memory.
enum class Owner : std::uint8_t { caller, module, host };

/// The bytes [begin, end) of one allocation.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Owner owner = Owner::caller;
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

/// The allocations that exist while a kernel runs.
class RegionMap {
 public:
  /// `freed` has allocations that do not exist any longer, the last one at the end; none overlaps another one.
  explicit RegionMap(std::vector<Region> sorted, std::vector<Region> freed = {})
      : regions_(std::move(sorted)), freed_(std::move(freed)) {}

  const std::vector<Region>& regions() const { return regions_; }
  /// The allocation that contains all these bytes; null when there is none.
  const Region* find(std::uint64_t address, std::uint64_t bytes) const;
  /// "12 bytes past the end of a 4096-byte allocation", "16 bytes into a 4096-byte allocation that was freed", "in
  /// memory of the host", "a null pointer", "in no allocation"
  std::string describe(std::uint64_t address) const;

 private:
  std::vector<Region> regions_;
  std::vector<Region> freed_;
};

/// Thread-safe. Addresses are host addresses, aligned to runtime::kAllocationAlignment, with red zones of at least as
/// many bytes between allocations. New memory is filled with ones, which is NaN in every float type, so that
/// uninitialised reads show in a kernel's results.
class GlobalMemory {
 public:
  explicit GlobalMemory(std::int64_t limit_bytes) : limit_(static_cast<std::size_t>(limit_bytes)) {}
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// @throws OutOfMemory, and as check_interruption()
  runtime::DeviceAddress allocate(std::size_t bytes, Owner owner = Owner::caller);
  /// Makes memory of the host accessible to kernels, until deallocate(). False if it overlaps an allocation.
  bool lend(std::byte* memory, std::size_t bytes);
  /// Does nothing, and returns false, for an address that allocate() did not return, and lend() did not get. describe()
  /// of a snapshot knows addresses that were freed, if `ends_its_life`: not those of memory that is only no longer
  /// lent.
  bool deallocate(runtime::DeviceAddress address, bool ends_its_life = true) noexcept;
  /// Total size of the owner's allocations.
  std::size_t allocated_bytes(Owner owner) const;
  RegionMap snapshot() const;
  /// The heap of kernels, which is allocated by the first call. @throws OutOfMemory
  DeviceHeap& heap();

  /// Host pointer to device bytes. @throws EmulationError when they are not inside one allocation
  std::byte* host_pointer(runtime::DeviceAddress address, std::size_t bytes) const;
  /// The allocation that these bytes are in.
  std::optional<Region> find(runtime::DeviceAddress address, std::size_t bytes) const;

 private:
  std::size_t free_bytes() const;
  void forget_freed(std::uint64_t begin, std::uint64_t end);

  mutable ForkSafeMutex mutex_;
  std::vector<Region> regions_;             // sorted by address; each owns its host memory and its red zones
  std::vector<Region> freed_;               // the last ones, whose bytes are in no allocation now
  std::array<std::size_t, 3> allocated_{};  // bytes, by Owner
  std::size_t limit_ = 0;
  std::unique_ptr<DeviceHeap> heap_;
};

}  // namespace tilewright::emulator
