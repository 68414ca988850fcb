// Implements runtime::Device by GlobalMemory and EmulatedKernel.
#include "tilewright/emulator/device.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/emulated_kernel.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"

namespace tilewright::emulator {
namespace {

using runtime::DeviceAddress;
using runtime::StreamHandle;

class EmulatedDevice final : public runtime::Device {
 public:
  EmulatedDevice(Target target, EmulatorOptions options)
      : options_(options),
        properties_(make_device_properties(target, options.memory_bytes)),
        memory_(std::make_shared<GlobalMemory>(options.memory_bytes)) {}

  const runtime::DeviceProperties& properties() const override { return properties_; }

  DeviceAddress allocate(std::size_t bytes, StreamHandle) override { return memory_->allocate(bytes); }
  void deallocate(DeviceAddress address, StreamHandle) noexcept override {
    if (address != 0 && !memory_->deallocate(address))
      spdlog::error("ignored: deallocate of 0x{:x}, which is not an allocation of {}", address, properties_.name);
  }
  std::size_t allocated_bytes() const override { return memory_->allocated_bytes(Owner::caller); }

  DeviceAddress allocate_zeros(std::size_t bytes) override {
    const DeviceAddress address = memory_->allocate(bytes);
    try {
      fill(address, 0, bytes, nullptr);
    } catch (...) {
      memory_->deallocate(address);
      throw;
    }
    return address;
  }

  void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) copy_bytes(memory_->host_pointer(to, bytes), from, bytes);
  }
  void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) copy_bytes(to, memory_->host_pointer(from, bytes), bytes);
  }
  void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) fill_bytes(memory_->host_pointer(to, bytes), value, bytes);
  }
  void synchronize(StreamHandle) override {}
  /// Work is complete when a function returns, so that all work of one thread is in one order.
  runtime::StreamOrder order_of(StreamHandle) override { return {}; }

  std::shared_ptr<runtime::LoadedKernel> load(const runtime::Image& image, const std::string& symbol,
                                              std::uint32_t dynamic_smem_bytes) override {
    const LongWork work;
    if (image.ptx.empty()) throw EmulationError(fmt::format("emulator: {} has no PTX", printable(symbol)));
    auto ptx = std::make_shared<LoadedPtx>(memory_, image.ptx);
    return std::make_shared<EmulatedKernel>(properties_, options_, std::move(ptx), symbol, dynamic_smem_bytes);
  }

  EncodedTensorMap encode(const TensorMap& map) override {
    runtime::check_encodable(map, properties_.target).or_throw();
    return encode_tensor_map(map);
  }

 private:
  const EmulatorOptions options_;
  const runtime::DeviceProperties properties_;
  const std::shared_ptr<GlobalMemory> memory_;
};

}  // namespace

std::shared_ptr<runtime::Device> make_emulated_device(Target target, EmulatorOptions options) {
  return std::make_shared<EmulatedDevice>(target, options);
}

}  // namespace tilewright::emulator
