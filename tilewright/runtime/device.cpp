// The check of tensor maps that all devices share, and DeviceBuffer.
#include "tilewright/runtime/device.hpp"

#include <utility>

#include "tilewright/base/target_features.hpp"

namespace tilewright::runtime {

Support check_encodable(const TensorMap& map, const Target& target) {
  if (map.address == 0) return refuse("the address of a tensor map must not be null, got {:#x}", map.address);
  if (Support rules = check(map); !rules) return rules;
  return check_feature(target, TargetFeature::tma);
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes, StreamHandle stream)
    : device_(std::move(device)), address_(device_->allocate(bytes, stream)), bytes_(bytes), stream_(stream) {}

DeviceBuffer DeviceBuffer::of_zeros(std::shared_ptr<Device> device, std::size_t bytes) {
  DeviceBuffer buffer;
  buffer.device_ = std::move(device);
  buffer.address_ = buffer.device_->allocate_zeros(bytes);
  buffer.bytes_ = bytes;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      stream_(std::exchange(other.stream_, nullptr)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  DeviceBuffer moved(std::move(other));
  std::swap(device_, moved.device_);
  std::swap(address_, moved.address_);
  std::swap(bytes_, moved.bytes_);
  std::swap(stream_, moved.stream_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (device_ != nullptr && address_ != 0) device_->deallocate(address_, stream_);
}

}  // namespace tilewright::runtime
