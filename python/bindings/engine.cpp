#include "python/bindings/engine.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>

#include "python/bindings/dtype.hpp"
#include "python/bindings/kernel.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/tensor.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/fork.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/tune/tune.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using engine::Engine;
using engine::Explanation;

/// How often the emulator logs how far a launch is, in seconds. Kernels that end sooner log nothing.
constexpr double kEmulatorProgressSeconds = 5;

ForkSafeMutex& engines_mutex() {
  static ForkSafeMutex mutex;  // guards engines() and configured(); not held while Python code runs
  return mutex;
}
std::map<std::string, std::shared_ptr<Engine>>& engines() {
  static std::map<std::string, std::shared_ptr<Engine>> all;
  return all;
}

/// The options from the environment variables, as changed by configure().
engine::Options& configured() {
  static engine::Options options = tune::options_from_environment();  // guarded by engines_mutex()
  return options;
}

/// The engine of a device. "" stands for the device that TILEWRIGHT_DEVICE names, and gives the same engine as the name
/// of that device. An engine may log to Python while it is made. Therefore it is made without the mutex, and if two
/// threads make the same one, the second discards its own. @pre the GIL is not held
std::shared_ptr<Engine> engine_named(const std::string& device) {
  engine::Options options;
  {
    const std::scoped_lock lock(engines_mutex());
    if (const auto found = engines().find(device); found != engines().end()) return found->second;
    options = configured();
  }
  if (!device.empty()) options.device = device;
  options.emulator_progress_seconds = kEmulatorProgressSeconds;
  auto made = std::make_shared<Engine>(options, shared_registry());
  const runtime::DeviceProperties& properties = made->device()->properties();
  if (options.device == "auto" && properties.emulated) {
    spdlog::info("no GPU was found: kernels run on {}, which checks every access and is slow", properties.name);
  }
  const std::string own = properties.emulated ? properties.name : fmt::format("cuda:{}", properties.ordinal);
  const std::scoped_lock lock(engines_mutex());
  const std::shared_ptr<Engine> same = engines().try_emplace(own, made).first->second;
  return engines().try_emplace(device, same).first->second;
}

/// The kernels that find_kernels() found, best first. A Python object is made only for those that are accessed.
struct KernelList {
  std::shared_ptr<const Explanation> found;
  std::vector<std::size_t> chosen;  // indices of the kernels that the filter accepted, if is_filtered
  bool is_filtered = false;

  std::size_t size() const { return is_filtered ? chosen.size() : found->kernels.size(); }
  const engine::RankedKernel& at(std::ptrdiff_t index) const {
    const auto count = static_cast<std::ptrdiff_t>(size());
    if (index < -count || index >= count)
      throw nb::index_error(fmt::format("kernel {} of a list of {}", index, count).c_str());
    const auto place = static_cast<std::size_t>(index < 0 ? index + count : index);
    return found->kernels[is_filtered ? chosen[place] : place];
  }
};

std::shared_ptr<registry::Kernel> shared(const registry::KernelPtr& kernel) {
  return std::const_pointer_cast<registry::Kernel>(kernel);
}

void check_filter(nb::handle metadata_filter) {
  if (PyCallable_Check(metadata_filter.ptr()) == 0)
    throw nb::type_error(
        fmt::format("metadata_filter must be a function or None, got {}", shown(metadata_filter)).c_str());
}

KernelList find_kernels(const OperationArguments& arguments, nb::handle metadata_filter, nb::handle target,
                        const std::optional<std::vector<Text>>& provider_names, const Required& required) {
  const std::optional<Target> wanted = read_target(target);
  std::optional<std::vector<std::string>> providers;
  if (provider_names) {
    providers.emplace();
    for (const Text& provider : *provider_names) providers->push_back(provider.read("a provider"));
  }
  KernelList list;
  {
    const Unlocked unlocked;
    const std::shared_ptr<Engine> engine = engine_for(arguments.memory());
    list.found = providers ? std::make_shared<const Explanation>(
                                 engine->explain(arguments.problem(), {}, wanted, *providers, required.of(*engine)))
                           : engine->ranking(arguments.call, wanted, required.of(*engine));
  }
  if (metadata_filter.is_none()) return list;
  check_filter(metadata_filter);
  list.is_filtered = true;
  const Locked gil;
  for (std::size_t i = 0; i < list.found->kernels.size(); ++i) {
    if (nb::cast<bool>(nb::bool_(metadata_filter(list.found->kernels[i].kernel->metadata())))) list.chosen.push_back(i);
  }
  return list;
}

