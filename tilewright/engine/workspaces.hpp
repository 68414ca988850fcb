// The engine's workspaces: device memory for kernels that need more than their operands.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// One buffer for each stream and for each stream capture, so that launches that share a buffer are ordered. The
/// exception are two launches of the same graph, which must not overlap. A buffer grows on demand and is freed with
/// this object. Thread-safe.
class Workspaces {
 public:
  explicit Workspaces(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}

  runtime::Device& device() const { return *device_; }

  /// A workspace of at least `bytes` for the next launch on `stream`. A new buffer is zeroed; later launches see the
  /// contents that the previous launch left.
  /// @throws OutOfMemory
  runtime::DeviceAddress at_least(std::size_t bytes, runtime::StreamHandle stream);

 private:
  struct OrderHash {
    std::size_t operator()(const runtime::StreamOrder& order) const { return order.stream * 31 + order.capture; }
  };

  std::shared_ptr<runtime::Device> device_;
  std::mutex mutex_;  // guards the members below
  std::unordered_map<runtime::StreamOrder, runtime::DeviceBuffer, OrderHash> buffers_;
  std::vector<runtime::DeviceBuffer> outgrown_;  // still used by pending launches and by graphs
};

}  // namespace tilewright::engine
