#include "tilewright/engine/workspaces.hpp"

#include <bit>
#include <utility>

namespace tilewright::engine {

runtime::DeviceAddress Workspaces::at_least(std::size_t bytes, runtime::StreamHandle stream) {
  const runtime::StreamOrder order = device_->order_of(stream);
  const std::scoped_lock lock(mutex_);
  runtime::DeviceBuffer& piece = pieces_[order];
  if (piece.bytes() >= bytes) return piece.address();
  // By powers of two, so that all that is outgrown is less than what is in use.
  runtime::DeviceBuffer larger = runtime::DeviceBuffer::of_zeros(device_, std::bit_ceil(bytes));
  std::swap(piece, larger);
  if (larger.bytes() != 0) outgrown_.push_back(std::move(larger));
  return piece.address();
}

}  // namespace tilewright::engine
