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

  /// From pageable memory the copy is done with `from` on return; pinned memory must live until the stream gets there.
  void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) override;
  void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) override;
  void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle stream) override;
  void synchronize(StreamHandle stream) override;
  StreamOrder order_of(StreamHandle stream) override;

  /// @throws InvalidArgument when the image has no whole cubin; DriverError.
  std::shared_ptr<LoadedKernel> load(const Image& image, const std::string& symbol,
                                     std::uint32_t dynamic_smem_bytes) override;
  TensorMap encode(const TensorMapDescription& description) override;

  /// For streams and events on this GPU, and the driver itself.
  const std::shared_ptr<CudaContext>& context() const { return context_; }
  MemoryPool& pool() { return pool_; }

 private:
  std::shared_ptr<CudaContext> context_;
  MemoryPool pool_;
};

/// The GPU `ordinal`, with a pool of its own. Devices that share a `driver` share its poisoned state.
/// @throws ToolchainNotFound without a usable driver or GPU, InvalidArgument for an ordinal this machine lacks,
/// OutOfMemory, DriverError.
std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool = {},
                                             const DriverOptions& driver = {});
std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool,
                                             std::shared_ptr<Driver> driver);

/// How many GPUs there are. 0 with a reason in `why_none`, if given, when there is no usable driver or no GPU.
int cuda_device_count(std::string* why_none = nullptr, const DriverOptions& driver = {});

}  // namespace tilewright::runtime
