// Device memory from a stream-ordered pool of the driver, with an initial and a maximum size.
#pragma once

#include <memory>
#include <unordered_map>

#include "tilewright/base/fork.hpp"
#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

struct MemoryPoolOptions {
  std::size_t initial_bytes = 0;  // reserved on construction
  std::size_t maximum_bytes = 0;  // limit of the sum of all allocations; 0: no limit
  bool operator==(const MemoryPoolOptions&) const = default;
};

/// Thread-safe. Freed memory stays in the pool until the pool is trimmed or destroyed.
class MemoryPool {
 public:
  /// @throws InvalidArgument if initial_bytes exceeds maximum_bytes or the GPU does not support pools; OutOfMemory if
  /// the initial size does not fit; DriverError
  MemoryPool(std::shared_ptr<CudaContext> context, const MemoryPoolOptions& options);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  /// Work enqueued on `stream` from now on may use the memory; other streams must synchronise first. 0 bytes give a
  /// unique address. @throws OutOfMemory with requested, allocated, maximum and free bytes; InvalidArgument on a stream
  /// that is being captured, whose capture remains valid; DriverError
  DeviceAddress allocate(std::size_t bytes, StreamHandle stream);
  /// Frees the memory when the work enqueued on `stream` so far has completed. If `stream` is being captured, the
  /// memory stays allocated until the pool is destroyed, because the graph may use it in every replay.
  void deallocate(DeviceAddress address, StreamHandle stream) noexcept;

  /// The sum of the requested sizes of all current allocations.
  std::size_t allocated_bytes() const;
  /// The GPU memory that the pool has reserved, including free memory. @throws DriverError
  std::size_t pool_bytes() const;
  /// Returns free memory of the pool to the GPU. @throws DriverError
  void trim();

 private:
  void reserve_initial();
  bool is_captured(StreamHandle stream) const noexcept;
  /// Removes the allocation from the accounting. False if there is none.
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
