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

/// What an author's method is given.
nb::object view_of(const op::Problem& problem, const registry::KernelMetadata& metadata) {
  return arguments_of(problem, metadata.signature.gemm() != nullptr);
}

Support read_status(nb::handle answer) {
  if (answer.is_none()) return {};
  if (nb::isinstance<Support>(answer)) return nb::cast<Support>(answer);
  if (nb::isinstance<nb::bool_>(answer))
    return nb::cast<bool>(answer) ? Support() : Support(refuse("the kernel's author does not support these arguments"));
  return refuse("{}", as_text(answer));
}

compile::Source read_source(nb::handle answer) {
  if (nb::isinstance<compile::Source>(answer)) return nb::cast<compile::Source>(answer);
  compile::Source source;
  source.text = read_text(answer, "a kernel's source");
  return source;
}

/// A kernel whose author derived from tilewright.Kernel. Its methods are looked up when they are called.
class PythonKernel final : public registry::Kernel {
 public:
  explicit PythonKernel(const registry::KernelMetadata& metadata) : Kernel(metadata) {}

  /// @throws InvalidArgument where it is made for another already
  void make_for(const Target& target) {
    if (made_for_ && *made_for_ != target) {
      throw InvalidArgument(fmt::format("{}.generate_kernels() must make new kernels for each target: {} is of {}",
                                        metadata().family, name(), made_for_->name()));
    }
    if (made_for_) return;
    set_target(target);
    made_for_ = target;
  }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    const Locked gil;
    const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
    if (!nb::hasattr(self, "_supports")) return Kernel::do_supports(problem);
    return read_status(self.attr("_supports")(view_of(problem, metadata())));
  }
  compile::Source do_source() const override {
    const Locked gil;
    const nb::object answer = required("_source")();
    const bool is_source = nb::isinstance<compile::Source>(answer) || nb::isinstance<nb::str>(answer);
    if (!is_source) throw_wrong_answer("_source", "a text or a Source", answer);
    return read_source(answer);
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const Locked gil;
    const nb::object answer = required("_launch")(view_of(problem, metadata()));
    if (!nb::isinstance<plan::Launch>(answer)) throw_wrong_answer("_launch", "a Launch", answer);
    return nb::cast<plan::Launch>(answer);
  }
  double do_estimate_us(const op::Problem& problem) const override {
    const Locked gil;
    const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
    if (!nb::hasattr(self, "_estimate_us")) return registry::kUnknownTime;
    return read_number(self.attr("_estimate_us")(view_of(problem, metadata())), "an estimate");
  }

 private:
  [[noreturn]] void throw_wrong_answer(const char* method, const char* expected, nb::handle answer) const {
    throw InvalidArgument(
        fmt::format("{}.{}() must return {}, got {}", metadata().family, method, expected, shown(answer)));
  }
  nb::object required(const char* method) const {
    const nb::object self = nb::find(static_cast<const registry::Kernel*>(this));
    if (nb::hasattr(self, method)) return self.attr(method);
    throw InvalidArgument(fmt::format("{} defines no {}()", metadata().family, method));
  }

  std::optional<Target> made_for_;
};

/// A number with the type that the kernel's parameter has.
struct TypedNumber {
  std::variant<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double> value;
};

void append_parameter(plan::Launch& launch, nb::handle parameter) {
  if (nb::isinstance<TypedNumber>(parameter)) {
    return std::visit([&](const auto& value) { launch.append_parameter(value); },
                      nb::cast<const TypedNumber&>(parameter).value);
  }
  if (nb::isinstance<plan::Scratch>(parameter)) return launch.append_parameter(nb::cast<plan::Scratch>(parameter));
  if (nb::hasattr(parameter, "data_ptr") && !nb::isinstance<nb::type_object>(parameter)) {
    const nb::object pointer = parameter.attr("data_ptr");
    const bool is_method = PyCallable_Check(pointer.ptr()) != 0;
    return launch.append_parameter(
        read_unsigned(is_method ? nb::object(pointer()) : pointer, "the data_ptr of a kernel's parameter"));
  }
  // Numbers of ctypes and NumPy know their width: both are their own bytes.
  nb::object bytes;
  if (nb::hasattr(parameter, "tobytes")) {
    bytes = parameter.attr("tobytes")();
  } else if (nb::isinstance<nb::bytes>(parameter)) {
    bytes = nb::borrow(parameter);
  } else {
    const nb::object simple = nb::module_::import_("ctypes").attr("_SimpleCData");
    if (!nb::isinstance(parameter, simple)) {
      throw InvalidArgument(
          fmt::format("a kernel's parameter is an operand, a Scratch, bytes, or a number of known width "
                      "(tilewright.i32(1), tilewright.f32(0.5), numpy.int32(1)), got {}",
                      shown(parameter)));
    }
    bytes = nb::module_::import_("builtins").attr("bytes")(parameter);
  }
  if (!nb::isinstance<nb::bytes>(bytes))
    throw nb::type_error(fmt::format("tobytes() of a kernel's parameter returned {}, not bytes", shown(bytes)).c_str());
  const auto content = nb::cast<nb::bytes>(bytes);
  launch.append_parameter(std::as_bytes(std::span(content.c_str(), content.size())));
}

