// Any PTX is refused, or it loads and runs until it ends, causes a finding or exhausts a small step budget. It never
// accesses memory outside the emulated device.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/emulator/ptx_parser.hpp"

namespace {

using namespace tilewright;

constexpr std::size_t kBufferBytes = 4096;

struct Kernel {
  std::string name;
  std::size_t parameter_bytes = 0;
  runtime::Dim3 block{48, 1, 1};
};

/// The kernels defined in the text, with the sizes of their parameters.
/// @throws emulator::EmulationFinding when the text is refused.
std::vector<Kernel> kernels_of(std::string_view text) {
  std::vector<Kernel> kernels;
  const auto module = emulator::parse_ptx(text);
  for (const emulator::Function& function : module->functions) {
    if (!function.entry || function.declared_only) continue;
    Kernel kernel{std::string(function.name)};
    for (const std::uint32_t index : function.parameters) {
      const emulator::Variable& parameter = function.variables[index];
      kernel.parameter_bytes = (kernel.parameter_bytes + parameter.alignment - 1) / parameter.alignment;
      kernel.parameter_bytes = kernel.parameter_bytes * parameter.alignment + parameter.size;
    }
    if (function.required_block[0] != 0) {
      kernel.block = {function.required_block[0], function.required_block[1], function.required_block[2]};
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

/// Launches the kernel; every 8 bytes of its parameters are the address of a buffer.
void run(runtime::Device& device, std::string_view text, const Kernel& kernel, runtime::DeviceAddress buffer) {
  const auto loaded = device.load(runtime::Image{{}, text}, kernel.name, 1024);
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = static_cast<std::byte>(buffer >> i % sizeof(buffer) * 8);
  }
  runtime::LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = kernel.block;
  config.dynamic_smem_bytes = 1024;
  loaded->launch(config, parameters);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  emulator::EmulatorOptions options;
  options.threads = 1;
  options.steps_per_cta = 20000;
  options.memory_bytes = 1 << 20;
  const auto device = emulator::make_emulated_device(kSm90a, options);
  try {
    const runtime::DeviceBuffer buffer(device, kBufferBytes);
    for (const Kernel& kernel : kernels_of(text)) {
      try {
        run(*device, text, kernel, buffer.address());
      } catch (const Error& error) {
        if (*error.what() == '\0') std::abort();
      }
    }
  } catch (const emulator::EmulationFinding& refused) {
    if (to_string(refused.finding()).empty()) std::abort();
  }
  if (device->allocated_bytes() != 0) std::abort();
  return 0;
}
