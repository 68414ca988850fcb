// Kernel signatures from PTX, arguments as parameter bytes, and launches that keep their findings.
#include "tilewright/emulator/emulated_module.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/emulated_kernel.hpp"

namespace tilewright::emulator {
namespace {

/// "void scan<int>(int*, int)" -> "scan<int>"
std::string name_of(std::string_view symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? demangled.get() : std::string(symbol);
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth != 0 || name[i] != '(' || name.compare(i, 11, "(anonymous ") == 0) continue;
    name.resize(i);
  }
  if (const std::size_t result = name.find(' '); result != std::string::npos && result < name.find('<')) {
    if (!name.starts_with('(')) name.erase(0, result + 1);  // the result type of a template
  }
  return name;
}

KernelInfo describe(const Function& function) {
  KernelInfo kernel{std::string(function.name), name_of(function.name), {}};
  for (const std::uint32_t index : function.parameters) {
    const Variable& variable = function.variables[index];
    const auto element = static_cast<std::uint64_t>(bytes(variable.type));
    kernel.parameters.push_back({variable.type, variable.size, variable.pointer, variable.size != element});
  }
  return kernel;
}

[[noreturn]] void refuse_argument(const KernelParameter& parameter, std::size_t index, std::string_view got) {
  throw InvalidArgument(fmt::format("parameter {} takes {}, got {}", index, to_string(parameter), got));
}

template <class T>
std::vector<std::byte> bytes_of(T value, std::size_t size = sizeof(T)) {
  std::vector<std::byte> all(size);
  std::memcpy(all.data(), &value, size);
  return all;
}

}  // namespace

std::string to_string(const KernelParameter& parameter) {
  if (parameter.is_pointer) return "a pointer";
  if (parameter.is_struct) return fmt::format("a struct of {} bytes", parameter.size);
  if (is_integer(parameter.type)) {
    return fmt::format("{} {}-bit integer{}", parameter.size == 1 ? "an" : "a", 8 * parameter.size,
                       parameter.takes_array() ? " or a pointer" : "");
  }
  return fmt::format("an {}", name(parameter.type));
}

std::vector<std::byte> integer_argument(const KernelParameter& parameter, std::size_t index, bool negative,
                                        std::uint64_t magnitude) {
  const auto got = [&] { return fmt::format("{}{}", negative ? "-" : "", magnitude); };
  if (parameter.type == PtxType::f32 || parameter.type == PtxType::f64) {
    const double value = static_cast<double>(magnitude);
    return real_argument(parameter, index, negative ? -value : value);
  }
  if (parameter.is_struct || !is_integer(parameter.type)) refuse_argument(parameter, index, got());
  if (parameter.is_pointer && magnitude != 0) refuse_argument(parameter, index, got() + ": pass an array, or 0");
  const std::uint64_t width = 8 * parameter.size;
  const std::uint64_t largest = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (magnitude > (negative ? largest / 2 + 1 : largest)) refuse_argument(parameter, index, got());
  return bytes_of(negative ? 0 - magnitude : magnitude, parameter.size);
}

std::vector<std::byte> real_argument(const KernelParameter& parameter, std::size_t index, double value) {
  if (!parameter.is_struct && parameter.type == PtxType::f64) return bytes_of(value);
  if (parameter.is_struct || parameter.type != PtxType::f32)
    refuse_argument(parameter, index, fmt::format("the number {:#}", value));
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value))
    refuse_argument(parameter, index, fmt::format("{}, which is beyond its range", value));
  return bytes_of(rounded);
}

EmulatorOptions checking_options() {
  EmulatorOptions options;
  options.check_global = true;
  options.check_warps = true;
  options.threads = 1;
  options.steps_per_cta = std::uint64_t{1} << 26;
  return options;
}

/// The emulated device of one module.
struct EmulatedModule::Device {
  Device(std::string_view ptx, Target target, EmulatorOptions chosen)
      : options(chosen),
        properties(make_device_properties(target, chosen.memory_bytes)),
        memory(std::make_shared<GlobalMemory>(chosen.memory_bytes)),
        loaded(std::make_shared<LoadedPtx>(memory, ptx)) {}

  EmulatedKernel& kernel(const std::string& symbol) {
    std::unique_ptr<EmulatedKernel>& found = kernels[symbol];
    if (!found) found = std::make_unique<EmulatedKernel>(properties, options, loaded, symbol, 0);
    return *found;
  }