std::array<std::uint32_t, 3> dim3(nb::handle extents, const char* what) {
  std::array<std::uint32_t, 3> dim{1, 1, 1};
  if (nb::isinstance<nb::int_>(extents)) {
    dim[0] = read_integer<std::uint32_t>(extents, what);
    return dim;
  }
  const std::size_t rank = nb::len(extents);
  if (rank < 1 || rank > 3) throw InvalidArgument(fmt::format("{} has 1 to 3 extents, got {}", what, rank));
  for (std::size_t i = 0; i < rank; ++i) dim[i] = read_integer<std::uint32_t>(extents[i], what);
  return dim;
}

void bind_status(nb::module_& module) {
  nb::class_<Support>(module, "Status", "Yes, or no with a reason. True when yes.")
      .def_static("success", [] { return Support(); })
      .def_static(
          "fail", [](nb::handle error) { return Support(refuse("{}", as_text(error))); }, nb::arg("error"),
          "Of a text or an exception.")
      .def("__bool__", [](const Support& self) { return bool(self); })
      .def_prop_ro("reason", [](const Support& self) { return self.reason(); })
      .def_prop_ro("error",
                   [](const Support& self) -> nb::object {
                     if (self) return nb::none();
                     return nb::module_::import_("tilewright.errors").attr("InvalidArgument")(self.reason());
                   })
      .def_prop_ro("code", [](const Support& self) { return self ? "" : std::string(name(self.refusal().code)); })
      .def_prop_ro("operand", [](const Support& self) { return self ? "" : self.refusal().operand; })
      .def_prop_ro("numbers",
                   [](const Support& self) { return self ? std::vector<std::int64_t>() : self.refusal().numbers; })
      .def("raise_on_error", &Support::or_throw)
      .def("__repr__", [](const Support& self) {
        return self ? std::string("Status.success()") : fmt::format("Status.fail('{}')", self.reason());
      });
}

void bind_source(nb::module_& module) {
  nb::class_<compile::Source>(module, "Source",
                              "What a kernel is made of: CUDA C++, PTX, or a cubin's bytes. See Kernel._source().")
      .def(
          "__init__",
          [](compile::Source* self, nb::handle text, const Text& language_text, const Text& symbol,
             const nb::typed<nb::mapping, nb::str, nb::str>& headers, int max_registers) {
            compile::Source source;
            if (nb::isinstance<nb::bytes>(text)) {
              const auto bytes = nb::cast<nb::bytes>(text);
              source.text.assign(bytes.c_str(), bytes.size());
            } else {
              source.text = read_text(text, "a source");
            }
            source.symbol = symbol.read("a symbol");
            source.max_registers = max_registers;
            for (nb::handle each : read_items(headers, "what has a source's headers"))
              source.headers.push_back({read_text(each[0], "the name of a header"), read_text(each[1], "a header")});
            const std::string language = language_text.read("a source's language");
            for (const compile::Language each :
                 {compile::Language::cuda, compile::Language::ptx, compile::Language::cubin}) {
              if (name(each) != language) continue;
              source.language = each;
              new (self) compile::Source(std::move(source));
              return;
            }
            throw InvalidArgument(
                fmt::format("a source's language is cuda, ptx or cubin, got '{}'", printable(language)));
          },
          nb::arg("text"), nb::arg("language") = "cuda", nb::arg("symbol") = "", nb::arg("headers") = nb::dict(),
          nb::arg("max_registers") = 0, "`symbol`: of the extern \"C\" kernel; the kernel's name unless given.")
      .def_ro("text", &compile::Source::text)
      .def_ro("symbol", &compile::Source::symbol)
      .def_prop_ro("language", [](const compile::Source& self) { return name(self.language); });
}

void bind_typed_numbers(nb::module_& module) {
  nb::class_<TypedNumber>(module, "TypedNumber", "A number with the type of a kernel's parameter.")
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
        nb::arg("value"), "An integer of that type, to pass to a kernel.");
  };
  integer("i32", std::int32_t{});
  integer("u32", std::uint32_t{});
  integer("i64", std::int64_t{});
  integer("u64", std::uint64_t{});
  module.def(
      "f32", [](nb::handle value) { return TypedNumber{static_cast<float>(read_number(value, "f32"))}; },
      nb::arg("value"), "A float, to pass to a kernel.");
  module.def(
      "f64", [](nb::handle value) { return TypedNumber{read_number(value, "f64")}; }, nb::arg("value"),
      "A double, to pass to a kernel.");
}

