// Kernel signatures from PTX, arguments as parameter bytes, and launches that keep their findings.
#include "tilewright/emulator/emulated_module.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "tilewright/base/float_format.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/emulated_kernel.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::string_view kUnnamed = "(anonymous namespace)";

/// Calls `visit` with the position of each character that is in no brackets and in no template arguments, until it
/// returns true. Returns that position, or npos. An unnamed namespace counts as one name.
template <class F>
std::size_t find_outside(std::string_view text, F&& visit) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
      continue;
    }
    const char c = text[i];
    if (depth == 0 && visit(i)) return i;
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
  }
  return std::string_view::npos;
}

/// "void scan<int>(int*, int)" -> "scan<int>(int*, int)": a demangled template has its result type.
std::string signature_of(std::string_view symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  const std::string_view all = status == 0 ? std::string_view(demangled.get()) : symbol;
  return std::string(all.starts_with("void ") ? all.substr(5) : all);
}

/// The name in a signature, without the types of the parameters.
std::string_view name_in(std::string_view signature) {
  return signature.substr(0, find_outside(signature, [&](std::size_t i) { return signature[i] == '('; }));
}

/// The types of the parameters of a signature; empty if it has none.
std::vector<std::string_view> parameter_types(std::string_view signature) {
  const std::size_t open = name_in(signature).size();
  if (open == signature.size() || signature.substr(open) == "()") return {};
  std::string_view list = signature.substr(open + 1, signature.rfind(')') - open - 1);
  std::vector<std::string_view> types;
  while (true) {
    const std::size_t comma = find_outside(list, [&](std::size_t i) { return list[i] == ','; });
    types.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return types;
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
}

/// The small floats of CUDA, which are structs in the source.
constexpr std::array<std::pair<std::string_view, PtxType>, 4> kSmallFloats{{{"__half", PtxType::f16},
                                                                            {"__nv_bfloat16", PtxType::bf16},
                                                                            {"__nv_fp8_e4m3", PtxType::e4m3},
                                                                            {"__nv_fp8_e5m2", PtxType::e5m2}}};

/// The types that pointers of kernels point to, as signatures have them, without const.
constexpr std::array<std::pair<std::string_view, PtxType>, 12> kPointees{{{"float", PtxType::f32},
                                                                          {"double", PtxType::f64},
                                                                          {"int", PtxType::s32},
                                                                          {"unsigned int", PtxType::u32},
                                                                          {"short", PtxType::s16},
                                                                          {"unsigned short", PtxType::u16},
                                                                          {"long", PtxType::s64},
                                                                          {"unsigned long", PtxType::u64},
                                                                          {"long long", PtxType::s64},
                                                                          {"unsigned long long", PtxType::u64},
                                                                          {"__half", PtxType::f16},
                                                                          {"__nv_bfloat16", PtxType::bf16}}};

/// The type of what a pointer of this type points to: "float const*".
std::optional<PtxType> pointee(std::string_view type) {
  if (!type.ends_with('*')) return std::nullopt;
  type.remove_suffix(1);
  for (const std::string_view qualifier : {" const", " volatile"}) {
    if (type.ends_with(qualifier)) type.remove_suffix(qualifier.size());
  }
  const auto* const found = std::ranges::find(kPointees, type, &std::pair<std::string_view, PtxType>::first);
  return found == kPointees.end() ? std::nullopt : std::optional(found->second);
}

KernelInfo describe(const Function& function) {
  const std::string signature = signature_of(function.name);
  KernelInfo kernel{std::string(function.name), std::string(name_in(signature)), signature, {}};
  const std::vector<std::string_view> types = parameter_types(signature);
  for (const std::uint32_t index : function.parameters) {
    const Variable& variable = function.variables[index];
    const auto element = static_cast<std::uint64_t>(bytes(variable.type));
    KernelParameter parameter{variable.type, variable.size, variable.pointer, variable.size != element};
    if (types.size() == function.parameters.size()) {
      parameter.element = pointee(types[kernel.parameters.size()]);
      const auto small = std::ranges::find(kSmallFloats, types[kernel.parameters.size()],
                                           &std::pair<std::string_view, PtxType>::first);
      if (small != kSmallFloats.end() && static_cast<std::uint64_t>(bytes(small->second)) == variable.size) {
        parameter.type = small->second;
        parameter.is_struct = false;
      }
    }
    kernel.parameters.push_back(parameter);
  }
  return kernel;
}

/// A name as names are compared: without blanks, unnamed namespaces, and the suffixes of integers ("4u").
std::string comparable(std::string_view name) {
  std::string text;
  bool in_number = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("(anonymous namespace)::")) {
      i += kUnnamed.size() + 1;
      continue;
    }
    const char c = name[i];
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool follows_letter =
        !text.empty() && (std::isalnum(static_cast<unsigned char>(text.back())) || text.back() == '_');
    if (in_number && (c == 'u' || c == 'l')) continue;
    in_number = is_digit && (in_number || !follows_letter);
    if (is_digit || is_letter || (c != ' ' && c != '\t')) text += c;
  }
  return text;
}

