#include "python/bindings/engine.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "python/bindings/dtype.hpp"
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

ForkSafeMutex& engines_mutex() {
  static ForkSafeMutex mutex;  // guards engines(), never while Python code runs
  return mutex;
}
std::map<std::string, std::shared_ptr<Engine>>& engines() {
  static std::map<std::string, std::shared_ptr<Engine>> all;
  return all;
}

/// What tune::options_from_environment() says, but for what configure() was told.
engine::Options& configured() {
  static engine::Options options = tune::options_from_environment();  // guarded by engines_mutex()
  return options;
}

/// "" is what TILEWRIGHT_DEVICE says, and the same engine as by that device's own name. Without the GIL: an engine may
/// log while it is made, which Python hears; so it is made without the lock too, and who comes second lets go of
/// theirs.
std::shared_ptr<Engine> engine_named(const std::string& device) {
  engine::Options options;
  {
    const std::scoped_lock lock(engines_mutex());
    if (const auto found = engines().find(device); found != engines().end()) return found->second;
    options = configured();
  }
  if (!device.empty()) options.device = device;
  auto made = std::make_shared<Engine>(options, shared_registry());
  const runtime::DeviceProperties& properties = made->device()->properties();
  const std::string own = properties.emulated ? properties.name : fmt::format("cuda:{}", properties.ordinal);
  const std::scoped_lock lock(engines_mutex());
  const std::shared_ptr<Engine> same = engines().try_emplace(own, made).first->second;
  return engines().try_emplace(device, same).first->second;
}

/// What a query found, best first: a sequence of kernels that makes Python objects of those that are looked at.
struct KernelList {
  std::shared_ptr<const Explanation> found;
  std::vector<std::size_t> chosen;  // of those found, where a filter was asked
  bool is_filtered = false;

  std::size_t size() const { return is_filtered ? chosen.size() : found->kernels.size(); }
  const engine::RankedKernel& at(std::ptrdiff_t index) const {
    const auto count = static_cast<std::ptrdiff_t>(size());
    if (index < 0) index += count;
    if (index < 0 || index >= count) throw nb::index_error("no kernel of that rank");
    const auto place = static_cast<std::size_t>(index);
    return found->kernels[is_filtered ? chosen[place] : place];
  }
};

std::shared_ptr<registry::Kernel> shared(const registry::KernelPtr& kernel) {
  return std::const_pointer_cast<registry::Kernel>(kernel);
}

KernelList find_kernels(const Arguments& arguments, nb::handle metadata_filter, nb::handle target,
                        const std::optional<std::vector<Text>>& of_providers) {
  const std::optional<Target> wanted = read_target(target);
  std::optional<std::vector<std::string>> providers;
  if (of_providers) {
    providers.emplace();
    for (const Text& provider : *of_providers) providers->push_back(provider.read("a provider"));
  }
  KernelList list;
  {
    const Unlocked unlocked;
    const std::shared_ptr<Engine> engine = engine_for(arguments.memory());
    list.found = providers
                     ? std::make_shared<const Explanation>(engine->explain(arguments.problem(), {}, wanted, *providers))
                     : engine->ranking(arguments.call, wanted);
  }
  if (metadata_filter.is_none()) return list;
  list.is_filtered = true;
  const Locked gil;
  for (std::size_t i = 0; i < list.found->kernels.size(); ++i) {
    if (nb::cast<bool>(nb::bool_(metadata_filter(list.found->kernels[i].kernel->metadata())))) list.chosen.push_back(i);
  }
  return list;
}

std::shared_ptr<Explanation> explain(const Arguments& arguments, nb::handle target) {
  const std::optional<Target> wanted = read_target(target);
  const Unlocked unlocked;
  return std::make_shared<Explanation>(engine_for(arguments.memory())->explain(arguments.problem(), {}, wanted));
}

/// A prepared call, and the engine that it belongs to.
class Prepared {
 public:
  /// @pre the GIL is held: arrays are referred to
  explicit Prepared(const Arguments& arguments) : arguments_(arguments) {}

