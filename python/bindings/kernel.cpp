#include "python/bindings/kernel.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/artifact.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// The argument of the Python methods of a kernel.
nb::object view_of(const op::Problem& problem, const registry::KernelMetadata& metadata) {
  return arguments_of(problem, metadata.signature.gemm() != nullptr);
}

Support read_status(nb::handle answer) {
  if (answer.is_none()) return {};
  if (nb::isinstance<Support>(answer)) return nb::cast<Support>(answer);
  if (nb::isinstance<nb::bool_>(answer))
    return nb::cast<bool>(answer) ? Support() : Support(refuse("_supports() of the kernel returned False"));
  return refuse("{}", as_text(answer));
}

compile::Source read_source(nb::handle answer) {
  if (nb::isinstance<compile::Source>(answer)) return nb::cast<compile::Source>(answer);
  compile::Source source;
  source.text = read_text(answer, "a kernel's source");
  return source;
}

/// A kernel of a Python class that derives from tilewright.Kernel. Its methods are looked up at each call.
class PythonKernel final : public registry::Kernel {
 public:
  explicit PythonKernel(const registry::KernelMetadata& metadata) : Kernel(metadata) {}

  /// @throws InvalidArgument if the kernel was already made for another target
  void make_for(const Target& target) {
    if (made_for_ && *made_for_ != target) {
      throw InvalidArgument(fmt::format("{}.generate_kernels() must return new kernels for each target: {} is for {}",
                                        metadata().family, name(), made_for_->name()));
    }
    if (made_for_) return;
    set_target(target);
    made_for_ = target;
  }
  bool has_target() const { return made_for_.has_value(); }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    return call_python([&] {
      const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
      if (!nb::hasattr(self, "_supports")) return Kernel::do_supports(problem);
      return read_status(self.attr("_supports")(view_of(problem, metadata())));
    });
  }
  compile::Source do_source() const override {
    return call_python([&] {
      const nb::object answer = required("_source")();
      const bool is_source = nb::isinstance<compile::Source>(answer) || nb::isinstance<nb::str>(answer);
      if (!is_source) throw_wrong_answer("_source", "a str or a Source", answer);
      return read_source(answer);
    });
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    return call_python([&] {
      const nb::object answer = required("_launch")(view_of(problem, metadata()));
      if (!nb::isinstance<plan::Launch>(answer)) throw_wrong_answer("_launch", "a Launch", answer);
      return nb::cast<plan::Launch>(answer);
    });
  }
  double do_estimate_us(const op::Problem& problem) const override {
    return call_python([&] {
      const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
      if (!nb::hasattr(self, "_estimate_us")) return registry::kUnknownTime;
      return read_number(self.attr("_estimate_us")(view_of(problem, metadata())), "the result of _estimate_us()");
    });
  }

 private:
  [[noreturn]] void throw_wrong_answer(const char* method, const char* expected, nb::handle answer) const {
    throw InvalidArgument(
        fmt::format("{}.{}() must return {}, got {}", metadata().family, method, expected, shown(answer)));
  }
  nb::object required(const char* method) const {
    const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
    if (nb::hasattr(self, method)) return self.attr(method);
    throw InvalidArgument(fmt::format("{} does not define {}()", metadata().family, method));
  }

  std::optional<Target> made_for_;
};

/// A number with the type of a kernel parameter.
struct TypedNumber {
  std::variant<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double> value;
};

