// Stream-ordered allocation with accounting.
#include "tilewright/runtime/memory_pool.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tilewright/runtime/capture.hpp"

namespace tilewright::runtime {

MemoryPool::MemoryPool(std::shared_ptr<CudaContext> context, const MemoryPoolOptions& options)
    : context_(std::move(context)), options_(options) {
  if (options.maximum_bytes != 0 && options.initial_bytes > options.maximum_bytes) {
    throw InvalidArgument(fmt::format("memory pool: the initial size {} exceeds the maximum {}", options.initial_bytes,
                                      options.maximum_bytes));
  }
  if (context_->attribute(GpuAttribute::memory_pools_supported) == 0) {
    throw InvalidArgument(fmt::format("{} does not support stream-ordered memory pools", context_->properties().name));
  }
  const ContextScope scope(*context_);
  Driver& driver = context_->driver();
  const PoolProperties properties{.location_id = context_->gpu()};
  driver.mem_pool_create(&handle_, &properties);
  try {
    std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
    driver.mem_pool_set_attribute(handle_, PoolAttribute::release_threshold, &keep_all);
    reserve_initial();
  } catch (...) {
    release(*context_, driver.mem_pool_destroy, handle_);
    throw;
  }
}

MemoryPool::~MemoryPool() {
  for (const auto& [address, bytes] : sizes_) release(*context_, context_->driver().mem_free, address, nullptr);
  release(*context_, context_->driver().mem_pool_destroy, handle_);
}

void MemoryPool::reserve_initial() {
  if (options_.initial_bytes == 0) return;
  Driver& driver = context_->driver();
  DeviceAddress address = 0;
  const DriverCode code = try_allocate(options_.initial_bytes, nullptr, &address);
  if (code == kOutOfMemory) refuse(options_.initial_bytes, 0);
  driver.check(code, driver.mem_alloc_from_pool.symbol());
  driver.mem_free(address, nullptr);
  driver.stream_synchronize(nullptr);
}

DriverCode MemoryPool::try_allocate(std::size_t bytes, StreamHandle stream, DeviceAddress* address) const {
  Driver& driver = context_->driver();
  const RelaxedCapture relaxed(driver);
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const DriverCode code = driver.mem_alloc_from_pool.raw(address, size, handle_, stream);
  if (code != kOutOfMemory) return code;
  // Free memory of the pool may be fragmented: return it to the GPU and try again.
  driver.mem_pool_trim_to.raw(handle_, 0);
  return driver.mem_alloc_from_pool.raw(address, size, handle_, stream);
}

DeviceAddress MemoryPool::allocate(std::size_t bytes, StreamHandle stream) {
  const ContextScope scope(*context_);
  Driver& driver = context_->driver();
  if (is_capturing(driver, stream)) {
    throw InvalidArgument(fmt::format(
        "cannot allocate {} bytes on a stream under graph capture: allocate before the capture begins", bytes));
  }
  const std::scoped_lock lock(mutex_);
  if (options_.maximum_bytes != 0 && bytes > options_.maximum_bytes - allocated_bytes_) refuse(bytes, allocated_bytes_);
  DeviceAddress address = 0;
  const DriverCode code = try_allocate(bytes, stream, &address);
  if (code == kOutOfMemory) refuse(bytes, allocated_bytes_);
  driver.check(code, driver.mem_alloc_from_pool.symbol());
  sizes_.emplace(address, bytes);
  allocated_bytes_ += bytes;
  return address;
}

void MemoryPool::deallocate(DeviceAddress address, StreamHandle stream) noexcept {
  if (address == 0 || is_captured(stream)) return;
  if (!forget(address)) {
    spdlog::error("ignored: deallocate of 0x{:x}, which is not an allocation of this pool", address);
    return;
  }
  const RelaxedCapture relaxed(context_->driver());
  release(*context_, context_->driver().mem_free, address, stream);
}

// Separate from deallocate(), which must not log while it holds the lock: a log sink may wait for another thread that
// waits for the lock.
bool MemoryPool::forget(DeviceAddress address) {
  const std::scoped_lock lock(mutex_);
  const auto entry = sizes_.find(address);
  if (entry == sizes_.end()) return false;
  allocated_bytes_ -= entry->second;
  sizes_.erase(entry);
  return true;
}

bool MemoryPool::is_captured(StreamHandle stream) const noexcept {
  try {
    const ContextScope scope(*context_);
    return is_capturing(context_->driver(), stream);
  } catch (const std::exception&) {
    return false;
  }
}

void MemoryPool::refuse(std::size_t bytes, std::size_t allocated) const {
  std::size_t free = 0;
  std::size_t total = 0;
  context_->driver().mem_get_info(&free, &total);
  const std::string maximum = options_.maximum_bytes == 0 ? "none" : fmt::format("{}", options_.maximum_bytes);
  throw OutOfMemory(
      fmt::format("out of device memory: requested {} bytes; allocated {}, pool maximum {}; the GPU has {} free of {}",
                  bytes, allocated, maximum, free, total));
}

std::size_t MemoryPool::allocated_bytes() const {
  const std::scoped_lock lock(mutex_);
  return allocated_bytes_;
}

std::size_t MemoryPool::pool_bytes() const {
  const ContextScope scope(*context_);
  std::uint64_t bytes = 0;
  context_->driver().mem_pool_get_attribute(handle_, PoolAttribute::reserved_bytes, &bytes);
  return bytes;
}

void MemoryPool::trim() {
  const ContextScope scope(*context_);
  context_->driver().mem_pool_trim_to(handle_, 0);
}

}  // namespace tilewright::runtime