  /// Without the GIL.
  void load(const registry::KernelPtr& kernel, const engine::ArtifactPtr& artifact) {
    engine_ = engine_for(arguments_.memory());
    // Memory of the host is copied to the device at each run: only its shape is known now.
    prepared_ = arguments_.is_on_host() ? engine_->prepare(shape_of(arguments_.problem()), kernel, artifact)
                                        : engine_->prepare(arguments_.call, kernel, artifact);
  }

  const registry::Kernel& kernel() const { return prepared_.kernel(); }
  std::size_t workspace_bytes() const { return prepared_.workspace_bytes(); }

  /// A launch without a workspace waits for nothing: the GIL is kept, which letting go of costs more than it.
  void run(const Arguments* other, nb::handle stream, nb::handle workspace) const {
    const Arguments& arguments = other != nullptr ? *other : arguments_;
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
  /// An author is asked again about other arguments, and may want a workspace for them.
  bool needs_no_memory(bool is_for_others) const {
    return prepared_.workspace_bytes() == 0 && (!is_for_others || kernel().depends_only_on_key());
  }

  void copy_and_run(const Arguments& arguments, const engine::RunOptions& options) const {
    engine::HostOperands operands(arguments.problem(), engine_->device(), options.stream);
    prepared_.run(operands.on_device(), options);
    operands.copy_out();
  }

  void launch(const Arguments* other, const engine::RunOptions& options) const {
    other != nullptr ? prepared_.run(other->call, options) : prepared_.run(options);
  }

  static op::Problem shape_of(op::Problem problem) {
    for (const op::Slot& slot : op::operands(problem)) {
      slot.tensor->address = 0;
      slot.tensor->device = {op::MemoryDevice::Kind::shape, 0};
    }
    return problem;
  }

  Arguments arguments_;
  std::shared_ptr<Engine> engine_;
  engine::PreparedCall prepared_;
};

void bind_artifact(nb::module_& module) {
  nb::class_<compile::Artifact>(module, "Artifact",
                                "A compiled kernel: to be run where it was compiled, or saved and run elsewhere.")
      .def_ro("name", &compile::Artifact::name)
      .def_ro("symbol", &compile::Artifact::symbol)
      .def_prop_ro("target", [](const compile::Artifact& self) { return self.target.name(); })
      .def_ro("registers", &compile::Artifact::registers)
      .def_ro("spill_bytes", &compile::Artifact::spill_bytes)
      .def_ro("compiler", &compile::Artifact::compiler)
      .def_ro("compile_ms", &compile::Artifact::compile_ms)
      .def_ro("ptx", &compile::Artifact::ptx)
      .def_ro("description", &compile::Artifact::description, "JSON: the metadata of the kernel.")
      .def_prop_ro("cubin",
                   [](const compile::Artifact& self) { return nb::bytes(self.cubin.data(), self.cubin.size()); })
      .def(
          "save",
          [](const compile::Artifact& self, nb::handle path) {
            compile::write_artifact(self, read_path(path, "the path"));
          },
          nb::arg("path"), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Into a file of its own, which load_artifact() reads.")
      .def("__repr__", [](const compile::Artifact& self) { return "<Artifact " + self.name + ">"; });
  module.def(
      "load_artifact",
      [](nb::handle path) {
        return std::make_shared<compile::Artifact>(
            compile::read_artifact(read_path(path, "the path")).value_or_throw());
      },
      nb::arg("path"), nb::sig("def load_artifact(path: str | os.PathLike[str]) -> Artifact"),
      "Checked byte by byte; needs no compiler. Raises InvalidArgument for a file that is damaged.");
}

void bind_explanation(nb::module_& module) {
  nb::class_<KernelList>(module, "KernelList", "Kernels, best first.")
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
          nb::arg("index"))
      .def("__repr__", [](const KernelList& self) { return fmt::format("<KernelList of {}>", self.size()); });
  nb::class_<registry::RefusedKernel>(module, "RefusedKernel", "A family or kernel, and why it was not found.")
      .def_ro("name", &registry::RefusedKernel::name)
      .def_prop_ro("reason", [](const registry::RefusedKernel& self) { return self.reason(); })
      .def_prop_ro("code", [](const registry::RefusedKernel& self) { return name(self.refusal.code); })
      .def_prop_ro("operand", [](const registry::RefusedKernel& self) { return self.refusal.operand; })
      .def_prop_ro("numbers", [](const registry::RefusedKernel& self) { return self.refusal.numbers; })
      .def("__repr__", [](const registry::RefusedKernel& self) {
        return fmt::format("RefusedKernel('{}', '{}')", self.name, self.reason());
      });
  nb::class_<Explanation>(module, "Explanation", "What explain() found: print it, or read it.")
      .def_prop_ro("kernels",
                   [](const std::shared_ptr<Explanation>& self) {
                     return KernelList{self, {}, false};
                   })
      .def_ro("refused", &Explanation::refused)
      .def_prop_ro("target", [](const Explanation& self) { return self.target.name(); })
      .def("to_json", [](const Explanation& self) { return engine::to_json(self); })
      .def("__str__", [](const Explanation& self) { return engine::to_text(self); });
}

void bind_prepared(nb::module_& module) {
  nb::class_<Prepared>(module, "Prepared", "A call whose kernel is chosen, compiled and loaded.")
      .def_prop_ro("kernel_name", [](const Prepared& self) { return self.kernel().name(); })
      .def_prop_ro("workspace_bytes", &Prepared::workspace_bytes)
      .def("run", &Prepared::run, nb::arg("args").none() = nb::none(), nb::arg("stream") = nb::none(),
           nb::arg("workspace") = nb::none(),
           "Enqueues the launch; with `args`, on other arrays of the same shapes, strides and types. Safe while a CUDA "
           "graph is captured.");
  module.def(
      "prepare",
      [](const Arguments& arguments, const std::shared_ptr<registry::Kernel>& kernel,
         const std::shared_ptr<compile::Artifact>& artifact) {
        Prepared prepared(arguments);
        const Unlocked unlocked;
        prepared.load(kernel, artifact);
        return prepared;
      },
      nb::arg("args"), nb::arg("kernel").none() = nb::none(), nb::arg("artifact").none() = nb::none(),
      "Chooses the best kernel (unless given), compiles it (unless an artifact is given) and loads it.");
  module.def(
      "run",
      [](const Arguments& arguments, nb::handle stream) {
        const runtime::StreamHandle handle = stream_for(stream, arguments.streams.all(), arguments.memory());
        {
          const Unlocked unlocked;
          engine_for(arguments.memory())->run(arguments.call, nullptr, nullptr, engine::RunOptions{.stream = handle});
        }
        if (!arguments.lent.empty()) keep_until_passed(arguments.lent, arguments.memory(), handle);
      },
      nb::arg("args"), nb::arg("stream") = nb::none(),
      "Computes the problem with the best kernel for it, which is compiled at most once. Arrays of the host are "
      "complete "
      "on return; work on arrays of a GPU is enqueued on `stream` (default: the current one of their framework).");
}

/// An iterator over kernels as they are made.
struct Listing {
  engine::KernelListing listing;
  nb::object filter;
  bool is_running = false;

