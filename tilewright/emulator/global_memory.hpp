// The emulated device's global memory: host memory, allocations with red zones between them, and bounds checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// Who asked for an allocation: a caller of the device, or a module for its variables.
enum class Owner : std::uint8_t { caller, module };

/// The bytes [begin, end) of one allocation.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Owner owner = Owner::caller;
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

/// The allocations that live while a kernel runs.
class RegionMap {
 public:
  explicit RegionMap(std::vector<Region> sorted) : regions_(std::move(sorted)) {}

  /// The allocation that has these bytes; null when none has them all.
  const Region* find(std::uint64_t address, std::uint64_t bytes) const;
  /// "12 bytes past the end of a 4096-byte allocation"
  std::string describe(std::uint64_t address) const;

 private:
  std::vector<Region> regions_;
};

/// Thread-safe. Addresses are host addresses, aligned to 256 bytes, at least 256 bytes apart; new memory is all ones
/// (NaN in every float type), so that a kernel that reads what nobody wrote is seen.
class GlobalMemory {
 public:
  explicit GlobalMemory(std::int64_t limit_bytes) : limit_(static_cast<std::size_t>(limit_bytes)) {}
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// @throws OutOfMemory, what check_interruption() throws
  runtime::DeviceAddress allocate(std::size_t bytes, Owner owner = Owner::caller);
  /// Does nothing for an address that allocate() did not give.
  void deallocate(runtime::DeviceAddress address) noexcept;
  /// Bytes of the owner's allocations that live.
  std::size_t allocated_bytes(Owner owner) const;
  RegionMap snapshot() const;

  /// The host's view of device bytes. @throws EmulationError when they are not in one allocation
  std::byte* host_pointer(runtime::DeviceAddress address, std::size_t bytes) const;

 private:
  std::size_t free_bytes() const;

  mutable ForkSafeMutex mutex_;
  std::vector<Region> regions_;             // by address; each owns its host memory, red zones included
  std::array<std::size_t, 2> allocated_{};  // by owner
  std::size_t limit_ = 0;
};

}  // namespace tilewright::emulator