void append_parameter(plan::Launch& launch, nb::handle parameter) {
  if (nb::isinstance<TypedNumber>(parameter)) {
    return std::visit([&](const auto& value) { launch.append_parameter(value); },
                      nb::cast<const TypedNumber&>(parameter).value);
  }
  if (nb::isinstance<plan::Workspace>(parameter)) return launch.append_parameter(nb::cast<plan::Workspace>(parameter));
  if (nb::hasattr(parameter, "data_ptr") && !nb::isinstance<nb::type_object>(parameter)) {
    const nb::object pointer = parameter.attr("data_ptr");
    const bool is_method = PyCallable_Check(pointer.ptr()) != 0;
    return launch.append_parameter(
        read_unsigned(is_method ? nb::object(pointer()) : pointer, "data_ptr of a kernel parameter"));
  }
  // Numbers of NumPy and ctypes have a known width: they are passed as their bytes.
  nb::object bytes;
  if (nb::hasattr(parameter, "tobytes")) {
    bytes = parameter.attr("tobytes")();
  } else if (nb::isinstance<nb::bytes>(parameter)) {
    bytes = nb::borrow(parameter);
  } else {
    const nb::object simple = nb::module_::import_("ctypes").attr("_SimpleCData");
    if (!nb::isinstance(parameter, simple)) {
      throw InvalidArgument(
          fmt::format("a kernel parameter must be an operand, a Workspace, bytes, or a number of known width "
                      "(tilewright.i32(1), tilewright.f32(0.5), numpy.int32(1)), got {}",
                      shown(parameter)));
    }
    bytes = nb::module_::import_("builtins").attr("bytes")(parameter);
  }
  if (!nb::isinstance<nb::bytes>(bytes))
    throw nb::type_error(
        fmt::format("tobytes() of a kernel parameter must return bytes, got {}", shown(bytes)).c_str());
  const auto content = nb::cast<nb::bytes>(bytes);
  launch.append_parameter(std::as_bytes(std::span(content.c_str(), content.size())));
}

std::array<std::uint32_t, 3> dim3(nb::handle extents, const char* what) {
  std::array<std::uint32_t, 3> dim{1, 1, 1};
  if (nb::isinstance<nb::int_>(extents)) {
    dim[0] = read_integer<std::uint32_t>(extents, what);
    return dim;
  }
  if (!nb::isinstance<nb::sequence>(extents))
    throw nb::type_error(
        fmt::format("{} must be an int or a tuple of 1 to 3 ints, got {}", what, shown(extents)).c_str());
  const std::size_t rank = nb::len(extents);
  if (rank < 1 || rank > 3) throw InvalidArgument(fmt::format("{} must have 1 to 3 extents, got {}", what, rank));
  for (std::size_t i = 0; i < rank; ++i) dim[i] = read_integer<std::uint32_t>(extents[i], what);
  return dim;
}

/// Gives a Python kernel that has no target yet the one that `cc` names, unless it is None.
void set_target_once(registry::Kernel& kernel, nb::handle cc) {
  auto* const authored = dynamic_cast<PythonKernel*>(&kernel);
  if (authored != nullptr && !authored->has_target() && !cc.is_none()) authored->make_for(read_target(cc).value());
}

/// @throws InvalidArgument unless `cc` is None or the target that the kernel was made for
void check_target(const registry::Kernel& kernel, nb::handle cc) {
  if (cc.is_none()) return;
  const Target wanted = read_target(cc).value();
  const Target& own = plan::tiling(kernel.metadata().design).target;
  if (wanted == own || kernel.metadata().signature.gemm() == nullptr) return;
  throw InvalidArgument(fmt::format("{} is for {}, got cc {}: find the kernels of that target first", kernel.name(),
                                    own.name(), wanted.name()));
}

void run_kernel(const std::shared_ptr<registry::Kernel>& self, const OperationArguments& arguments,
                const std::shared_ptr<compile::Artifact>& artifact, nb::handle stream, nb::handle workspace,
                bool /*assume_supported_args*/) {
  if (arguments.refusal) throw InvalidArgument(*arguments.refusal);
  engine::RunOptions options{.stream = stream_for(stream, arguments.streams.all(), arguments.memory())};
  read_workspace(workspace, options);
  choose_target(self.get(), arguments.memory());
  {
    const Unlocked unlocked;
    engine_for(arguments.memory())->run(arguments.call, self, artifact, options);
  }
  if (!arguments.lent.empty()) keep_until_passed(arguments.lent, arguments.memory(), options.stream);
}

