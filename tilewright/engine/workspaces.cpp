#include "tilewright/engine/workspaces.hpp"

#include <bit>
#include <utility>

namespace tilewright::engine {

runtime::DeviceAddress Workspaces::at_least(std::size_t bytes, runtime::StreamHandle stream) {
  const runtime::StreamOrder order = device_->order_of(stream);
  const std::scoped_lock lock(mutex_);
  runtime::DeviceBuffer& buffer = buffers_[order];
  if (buffer.bytes() >= bytes) return buffer.address();
  // Sizes are powers of two, so that all outgrown buffers together are smaller than the current one.
  runtime::DeviceBuffer larger = runtime::DeviceBuffer::of_zeros(device_, std::bit_ceil(bytes));
  std::swap(buffer, larger);
  if (larger.bytes() != 0) outgrown_.push_back(std::move(larger));
  return buffer.address();
}

}  // namespace tilewright::engine