std::shared_ptr<Explanation> explain(const OperationArguments& arguments, nb::handle target, const Required& required) {
  const std::optional<Target> wanted = read_target(target);
  const Unlocked unlocked;
  const std::shared_ptr<Engine> engine = engine_for(arguments.memory());
  return std::make_shared<Explanation>(engine->explain(arguments.problem(), {}, wanted, {}, required.of(*engine)));
}

/// A prepared call, with its engine and the arguments it was prepared for.
class PreparedCall {
 public:
  /// @pre the GIL is held, because the references to the arrays are copied
  explicit PreparedCall(const OperationArguments& arguments) : arguments_(arguments) {}

  /// @pre the GIL is not held
  void load(const registry::KernelPtr& kernel, const engine::ArtifactPtr& artifact, const Required& required) {
    engine_ = engine_for(arguments_.memory());
    const registry::Promises promises = required.of(*engine_);
    // Host arrays are copied to the device at each run, so only their shapes are known here.
    prepared_ = arguments_.is_on_host() ? engine_->prepare(shape_of(arguments_.problem()), kernel, artifact, promises)
                                        : engine_->prepare(arguments_.call, kernel, artifact, promises);
  }

  const registry::Kernel& kernel() const { return prepared_.kernel(); }
  std::size_t workspace_bytes() const { return prepared_.workspace_bytes(); }

  /// The GIL is kept for a launch that needs no workspace: it does not block, and takes less time than releasing the
  /// GIL.
  void run(const OperationArguments* other, nb::handle stream, nb::handle workspace) const {
    const OperationArguments& arguments = other != nullptr ? *other : arguments_;
    engine::RunOptions options{.stream = stream_for(stream, arguments.streams.all(), arguments.memory())};
    read_workspace(workspace, options);
    if (needs_no_memory(other != nullptr) && arguments.memory().kind == op::MemoryDevice::Kind::cuda) {
      launch(other, options);
    } else {
      const Unlocked unlocked;
      arguments.is_on_host() ? copy_and_run(arguments, options) : launch(other, options);
    }
    if (!arguments.lent.empty()) keep_until_passed(arguments.lent, arguments.memory(), options.stream);
  }

 private:
  /// Whether the launch needs no workspace. _launch() of a Python kernel is called again for other arguments, and may
  /// then ask for one.
  bool needs_no_memory(bool is_for_others) const {
    return prepared_.workspace_bytes() == 0 && (!is_for_others || kernel().depends_only_on_key());
  }

  void copy_and_run(const OperationArguments& arguments, const engine::RunOptions& options) const {
    engine::HostOperands operands(arguments.problem(), engine_->device(), options.stream,
                                  !prepared_.kernel().writes_whole_outputs());
    prepared_.run(operands.on_device(), options);
    operands.copy_out();
  }

  void launch(const OperationArguments* other, const engine::RunOptions& options) const {
    other != nullptr ? prepared_.run(other->call, options) : prepared_.run(options);
  }

  static op::Problem shape_of(op::Problem problem) {
    for (const op::Operand& operand : op::operands(problem)) {
      operand.tensor->address = 0;
      operand.tensor->device = {op::MemoryDevice::Kind::shape, 0};
    }
    return problem;
  }

  OperationArguments arguments_;
  std::shared_ptr<Engine> engine_;
  engine::PreparedCall prepared_;
};

/// The HTML that notebooks show, by a function of tilewright/html.py.
nb::str in_html(const char* function, nb::handle object) {
  return nb::str(nb::module_::import_("tilewright.html").attr(function)(object));
}

