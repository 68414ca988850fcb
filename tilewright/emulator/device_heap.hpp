// The heap that kernels allocate from by malloc() and new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tilewright::emulator {

/// Divides a part of global memory. Blocks are kept from launch to launch until they are freed. Thread-safe.
class DeviceHeap {
 public:
  /// The default of cudaLimitMallocHeapSize.
  static constexpr std::size_t kBytes = std::size_t{8} << 20;

  explicit DeviceHeap(std::uint64_t begin) : begin_(begin) {}

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + kBytes; }
  /// An address that is a multiple of 16; 0 if no space is left.
  std::uint64_t allocate(std::uint64_t bytes);
  /// False if allocate() did not return the address, or it was freed.
  bool deallocate(std::uint64_t address);

 private:
  const std::uint64_t begin_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> blocks_;  // end by begin
};

}  // namespace tilewright::emulator
