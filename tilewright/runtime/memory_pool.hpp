// Device memory from the driver's stream-ordered pool, with an initial and a maximum size.
#pragma once

#include <memory>
#include <unordered_map>

#include "tilewright/base/fork.hpp"
#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

struct MemoryPoolOptions {
  std::size_t initial_bytes = 0;  // taken from the GPU at once
  std::size_t maximum_bytes = 0;  // of allocations alive together; 0: as much as the GPU has
  bool operator==(const MemoryPoolOptions&) const = default;
};

/// Thread-safe. What is freed stays in the pool for the next allocation until the pool is destroyed or trimmed.
class MemoryPool {
 public:
  /// @throws InvalidArgument when initial_bytes exceeds a set maximum_bytes or the GPU has no pools, OutOfMemory when
  /// the initial size does not fit, DriverError.
  MemoryPool(std::shared_ptr<CudaContext> context, const MemoryPoolOptions& options);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  /// Usable by work enqueued on `stream` from now on; elsewhere after synchronising. 0 bytes give a unique address.
  /// @throws OutOfMemory with requested, allocated, maximum and free bytes; InvalidArgument on a stream under capture,
  /// which stays valid; DriverError.
  DeviceAddress allocate(std::size_t bytes, StreamHandle stream);
  /// Freed once the work enqueued on `stream` so far is done. Under capture of `stream` the memory stays allocated
  /// until the pool is destroyed, since the captured graph may use it at every replay.
  void deallocate(DeviceAddress address, StreamHandle stream) noexcept;

  /// The sum of the sizes asked for and not yet deallocated.
  std::size_t allocated_bytes() const;
  /// What the pool holds of the GPU's memory, free pieces included. @throws DriverError
  std::size_t pool_bytes() const;
  /// Gives unused memory back to the GPU. @throws DriverError
  void trim();

 private:
  void reserve_initial();
  bool captures(StreamHandle stream) const noexcept;
  /// Whether it was an allocation.
  bool forget(DeviceAddress address);
  DriverCode try_allocate(std::size_t bytes, StreamHandle stream, DeviceAddress* address) const;
  [[noreturn]] void refuse(std::size_t bytes, std::size_t allocated) const;

  std::shared_ptr<CudaContext> context_;
  MemoryPoolOptions options_;
  PoolHandle handle_ = nullptr;

  mutable ForkSafeMutex mutex_;
  std::unordered_map<DeviceAddress, std::size_t> sizes_;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace tilewright::runtime