void bind_artifact(nb::module_& module) {
  nb::class_<compile::Artifact>(module, "Artifact",
                                "A compiled kernel, which can be run here, or saved and run on another machine. "
                                "kernel.compile(args) and load_artifact() return it.")
      .def_ro("name", &compile::Artifact::name)
      .def_ro("symbol", &compile::Artifact::symbol, "The name of the kernel function in the cubin.")
      .def_prop_ro("target", [](const compile::Artifact& self) { return self.target.name(); })
      .def_ro("registers", &compile::Artifact::registers, "Registers per thread; None if unknown.")
      .def_ro("spill_bytes", &compile::Artifact::spill_bytes,
              "Bytes of spill stores and loads per thread; None if unknown.")
      .def_ro("compiler", &compile::Artifact::compiler)
      .def_ro("compile_ms", &compile::Artifact::compile_ms)
      .def_ro("ptx", &compile::Artifact::ptx)
      .def_ro("description", &compile::Artifact::description, "The kernel's metadata as JSON.")
      .def_prop_ro("cubin",
                   [](const compile::Artifact& self) { return nb::bytes(self.cubin.data(), self.cubin.size()); })
      .def(
          "save",
          [](const compile::Artifact& self, nb::handle path) {
            const std::string name = read_path(path, "path");
            const std::string folder = std::filesystem::path(name).parent_path().string();
            if (!folder.empty()) check_file_exists(folder);
            compile::write_artifact(self, name);
          },
          nb::arg("path"), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes the artifact to a file, which load_artifact() reads.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const compile::Artifact& self) { return std::hash<std::string>()(self.name + self.source); })
      .def(
          "__getstate__",
          [](const compile::Artifact& self) {
            const std::vector<std::byte> bytes = compile::serialize(self);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::sig("def __getstate__(self) -> object"))
      .def(
          "__setstate__",
          [](compile::Artifact& self, const nb::bytes& state) {
            const std::span<const char> chars(state.c_str(), state.size());
            new (&self) compile::Artifact(compile::deserialize(std::as_bytes(chars)).value_or_throw());
          },
          nb::sig("def __setstate__(self, state: object, /) -> None"))
      .def("_repr_html_", [](nb::handle self) { return in_html("of_artifact", self); })
      .def("__repr__", [](const compile::Artifact& self) {
        return fmt::format("<Artifact {}: {}, {} registers, {} bytes of cubin>", self.name, self.target.name(),
                           self.registers ? std::to_string(*self.registers) : "?", self.cubin.size());
      });
  module.def(
      "load_artifact",
      [](nb::handle path) {
        const std::string name = read_path(path, "path");
        check_file_exists(name);
        return std::make_shared<compile::Artifact>(compile::read_artifact(name).value_or_throw());
      },
      nb::arg("path"), nb::sig("def load_artifact(path: str | os.PathLike[str]) -> Artifact"),
      "Reads an artifact that save() wrote; no compiler is needed. Raises InvalidArgument if the file is damaged.");
}