  std::shared_ptr<registry::Kernel> next() {
    if (is_running) throw nb::value_error("another thread, or its own filter, is asking this listing");
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
      "find_kernels", &find_kernels, nb::arg("args"), nb::arg("metadata_filter") = nb::none(),
      nb::arg("target") = nb::none(), nb::arg("providers") = nb::none(),
      "The kernels that compute `args` on `target` (default: their device), best first. `metadata_filter`: called "
      "with the metadata of those that do.");
  module.def("explain", &explain, nb::arg("args"), nb::arg("target") = nb::none(),
             "As find_kernels, with the reason of every refusal.");
  nb::class_<Listing>(module, "KernelListing", "An iterator over kernels.")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", &Listing::next);
  module.def(
      "list_kernels",
      [](nb::object metadata_filter, nb::handle target) {
        const std::optional<Target> wanted = read_target(target);
        const auto listing = [&] {
          const Unlocked unlocked;
          return engine_for({})->list_kernels(wanted);
        };
        return Listing{listing(), std::move(metadata_filter)};
      },
      nb::arg("metadata_filter") = nb::none(), nb::arg("target") = nb::none(),
      "Every kernel for a target, made one by one as the iteration asks for it.");
  module.def(
      "compile_kernels",
      [](const std::vector<std::shared_ptr<registry::Kernel>>& kernels,
         nb::object on_progress) -> nb::typed<nb::list, compile::Artifact> {
        const std::vector<registry::KernelPtr> all(kernels.begin(), kernels.end());
        if (std::ranges::find(all, nullptr) != all.end())
          throw nb::type_error("kernels to compile are Kernels, got None");
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
      "Compiles what is not in the cache, several at once. `on_progress(done, all, name)` is called as each is ready.");
}

void configure(const std::optional<Text>& device_text, const std::optional<Text>& compiler_text,
               const std::optional<Text>& cache_dir_text, std::optional<std::int64_t> pool_initial_bytes,
               std::optional<std::int64_t> pool_maximum_bytes) {
  std::optional<std::string> device, compiler, cache_dir;
  if (device_text) device = device_text->read("the device");
  if (compiler_text) compiler = compiler_text->read("the compiler");
  if (cache_dir_text) cache_dir = cache_dir_text->path("the folder of the cache");
  const Unlocked unlocked;
  std::map<std::string, std::shared_ptr<Engine>> old;
  const std::scoped_lock lock(engines_mutex());
  engine::Options options = configured();
  if (device) options.device = *device;
  if (compiler) {
    const Result<compile::Backend> backend = compile::parse_backend(*compiler);
    if (!backend) throw InvalidArgument("the compiler " + backend.reason());
    options.toolchain.backend = *backend;
  }
  if (cache_dir) options.cache_dir = *cache_dir;
  for (const auto& [what, bytes] : {std::pair{"initial", pool_initial_bytes}, {"maximum", pool_maximum_bytes}}) {
    if (bytes.value_or(0) < 0)
      throw InvalidArgument(fmt::format("the {} size of the pool must be at least 0, got {}", what, *bytes));
  }
  options.pool_initial_bytes = pool_initial_bytes.value_or(options.pool_initial_bytes);
  options.pool_maximum_bytes = pool_maximum_bytes.value_or(options.pool_maximum_bytes);
  configured() = options;
  std::swap(old, engines());
}

std::shared_ptr<registry::Kernel> make_kernel(const op::GemmSignature& description, plan::Design design,
                                              const std::optional<Target>& target, const op::MemoryDevice& memory) {
  const Unlocked unlocked;
  const std::shared_ptr<Engine> engine = engine_for(memory);
  design.target = target.value_or(engine->device()->properties().target);
  plan::MathInstruction& instruction = design.tile.math_instruction;
  instruction.element_a = description.a.element;
  instruction.element_b = description.b.element;
  instruction.element_accumulator = description.accumulator;
  instruction.math_operation = description.math;
  return shared(engine->make_kernel(description, design));
}

/// @throws InvalidArgument for a problem that is not seen as a GEMM
op::GemmSignature gemm_description(const op::Problem& problem) {
  op::validate(problem).or_throw();
  return op::describe(op::view(problem).value_or_throw());
}

void bind_explicit(nb::module_& module) {
  module.def(
      "make_kernel",
      [](const Arguments& arguments, const plan::Design& design, nb::handle target) {
        return make_kernel(gemm_description(arguments.problem()), design, read_target(target), arguments.memory());
      },
      nb::arg("args"), nb::arg("design"), nb::kw_only(), nb::arg("target") = nb::none(),
      "The kernel of a design that you wrote, for arguments like these: their types, layouts, alignments and epilogue. "
      "Raises InvalidArgument with the number that makes it impossible, before anything is compiled.");
  module.def(
      "make_kernel",
      [](const op::TensorSignature& a, const op::TensorSignature& b, const op::TensorSignature& out,
         nb::handle accumulator_type, const plan::Design& design, const Text& math_text,
         const std::optional<op::Epilogue>& epilogue, const std::optional<op::TensorSignature>& c, nb::handle target) {
        op::GemmSignature description{.a = a, .b = b, .c = c.value_or(out), .d = out, .has_c = c.has_value()};
        description.accumulator = read_dtype(accumulator_type);
        const std::string math = math_text.read("math");
        const auto operation = op::parse_math_operation(math);
        if (!operation) throw InvalidArgument(fmt::format("no math operation '{}'", printable(math)));
        description.math = *operation;
        description.epilogue =
            epilogue ? *epilogue : op::linear_combination(op::default_compute(description.accumulator, out.element));
        return make_kernel(description, design, read_target(target), {});
      },
      nb::arg("A"), nb::arg("B"), nb::arg("out"), nb::arg("accumulator_type"), nb::arg("design"), nb::kw_only(),
      nb::arg("math") = "multiply_add", nb::arg("epilogue") = nb::none(), nb::arg("C") = nb::none(),
      nb::arg("target") = nb::none(),
      "The same for operands that are described, for the device that arrays of the host run on.");
}

void bind_device(nb::module_& module) {
  module.def("configure", &configure, nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("compiler") = nb::none(),
             nb::arg("cache_dir") = nb::none(), nb::arg("pool_initial_bytes") = nb::none(),
             nb::arg("pool_maximum_bytes") = nb::none(),
             "What the environment variables would say, from now on: engines that are in use are let go of.");
  module.def(
      "device_name",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const Unlocked unlocked;
        return engine_named(device)->device()->properties().name;
      },
      nb::arg("device") = "", "\"NVIDIA H200\", \"emulator:sm_90a\": of the device that arrays of the host run on.");
  module.def(
      "device_target",
      [](const Text& name) {
        const std::string device = name.read("the device");
        const Unlocked unlocked;
        return engine_named(device)->device()->properties().target.name();
      },
      nb::arg("device") = "");
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
      nb::arg("device") = "", "Of the device's pool, not yet returned to it.");
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
      nb::arg("device") = "", "How kernels were had so far.");
  module.def(
      "synchronize",
      [](const Text& name, nb::handle stream) {
        const std::string device = name.read("the device");
        const runtime::StreamHandle handle = stream_for(stream, {}, {});
        const Unlocked unlocked;
        engine_named(device)->device()->synchronize(handle);
      },
      nb::arg("device") = "", nb::arg("stream") = nb::none(), "Waits for what was enqueued on the stream.");
  module.def("_shut_down", [] {
    let_go_of_lent();
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

void read_workspace(nb::handle workspace, engine::RunOptions& options) {
  if (workspace.is_none()) return;
  const ReadTensor read = read_tensor(workspace, "the workspace");
  if (read.tensor.address == 0 || read.tensor.device.kind != op::MemoryDevice::Kind::cuda) {
    throw InvalidArgument(
        fmt::format("a workspace is memory of the GPU, got an array on {}", op::to_string(read.tensor.device)));
  }
  if (read.is_read_only) throw InvalidArgument("the workspace is read-only");
  options.workspace = read.tensor.address;
  options.workspace_bytes = static_cast<std::size_t>(op::span_bytes(read.tensor));
}

std::optional<Target> read_target(nb::handle target) {
  if (target.is_none()) return std::nullopt;
  if (nb::isinstance<nb::int_>(target)) {
    constexpr int kMostSm = 999;
    const int sm = static_cast<int>(read_signed(target, "a target", 0, kMostSm));
    return device_target(sm);
  }
  return parse_target(read_text(target, "a target")).value_or_throw();
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