  EmulatorOptions options;
  runtime::DeviceProperties properties;
  std::shared_ptr<GlobalMemory> memory;
  std::shared_ptr<const LoadedPtx> loaded;
  std::map<std::string, std::unique_ptr<EmulatedKernel>> kernels;
};

EmulatedModule::EmulatedModule(std::string_view ptx, Target target, EmulatorOptions options)
    : device_(std::make_unique<Device>(ptx, target, options)) {
  for (const Function& function : device_->loaded->module().functions) {
    if (function.entry && !function.declared_only) kernels_.push_back(describe(function));
  }
}

EmulatedModule::~EmulatedModule() = default;

const KernelInfo& EmulatedModule::kernel(std::string_view name) const {
  if (name.empty() && kernels_.size() == 1) return kernels_.front();
  const KernelInfo* found = nullptr;
  int matches = 0;
  std::string names;
  for (const KernelInfo& each : kernels_) {
    if (each.symbol == name) return each;
    if (each.name == name) {
      found = &each;
      ++matches;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(each.name, 200));
    if (each.name != each.symbol) names += fmt::format(" ({})", printable(each.symbol, 200));
  }
  if (matches == 1) return *found;
  if (kernels_.empty()) {
    throw InvalidArgument(
        "the module has no kernel: it needs a __global__ function, and a template must be instantiated: template "
        "__global__ void f<float>(...);");
  }
  if (name.empty()) throw InvalidArgument(fmt::format("the module has {} kernels: {}", kernels_.size(), names));
  throw InvalidArgument(fmt::format("the module has {} kernels of the name {}; its kernels are {}",
                                    matches == 0 ? "no" : "several", printable(name, 200), names));
}

std::vector<Finding> EmulatedModule::launch(const KernelInfo& kernel, const runtime::LaunchConfig& config,
                                            std::span<const KernelArgument> arguments, LaunchProfile* profile) {
  const LongWork work;
  const std::vector<KernelParameter>& parameters = kernel.parameters;
  if (arguments.size() != parameters.size()) {
    throw InvalidArgument(
        fmt::format("{} takes {} arguments, got {}", printable(kernel.name, 200), parameters.size(), arguments.size()));
  }
  EmulatedKernel& loaded = device_->kernel(kernel.symbol);
  GlobalMemory& memory = *device_->memory;

  /// Frees the arrays' memory.
  struct Allocations {
    GlobalMemory& memory;
    std::vector<std::uint64_t> addresses;
    ~Allocations() {
      for (const std::uint64_t address : addresses) memory.deallocate(address);
    }
  } allocations{memory, {}};
  FindingLog log;
  UnwrittenBytes unwritten;
  std::vector<std::byte> values;
  std::vector<std::uint16_t> offsets, sizes;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::byte> value;
    if (const auto* const array = std::get_if<ArrayArgument>(&arguments[i])) {
      if (!parameters[i].takes_array()) refuse_argument(parameters[i], i, "an array");
      const std::uint64_t address = memory.allocate(array->data.size());
      allocations.addresses.push_back(address);
      if (array->initialised && !array->data.empty()) {
        copy_bytes(memory.host_pointer(address, array->data.size()), array->data.data(), array->data.size());
      } else {
        unwritten.add(address, address + array->data.size());
      }
      value = bytes_of(address);
    } else {
      value = std::get<std::vector<std::byte>>(arguments[i]);
      if (value.size() != parameters[i].size) {
        refuse_argument(parameters[i], i, fmt::format("{} bytes", value.size()));
      }
    }
    offsets.push_back(static_cast<std::uint16_t>(values.size()));
    sizes.push_back(static_cast<std::uint16_t>(value.size()));
    values.insert(values.end(), value.begin(), value.end());
  }
  runtime::LaunchConfig complete = config;
  complete.parameter_offsets = offsets;
  complete.parameter_sizes = sizes;
  loaded.launch(complete, values, {.log = &log, .unwritten = &unwritten, .profile = profile});

  auto address = allocations.addresses.begin();
  for (const KernelArgument& argument : arguments) {
    const auto* const array = std::get_if<ArrayArgument>(&argument);
    if (array == nullptr) continue;
    const std::uint64_t from = *address++;
    if (array->data.empty()) continue;
    copy_bytes(array->data.data(), memory.host_pointer(from, array->data.size()), array->data.size());
  }
  return log.findings();
}

}  // namespace tilewright::emulator
