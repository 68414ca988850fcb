#include "tilewright/tune/timer.hpp"

#include "tilewright/runtime/call_timer.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::tune {
namespace {

class GpuTimer final : public Timer {
 public:
  explicit GpuTimer(const runtime::CudaDevice& device) : timer_(device.context()) {}

  std::vector<double> time(std::span<const engine::PreparedCall> calls) override {
    return timer_.time(calls.size(),
                       [calls](std::size_t call, runtime::StreamHandle stream) { calls[call].run(stream); });
  }

 private:
  runtime::CallTimer timer_;
};

}  // namespace

Result<std::shared_ptr<Timer>> make_timer(const std::shared_ptr<runtime::Device>& device) {
  const auto* const gpu = dynamic_cast<const runtime::CudaDevice*>(device.get());
  if (gpu == nullptr) return refuse("kernels cannot be timed on {}: tune on a GPU", device->properties().name);
  return std::shared_ptr<Timer>(std::make_shared<GpuTimer>(*gpu));
}

}  // namespace tilewright::tune
