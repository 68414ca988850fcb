// The engine's workspaces: device memory for kernels that need more than their operands.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Buffers for each stream and for each stream capture. A call leases one while it enqueues its launches, and no other
/// thread gets that buffer meanwhile, so that launches that share a buffer are ordered, and so are all steps of one
/// call. The exception are two launches of the same graph, which must not overlap. Buffers grow on demand and are freed
/// with this object. Thread-safe.
class Workspaces {
  struct Buffer {
    runtime::DeviceBuffer memory;
    bool is_leased = false;
    bool is_unknown = false;  // the last call failed, and did perhaps not reset its counters
  };

 public:
  /// The workspace of the launches of one call.
  class Lease {
   public:
    /// A workspace of the caller.
    explicit Lease(runtime::DeviceAddress address) : address_(address) {}
    Lease(Lease&& other) noexcept
        : address_(other.address_), owner_(std::exchange(other.owner_, nullptr)), buffer_(other.buffer_) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Lease& operator=(Lease&&) = delete;
    /// Without launched(), the contents are unknown, and the next lease of the buffer enqueues a fill with zeros.
    ~Lease();

    runtime::DeviceAddress address() const { return address_; }
    /// To be called after the call's last launch, which leaves the contents as the next launch expects them.
    void launched() { is_launched_ = true; }

   private:
    friend class Workspaces;
    Lease(Workspaces& owner, Buffer& buffer) : address_(buffer.memory.address()), owner_(&owner), buffer_(&buffer) {}

    runtime::DeviceAddress address_;
    Workspaces* owner_ = nullptr;
    Buffer* buffer_ = nullptr;
    bool is_launched_ = false;
  };

  explicit Workspaces(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}

  runtime::Device& device() const { return *device_; }

  /// A workspace of at least `bytes` for the next launches on `stream`. A new buffer is zeroed; later launches see the
  /// contents that the previous launch left. @throws OutOfMemory
  Lease lease(std::size_t bytes, runtime::StreamHandle stream);

 private:
  struct OrderHash {
    std::size_t operator()(const runtime::StreamOrder& order) const { return order.stream * 31 + order.capture; }
  };

  /// Leases an idle buffer of the order, which is made or made larger if there is none.
  Buffer& take(std::size_t bytes, const runtime::StreamOrder& order);

  std::shared_ptr<runtime::Device> device_;
  ForkSafeMutex mutex_;  // guards the members below
  std::unordered_map<runtime::StreamOrder, std::deque<Buffer>, OrderHash> buffers_;
  std::vector<runtime::DeviceBuffer> outgrown_;  // still used by pending launches and by graphs
};

}  // namespace tilewright::engine