void bind_status(nb::module_& module) {
  nb::class_<Support>(module, "Status",
                      "Success, or a failure with a reason. It is true if it is a success. kernel.supports(args) and "
                      "args.verify() return it; Status.success() and Status.fail() make it.")
      .def_static(
          "success", [] { return Support(); }, "A success.")
      .def_static(
          "fail", [](nb::handle error) { return Support(refuse("{}", as_text(error))); }, nb::arg("error"),
          "A failure whose reason is a str or an exception.")
      .def("__bool__", [](const Support& self) { return bool(self); })
      .def_prop_ro("reason", [](const Support& self) { return self.reason(); })
      .def_prop_ro(
          "error",
          [](const Support& self) -> nb::object {
            if (self) return nb::none();
            return nb::module_::import_("tilewright.errors").attr("InvalidArgument")(self.reason());
          },
          "The failure as the InvalidArgument that raise_on_error() raises; None for success.")
      .def_prop_ro("code", [](const Support& self) { return self ? "" : std::string(name(self.refusal().code)); })
      .def_prop_ro("operand", [](const Support& self) { return self ? "" : self.refusal().operand; })
      .def_prop_ro(
          "numbers", [](const Support& self) { return self ? std::vector<std::int64_t>() : self.refusal().numbers; },
          "The integers of the reason, in the same order, as in RefusedKernel.")
      .def("raise_on_error", &Support::or_throw, "Raises the failure as an InvalidArgument.")
      .def("__repr__", [](const Support& self) {
        return self ? std::string("Status.success()") : fmt::format("Status.fail('{}')", self.reason());
      });
}

void bind_source(nb::module_& module) {
  nb::class_<compile::Source>(
      module, "Source", "The source of a kernel: CUDA C++, PTX, or the bytes of a cubin. Kernel._source() returns it.")
      .def(
          "__init__",
          [](compile::Source* self, nb::handle text, const Text& language_text, const Text& symbol,
             const nb::typed<nb::mapping, nb::str, nb::str>& headers, int max_registers) {
            compile::Source source;
            if (nb::isinstance<nb::bytes>(text)) {
              const auto bytes = nb::cast<nb::bytes>(text);
              source.text.assign(bytes.c_str(), bytes.size());
            } else {
              source.text = read_text(text, "text");
            }
            source.symbol = symbol.read("symbol");
            source.max_registers = max_registers;
            for (nb::handle each : read_items(headers, "headers"))
              source.headers.push_back({read_text(each[0], "the name of a header"), read_text(each[1], "a header")});
            const std::string language = language_text.read("language");
            for (const compile::Language each : compile::kLanguages) {
              if (name(each) != language) continue;
              source.language = each;
              new (self) compile::Source(std::move(source));
              return;
            }
            throw InvalidArgument(
                fmt::format("language must be cuda, ptx, cubin or mlir, got '{}'", printable(language)));
          },
          nb::arg("text"), nb::arg("language") = "cuda", nb::arg("symbol") = "", nb::arg("headers") = nb::dict(),
          nb::arg("max_registers") = 0,
          "`language` is \"cuda\", \"ptx\", \"cubin\" or \"mlir\". `symbol` is the name of the extern \"C\" kernel "
          "function, by "
          "default the kernel's name. `headers` has the text of files that the source includes, by name. "
          "`max_registers` limits the registers per thread, as nvcc's -maxrregcount; 0 is no limit.")
      .def_ro("text", &compile::Source::text)
      .def_ro("symbol", &compile::Source::symbol)
      .def_prop_ro("language", [](const compile::Source& self) { return name(self.language); });
}

void bind_typed_numbers(nb::module_& module) {
  nb::class_<TypedNumber>(
      module, "TypedNumber",
      "A number with the type of a kernel parameter. i32(), u32(), i64(), u64(), f32() and f64() make it.")
      .def("__repr__", [](const TypedNumber& self) {
        return std::visit([](const auto& value) { return fmt::format("TypedNumber({})", value); }, self.value);
      });
  const auto integer = [&]<class T>(const char* name, T) {
    module.def(
        name,
        [name](nb::handle value) {
          if constexpr (std::is_same_v<T, std::uint64_t>) {
            return TypedNumber{read_unsigned(value, name)};
          } else {
            return TypedNumber{read_integer<T>(value, name)};
          }
        },
        nb::arg("value"), "An integer of this type, as a kernel parameter.");
  };
  integer("i32", std::int32_t{});
  integer("u32", std::uint32_t{});
  integer("i64", std::int64_t{});
  integer("u64", std::uint64_t{});
  module.def(
      "f32", [](nb::handle value) { return TypedNumber{static_cast<float>(read_number(value, "f32"))}; },
      nb::arg("value"), "A float, as a kernel parameter.");
  module.def(
      "f64", [](nb::handle value) { return TypedNumber{read_number(value, "f64")}; }, nb::arg("value"),
      "A double, as a kernel parameter.");
}

