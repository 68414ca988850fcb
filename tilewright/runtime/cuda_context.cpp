// Retains a GPU's primary context and reads the GPU's properties.
#include "tilewright/runtime/cuda_context.hpp"

#include <array>
#include <utility>

namespace tilewright::runtime {

CudaContext::CudaContext(std::shared_ptr<Driver> driver, int ordinal) : driver_(std::move(driver)) {
  driver_->initialize();
  int count = 0;
  driver_->device_get_count(&count);
  if (ordinal < 0 || ordinal >= count) {
    throw InvalidArgument(fmt::format("no GPU cuda:{}: this machine has {} GPUs", ordinal, count));
  }
  driver_->device_get(&gpu_, ordinal);
  properties_ = read_properties(ordinal);
  limits_ = read_limits();
  driver_->primary_ctx_retain(&handle_, gpu_);
}

CudaContext::~CudaContext() {
  if (!driver_->is_owner_process()) return;
  driver_->note(driver_->primary_ctx_release.raw(gpu_), driver_->primary_ctx_release.symbol());
}

int CudaContext::attribute(GpuAttribute attribute) const {
  int value = 0;
  driver_->device_get_attribute(&value, attribute, gpu_);
  return value;
}

DeviceProperties CudaContext::read_properties(int ordinal) const {
  std::array<char, 256> name{};
  driver_->device_get_name(name.data(), static_cast<int>(name.size()) - 1, gpu_);
  std::size_t memory_bytes = 0;
  driver_->device_total_mem(&memory_bytes, gpu_);
  const int major = attribute(GpuAttribute::capability_major);
  const int minor = attribute(GpuAttribute::capability_minor);

  DeviceProperties properties;
  properties.name = name.data();
  properties.target = device_target(10 * major + minor);
  properties.ordinal = ordinal;
  properties.sm_count = attribute(GpuAttribute::sm_count);
  properties.clock_khz = attribute(GpuAttribute::clock_khz);
  properties.memory_bytes = static_cast<std::int64_t>(memory_bytes);
  properties.l2_bytes = attribute(GpuAttribute::l2_bytes);
  properties.smem_per_block_bytes = attribute(GpuAttribute::smem_per_block_optin_bytes);
  properties.smem_per_sm_bytes = attribute(GpuAttribute::smem_per_sm_bytes);
  properties.registers_per_sm = attribute(GpuAttribute::registers_per_sm);
  return properties;
}

LaunchLimits CudaContext::read_limits() const {
  const auto limit = [this](GpuAttribute which) { return static_cast<std::uint32_t>(attribute(which)); };
  return LaunchLimits{
      .grid = {limit(GpuAttribute::max_grid_x), limit(GpuAttribute::max_grid_y), limit(GpuAttribute::max_grid_z)},
      .block = {limit(GpuAttribute::max_block_x), limit(GpuAttribute::max_block_y), limit(GpuAttribute::max_block_z)},
      .threads_per_block = limit(GpuAttribute::max_threads_per_block),
      .smem_per_block_bytes = limit(GpuAttribute::smem_per_block_optin_bytes),
      .clusters = attribute(GpuAttribute::cluster_launch) != 0,
  };
}

ContextScope::ContextScope(const CudaContext& context) : driver_(context.driver()) {
  driver_.require_usable();
  ContextHandle current = nullptr;
  driver_.check(driver_.ctx_get_current.raw(&current), driver_.ctx_get_current.symbol());
  if (current == context.handle()) [[likely]]
    return;
  driver_.check(driver_.ctx_set_current.raw(context.handle()), driver_.ctx_set_current.symbol());
  restored_ = current;
}

ContextScope::~ContextScope() {
  if (restored_ != nullptr) driver_.note(driver_.ctx_set_current.raw(restored_), driver_.ctx_set_current.symbol());
}

}  // namespace tilewright::runtime
