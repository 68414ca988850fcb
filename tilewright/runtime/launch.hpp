// Checks of a launch before it is passed to the driver.
#pragma once

#include <span>
#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

/// The largest cluster that every GPU with clusters supports. Source: PTX ISA, "Cluster of Cooperative Thread Arrays".
inline constexpr std::uint64_t kMaxPortableClusterCtas = 8;
/// The limit of kernel parameters, on sm_70 and newer since CUDA 12.1.
inline constexpr std::size_t kMaxParameterBytes = 32764;

/// The limits of a loaded kernel, in addition to those of the device.
struct KernelLimits {
  std::uint32_t threads_per_block = 0;   // as its registers allow
  std::uint32_t dynamic_smem_bytes = 0;  // in addition to its static shared memory
  std::size_t parameter_bytes = 0;       // of its single struct; 0: none, or not known
  bool operator==(const KernelLimits&) const = default;
};

/// Refuses a launch that exceeds a limit. The driver would only return CUDA_ERROR_INVALID_VALUE.
Support check_launch(const LaunchLimits& device, const KernelLimits& kernel, const LaunchConfig& config,
                     std::size_t parameter_bytes);

/// Refuses parameters whose number or sizes in bytes differ from those of the kernel.
Support check_parameters(std::string_view symbol, std::span<const std::size_t> expected,
                         std::span<const std::uint16_t> given);

}  // namespace tilewright::runtime