void bind_launch(nb::module_& module) {
  bind_typed_numbers(module);
  nb::class_<plan::Workspace>(
      module, "Workspace",
      "A kernel parameter that points to device memory which the library provides for the launch. "
      "`bytes` is its size, `alignment` the alignment of its address in bytes. The first "
      "`zeroed_bytes` bytes are zero when the kernel starts.")
      .def(
          "__init__",
          [](plan::Workspace* self, std::size_t bytes, std::size_t alignment, std::size_t zeroed_bytes) {
            if (alignment == 0 || (alignment & (alignment - 1)) != 0)
              throw InvalidArgument(fmt::format("alignment must be a power of two, got {}", alignment));
            if (zeroed_bytes > bytes)
              throw InvalidArgument(fmt::format("zeroed_bytes is {}, more than bytes, {}", zeroed_bytes, bytes));
            new (self) plan::Workspace{bytes, alignment, zeroed_bytes};
          },
          nb::arg("bytes"), nb::arg("alignment") = 256, nb::arg("zeroed_bytes") = 0);
  nb::class_<plan::Launch>(module, "Launch",
                           "Grid, block, shared memory and parameters of a launch. Kernel._launch() returns it.")
      .def(
          "__init__",
          [](plan::Launch* self, nb::handle grid, nb::handle block, nb::handle parameters, nb::handle cluster,
             std::uint32_t smem_bytes, bool cooperative) {
            plan::Launch launch;
            launch.grid = dim3(grid, "grid");
            launch.block = dim3(block, "block");
            if (!cluster.is_none()) launch.cluster = dim3(cluster, "cluster");
            launch.dynamic_smem_bytes = smem_bytes;
            launch.cooperative = cooperative;
            for (nb::handle parameter : parameters) append_parameter(launch, parameter);
            new (self) plan::Launch(launch);
          },
          nb::arg("grid"), nb::arg("block"), nb::arg("parameters"), nb::arg("cluster") = nb::none(),
          nb::arg("smem_bytes") = 0, nb::arg("cooperative") = false,
          "`grid`, `block` and `cluster` are an int, or a sequence of up to three. `parameters` has the arguments of "
          "the "
          "kernel function, in order: operands (passed as their addresses), numbers of known width (i32(1), f32(0.5), "
          "numpy.int32(1)), at most one Workspace, and bytes. `smem_bytes` is the size of dynamic shared memory. All "
          "CTAs of a `cooperative` launch are resident at the same time.")
      .def_ro("grid", &plan::Launch::grid)
      .def_ro("block", &plan::Launch::block);
}

}  // namespace

void set_target(registry::Kernel& kernel, const Target& target) {
  if (auto* const authored = dynamic_cast<PythonKernel*>(&kernel)) authored->make_for(target);
}

void choose_target(registry::Kernel* kernel, const op::MemoryDevice& memory) {
  auto* const authored = dynamic_cast<PythonKernel*>(kernel);
  if (authored == nullptr || authored->has_target()) return;
  const auto target = [&] {
    const Unlocked unlocked;
    return engine_for(memory)->device()->properties().target;
  }();
  if (!authored->has_target()) authored->make_for(target);  // another thread may have chosen meanwhile
}

