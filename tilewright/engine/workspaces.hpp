// Device memory for kernels that need some beside their operands.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// One piece for each stream, and for each graph capture of a stream: launches that use a piece never overlap, but
/// those of a graph that is launched while it runs. It grows as kernels ask for more, and lives as long as this.
/// Thread-safe.
class Workspaces {
 public:
  explicit Workspaces(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}

  runtime::Device& device() const { return *device_; }

  /// At least `bytes` for the next launch on `stream`. Zeros at first; then what the last launch left there.
  /// @throws OutOfMemory
  runtime::DeviceAddress at_least(std::size_t bytes, runtime::StreamHandle stream);

 private:
  struct OrderHash {
    std::size_t operator()(const runtime::StreamOrder& order) const { return order.stream * 31 + order.capture; }
  };

  std::shared_ptr<runtime::Device> device_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<runtime::StreamOrder, runtime::DeviceBuffer, OrderHash> pieces_;
  std::vector<runtime::DeviceBuffer> outgrown_;  // in launches under way, and in graphs
};

}  // namespace tilewright::engine