void bind_launch(nb::module_& module) {
  bind_typed_numbers(module);
  nb::class_<plan::Scratch>(module, "Scratch",
                            "Device memory for one launch, passed where it stands among the parameters: bytes, their "
                            "alignment, and how many of the first are zeros at every start.")
      .def(
          "__init__",
          [](plan::Scratch* self, std::size_t bytes, std::size_t alignment, std::size_t leading_zeros) {
            if (alignment == 0 || (alignment & (alignment - 1)) != 0)
              throw InvalidArgument(fmt::format("an alignment is a power of two, got {}", alignment));
            if (leading_zeros > bytes)
              throw InvalidArgument(fmt::format("{} zeros are more than {} bytes", leading_zeros, bytes));
            new (self) plan::Scratch{bytes, alignment, leading_zeros};
          },
          nb::arg("bytes"), nb::arg("alignment") = 256, nb::arg("leading_zeros") = 0);
  nb::class_<plan::Launch>(module, "Launch", "How a kernel starts. See Kernel._launch().")
      .def(
          "__init__",
          [](plan::Launch* self, nb::handle grid, nb::handle block, nb::handle parameters, nb::handle cluster,
             std::uint32_t smem_bytes, bool cooperative) {
            plan::Launch launch;
            launch.grid = dim3(grid, "a grid");
            launch.block = dim3(block, "a block");
            if (!cluster.is_none()) launch.cluster = dim3(cluster, "a cluster");
            launch.dynamic_smem_bytes = smem_bytes;
            launch.cooperative = cooperative;
            for (nb::handle parameter : parameters) append_parameter(launch, parameter);
            new (self) plan::Launch(launch);
          },
          nb::arg("grid"), nb::arg("block"), nb::arg("parameters"), nb::arg("cluster") = nb::none(),
          nb::arg("smem_bytes") = 0, nb::arg("cooperative") = false,
          "`parameters`, in the kernel's order: operands (their addresses), numbers of known width (i32(1), f32(0.5), "
          "or "
          "NumPy's), "
          "Scratch, bytes. `smem_bytes`: of dynamic shared memory.")
      .def_ro("grid", &plan::Launch::grid)
      .def_ro("block", &plan::Launch::block);
}

}  // namespace

void set_target(registry::Kernel& kernel, const Target& target) {
  if (auto* const authored = dynamic_cast<PythonKernel*>(&kernel)) authored->make_for(target);
}

void bind_kernel(nb::module_& module) {
  bind_status(module);
  bind_source(module);
  bind_launch(module);
  nb::class_<registry::Kernel, PythonKernel>(
      module, "Kernel", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A kernel: what it is, what it supports, how it is compiled and run. To bring your own derive from this, define "
      "generate_kernels(metadata_filter, epilogue_args, target), _source() and _launch(args), if need be "
      "_supports(args) "
      "and _estimate_us(args), and register the class.")
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
          [](const registry::Kernel& self, const Arguments& arguments) {
            const Unlocked unlocked;
            return self.supports(arguments.problem());
          },
          nb::arg("args"), "Whether it computes these arguments, and if not why.")
      .def(
          "estimate_us",
          [](const registry::Kernel& self, const Arguments& arguments) {
            const Unlocked unlocked;
            return self.estimate_us(arguments.problem());
          },
          nb::arg("args"), "Predicted time in microseconds, to rank by; infinite where it is not known.")
      .def(
          "get_workspace_size",
          [](const registry::Kernel& self, const Arguments& arguments) {
            const Unlocked unlocked;
            self.supports(arguments.problem()).or_throw();
            return self.workspace_bytes(arguments.problem());
          },
          nb::arg("args"), "Bytes of device memory beside the operands. Zeros before their first use.")
      .def(
          "compile",
          [](const std::shared_ptr<registry::Kernel>& self, const Arguments* arguments) {
            const Unlocked unlocked;
            const op::MemoryDevice memory = arguments != nullptr ? arguments->memory() : op::MemoryDevice{};
            return std::const_pointer_cast<compile::Artifact>(engine_for(memory)->compile(self));
          },
          nb::arg("args") = nb::none(), "From the cache, or compiled now.")
      .def(
          "run",
          [](const std::shared_ptr<registry::Kernel>& self, const Arguments& arguments,
             const std::shared_ptr<compile::Artifact>& artifact, nb::handle stream, nb::handle workspace,
             bool /*assume_supported_args*/) {
            engine::RunOptions options{.stream = stream_for(stream, arguments.streams.all(), arguments.memory())};
            read_workspace(workspace, options);
            {
              const Unlocked unlocked;
              engine_for(arguments.memory())->run(arguments.call, self, artifact, options);
            }
            if (!arguments.lent.empty()) keep_until_passed(arguments.lent, arguments.memory(), options.stream);
          },
          nb::arg("args"), nb::arg("artifact").none() = nb::none(), nb::arg("stream") = nb::none(),
          nb::arg("workspace") = nb::none(), nb::arg("assume_supported_args") = false,
          "Enqueues one run on `stream` (default: the current one of the arguments' framework). Compiles at most once. "
          "Arrays of the host are copied, and complete on return. `assume_supported_args` is accepted and changes "
          "nothing: whether arguments of a kind are supported is remembered.")
      .def("__repr__", [](const registry::Kernel& self) { return "<Kernel " + self.name() + ">"; });
}

}  // namespace tilewright::python
