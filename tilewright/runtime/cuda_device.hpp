// A GPU as a Device.
#pragma once

#include <memory>
#include <string>

#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/device.hpp"
#include "tilewright/runtime/memory_pool.hpp"

namespace tilewright::runtime {

/// Thread-safe; a thread needs no current context. Kernels and buffers may outlive it.
class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<CudaContext> context, const MemoryPoolOptions& pool);

  const DeviceProperties& properties() const override { return context_->properties(); }
  DeviceAddress allocate(std::size_t bytes, StreamHandle stream) override;
  void deallocate(DeviceAddress address, StreamHandle stream) noexcept override;
  DeviceAddress allocate_zeros(std::size_t bytes) override;
  std::size_t allocated_bytes() const override { return pool_.allocated_bytes(); }

  /// Pageable memory may be reused on return. Pinned memory must stay valid until the copy has executed on the stream.
  void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) override;
  void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) override;
  void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle stream) override;
  void synchronize(StreamHandle stream) override;
  StreamOrder order_of(StreamHandle stream) override;

  /// @throws InvalidArgument if the image has neither a valid cubin nor PTX; DriverError
  std::shared_ptr<LoadedKernel> load(const Image& image, const std::string& symbol,
                                     std::uint32_t dynamic_smem_bytes) override;
  EncodedTensorMap encode(const TensorMap& map) override;

  /// The context, for streams and events on this GPU.
  const std::shared_ptr<CudaContext>& context() const { return context_; }
  MemoryPool& pool() { return pool_; }

 private:
  std::shared_ptr<CudaContext> context_;
  MemoryPool pool_;
};

/// Opens GPU `ordinal` with its own memory pool. Devices that share a `driver` share the state after a fatal error.
/// @throws ToolchainNotFound without a usable driver or GPU, InvalidArgument if there is no GPU with this ordinal,
/// OutOfMemory, DriverError
std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool = {},
                                             const DriverOptions& driver = {});
std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool,
                                             std::shared_ptr<Driver> driver);

/// The number of GPUs. If there is no usable driver or no GPU, 0, and the reason is stored in `why_none` if given.
int cuda_device_count(std::string* why_none = nullptr, const DriverOptions& driver = {});

}  // namespace tilewright::runtime
