// A device that runs kernels: a GPU through the CUDA driver, or the emulator. Host code sees only this interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/base/target.hpp"
#include "tilewright/runtime/tensor_map.hpp"

namespace tilewright::runtime {

/// An address in device memory. Arithmetic is in bytes.
using DeviceAddress = std::uint64_t;

/// A stream of the device: a CUstream on a GPU; the emulator has only the null one and runs at once.
using StreamHandle = void*;

struct DeviceProperties {
  std::string name;  // "NVIDIA H200", "emulator:sm_90a"
  Target target;
  bool emulated = false;
  int ordinal = 0;
  int sm_count = 0;
  int clock_khz = 0;  // boost clock
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t smem_per_block_bytes = 0;  // opt-in maximum of dynamic shared memory
  std::int64_t smem_per_sm_bytes = 0;
  int registers_per_sm = 0;
};

/// The two forms of one kernel. The emulator takes PTX; a GPU the cubin, or has its driver compile the PTX.
struct Image {
  std::span<const std::byte> cubin;
  std::string_view ptx;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

struct LaunchConfig {
  Dim3 grid{};     // CTAs
  Dim3 block{};    // threads
  Dim3 cluster{};  // CTAs a cluster; 1,1,1 for none
  std::uint32_t dynamic_smem_bytes = 0;
  bool programmatic_stream_serialization = false;
  bool cooperative = false;  // all CTAs are resident at once, and may wait for each other
  /// Where each parameter lies in the bytes of the launch and how many it has, for kernels of more than one; empty:
  /// there is one struct.
  std::span<const std::uint16_t> parameter_offsets{};
  std::span<const std::uint16_t> parameter_sizes{};
  StreamHandle stream = nullptr;
};

/// What runs one after another: work of one stream, and, of a graph capture under way, what the capture takes from it.
struct StreamOrder {
  std::uint64_t stream = 0;   // unlike a handle, never used again
  std::uint64_t capture = 0;  // 0: none under way
  bool operator==(const StreamOrder&) const = default;
};

/// A loaded kernel. Unloads when destroyed.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// Enqueues one launch. `parameters` is the kernel's single by-value struct, or what the launch's offsets say; copied
  /// before return.
  /// @throws DriverError, or EmulationError with the finding's kind, thread and line.
  virtual void launch(const LaunchConfig& config, std::span<const std::byte> parameters) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProperties& properties() const = 0;

  /// Stream-ordered allocation from the device's pool, at least 256-byte aligned. size 0 gives a unique address.
  /// @throws OutOfMemory with requested, free and total bytes.
  virtual DeviceAddress allocate(std::size_t bytes, StreamHandle stream) = 0;
  virtual void deallocate(DeviceAddress address, StreamHandle stream) noexcept = 0;
  /// Zeros, ready for every stream on return; also while a stream is captured, of which it becomes no part.
  /// @throws OutOfMemory
  virtual DeviceAddress allocate_zeros(std::size_t bytes) = 0;
  /// Bytes allocated through allocate() and not yet deallocated.
  virtual std::size_t allocated_bytes() const = 0;

  virtual void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle stream) = 0;
  virtual void synchronize(StreamHandle stream) = 0;
  virtual StreamOrder order_of(StreamHandle stream) = 0;

  /// Loads a kernel, to which all dynamic shared memory that its static memory leaves is made available once, here.
  /// @throws InvalidArgument where that is less than `dynamic_smem_bytes`
  virtual std::shared_ptr<LoadedKernel> load(const Image& image, const std::string& symbol,
                                             std::uint32_t dynamic_smem_bytes) = 0;

  /// The tensor map for kernels of this device. The bytes mean nothing to another device.
  /// @throws InvalidArgument where check(description) refuses, and on a device before sm_90; DriverError
  virtual TensorMap encode(const TensorMapDescription& description) = 0;
};

/// An owned piece of a device's pool.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes, StreamHandle stream = nullptr);
  /// Of Device::allocate_zeros; freed when the null stream gets there.
  static DeviceBuffer of_zeros(std::shared_ptr<Device> device, std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  DeviceAddress address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
  StreamHandle stream_ = nullptr;
};

}  // namespace tilewright::runtime
