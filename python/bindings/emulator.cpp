// The emulator of single kernels, from tilewright/emulator/emulated_module.hpp, for python/tilewright/emulator.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "python/bindings/module.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/emulator/emulated_module.hpp"
#include "tilewright/emulator/global_memory_checks.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/engine/kernel_file.hpp"
#include "tilewright/engine/options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {
namespace {

using AnyList = nb::typed<nb::list, nb::any>;
using Extents = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

runtime::Dim3 dim3(const Extents& extents) {
  return {std::get<0>(extents), std::get<1>(extents), std::get<2>(extents)};
}

nb::tuple index(const runtime::Dim3& at) { return nb::make_tuple(at.x, at.y, at.z); }

/// The types of arrays' elements, as NumPy writes them. It has no bf16.
struct ArrayElement {
  std::string_view name;
  emulator::PtxType type;
};
constexpr std::array kArrayElements = std::to_array<ArrayElement>({{"<f2", emulator::PtxType::f16},
                                                                   {"<f4", emulator::PtxType::f32},
                                                                   {"<f8", emulator::PtxType::f64},
                                                                   {"<i2", emulator::PtxType::s16},
                                                                   {"<i4", emulator::PtxType::s32},
                                                                   {"<i8", emulator::PtxType::s64},
                                                                   {"<u2", emulator::PtxType::u16},
                                                                   {"<u4", emulator::PtxType::u32},
                                                                   {"<u8", emulator::PtxType::u64}});

/// A module and the options that it was made with.
class KernelModule {
 public:
  KernelModule(const std::string& source, bool is_path, const std::string& target,
               const std::vector<std::string>& include_folders, std::uint64_t steps) {
    const Unlocked unlocked;
    const Result<Target> parsed = emulator::parse_emulated_target(target);
    if (!parsed) throw InvalidArgument(parsed.reason());
    const auto toolchain = engine::Options::from_environment().toolchain;
    if (is_path) {
      file_ = engine::read_kernel_file(source, *parsed, toolchain, include_folders);
    } else if (source.find(".version") != std::string::npos && source.find(".target") != std::string::npos) {
      file_ = {"kernel.ptx", source, source};
    } else {
      file_ = engine::compile_kernel_text(source, "kernel.cu", *parsed, toolchain, include_folders);
    }
    emulator::EmulatorOptions options = emulator::checking_options();
    options.steps_per_cta = steps;
    options.steps_setting = "the argument steps of Module";
    module_ = std::make_unique<emulator::EmulatedModule>(file_.ptx, *parsed, options);
  }

  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const emulator::KernelInfo& kernel : module_->kernels()) names.push_back(kernel.name);
    return names;
  }

  AnyList launch(const std::string& name, const Extents& grid, const Extents& block, const Extents& cluster,
                 std::uint32_t shared_bytes, bool cooperative, const AnyList& arguments, bool profile) {
    const emulator::KernelInfo& kernel = module_->kernel(name);
    if (arguments.size() != kernel.parameters.size()) {
      throw InvalidArgument(
          fmt::format("{} takes {} arguments, got {}", kernel.name, kernel.parameters.size(), arguments.size()));
    }
    std::vector<emulator::KernelArgument> converted;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      converted.push_back(argument(kernel.parameters[i], i, arguments[i]));
    runtime::LaunchConfig config;
    config.grid = dim3(grid);
    config.block = dim3(block);
    config.cluster = dim3(cluster);
    config.dynamic_smem_bytes = shared_bytes;
    config.cooperative = cooperative;
    std::vector<emulator::Finding> findings;
    profile_ = {};
    {
      const Unlocked unlocked;
      findings = module_->launch(kernel, config, converted, profile ? &profile_ : nullptr);
    }
    AnyList result;
    for (const emulator::Finding& finding : findings) result.append(describe(finding));
    return result;
  }

  /// The type of the elements that parameter `index` points to, as NumPy writes it, if arrays with elements of `given`
  /// are arrays of others; else "", also if one of the types is not known.
  std::string wanted_element(const std::string& name, std::size_t index, const std::string& given) const {
    const std::vector<emulator::KernelParameter>& parameters = module_->kernel(name).parameters;
    const auto* const row = std::ranges::find(kArrayElements, given, &ArrayElement::name);
    if (index >= parameters.size() || row == kArrayElements.end()) return {};
    if (!emulator::is_other_element(parameters[index], row->type)) return {};
    const auto* const wanted = std::ranges::find(kArrayElements, *parameters[index].element, &ArrayElement::type);
    return wanted == kArrayElements.end() ? "bfloat16" : std::string(wanted->name);
  }

  /// The profile of the last launch.
  nb::dict profile() const {
    nb::dict result;
    nb::list kinds, lines;
    for (const emulator::ProfileRow& row : profile_.kinds) kinds.append(nb::make_tuple(row.name, counts(row.counts)));
    for (const emulator::ProfileRow& row : profile_.lines) {
      lines.append(nb::make_tuple(nb::make_tuple(row.name, row.line), counts(row.counts)));
    }
    result["total"] = counts(profile_.total);
    result["instructions"] = kinds;
    result["lines"] = lines;
    return result;
  }

 private:
  static nb::dict counts(const emulator::ProfileCounts& counts) {
    nb::dict result;
    for (const emulator::ProfileField& field : emulator::profile_fields()) {
      result[nb::str(field.name.data(), field.name.size())] = counts.*field.count;
    }
    return result;
  }

  /// ("array", address, bytes, initialised), ("bytes", ...), or a number
  static emulator::KernelArgument argument(const emulator::KernelParameter& parameter, std::size_t i,
                                           const nb::handle& value) {
    if (nb::isinstance<nb::tuple>(value)) {
      const auto array = nb::cast<std::tuple<std::uint64_t, std::uint64_t, bool>>(value);
      const std::span<std::byte> data(reinterpret_cast<std::byte*>(std::get<0>(array)), std::get<1>(array));
      return emulator::ArrayArgument{data, std::get<2>(array)};
    }
    if (nb::isinstance<nb::bytes>(value)) {
      const auto bytes = nb::cast<nb::bytes>(value);
      const auto* const data = static_cast<const std::byte*>(bytes.data());
      return std::vector<std::byte>(data, data + bytes.size());
    }
    if (nb::isinstance<nb::float_>(value)) return emulator::real_argument(parameter, i, nb::cast<double>(value));
    if (std::int64_t number = 0; nb::try_cast(value, number)) {
      const auto bits = static_cast<std::uint64_t>(number);
      return emulator::integer_argument(parameter, i, number < 0, number < 0 ? 0 - bits : bits);
    }
    if (std::uint64_t number = 0; nb::try_cast(value, number)) {
      return emulator::integer_argument(parameter, i, false, number);
    }
    throw InvalidArgument(fmt::format("parameter {} takes {}, got an object of type {}", i,
                                      emulator::to_string(parameter), nb::type_name(value.type()).c_str()));
  }

  static nb::dict describe(const emulator::Finding& finding) {
    nb::list frames;
    for (const emulator::SourceLine& frame : finding.location.source)
      frames.append(nb::make_tuple(frame.file, frame.line));
    nb::dict result;
    result["kind"] = nb::str(emulator::identifier(finding.kind).data());
    result["severity"] = nb::str(emulator::name(finding.severity).data());
    result["detail"] = finding.detail;
    result["thread"] = finding.thread ? nb::object(index(finding.thread->thread)) : nb::none();
    result["cta"] = finding.thread ? nb::object(index(finding.thread->cta)) : nb::none();
    result["frames"] = nb::tuple(frames);
    result["ptx_line"] = finding.location.ptx_line;
    result["ptx"] = finding.location.ptx_text;
    result["notes"] = nb::tuple(nb::cast(finding.notes));
    result["fix"] = nb::str(emulator::fix(finding.kind).data());
    result["count"] = finding.count;
    return result;
  }

  engine::KernelFile file_;
  emulator::LaunchProfile profile_;
  std::unique_ptr<emulator::EmulatedModule> module_;
};

