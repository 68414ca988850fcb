// The interface of a device that runs kernels: a GPU through the CUDA driver, or the emulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/base/target.hpp"
#include "tilewright/base/tensor_map.hpp"

namespace tilewright::runtime {

/// An address in device memory. Arithmetic is in bytes.
using DeviceAddress = std::uint64_t;

/// The least alignment of allocations, in bytes.
inline constexpr std::size_t kAllocationAlignment = 256;

/// A stream of the device: a CUstream on a GPU. The emulator has only the null stream, and launches run synchronously.
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

/// A kernel as cubin and as PTX. The emulator needs PTX. A GPU uses the cubin; without one, its driver compiles the
/// PTX.
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
  Dim3 cluster{};  // CTAs per cluster; 1,1,1: no clusters
  std::uint32_t dynamic_smem_bytes = 0;
  bool programmatic_stream_serialization = false;
  bool cooperative = false;  // cooperative launch: all CTAs are resident at the same time
  /// The byte offset in `parameters` and the size of each parameter, for kernels with several. Empty: the kernel has
  /// one struct.
  std::span<const std::uint16_t> parameter_offsets{};
  std::span<const std::uint16_t> parameter_sizes{};
  StreamHandle stream = nullptr;
};

/// Identifies an order of execution: work of one stream, outside of captures or in the same graph capture, runs in the
/// order in which it was enqueued.
struct StreamOrder {
  std::uint64_t stream = 0;   // the id, which unlike a handle is never reused; within a capture, the handle
  std::uint64_t capture = 0;  // the id of the current capture; 0: not being captured
  bool operator==(const StreamOrder&) const = default;
};

/// A loaded kernel, which is unloaded when destroyed.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// Enqueues one launch. `parameters` is the kernel's single by-value struct, or the parameters that
  /// config.parameter_offsets describes. They are copied before return.
  /// @throws DriverError; EmulationError with kind, thread and line of the finding
  virtual void launch(const LaunchConfig& config, std::span<const std::byte> parameters) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProperties& properties() const = 0;

  /// Stream-ordered allocation from the device's pool, aligned to kAllocationAlignment. 0 bytes give a unique address.
  /// @throws OutOfMemory with requested, free and total bytes
  virtual DeviceAddress allocate(std::size_t bytes, StreamHandle stream) = 0;
  /// 0 is ignored. An address that is no allocation of this device is ignored and logged as an error.
  virtual void deallocate(DeviceAddress address, StreamHandle stream) noexcept = 0;
  /// Allocates zeroed memory that every stream may use on return. Allowed while a stream is being captured; the
  /// allocation is not part of the capture. @throws OutOfMemory
  virtual DeviceAddress allocate_zeros(std::size_t bytes) = 0;
  /// The bytes of allocations that are not yet deallocated.
  virtual std::size_t allocated_bytes() const = 0;

  virtual void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle stream) = 0;
  virtual void synchronize(StreamHandle stream) = 0;
  virtual StreamOrder order_of(StreamHandle stream) = 0;

  /// Loads a kernel and opts in to the largest dynamic shared memory that its static shared memory leaves.
  /// @throws InvalidArgument if that is less than `dynamic_smem_bytes`
  virtual std::shared_ptr<LoadedKernel> load(const Image& image, const std::string& symbol,
                                             std::uint32_t dynamic_smem_bytes) = 0;

  /// The encoded tensor map, valid for kernels of this device only.
  /// @throws InvalidArgument if check_encodable() refuses it; DriverError
  virtual EncodedTensorMap encode(const TensorMap& map) = 0;
};

/// Refused: what check(map) refuses; a null address, which the driver accepts; a target without TMA.
Support check_encodable(const TensorMap& map, const Target& target);

/// An owned allocation from a device's pool.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes, StreamHandle stream = nullptr);
  /// A buffer from Device::allocate_zeros(), freed on the null stream.
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
