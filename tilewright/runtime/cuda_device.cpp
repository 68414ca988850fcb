// Implementation of Device with the CUDA driver.
#include "tilewright/runtime/cuda_device.hpp"

#include <utility>

#include "tilewright/base/text.hpp"
#include "tilewright/runtime/capture.hpp"
#include "tilewright/runtime/encode_tensor_map.hpp"
#include "tilewright/runtime/module.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {

CudaDevice::CudaDevice(std::shared_ptr<CudaContext> context, const MemoryPoolOptions& pool)
    : context_(std::move(context)), pool_(context_, pool) {}

DeviceAddress CudaDevice::allocate(std::size_t bytes, StreamHandle stream) { return pool_.allocate(bytes, stream); }

void CudaDevice::deallocate(DeviceAddress address, StreamHandle stream) noexcept { pool_.deallocate(address, stream); }

DeviceAddress CudaDevice::allocate_zeros(std::size_t bytes) {
  const ContextScope scope(*context_);
  const RelaxedCapture relaxed(context_->driver());
  const Stream stream(
      context_);  // not the null stream: it synchronises with captured streams, and the driver refuses that
  const DeviceAddress address = pool_.allocate(bytes, stream.handle());
  try {
    context_->driver().fill_bytes(address, 0, bytes, stream.handle());
    stream.synchronize();
  } catch (...) {
    pool_.deallocate(address, stream.handle());
    throw;
  }
  return address;
}

void CudaDevice::copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  context_->driver().copy_host_to_device(to, from, bytes, stream);
}

void CudaDevice::copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  context_->driver().copy_device_to_host(to, from, bytes, stream);
}

void CudaDevice::fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  context_->driver().fill_bytes(to, value, bytes, stream);
}

void CudaDevice::synchronize(StreamHandle stream) {
  const ContextScope scope(*context_);
  context_->driver().stream_synchronize(stream);
}

StreamOrder CudaDevice::order_of(StreamHandle stream) {
  const ContextScope scope(*context_);
  // cuStreamGetId is not permitted on a stream that is being captured, and invalidates the capture. Within one capture
  // the handle identifies the stream.
  if (const std::uint64_t capture = capture_id(context_->driver(), stream); capture != 0)
    return {.stream = reinterpret_cast<std::uintptr_t>(stream), .capture = capture};
  StreamOrder order;
  context_->driver().stream_get_id(stream, &order.stream);
  return order;
}

std::shared_ptr<LoadedKernel> CudaDevice::load(const Image& image, const std::string& symbol,
                                               std::uint32_t dynamic_smem_bytes) {
  if (image.cubin.empty() && image.ptx.empty())
    throw InvalidArgument(fmt::format("{}: the image has neither a cubin nor PTX", printable(symbol)));
  return std::make_shared<CudaKernel>(context_, image, symbol, dynamic_smem_bytes);
}

EncodedTensorMap CudaDevice::encode(const TensorMap& map) {
  check_encodable(map, properties().target).or_throw();
  const ContextScope scope(*context_);
  Driver& driver = context_->driver();
  if (!driver.kernel_get_param_info.present()) {  // else CudaKernel::launch would pass the map in a buffer
    throw InvalidArgument("tensor maps need a driver that reports the sizes of kernel parameters (CUDA 12.4 or newer)");
  }
  return encode_tensor_map(driver, map);
}

std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool, const DriverOptions& driver) {
  return open_cuda_device(ordinal, pool, std::make_shared<Driver>(driver));
}

std::shared_ptr<CudaDevice> open_cuda_device(int ordinal, const MemoryPoolOptions& pool,
                                             std::shared_ptr<Driver> driver) {
  return std::make_shared<CudaDevice>(std::make_shared<CudaContext>(std::move(driver), ordinal), pool);
}

int cuda_device_count(std::string* why_none, const DriverOptions& options) {
  int count = 0;
  std::string reason = "the driver reports no GPU";
  try {
    Driver driver(options);
    driver.initialize();
    driver.device_get_count(&count);
  } catch (const Error& error) {
    reason = error.what();
  }
  if (why_none != nullptr) *why_none = count == 0 ? reason : "";
  return count;
}

}  // namespace tilewright::runtime
