// The functions below tilewright/profiling.py: profiles and their formats as texts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/op/tensor.hpp"
#include "tilewright/profile/formats.hpp"
#include "tilewright/profile/profile.hpp"
#include "tilewright/runtime/call_timer.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/tune/tune.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

std::string profile_of(const OperationArguments& arguments, int top, const Text& kernel,
                       const std::vector<Text>& providers, double seconds, bool verify,
                       std::optional<bool> deterministic, std::optional<bool> batch_invariant) {
  profile::ProfileOptions options{.top = top, .kernel = kernel.read("kernel"), .seconds = seconds, .verifies = verify};
  for (const Text& provider : providers) options.providers.push_back(provider.read("a provider"));
  if (deterministic || batch_invariant) {
    options.required = registry::Promises{.deterministic = deterministic.value_or(false),
                                          .batch_invariant = batch_invariant.value_or(false)};
  }
  const Unlocked unlocked;
  const op::Problem& problem = arguments.problem();
  return profile::to_json(profile::profile(*engine_for(arguments.memory()), std::span(&problem, 1), options));
}

std::string tune(const OperationArguments& arguments, int top, double seconds, bool checks_only) {
  const Unlocked unlocked;
  const tune::TuneOptions options{.top = top, .seconds = seconds, .checks_only = checks_only};
  return tune::to_json(tune::tune(*engine_for(arguments.memory()), arguments.problem(), options));
}

std::string converted(const Text& profile, const Text& format) {
  const std::string json = profile.read("profile"), wanted = format.read("format");
  if (wanted == "csv") return profile::to_csv(json);
  if (wanted == "html") return profile::to_html(json);
  if (wanted == "junit") return profile::to_junit(json);
  return profile::to_table(json);
}

/// runtime::CallTimer on a GPU, for calls of Python.
class CallTimer {
 public:
  explicit CallTimer(int ordinal) : timer_(context_of(ordinal)) {}

  std::vector<double> time(const std::vector<nb::callable>& calls) {
    return timer_.time(calls.size(), [&](std::size_t call, runtime::StreamHandle stream) {
      calls[call](reinterpret_cast<std::uintptr_t>(stream));
    });
  }

 private:
  static std::shared_ptr<runtime::CudaContext> context_of(int ordinal) {
    const auto device = engine_for({op::MemoryDevice::Kind::cuda, ordinal})->device();
    const auto* const gpu = dynamic_cast<const runtime::CudaDevice*>(device.get());
    if (gpu == nullptr) throw InvalidArgument(fmt::format("calls cannot be timed on {}", device->properties().name));
    return gpu->context();
  }

  runtime::CallTimer timer_;
};

}  // namespace

void bind_profile(nb::module_& module) {
  nb::class_<CallTimer>(module, "_CallTimer", "Times calls that enqueue work on the stream that they are given.")
      .def(nb::init<int>(), nb::arg("device"))
      .def("time", &CallTimer::time, nb::arg("calls"),
           nb::sig("def time(self, calls: collections.abc.Sequence[collections.abc.Callable[[int], object]]) -> "
                   "list[float]"),
           "The device time of each call in microseconds.");
  module.def("_profile", &profile_of, nb::arg("args"), nb::arg("top"), nb::arg("kernel"), nb::arg("providers"),
             nb::arg("seconds"), nb::arg("verify"), nb::arg("deterministic").none(), nb::arg("batch_invariant").none());
  module.def("_tune", &tune, nb::arg("args"), nb::arg("top"), nb::arg("seconds"), nb::arg("verify_only"));
  module.def("_convert_profile", &converted, nb::arg("profile"), nb::arg("format"));
}

}  // namespace tilewright::python