/// GlobalMemoryChecks for a `with` statement.
class CheckedGlobalMemory {
 public:
  void enter() { checks_.emplace(); }
  void exit() { checks_.reset(); }

 private:
  std::optional<emulator::GlobalMemoryChecks> checks_;
};

}  // namespace

void bind_emulator(nb::module_& module) {
  nb::class_<CheckedGlobalMemory>(module, "CheckedGlobalMemory",
                                  "`with CheckedGlobalMemory():` finds races in global memory, and reads of what "
                                  "nothing has written, in launches of "
                                  "this thread on the emulator, as TILEWRIGHT_EMULATOR_CHECK_GLOBAL does.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](CheckedGlobalMemory& self) -> CheckedGlobalMemory& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def(
          "__exit__", [](CheckedGlobalMemory& self, nb::handle, nb::handle, nb::handle) { self.exit(); },
          "kind"_a.none(), "error"_a.none(), "trace"_a.none());
  nb::class_<KernelModule>(module, "KernelModule", "CUDA C++ or PTX that is loaded on an emulator.")
      .def(nb::init<const std::string&, bool, const std::string&, const std::vector<std::string>&, std::uint64_t>(),
           "source"_a, "is_path"_a, "target"_a, "include_folders"_a, "steps"_a)
      .def_prop_ro("kernels", &KernelModule::kernels, "The names of the kernels.")
      .def("wanted_element", &KernelModule::wanted_element, "kernel"_a, "index"_a, "given"_a,
           "The type of the elements that the parameter points to, if elements of the type `given` are others; else "
           "empty.")
      .def("launch", &KernelModule::launch, "kernel"_a, "grid"_a, "block"_a, "cluster"_a, "shared_bytes"_a,
           "cooperative"_a, "arguments"_a, "profile"_a, "Runs a launch and returns its findings.")
      .def("profile", &KernelModule::profile, nb::sig("def profile(self) -> dict[str, Any]"),
           "The counts of the last launch, if it was profiled.");
}

}  // namespace tilewright::python
