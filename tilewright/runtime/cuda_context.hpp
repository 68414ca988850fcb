// A GPU's primary context: retained while in use, made current for each call.
#pragma once

#include <memory>

#include "tilewright/runtime/driver.hpp"

namespace tilewright::runtime {

/// Launch limits of the device, from its attributes.
struct LaunchLimits {
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t threads_per_block = 0;
  std::uint32_t smem_per_block_bytes = 0;  // static and dynamic, with opt-in
  bool clusters = false;
  bool operator==(const LaunchLimits&) const = default;
};

class CudaContext {
 public:
  /// @throws InvalidArgument if there is no GPU with this ordinal, and as Driver::initialize does
  CudaContext(std::shared_ptr<Driver> driver, int ordinal);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  Driver& driver() const { return *driver_; }
  GpuOrdinal gpu() const { return gpu_; }
  ContextHandle handle() const { return handle_; }
  const DeviceProperties& properties() const { return properties_; }
  const LaunchLimits& limits() const { return limits_; }

  int attribute(GpuAttribute attribute) const;

 private:
  DeviceProperties read_properties(int ordinal) const;
  LaunchLimits read_limits() const;

  std::shared_ptr<Driver> driver_;
  GpuOrdinal gpu_ = 0;
  ContextHandle handle_ = nullptr;
  DeviceProperties properties_;
  LaunchLimits limits_;
};

/// Makes a context current for a scope. At its end, the context that was current before is restored; if there was none,
/// the new one stays current, as with the CUDA runtime.
class ContextScope {
 public:
  /// @throws DriverError after a fatal error, in a forked child, or if the context cannot be made current
  explicit ContextScope(const CudaContext& context);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 private:
  Driver& driver_;
  ContextHandle restored_ = nullptr;
};

/// Calls a release function of the driver in `context`, for destructors. Never throws. Does nothing in a forked child,
/// because the handle belongs to the parent.
template <class... Parameters>
void release(const CudaContext& context, const DriverCall<Parameters...>& call,
             std::type_identity_t<Parameters>... parameters) noexcept {
  Driver& driver = context.driver();
  if (!driver.is_owner_process() || driver.poisoned()) return;
  try {
    const ContextScope scope(context);
    driver.note(call.raw(parameters...), call.symbol());
  } catch (const std::exception&) {
    // The context is gone, and with it the resource.
  }
}

}  // namespace tilewright::runtime
