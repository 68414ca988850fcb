// Checks of a launch against the limits of device and kernel.
#include "tilewright/runtime/launch.hpp"

namespace tilewright::runtime {
namespace {

std::uint64_t volume(const Dim3& dim) { return std::uint64_t{dim.x} * dim.y * dim.z; }

bool within(const Dim3& dim, const Dim3& limit) {
  const auto in = [](std::uint32_t value, std::uint32_t max) { return value - 1 < max; };  // 1 <= value <= max
  return in(dim.x, limit.x) && in(dim.y, limit.y) && in(dim.z, limit.z);
}

bool divides(const Dim3& cluster, const Dim3& grid) {
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

std::string text(const Dim3& dim) { return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z); }

Support check_cluster(const LaunchLimits& device, const Dim3& cluster, const Dim3& grid) {
  if (cluster == Dim3{}) return {};
  if (!device.clusters) return refuse("the device has no cluster launch, got a cluster of {}", text(cluster));
  const std::uint64_t ctas = volume(cluster);
  if (ctas == 0 || ctas > kMaxPortableClusterCtas) {
    return refuse("cluster {} has {} CTAs, must be 1 to {}", text(cluster), ctas, kMaxPortableClusterCtas);
  }
  if (!divides(cluster, grid)) return refuse("grid {} is not a multiple of cluster {}", text(grid), text(cluster));
  return {};
}

}  // namespace

Support check_launch(const LaunchLimits& device, const KernelLimits& kernel, const LaunchConfig& config,
                     std::size_t parameter_bytes) {
  if (!within(config.grid, device.grid)) {
    return refuse("grid {} must be from 1x1x1 to {}", text(config.grid), text(device.grid));
  }
  if (!within(config.block, device.block) || volume(config.block) > device.threads_per_block) {
    return refuse("block {} must be from 1x1x1 to {} and at most {} threads, got {}", text(config.block),
                  text(device.block), device.threads_per_block, volume(config.block));
  }
  if (volume(config.block) > kernel.threads_per_block) {
    return refuse("block {} has {} threads, but the kernel's registers allow at most {}", text(config.block),
                  volume(config.block), kernel.threads_per_block);
  }
  if (config.dynamic_smem_bytes > kernel.dynamic_smem_bytes) {
    return refuse(
        "dynamic shared memory must be at most {} bytes in addition to the kernel's static shared memory, got {}",
        kernel.dynamic_smem_bytes, config.dynamic_smem_bytes);
  }
  const bool is_struct = config.parameter_offsets.empty();  // else parameter_bytes is that of the first parameter
  const std::size_t expected = is_struct ? kernel.parameter_bytes : 0;
  if (parameter_bytes > kMaxParameterBytes || (expected != 0 && parameter_bytes != expected)) {
    return expected != 0 ? refuse("the kernel takes {} bytes of parameters, got {}", expected, parameter_bytes)
                         : refuse("parameters must be at most {} bytes, got {}", kMaxParameterBytes, parameter_bytes);
  }
  return check_cluster(device, config.cluster, config.grid);
}

Support check_parameters(std::string_view symbol, std::span<const std::size_t> expected,
                         std::span<const std::uint16_t> given) {
  if (given.size() != expected.size())
    return refuse("{} takes {} parameters, got {}", symbol, expected.size(), given.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (given[i] != expected[i])
      return refuse("parameter {} of {} has {} bytes, got {}", i, symbol, expected[i], given[i]);
  }
  return {};
}

}  // namespace tilewright::runtime
