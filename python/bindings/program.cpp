// tilewright.program: the builder of kernels, and programs.
#include "python/bindings/program.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/kernel.hpp"
#include "python/bindings/number.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/lower/cuda/program.hpp"
#include "tilewright/lower/mlir/program.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/launch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::Number;
using program::KernelBuilder;
using program::NumberCell;
using program::Parameter;
using program::Program;
using program::RegisterType;
using program::Value;
using program::ValueCell;

program::RegisterType read_register_type(const Text& text) {
  const std::string given = text.read("the type of a register");
  for (const RegisterType type :
       {RegisterType::b16, RegisterType::b32, RegisterType::b64, RegisterType::f32, RegisterType::f64}) {
    if (program::name(type) == given) return type;
  }
  const char* hint = given == "f16" || given == "bf16" ? "; elements of 16 bits are in b16, pairs of them in b32"
                     : given == "s32" || given == "u32" || given == "i32" ? "; integers are in b32"
                                                                          : "";
  throw InvalidArgument(
      fmt::format("the type of a register is b16, b32, b64, f32 or f64, got '{}'{}", printable(given), hint));
}

namespace {

program::Effect read_effect(const Text& text) {
  const std::string given = text.read("effect");
  if (given == "pure") return program::Effect::pure;
  if (given == "memory") return program::Effect::memory;
  if (given == "state") return program::Effect::state;
  throw InvalidArgument(fmt::format("effect is pure, memory or state, got '{}'", printable(given)));
}

/// @throws TypeError, with the place of the operand in the text
program::Operand read_instruction_operand(nb::handle operand, std::size_t place) {
  if (nb::isinstance<Value>(operand)) return program::input(nb::cast<Value>(operand));
  if (nb::isinstance<program::Operand>(operand)) return nb::cast<program::Operand>(operand);
  const bool is_number = nb::isinstance<layout::Number>(operand) || nb::isinstance<nb::int_>(operand);
  throw nb::type_error(fmt::format("instruction(): ${} must be a Value, or output(), input(), update(), number(), "
                                   "immediate() or address_of(), got {}{}",
                                   place, shown(operand), is_number ? "; pass number(...)" : "")
                           .c_str());
}

/// Whether each launch gives the parameter.
bool is_argument(const Parameter& parameter) {
  return !parameter.computed && parameter.kind != Parameter::Kind::workspace;
}

std::string_view kind_name(Parameter::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames{"integer", "address", "scalar", "tensor_map", "workspace"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const Parameter& find_parameter(const Program& self, const std::string& name) {
  const auto found = std::ranges::find(self.parameters, name, &Parameter::name);
  if (found != self.parameters.end() && is_argument(*found)) return *found;
  std::string names;
  for (const Parameter& each : self.parameters) {
    if (is_argument(each)) names += (names.empty() ? "" : ", ") + each.name;
  }
  throw InvalidArgument(fmt::format("{} has no parameter '{}'; it has: {}", self.symbol, printable(name),
                                    names.empty() ? "none" : names));
}

std::uint64_t read_address(nb::handle value, const std::string& name) {
  if (nb::isinstance<nb::int_>(value)) return read_unsigned(value, name.c_str());
  if (!nb::hasattr(value, "data_ptr")) {
    throw nb::type_error(
        fmt::format("{} must be an operand or an address, got {}; Program.run() takes arrays", name, shown(value))
            .c_str());
  }
  const nb::object pointer = value.attr("data_ptr");
  return read_unsigned(PyCallable_Check(pointer.ptr()) != 0 ? nb::object(pointer()) : pointer, name.c_str());
}

program::LaunchArguments read_arguments(const Program& self, const nb::kwargs& given) {
  program::LaunchArguments arguments;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    switch (find_parameter(self, name).kind) {
      case Parameter::Kind::integer:
        arguments.integer(name, read_integer<std::int64_t>(value, name.c_str()));
        break;
      case Parameter::Kind::scalar:
        arguments.scalar(name, read_number(value, name.c_str()));
        break;
      case Parameter::Kind::address:
      case Parameter::Kind::tensor_map:
        arguments.address(name, read_address(value, name));
        break;
      case Parameter::Kind::workspace:
        break;  // find_parameter() refuses it
    }
  }
  return arguments;
}

/// The width of an integer type of arrays that has no DType: "uint32" of NumPy, "torch.int64".
std::optional<int> bits_of_integer(std::string_view dtype) {
  constexpr std::string_view kTorch = "torch.";
  if (dtype.starts_with(kTorch)) dtype.remove_prefix(kTorch.size());
  if (dtype == "bool") return 8;
  for (const int width : {16, 32, 64}) {
    if (dtype == fmt::format("int{}", width) || dtype == fmt::format("uint{}", width)) return width;
  }
  return std::nullopt;
}

compile::Source source_of(const Program& self, const std::string& language) {
  compile::Source source;
  source.name = self.symbol;
  source.symbol = self.symbol;
  source.target = self.target;
  source.refuses_lost_performance = true;
  if (language == "cuda") {
    source.text = lower::cuda::lower(self);
  } else if (language == "mlir") {
    source.text = lower::mlir::lower(self);
    source.language = compile::Language::mlir;
  } else {
    throw InvalidArgument(fmt::format("a program is lowered to cuda or mlir, got '{}'", printable(language)));
  }
  return source;
}

[[noreturn]] void refuse_operator(std::string_view text, std::string_view function) {
  throw nb::type_error(
      fmt::format("a Value has no operator {}, because instructions are recorded by a kernel: write tp.{}", text,
                  function)
          .c_str());
}

void bind_values(nb::module_& module) {
  auto values =
      nb::class_<Value>(
          module, "Value",
          "Registers of a thread, which an instruction defines. value[i] is one of them. Functions such as "
          "load_global() return it.")
          .def_prop_ro(
              "type", [](const Value& self) { return program::name(self.type); }, "\"b32\", \"f32\", ...")
          .def_ro("count", &Value::count, "The number of registers.")
          .def(
              "__getitem__",
              [](const Value& self, int i) {
                // Python's iteration ends with an IndexError.
                if (i >= self.count)
                  throw nb::index_error(fmt::format("register {} of a value that has {}", i, self.count).c_str());
                return self[i];
              },
              "i"_a, nb::sig("def __getitem__(self, i: int) -> Value"))
          .def("__len__", [](const Value& self) { return self.count; })
          .def("slice", &Value::slice, "begin"_a, "length"_a, "`length` registers from number `begin` on.")
          .def(
              "__eq__",
              [](const Value& self, nb::handle other) {
                if (nb::isinstance<nb::float_>(other) || nb::isinstance<nb::int_>(other) ||
                    nb::isinstance<Number>(other))
                  refuse_operator("==", "equal(k, a, b)");
                const Value* value = nullptr;
                return nb::try_cast(other, value) && value != nullptr && self == *value;
              },
              nb::sig("def __eq__(self, other: object) -> bool"))
          .def("__hash__", [](const Value& self) { return (self.id * 257 + self.first) * 257 + self.count; })
          .def("__bool__",
               [](const Value&) -> bool {
                 throw nb::type_error(
                     "a Value is known only when the kernel runs, so Python cannot decide it: write `with "
                     "k.If(condition):`");
               })
          .def("__repr__", [](const Value& self) {
            return fmt::format("Value(v{}: {} x {})", self.id, program::name(self.type), self.count);
          });
  for (const auto& [method, text, function] :
       std::to_array<std::array<const char*, 3>>({{"__add__", "+", "add(k, a, b)"},
                                                  {"__radd__", "+", "add(k, a, b)"},
                                                  {"__sub__", "-", "subtract(k, a, b)"},
                                                  {"__rsub__", "-", "subtract(k, a, b)"},
                                                  {"__mul__", "*", "multiply(k, a, b)"},
                                                  {"__rmul__", "*", "multiply(k, a, b)"},
                                                  {"__truediv__", "/", "divide(k, a, b)"},
                                                  {"__rtruediv__", "/", "divide(k, a, b)"},
                                                  {"__lt__", "<", "less(k, a, b)"},
                                                  {"__le__", "<=", "less_equal(k, a, b)"},
                                                  {"__gt__", ">", "less(k, b, a)"},
                                                  {"__ge__", ">=", "less_equal(k, b, a)"}})) {
    values.attr(method) = nb::cpp_function(
        [text = text, function = function](nb::handle, nb::handle) { refuse_operator(text, function); },
        nb::is_method(), nb::scope(values), nb::name(method));
  }
  nb::class_<NumberCell>(module, "NumberCell",
                         "A number that the kernel changes while it runs. Kernel.cell() makes it.")
      .def("get", &NumberCell::get, "The present number.")
      .def("set", &NumberCell::set, "number"_a, "Replaces it by a number whose bounds are within those of the cell.")
      .def("set_within", &NumberCell::set_within, "number"_a,
           "The same for a number that the caller knows to be in the range, although its bounds do not say so.");
  nb::class_<ValueCell>(module, "ValueCell", "A value that the kernel changes while it runs. Kernel.cell() makes it.")
      .def("get", &ValueCell::get, "The present value.")
      .def("set", &ValueCell::set, "value"_a, "Replaces it by a value with the same type and number of registers.");
  nb::class_<program::SharedMemory>(module, "SharedMemory", "Memory of a CTA. Kernel.shared() reserves it.")
      .def_prop_ro(
          "address", [](const program::SharedMemory& self) { return self.address; },
          "The shared address of its first byte.")
      .def_ro("bytes", &program::SharedMemory::bytes);
  nb::class_<program::WorkspaceMemory>(module, "WorkspaceMemory",
                                       "The workspace of a launch. Kernel.workspace() reserves it.")
      .def_ro("address", &program::WorkspaceMemory::address, "A b64.")
      .def_ro("flags", &program::WorkspaceMemory::flags,
              "The offset of 63480 words of 32 bits that are 0 when the kernel starts, and must be when it ends.")
      .def_ro("data", &program::WorkspaceMemory::data,
              "The offset of the data, such that their address is a multiple of 256.");
  nb::class_<program::Operand>(
      module, "InstructionOperand",
      "An operand of Kernel.instruction(). output(), input(), update(), number(), immediate() and "
      "address_of() make it.");
}

void make_builder(KernelBuilder* self, const Text& symbol, nb::handle target, int threads, std::array<int, 3> cluster) {
  const std::optional<Target> read = read_target(target);
  if (!read) throw InvalidArgument("a kernel needs a target, such as \"sm_90a\"");
  new (self) KernelBuilder(symbol.read("symbol"), *read, threads, cluster);
  remember_scope(self->scope());
}

void bind_builder(nb::module_& module) {
  nb::class_<KernelBuilder>(module, "KernelBuilder",
                            "Records a kernel as a program. tilewright.program.Kernel is the class to use.")
      .def("__init__", &make_builder, "symbol"_a, "target"_a = "sm_90a", "threads"_a = 128,
           "cluster"_a = nb::make_tuple(1, 1, 1))
      .def_prop_ro("threads", &KernelBuilder::threads, "Of a CTA.")
      .def_prop_ro("cluster", &KernelBuilder::cluster, "In CTAs.")
      .def_prop_ro("target", [](const KernelBuilder& self) { return self.target().name(); })
      .def("wait_for_last_kernel", &KernelBuilder::wait_for_last_kernel,
           "All threads wait until the kernels that this launch depends on have ended, before all accesses of global "
           "memory: the kernel may start while the last one of its stream ends.")
      .def("set_min_ctas", &KernelBuilder::set_min_ctas, "ctas"_a,
           "The least number of CTAs that one SM shall hold; bounds the registers of a thread.")
      .def("launch", &KernelBuilder::launch, "name"_a, "divisor"_a = 1, "lower"_a = 0, "upper"_a = 0x7fffffff,
           "An integer that each launch gives, which must be a multiple of `divisor` and within the bounds.")
      .def("computed", &KernelBuilder::computed, "name"_a, "expression"_a,
           "An integer that the launch computes from launch arguments, so that the kernel need not.")
      .def(
          "address",
          [](KernelBuilder& self, std::string_view name, std::int64_t alignment, nb::handle dtype) {
            return self.address(name, alignment, dtype.is_none() ? std::nullopt : std::optional(read_dtype(dtype)));
          },
          "name"_a, "alignment"_a = 1, "dtype"_a = nb::none(),
          nb::sig("def address(self, name: str, alignment: int = 1, dtype: object = None) -> Value"),
          "The address of an array in global memory, a b64. The launch checks the alignment in bytes; Program.run() "
          "checks that the array is in row-major order, and that its elements are of type `dtype` if that is given.")
      .def("workspace", &KernelBuilder::workspace, "bytes"_a,
           "Global memory that each launch has for itself, with `bytes` bytes of data, of launch arguments. The data "
           "may "
           "still be that of an earlier launch.")
      .def("scalar", &KernelBuilder::scalar, "name"_a, "A number that each launch gives, an f32.")
      .def("require", &KernelBuilder::require, "holds"_a, "reason"_a, "number"_a,
           "A condition on launch arguments, which the launch checks; `number` is in the message.")
      .def("set_grid", &KernelBuilder::set_grid, "x"_a, "y"_a = 1, "z"_a = 1, "The grid in CTAs, of launch arguments.")
      .def_prop_ro(
          "thread", [](const KernelBuilder& self) { return self.thread(); }, "threadIdx.x")
      .def(
          "block", [](KernelBuilder& self, int mode) { return self.block(mode); }, "mode"_a = 0, "blockIdx")
      .def(
          "blocks", [](KernelBuilder& self, int mode) { return self.blocks(mode); }, "mode"_a = 0, "gridDim")
      .def_prop_ro(
          "cluster_rank", [](const KernelBuilder& self) { return self.cluster_rank(); },
          "The rank of this CTA in its cluster.")
      .def("shared", &KernelBuilder::shared, "bytes"_a, "alignment"_a = 16,
           "Reserves shared memory. `alignment` is a power of two of at most 1024 bytes.")
      .def("begin_loop", &KernelBuilder::begin_loop, "first"_a, "end"_a, "step"_a, "Called by loop().")
      .def("begin_while", &KernelBuilder::begin_while, "condition"_a, "Called by While().")
      .def("end_loop", &KernelBuilder::end_loop, "Called by loop() and While().")
      .def("begin_branch", &KernelBuilder::begin_branch, "condition"_a, "Called by If().")
      .def("end_branch", &KernelBuilder::end_branch, "Called by If().")
      .def("reopen_otherwise", &KernelBuilder::reopen_otherwise, "Called by Else().")
      .def(
          "cell", [](KernelBuilder& self, const Value& initial) { return self.cell(initial); }, "initial"_a,
          nb::keep_alive<0, 1>(), "A cell for values with the type and the number of registers of `initial`.")
      .def(
          "cell",
          [](KernelBuilder& self, const Number& initial, std::int64_t count) { return self.cell(initial, count); },
          "initial"_a, "count"_a, nb::keep_alive<0, 1>(), "A cell for numbers from 0 to count - 1.")
      .def(
          "undefined",
          [](KernelBuilder& self, const Text& type, int count) {
            return self.undefined(read_register_type(type), count);
          },
          "type"_a, "count"_a = 1, "Registers whose contents do not matter.")
      .def(
          "instruction",
          [](KernelBuilder& self, const Text& text, const nb::args& operands, const Text& effect) {
            std::vector<program::Operand> read;
            for (nb::handle each : operands) read.push_back(read_instruction_operand(each, read.size()));
            return self.instruction(text.read("the text of an instruction"), std::move(read), read_effect(effect));
          },
          "text"_a, "operands"_a, "effect"_a = "memory",
          nb::sig("def instruction(self, text: str, *operands: InstructionOperand | Value, effect: str = 'memory') -> "
                  "list[Value]"),
          "Appends PTX, in which $0, $1, ... stand for the operands: output(), input() or a Value, update(), number(), "
          "immediate(), address_of(). Returns the values of the outputs and updates. `effect`: \"pure\", if the "
          "outputs depend on the inputs alone; \"memory\"; or \"state\", which touches other state than memory.")
      .def(
          "number", &KernelBuilder::number, "value"_a, "count"_a = layout::NumberScope::kMaxIndex, "divisor"_a = 1,
          "A Number that instructions computed: `value` is one b32. The caller promises that it is from 0 to count - 1 "
          "and a multiple of `divisor`.")
      .def("remark", &KernelBuilder::remark, "text"_a, "Appends a text to the listing.")
      .def("build", &KernelBuilder::build, "Ends recording and returns the Program.");
}

}  // namespace

void bind_program(nb::module_& module) {
  bind_values(module);
  bind_builder(module);
  module.def(
      "set_kernel_target",
      [](registry::Kernel& kernel, nb::handle target) { set_target(kernel, read_target(target).value()); }, "kernel"_a,
      "target"_a, "Sets the target of a kernel that no provider has made.");
  nb::class_<Program>(module, "BuiltProgram", nb::dynamic_attr(), "A kernel as data. str() is its listing.")
      .def(nb::init<const Program&>(), "program"_a)
      .def_ro("symbol", &Program::symbol, "The name of the kernel function.")
      .def_ro("threads", &Program::threads, "Of a CTA.")
      .def_ro("shared_bytes", &Program::shared_bytes, "Dynamic shared memory of a CTA.")
      .def_prop_ro("target", [](const Program& self) { return self.target.name(); })
      .def_prop_ro(
          "parameters",
          [](const Program& self) {
            std::vector<std::pair<std::string, std::string>> parameters;
            for (const Parameter& each : self.parameters) {
              if (is_argument(each)) parameters.emplace_back(each.name, kind_name(each.kind));
            }
            return parameters;
          },
          "(name, kind) of each argument of a launch; the kinds are integer, address, scalar, tensor_map.")
      .def("__str__", [](const Program& self) { return to_string(self); })
      .def("__repr__", [](const Program& self) { return fmt::format("<Program {}>", self.symbol); })
      .def(
          "cuda", [](const Program& self) { return lower::cuda::lower(self); }, "The program as CUDA C++.")
      .def(
          "mlir", [](const Program& self) { return lower::mlir::lower(self); }, "The program as MLIR.")
      .def(
          "ptx",
          [](const Program& self, const Text& language) {
            const std::string read = language.read("language");
            const Unlocked unlocked;
            compile::Source source = source_of(self, read);
            source.outputs.cubin = false;
            return engine_for({})->compiler().compile(source).ptx;
          },
          "language"_a = "cuda", "The PTX, compiled from the lowering to `language`: \"cuda\" or \"mlir\".")
      .def(
          "check_arrays",
          [](const Program& self, const nb::kwargs& given) {
            for (const auto& [key, value] : given) {
              const std::string name = nb::cast<std::string>(key);
              const Parameter& parameter = find_parameter(self, name);
              if (!nb::hasattr(value, "shape") || !nb::hasattr(value, "dtype"))
                throw nb::type_error(fmt::format("{} must be an array, got {}", name, shown(value)).c_str());
              if (!parameter.element) continue;
              // NumPy has no type for some elements: integers of the same size may hold them.
              const nb::object dtype = value.attr("dtype");
              const std::string given_type = nb::str(nb::handle(dtype)).c_str();
              if (const std::optional<int> width = bits_of_integer(given_type)) {
                if (*width == bits(*parameter.element)) continue;
                throw InvalidArgument(fmt::format("{} reads '{}' as elements of {}, the array has {}", self.symbol,
                                                  name, tilewright::name(*parameter.element), given_type));
              }
              const DType type = read_dtype(value.attr("dtype"));
              const bool fits = bits(type) == bits(*parameter.element) &&
                                (type == *parameter.element || is_integer(type) || bits(type) == 32);
              if (!fits)
                throw InvalidArgument(fmt::format("{} reads '{}' as elements of {}, the array has {}", self.symbol,
                                                  name, tilewright::name(*parameter.element), tilewright::name(type)));
            }
          },
          "arrays"_a, nb::sig("def check_arrays(self, **arrays: object) -> None"),
          "Raises InvalidArgument for an array with elements of another type than the program declares.")
      .def(
          "check_array",
          [](const Program& self, const std::string& name, std::vector<std::int64_t> extents,
             std::vector<std::int64_t> strides, const std::unordered_map<std::string, std::int64_t>& integers) {
            program::LaunchArguments arguments;
            for (const auto& [each, value] : integers) arguments.integer(each, value);
            if (extents.size() != strides.size()) throw InvalidArgument("as many extents as strides are needed");
            program::check_array(self, arguments, name, {std::move(extents), std::move(strides)}).or_throw();
          },
          "name"_a, "extents"_a, "strides"_a, "integers"_a,
          "Raises InvalidArgument for an array, by its extents and strides in elements, that is not the Tensor which "
          "the program declares for a launch with these integers, or that has an address and is not in row-major "
          "order.")
      .def(
          "target_for",
          [](const Program& self, const OperationArguments& arguments) {
            const Target device = engine_for(arguments.memory())->device()->properties().target;
            return (device.has_features_of(self.target) ? device : self.target).name();
          },
          "args"_a, "The target to compile for: that of the device of the arrays, if it has the features.")
      .def(
          "source",
          [](const Program& self, const Text& language) { return source_of(self, language.read("language")); },
          "language"_a = "cuda", "The Source that a Kernel's _source() returns.")
      .def(
          "check",
          [](const Program& self, const nb::kwargs& given) {
            return program::check_arguments(self, read_arguments(self, given));
          },
          "arguments"_a, nb::sig("def check(self, **arguments: object) -> tilewright._tilewright.Status"),
          "Whether the program can be launched with these arguments, and if not, the reason with the number.")
      .def(
          "launch",
          [](const Program& self, const nb::kwargs& given) {
            const program::LaunchArguments arguments = read_arguments(self, given);
            program::check_arguments(self, arguments).or_throw();
            return program::launch(self, arguments);
          },
          "arguments"_a, nb::sig("def launch(self, **arguments: object) -> tilewright._tilewright.Launch"),
          "The Launch that a Kernel's _launch() returns. Each keyword is the name of a parameter; operands and "
          "addresses are those of arrays on the device.");
}

}  // namespace tilewright::python
