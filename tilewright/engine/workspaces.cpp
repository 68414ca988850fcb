#include "tilewright/engine/workspaces.hpp"

#include <algorithm>
#include <bit>

namespace tilewright::engine {

Workspaces::Lease::~Lease() {
  if (owner_ == nullptr) return;
  const std::scoped_lock lock(owner_->mutex_);
  buffer_->is_leased = false;
  buffer_->is_unknown = !is_launched_;
}

Workspaces::Lease Workspaces::lease(std::size_t bytes, runtime::StreamHandle stream) {
  Buffer& buffer = take(bytes, device_->order_of(stream));
  Lease lease(*this, buffer);
  if (buffer.is_unknown) device_->fill(lease.address(), 0, buffer.memory.bytes(), stream);
  return lease;
}

Workspaces::Buffer& Workspaces::take(std::size_t bytes, const runtime::StreamOrder& order) {
  const std::scoped_lock lock(mutex_);
  std::deque<Buffer>& buffers = buffers_[order];
  auto idle = std::ranges::find_if(buffers,
                                   [&](const Buffer& each) { return !each.is_leased && each.memory.bytes() >= bytes; });
  if (idle == buffers.end()) {
    // Sizes are powers of two, so that all buffers that one has outgrown together are smaller than it.
    Buffer larger{.memory = runtime::DeviceBuffer::of_zeros(device_, std::bit_ceil(bytes))};
    idle = std::ranges::find(buffers, false, &Buffer::is_leased);
    if (idle == buffers.end()) idle = buffers.emplace(buffers.end());
    std::swap(*idle, larger);
    if (larger.memory.bytes() != 0) outgrown_.push_back(std::move(larger.memory));
  }
  idle->is_leased = true;
  return *idle;
}

}  // namespace tilewright::engine
