// What a launch must satisfy before the driver sees it.
#pragma once

#include <span>
#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

/// A cluster of more CTAs is not portable: PTX ISA, "Cluster of Cooperative Thread Arrays".
inline constexpr std::uint64_t kMaxPortableClusterCtas = 8;
/// Kernel parameters, sm_70 and newer since CUDA 12.1.
inline constexpr std::size_t kMaxParameterBytes = 32764;

/// What one loaded kernel adds to the device's limits.
struct KernelLimits {
  std::uint32_t threads_per_block = 0;   // what its registers leave
  std::uint32_t dynamic_smem_bytes = 0;  // what its static memory leaves
  std::size_t parameter_bytes = 0;       // of its one struct; 0: none, or not known
  bool operator==(const KernelLimits&) const = default;
};

/// Refuses, with the number, what the driver would answer with CUDA_ERROR_INVALID_VALUE alone.
Support check_launch(const LaunchLimits& device, const KernelLimits& kernel, const LaunchConfig& config,
                     std::size_t parameter_bytes);

/// Refuses, with the number, parameters of their own (bytes each) that are not the kernel's.
Support check_parameters(std::string_view symbol, std::span<const std::size_t> expected,
                         std::span<const std::uint16_t> given);

}  // namespace tilewright::runtime