void bind_kernel(nb::module_& module) {
  bind_status(module);
  bind_source(module);
  bind_launch(module);
  nb::class_<registry::Kernel, PythonKernel>(
      module, "Kernel", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A kernel: its metadata, its source, the arguments that it supports, and how it is launched.\n\n"
      "To add your own kernels, derive a class, register() it, and define these methods. `args` is a GemmArguments, or "
      "an OperationArguments if the metadata has OperandsMetadata.\n\n"
      "generate_kernels(metadata_filter, epilogue_args, target), a static method: returns the kernels for a target "
      "such "
      "as \"sm_90a\". It is called once per target. `metadata_filter` accepts all metadata and `epilogue_args` is "
      "None; "
      "they are there because cutlass_api has them.\n"
      "_source(): returns the CUDA C++ as a str, or a Source.\n"
      "_launch(args): returns the Launch for these arguments.\n"
      "_supports(args), optional: returns a Status, a bool, or the reason for a refusal as a str; None is True.\n"
      "_estimate_us(args), optional: returns the predicted time in microseconds, by which kernels are ranked.")
      .def(nb::init<const registry::KernelMetadata&>(), nb::arg("metadata"))
      .def_prop_ro("metadata", [](const registry::Kernel& self) { return self.metadata(); })
      .def_prop_ro("name", [](const registry::Kernel& self) { return self.name(); })
      .def_prop_ro("source",
                   [](const registry::Kernel& self) {
                     const Unlocked unlocked;
                     return self.source();
                   })
      .def(
          "supports",
          [](const registry::Kernel& self, const OperationArguments& arguments) -> Support {
            if (arguments.refusal) return refuse("{}", *arguments.refusal);
            const Unlocked unlocked;
            return self.supports(arguments.problem());
          },
          nb::arg("args"), "Whether the kernel can compute these arguments, and if not, the reason.")
      .def(
          "estimate_us",
          [](const registry::Kernel& self, const OperationArguments& arguments) {
            const Unlocked unlocked;
            return self.estimate_us(arguments.problem());
          },
          nb::arg("args"), "The predicted time in microseconds, used for ranking; infinite if unknown.")
      .def(
          "get_workspace_size",
          [](const registry::Kernel& self, const OperationArguments& arguments) {
            const Unlocked unlocked;
            self.supports(arguments.problem()).or_throw();
            return self.workspace_bytes(arguments.problem());
          },
          nb::arg("args"),
          "How many bytes of device memory run() needs as `workspace`, which must be zeroed before its first use.")
      .def(
          "compile",
          [](const std::shared_ptr<registry::Kernel>& self, const OperationArguments* arguments, nb::handle cc) {
            if (arguments != nullptr && arguments->refusal) throw InvalidArgument(*arguments->refusal);
            const op::MemoryDevice memory = arguments != nullptr ? arguments->memory() : op::MemoryDevice{};
            set_target_once(*self, cc);
            choose_target(self.get(), memory);
            check_target(*self, cc);
            const Unlocked unlocked;
            return std::const_pointer_cast<compile::Artifact>(engine_for(memory)->compile(self));
          },
          nb::arg("args") = nb::none(), nb::arg("cc") = nb::none(),
          "The compiled kernel, from the cache if it is there. `cc`, a target such as 90 or \"sm_90a\", may be given "
          "if it is that of the kernel. A kernel of your class that no generate_kernels() returned has the target of "
          "its first compile() or run(): `cc`, or that of the device of `args`.")
      .def(
          "run", &run_kernel, nb::arg("args"), nb::arg("artifact").none() = nb::none(), nb::arg("stream") = nb::none(),
          nb::arg("workspace") = nb::none(), nb::arg("assume_supported_args") = false,
          "Enqueues a launch on `stream` (default: the current stream of the arrays' framework). Without `artifact`, "
          "the "
          "kernel is compiled, at most once. Without `workspace`, the memory pool provides it. Host arrays are copied "
          "to "
          "the device and back; the results are complete on return. `assume_supported_args` has no effect, because the "
          "result of supports() is cached.")
      .def("run", &run_kernel, nb::arg("args"), nb::kw_only(), nb::arg("compiled_artifact").none(),
           nb::arg("stream") = nb::none(), nb::arg("workspace") = nb::none(), nb::arg("assume_supported_args") = false,
           "The same with the name of the artifact in cutlass_api.")
      .def("__repr__", [](const registry::Kernel& self) { return "<Kernel " + self.name() + ">"; });
}

}  // namespace tilewright::python
