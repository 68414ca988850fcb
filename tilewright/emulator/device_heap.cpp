#include "tilewright/emulator/device_heap.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint64_t kAlignment = 16;

}  // namespace

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes) {
  if (bytes > kBytes) return 0;
  const std::uint64_t rounded = (bytes / kAlignment + 1) * kAlignment;  // at least one byte more than asked for
  const std::scoped_lock lock(mutex_);
  std::uint64_t at = begin_;
  for (const auto& [begin, end] : blocks_) {
    if (begin - at >= rounded) break;
    at = end;
  }
  if (begin_ + kBytes - at < rounded) return 0;
  blocks_.emplace(at, at + rounded);
  return at;
}

bool DeviceHeap::deallocate(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  return blocks_.erase(address) != 0;
}

}  // namespace tilewright::emulator
