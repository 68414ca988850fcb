#include "tilewright/tune/timer.hpp"

#include <utility>

#include "tilewright/engine/engine.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::tune {
namespace {

// Fills of scratch memory keep the GPU busy while the host enqueues the calls. Without them, the host's enqueueing time
// would be measured for short calls. One fill takes about 80 us at 3 TB/s; enqueueing a call with its two events takes
// less than 8 us.
constexpr std::size_t kHeadStartBytes = std::size_t{256} << 20;
constexpr std::size_t kCallsPerFill = 10;

class GpuTimer final : public Timer {
 public:
  explicit GpuTimer(std::shared_ptr<runtime::CudaDevice> device)
      : device_(std::move(device)), stream_(device_->context()) {}

  std::vector<double> time(std::span<const engine::PreparedCall> calls) override {
    const runtime::ContextScope scope(*device_->context());
    while (events_.size() < 2 * calls.size()) events_.emplace_back(device_->context());
    give_head_start(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      events_[2 * i].record(stream_.handle());
      calls[i].run(stream_.handle());
      events_[2 * i + 1].record(stream_.handle());
    }
    stream_.synchronize();
    std::vector<double> times_us;
    times_us.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      times_us.push_back(1000.0 * events_[2 * i + 1].milliseconds_since(events_[2 * i]));
    }
    return times_us;
  }

 private:
  void give_head_start(std::size_t calls) {
    runtime::DeviceBuffer scratch;
    try {
      scratch = runtime::DeviceBuffer(device_, kHeadStartBytes, stream_.handle());
    } catch (const OutOfMemory&) {
      return;  // calls that leave so little memory run longer than they are enqueued
    }
    for (std::size_t fills = (calls + kCallsPerFill - 1) / kCallsPerFill; fills > 0; --fills) {
      device_->fill(scratch.address(), 0, scratch.bytes(), stream_.handle());
    }
  }

  std::shared_ptr<runtime::CudaDevice> device_;
  runtime::Stream stream_;
  std::vector<runtime::Event> events_;
};

}  // namespace

Result<std::shared_ptr<Timer>> make_timer(const std::shared_ptr<runtime::Device>& device) {
  auto gpu = std::dynamic_pointer_cast<runtime::CudaDevice>(device);
  if (!gpu) return refuse("kernels cannot be timed on {}: tune on a GPU", device->properties().name);
  return std::shared_ptr<Timer>(std::make_shared<GpuTimer>(std::move(gpu)));
}

}  // namespace tilewright::tune
