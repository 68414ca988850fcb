// Opens devices by name. This is the only file that knows both GPUs and the emulator.
#include <charconv>
#include <memory>
#include <string_view>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::engine {
namespace {

std::shared_ptr<runtime::Device> open_cuda(const Options& options, int ordinal) {
  runtime::MemoryPoolOptions pool;
  pool.initial_bytes = static_cast<std::size_t>(options.pool_initial_bytes);
  pool.maximum_bytes = static_cast<std::size_t>(options.pool_maximum_bytes);
  return runtime::open_cuda_device(ordinal, pool);
}

}  // namespace

std::shared_ptr<runtime::Device> open_device(const Options& options) {
  check(options).or_throw();
  constexpr std::string_view kDefaultEmulator = "emulator:sm_90a";
  std::string_view device = options.device;
  if (device == "auto") {
    if (runtime::cuda_device_count() > 0) return open_cuda(options, 0);
    device = kDefaultEmulator;
  }
  if (device == "emulator") device = kDefaultEmulator;
  if (device == "cuda") device = "cuda:0";
  const std::size_t colon = device.find(':');
  const std::string_view kind = device.substr(0, colon);
  const std::string_view which = colon == std::string_view::npos ? "" : device.substr(colon + 1);
  if (kind == "emulator") {
    const Result<Target> target = emulator::parse_emulated_target(which);
    if (!target) throw InvalidArgument(fmt::format("device '{}': {}", printable(device), target.reason()));
    return emulator::make_emulated_device(device_target(target->sm),
                                          {.check_global = options.emulator_checks_global,
                                           .steps_per_cta = options.emulator_steps_per_cta,
                                           .progress_seconds = options.emulator_progress_seconds});
  }
  int ordinal = -1;
  const auto [end, status] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
  if (kind != "cuda" || status != std::errc() || end != which.data() + which.size() || ordinal < 0) {
    throw InvalidArgument(
        fmt::format("unknown device '{}': use auto, cuda:N, {}", printable(device), emulator::emulated_devices()));
  }
  return open_cuda(options, ordinal);
}

}  // namespace tilewright::engine