/// The name in the innermost namespaces: "b::f<int>" and "f<int>" of "a::b::f<int>".
std::vector<std::string> without_namespaces(const std::string& name) {
  std::vector<std::string> all;
  const std::string_view head = name_in(name);
  static_cast<void>(find_outside(head, [&](std::size_t i) {
    if (head.substr(i).starts_with("::")) all.push_back(name.substr(i + 2));
    return false;
  }));
  return all;
}

std::string without_template_arguments(const std::string& name) {
  return name.substr(0, find_outside(name, [&](std::size_t i) { return name[i] == '<'; }));
}

/// How well a name that was asked for matches the kernel: 0 not at all; more is better.
int match_name(const KernelInfo& kernel, const std::string& wanted) {
  const std::string name = comparable(kernel.name), signature = comparable(kernel.signature);
  if (wanted == name || wanted == signature) return 3;
  const auto ends = [&](const std::string& full) {
    const std::vector<std::string> parts = without_namespaces(full);
    return std::ranges::find(parts, wanted) != parts.end();
  };
  if (ends(name) || ends(signature)) return 2;
  const std::string plain = without_template_arguments(name);
  return wanted == plain || ends(plain) ? 1 : 0;
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

bool is_other_element(const KernelParameter& parameter, PtxType given) {
  if (!parameter.element || bytes(given) == 1) return false;
  const PtxType wanted = *parameter.element;
  if (bytes(wanted) != bytes(given)) return true;
  // NumPy has no bf16, so that arrays of u16 stand for it.
  if (wanted == PtxType::bf16 || given == PtxType::bf16) return wanted == PtxType::f16 || given == PtxType::f16;
  return is_integer(wanted) != is_integer(given);
}

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
  if (!parameter.is_struct && !is_integer(parameter.type)) {
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
  if (parameter.is_struct || is_integer(parameter.type))
    refuse_argument(parameter, index, fmt::format("the number {:#}", value));
  const auto checked = [&](auto bits, bool is_beyond) {
    if (is_beyond && !std::isinf(value))
      refuse_argument(parameter, index, fmt::format("{}, which is beyond its range", value));
    return bytes_of(bits);
  };
  switch (parameter.type) {
    case PtxType::f64:
      return bytes_of(value);
    case PtxType::f32:
      return checked(static_cast<float>(value), std::isinf(static_cast<float>(value)));
    case PtxType::f16:
      return checked(f64_to_f16(value), std::isinf(f16_to_f32(f64_to_f16(value))));
    case PtxType::bf16:
      return checked(f64_to_bf16(value), std::isinf(bf16_to_f32(f64_to_bf16(value))));
    case PtxType::e4m3:  // the conversions saturate: values from 464 and 61440 on would be rounded to a larger one
      return checked(f64_to_e4m3(value), std::abs(value) >= 464);
    case PtxType::e5m2:
      return checked(f64_to_e5m2(value), std::abs(value) >= 61440);
    default:
      refuse_argument(parameter, index, fmt::format("the number {:#}", value));
  }
}

EmulatorOptions checking_options() {
  EmulatorOptions options;
  options.check_global = true;
  options.check_warps = true;
  options.threads = 1;
  options.steps_per_cta = std::uint64_t{1} << 26;
  options.steps_setting = "EmulatorOptions::steps_per_cta; 0 removes the limit";
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
  int matches = 0, best = 1;
  std::string names;
  const std::string wanted = comparable(name);
  for (const KernelInfo& each : kernels_) {
    if (each.symbol == name) return each;
    const int match = name.empty() ? 0 : match_name(each, wanted);
    if (match > best) matches = 0;
    if (match >= best) {
      best = match;
      found = &each;
      ++matches;
    }
    const bool is_overloaded = std::ranges::count(kernels_, each.name, &KernelInfo::name) > 1;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(is_overloaded ? each.signature : each.name, 200));
    if (each.name != each.symbol) names += fmt::format(" ({})", printable(each.symbol, 200));
  }
  if (matches == 1) return *found;
  if (kernels_.empty()) {
    throw InvalidArgument(
        "the module has no kernel: it needs a __global__ function, and a template must be instantiated: template "
        "__global__ void f<float>(...);");
  }
  if (name.empty()) {
    throw InvalidArgument(
        fmt::format("the module has {} kernels: choose one of them by name: {}", kernels_.size(), names));
  }
  throw InvalidArgument(fmt::format("the module has {} kernels of the name {}; its kernels are {}",
                                    matches == 0 ? "no" : "several", printable(name, 200), names));
}

std::vector<Finding> EmulatedModule::launch(const KernelInfo& kernel, const runtime::LaunchConfig& config,
                                            std::span<const KernelArgument> arguments, LaunchProfile* profile,
                                            bool* is_interrupted) {
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
  try {
    loaded.launch(complete, values, {.log = &log, .unwritten = &unwritten, .profile = profile});
  } catch (const Interrupted&) {
    if (is_interrupted == nullptr) throw;
    *is_interrupted = true;
  }

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