void bind_explanation(nb::module_& module) {
  nb::class_<KernelList>(
      module, "KernelList",
      "A sequence of kernels, the one with the shortest predicted time first. A tuned winner comes before all others. "
      "find_kernels() returns it.")
      .def("__len__", &KernelList::size)
      .def("__getitem__", [](const KernelList& self, std::ptrdiff_t index) { return shared(self.at(index).kernel); })
      .def("__getitem__",
           [](const KernelList& self, const nb::slice& slice) -> nb::typed<nb::list, registry::Kernel> {
             nb::list kernels;
             const auto [start, stop, step, length] = slice.compute(self.size());
             for (std::size_t i = 0; i < length; ++i)
               kernels.append(shared(self.at(start + static_cast<std::ptrdiff_t>(i) * step).kernel));
             return kernels;
           })
      .def("__iter__",
           [](const KernelList& self) -> nb::typed<nb::iterator, registry::Kernel> {
             nb::list kernels;
             for (std::size_t i = 0; i < self.size(); ++i)
               kernels.append(shared(self.at(static_cast<std::ptrdiff_t>(i)).kernel));
             return nb::iter(kernels);
           })
      .def(
          "estimate_us", [](const KernelList& self, std::ptrdiff_t index) { return self.at(index).estimate_us; },
          nb::arg("index"), "The predicted time of a kernel in microseconds.")
      .def("__repr__", [](const KernelList& self) { return fmt::format("<KernelList of {}>", self.size()); });
  nb::class_<registry::RefusedKernel>(
      module, "RefusedKernel",
      "A kernel, or a family of kernels, that cannot compute a problem, with the reason. Explanation.refused has "
      "them.")
      .def_ro("name", &registry::RefusedKernel::name)
      .def_prop_ro(
          "reason", [](const registry::RefusedKernel& self) { return self.reason(); },
          "For people: \"k must be a multiple of 8, got 63\".")
      .def_prop_ro(
          "code", [](const registry::RefusedKernel& self) { return name(self.refusal.code); },
          "For programs: \"shape\", \"alignment\", \"types\", \"architecture\", \"resources\", ...")
      .def_prop_ro(
          "operand", [](const registry::RefusedKernel& self) { return self.refusal.operand; },
          "The operand that is the cause, such as \"A\"; empty if it is none of them.")
      .def_prop_ro(
          "numbers", [](const registry::RefusedKernel& self) { return self.refusal.numbers; },
          "The integers of the reason, in the same order: [8, 63].")
      .def("__repr__", [](const registry::RefusedKernel& self) {
        return fmt::format("RefusedKernel('{}', '{}')", self.name, self.reason());
      });
  nb::class_<Explanation>(
      module, "Explanation",
      "The kernels that can compute a problem, and those that cannot. str() is a report. explain() returns it.")
      .def_prop_ro("kernels",
                   [](const std::shared_ptr<Explanation>& self) {
                     return KernelList{self, {}, false};
                   })
      .def_ro("refused", &Explanation::refused)
      .def_prop_ro("target", [](const Explanation& self) { return self.target.name(); })
      .def_prop_ro(
          "order",
          [](const Explanation& self) {
            return self.order ? std::optional(plan::to_string(*self.order)) : std::optional<std::string>();
          },
          "With batch_invariant, the order in which every shipped kernel sums; else None.")
      .def_prop_ro(
          "unrestricted_us", [](const Explanation& self) { return self.unrestricted_us; },
          "If promises are required, the predicted time of the best kernel without them in microseconds; else None.")
      .def(
          "to_json", [](const Explanation& self) { return engine::to_json(self); },
          "The explanation as a JSON object: target, kernels and refused.")
      .def(
          "__reduce__",
          [](const Explanation& self) {
            const nb::object type = nb::module_::import_("tilewright.saved").attr("SavedExplanation");
            return nb::make_tuple(type, nb::make_tuple(engine::to_json(self), engine::to_text(self)));
          },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"))
      .def("_repr_html_", [](nb::handle self) { return in_html("of_explanation", self); })
      .def("__repr__",
           [](const Explanation& self) {
             return fmt::format("<Explanation: {} kernels for {}, {} refused>", self.kernels.size(), self.target.name(),
                                self.refused.size());
           })
      .def("__str__", [](const Explanation& self) { return engine::to_text(self); });
}

void bind_prepared(nb::module_& module) {
  nb::class_<PreparedCall>(
      module, "PreparedCall",
      "A call whose kernel is chosen, compiled and loaded, so that run() only launches it. prepare() "
      "returns it.")
      .def_prop_ro("kernel_name", [](const PreparedCall& self) { return self.kernel().name(); })
      .def_prop_ro("workspace_bytes", &PreparedCall::workspace_bytes)
      .def(
          "run", &PreparedCall::run, nb::arg("args").none() = nb::none(), nb::arg("stream") = nb::none(),
          nb::arg("workspace") = nb::none(),
          "Enqueues the launch on `stream` (default: the current stream of the arrays' framework). `args` replaces the "
          "arguments of prepare(); its arrays must have the same shapes, strides and types. `workspace` is an array in "
          "GPU memory of at least workspace_bytes, zeroed before its first use; by default the memory pool provides "
          "it. "
          "run() may be called while a CUDA graph is captured.");
  module.def(
      "prepare",
      [](const OperationArguments& arguments, const std::shared_ptr<registry::Kernel>& kernel,
         const std::shared_ptr<compile::Artifact>& artifact, std::optional<bool> deterministic,
         std::optional<bool> batch_invariant) {
        PreparedCall prepared(arguments);
        choose_target(kernel.get(), arguments.memory());
        const Unlocked unlocked;
        prepared.load(kernel, artifact, {deterministic, batch_invariant});
        return prepared;
      },
      nb::arg("args"), nb::arg("kernel").none() = nb::none(), nb::arg("artifact").none() = nb::none(), nb::kw_only(),
      nb::arg("deterministic") = nb::none(), nb::arg("batch_invariant") = nb::none(),
      "Chooses the best kernel, unless `kernel` is given; compiles it, unless `artifact` is given; and loads it. The "
      "kernel must make the promises `deterministic` and `batch_invariant` where they are True; see find_kernels().");
  module.def(
      "run",
      [](const OperationArguments& arguments, nb::handle stream, std::optional<bool> deterministic,
         std::optional<bool> batch_invariant) {
        run(arguments, stream, {deterministic, batch_invariant});
      },
      nb::arg("args"), nb::arg("stream") = nb::none(), nb::kw_only(), nb::arg("deterministic") = nb::none(),
      nb::arg("batch_invariant") = nb::none(),
      "Computes the problem with the best kernel, which is compiled at most once. Host arrays are complete on return; "
      "for arrays on a GPU the launch is enqueued on `stream` (default: the current stream of their framework). The "
      "kernel must make the promises `deterministic` and `batch_invariant` where they are True; see find_kernels().");
}

/// An iterator over all kernels, each of which is made when the iteration reaches it.
struct Listing {
  engine::KernelListing listing;
  nb::object filter;
  bool is_running = false;

  std::shared_ptr<registry::Kernel> next() {
    if (is_running) throw nb::value_error("the KernelListing is in use by another thread or by its own filter");
    is_running = true;  // guarded by the GIL
    struct Ends {
      bool& flag;
      ~Ends() { flag = false; }
    } const ends{is_running};
    while (true) {
      registry::KernelPtr kernel;
      {
        const Unlocked unlocked;
        kernel = listing.next();
      }
      if (kernel == nullptr) throw nb::stop_iteration();
      if (filter.is_none()) return shared(kernel);
      const Locked gil;
      if (nb::cast<bool>(nb::bool_(filter(kernel->metadata())))) return shared(kernel);
    }
  }
};

void bind_discovery(nb::module_& module) {
  module.def(
      "find_kernels",
      [](const OperationArguments& arguments, nb::handle metadata_filter, nb::handle target,
         const std::optional<std::vector<Text>>& providers, std::optional<bool> deterministic,
         std::optional<bool> batch_invariant) {
        return find_kernels(arguments, metadata_filter, target, providers, {deterministic, batch_invariant});
      },
      nb::arg("args"), nb::arg("metadata_filter") = nb::none(), nb::arg("target") = nb::none(),
      nb::arg("providers") = nb::none(), nb::kw_only(), nb::arg("deterministic") = nb::none(),
      nb::arg("batch_invariant") = nb::none(),
      "The kernels that can compute `args`, best first. `metadata_filter` is called with the KernelMetadata of each of "
      "them, and returns whether to keep it. `target` is an architecture, such as 90 or \"sm_90a\" (default: that of "
      "the device of the arrays). `providers` limits the search to these families: [\"sm90_gemm\"]. With "
      "`deterministic`, only kernels are found that promise equal bits in every run. With `batch_invariant`, the bits "
      "of "
      "a row of D depend neither on M, nor on the row's place, nor on the batch: the kernels found for different M sum "
      "in one order. None leaves both to configure().");
  module.def(
      "explain",
      [](const OperationArguments& arguments, nb::handle target, std::optional<bool> deterministic,
         std::optional<bool> batch_invariant) {
        return explain(arguments, target, {deterministic, batch_invariant});
      },
      nb::arg("args"), nb::arg("target") = nb::none(), nb::kw_only(), nb::arg("deterministic") = nb::none(),
      nb::arg("batch_invariant") = nb::none(),
      "Like find_kernels, but also reports every kernel that cannot compute `args`, with the reason, and what the "
      "promises cost.");
  nb::class_<Listing>(module, "KernelListing", "An iterator over kernels. list_kernels() returns it.")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> KernelListing"))
      .def("__next__", &Listing::next);
  module.def(
      "list_kernels",
      [](nb::object metadata_filter, nb::handle target) {
        if (!metadata_filter.is_none()) check_filter(metadata_filter);
        const std::optional<Target> wanted = read_target(target);
        const auto listing = [&] {
          const Unlocked unlocked;
          return engine_for({})->list_kernels(wanted);
        };
        return Listing{listing(), std::move(metadata_filter)};
      },
      nb::arg("metadata_filter") = nb::none(), nb::arg("target") = nb::none(),
      "Iterates over all kernels for a target, whatever they compute. Each is made when the iteration reaches it.");
  module.def(
      "compile_kernels",
      [](const std::vector<std::shared_ptr<registry::Kernel>>& kernels,
         nb::object on_progress) -> nb::typed<nb::list, compile::Artifact> {
        const std::vector<registry::KernelPtr> all(kernels.begin(), kernels.end());
        if (std::ranges::find(all, nullptr) != all.end())
          throw nb::type_error("kernels must be a list of Kernel, got None in it");
        for (const std::shared_ptr<registry::Kernel>& kernel : kernels) choose_target(kernel.get(), {});
        std::vector<engine::ArtifactPtr> artifacts;
        {
          const Unlocked unlocked;
          artifacts = engine_for({})->compile(all, [&](const engine::CompileProgress& progress) {
            const Locked gil;
            if (!on_progress.is_none()) on_progress(progress.done, progress.all, progress.kernel);
          });
        }
        nb::list result;
        for (const engine::ArtifactPtr& artifact : artifacts)
          result.append(std::const_pointer_cast<compile::Artifact>(artifact));
        return result;
      },
      nb::arg("kernels"), nb::arg("on_progress") = nb::none(),
      "Returns the artifacts of the kernels. Those that are not in the cache are compiled, several in parallel. "
      "`on_progress(done, all, name)` is called when each is ready.");
}

/// @throws InvalidArgument unless the folder exists or can be created
void check_writable(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InvalidArgument(fmt::format("cache_dir '{}': {}", printable(folder), error.message()));
}

void configure(const std::optional<Text>& device_text, const std::optional<Text>& compiler_text,
               const std::optional<Text>& cache_dir_text, std::optional<std::int64_t> pool_initial_bytes,
               std::optional<std::int64_t> pool_maximum_bytes, std::optional<bool> deterministic,
               std::optional<bool> batch_invariant) {
  std::optional<std::string> device, compiler, cache_dir;
  if (device_text) device = device_text->read("device");
  if (compiler_text) compiler = compiler_text->read("compiler");
  if (cache_dir_text) cache_dir = cache_dir_text->path("cache_dir");
  const Unlocked unlocked;
  engine::Options options;
  {
    const std::scoped_lock lock(engines_mutex());
    options = configured();
  }
  if (device) options.device = *device;
  if (compiler) {
    const Result<compile::Backend> backend = compile::parse_backend(*compiler);
    if (!backend) throw InvalidArgument("compiler " + backend.reason());
    options.toolchain.backend = *backend;
  }
  if (cache_dir) options.cache_dir = *cache_dir;
  for (const auto& [what, bytes] : {std::pair{"initial", pool_initial_bytes}, {"maximum", pool_maximum_bytes}}) {
    if (bytes.value_or(0) < 0)
      throw InvalidArgument(fmt::format("pool_{}_bytes must be at least 0, got {}", what, *bytes));
  }
  options.pool_initial_bytes = pool_initial_bytes.value_or(options.pool_initial_bytes);
  options.pool_maximum_bytes = pool_maximum_bytes.value_or(options.pool_maximum_bytes);
  options.required.deterministic = deterministic.value_or(options.required.deterministic);
  options.required.batch_invariant = batch_invariant.value_or(options.required.batch_invariant);
  if (cache_dir) check_writable(*cache_dir);
  if (device) const Engine opened(options, shared_registry());  // a device that cannot be opened is reported here
  std::map<std::string, std::shared_ptr<Engine>> old;
  const std::scoped_lock lock(engines_mutex());
  configured() = options;
  std::swap(old, engines());
}

std::shared_ptr<registry::Kernel> make_kernel(const op::Signature& signature, plan::FlatDesign design,
                                              const std::optional<Target>& target, const op::MemoryDevice& memory) {
  const Unlocked unlocked;
  const std::shared_ptr<Engine> engine = engine_for(memory);
  design.target = target.value_or(engine->device()->properties().target);
  return shared(engine->make_kernel(signature, design));
}

void bind_explicit(nb::module_& module) {
  module.def(
      "make_kernel",
      [](const OperationArguments& arguments, const plan::FlatDesign& design, nb::handle target) {
        return make_kernel(op::describe(arguments.problem()), design, read_target(target), arguments.memory());
      },
      nb::arg("args"), nb::arg("design"), nb::kw_only(), nb::arg("target") = nb::none(),
      "Makes a kernel of the given design, for arguments with the same types, layouts, alignments and epilogue as "
      "`args`. Raises RefusedDesign, an InvalidArgument with the number that makes the design impossible, before "
      "anything is compiled.");
  module.def(
      "make_kernel",
      [](const op::TensorSignature& a, const op::TensorSignature& b, const op::TensorSignature& out,
         nb::handle accumulator_type, const plan::FlatDesign& design, const Text& math_text,
         const std::optional<op::Epilogue>& epilogue, const std::optional<op::TensorSignature>& c, nb::handle groups,
         nb::handle target) {
        op::GemmSignature description{.a = a, .b = b, .c = c.value_or(out), .d = out, .has_c = c.has_value()};
        description.accumulator = read_dtype(accumulator_type);
        const std::string math = math_text.read("math");
        const auto operation = op::parse_math_operation(math);
        if (!operation) throw InvalidArgument(fmt::format("unknown math operation '{}'", printable(math)));
        description.math = *operation;
        description.epilogue =
            epilogue ? *epilogue : op::linear_combination(op::default_compute(description.accumulator, out.element));
        if (!groups.is_none()) {
          const std::string mode = read_text(groups, "groups");
          const auto parsed = op::parse_grouped_mode(mode);
          if (!parsed) throw InvalidArgument(fmt::format("unknown mode of groups '{}'", printable(mode)));
          description.groups = *parsed;
        }
        return make_kernel(description, design, read_target(target), {});
      },
      nb::arg("A"), nb::arg("B"), nb::arg("out"), nb::arg("accumulator_type"), nb::arg("design"), nb::kw_only(),
      nb::arg("math") = "multiply_add", nb::arg("epilogue") = nb::none(), nb::arg("C") = nb::none(),
      nb::arg("groups") = nb::none(), nb::arg("target") = nb::none(),
      "The same with descriptions of the operands instead of arrays. `groups` is the mode of GroupedGemmArguments. The "
      "default target is that of the device on which "
      "host arrays are computed.");
}

void bind_device(nb::module_& module) {
  module.def(
      "configure", &configure, nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("compiler") = nb::none(),
      nb::arg("cache_dir") = nb::none(), nb::arg("pool_initial_bytes") = nb::none(),
      nb::arg("pool_maximum_bytes") = nb::none(), nb::arg("deterministic") = nb::none(),
      nb::arg("batch_invariant") = nb::none(),
      "Overrides environment variables for all calls from now on: `device` TILEWRIGHT_DEVICE (\"cuda:0\", "
      "\"emulator:sm_90a\", ...), `compiler` TILEWRIGHT_COMPILER, `cache_dir` TILEWRIGHT_CACHE_DIR, `deterministic` "
      "TILEWRIGHT_DETERMINISTIC, `batch_invariant` TILEWRIGHT_BATCH_INVARIANT. The memory pool "
      "of a device keeps at least `pool_initial_bytes` and never exceeds `pool_maximum_bytes` (0: no limit). "
      "Options that are None stay as they are. Kernels that are loaded are released, and are loaded again when they "
      "are needed.");
  module.def(
      "device_name",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const Unlocked unlocked;
        return engine_named(device)->device()->properties().name;
      },
      nb::arg("device") = "",
      "The name of a device, for example \"NVIDIA H200\" or \"emulator:sm_90a\"; by default of the device on which "
      "host arrays are computed.");
  module.def(
      "device_target",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const Unlocked unlocked;
        return engine_named(device)->device()->properties().target.name();
      },
      nb::arg("device") = "", "The target of a device, for example \"sm_90a\".");
  module.def(
      "has_wgmma",
      [](nb::handle target) {
        const std::optional<Target> read = read_target(target);
        return read && has_feature(*read, TargetFeature::wgmma);
      },
      nb::arg("target"), "Whether GPUs of this target, such as 90 or \"sm_90a\", have wgmma.");
  module.def(
      "allocated_bytes",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const Unlocked unlocked;
        return engine_named(device)->device()->allocated_bytes();
      },
      nb::arg("device") = "", "How many bytes of the device's memory pool are in use.");
  module.def(
      "cache_counters",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const auto counters_of = [&] {
          const Unlocked unlocked;
          return engine_named(device)->cache().counters();
        };
        const cache::Counters counters = counters_of();
        return std::map<std::string, std::int64_t>{
            {"memory_hits", counters.memory_hits}, {"disk_hits", counters.disk_hits}, {"compiles", counters.compiles}};
      },
      nb::arg("device") = "",
      "How many kernels were found in memory (memory_hits), found on disk (disk_hits) and compiled (compiles) so far.");
  module.def(
      "synchronize",
      [](const Text& name, nb::handle stream) {
        const std::string device = name.read("the device");
        const runtime::StreamHandle handle = stream_for(stream, {}, {});
        const Unlocked unlocked;
        engine_named(device)->device()->synchronize(handle);
      },
      nb::arg("device") = "", nb::arg("stream") = nb::none(), "Waits for the work that is enqueued on the stream.");
  module.def("_shut_down", [] {
    release_all_lent();
    std::map<std::string, std::shared_ptr<Engine>> all;
    const Unlocked unlocked;
    const std::scoped_lock lock(engines_mutex());
    std::swap(all, engines());
  });
}

}  // namespace

const std::shared_ptr<registry::Registry>& shared_registry() {
  static const auto* registry = new std::shared_ptr(kernels::make_registry());  // lives as long as the process
  return *registry;
}

std::shared_ptr<Engine> engine_for(const op::MemoryDevice& memory) {
  return engine_named(memory.kind == op::MemoryDevice::Kind::cuda ? op::to_string(memory) : "");
}

registry::Promises Required::of(const Engine& engine) const {
  return {.deterministic = deterministic.value_or(engine.required().deterministic),
          .batch_invariant = batch_invariant.value_or(engine.required().batch_invariant)};
}

void run(const OperationArguments& arguments, nb::handle stream, const Required& required) {
  const runtime::StreamHandle handle = stream_for(stream, arguments.streams.all(), arguments.memory());
  {
    const Unlocked unlocked;
    const std::shared_ptr<Engine> engine = engine_for(arguments.memory());
    engine->run(arguments.call, nullptr, nullptr, engine::RunOptions{.stream = handle}, required.of(*engine));
  }
  if (!arguments.lent.empty()) keep_until_passed(arguments.lent, arguments.memory(), handle);
}

void read_workspace(nb::handle workspace, engine::RunOptions& options) {
  if (workspace.is_none()) return;
  const ReadTensor read = read_tensor(workspace, "workspace");
  if (op::span_bytes(read.tensor) == 0) return;
  if (read.tensor.address == 0 || read.tensor.device.kind != op::MemoryDevice::Kind::cuda) {
    throw InvalidArgument(
        fmt::format("workspace must be an array on a GPU, got one on {}", op::to_string(read.tensor.device)));
  }
  if (read.is_read_only) throw InvalidArgument("workspace is read-only");
  options.workspace = read.tensor.address;
  options.workspace_bytes = static_cast<std::size_t>(op::span_bytes(read.tensor));
}

std::optional<Target> read_target(nb::handle target) {
  if (target.is_none()) return std::nullopt;
  if (nb::isinstance<nb::int_>(target)) {
    constexpr int kMaxSm = 999;
    const int sm = static_cast<int>(read_signed(target, "target", 0, kMaxSm));
    return device_target(sm);
  }
  return parse_target(read_text(target, "target")).value_or_throw();
}

void bind_engine(nb::module_& module) {
  bind_artifact(module);
  bind_explanation(module);
  bind_prepared(module);
  bind_discovery(module);
  bind_device(module);
  bind_explicit(module);
}

}  // namespace tilewright::python
