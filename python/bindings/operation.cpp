// tilewright.Operation, with which a program declares its own operation, and the constructor of OperationArguments.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/product_operation.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// A reference to a Python object, which the destructor releases under the GIL.
struct ObjectReference {
  explicit ObjectReference(nb::object given) : object(std::move(given)) {}
  ObjectReference(const ObjectReference&) = delete;
  ObjectReference& operator=(const ObjectReference&) = delete;
  ~ObjectReference() {
    const Locked gil;
    object.reset();
  }
  nb::object object;
};

/// A NumPy array that views a tensor in host memory. @pre the memory outlives the array
nb::object numpy_view(const op::Tensor& tensor) {
  const int width = bytes(tensor.dtype);
  nb::list shape, strides;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    shape.append(tensor.shape[mode]);
    strides.append(tensor.stride[mode] * width);
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object type = numpy.attr("dtype")(numpy_name(tensor.dtype));
  nb::dict interface;
  interface["shape"] = nb::tuple(shape);
  interface["strides"] = nb::tuple(strides);
  interface["typestr"] = nb::str(fmt::format("<V{}", width).c_str());
  interface["data"] = nb::make_tuple(tensor.address, false);
  interface["version"] = 3;
  const nb::object holder = nb::module_::import_("types").attr("SimpleNamespace")();
  nb::setattr(holder, "__array_interface__", interface);
  return numpy.attr("asarray")(holder).attr("view")(type);
}

/// An operation whose check and reference are Python functions, or None.
class PythonOperation final : public op::Operation {
 public:
  PythonOperation(std::string name, std::vector<op::OperandDeclaration> operands, std::vector<op::NamedScalar> scalars,
                  nb::object check, nb::object reference, double tolerance)
      : Operation(std::move(name), std::move(operands), std::move(scalars)),
        check_(std::make_unique<ObjectReference>(std::move(check))),
        reference_(std::make_unique<ObjectReference>(std::move(reference))),
        tolerance_(tolerance) {}

  Support check(const op::Custom& problem) const override {
    return call_python([&]() -> Support {
      if (check_->object.is_none()) return {};
      nb::dict extents;
      for (const op::OperandDeclaration& operand : operands()) {
        for (const std::string& extent : operand.shape) {
          if (is_identifier(extent)) extents[extent.c_str()] = problem.extent(extent);
        }
      }
      const nb::object answer = check_->object(**extents);
      if (answer.is_none() || nb::cast<bool>(nb::bool_(answer))) {
        return nb::isinstance<nb::str>(answer) ? Support(refuse("{}", as_text(answer)).as(RefusalCode::shape))
                                               : Support();
      }
      return refuse("check() of {} returned False for these extents", name()).as(RefusalCode::shape);
    });
  }

  bool has_reference() const override {
    const Locked gil;
    return !reference_->object.is_none();
  }
  void reference(const op::Custom& problem) const override {
    call_python([&] {
      nb::dict arguments;
      for (const op::NamedTensor& each : problem.tensors) arguments[each.name.c_str()] = numpy_view(each.tensor);
      for (const op::NamedScalar& each : problem.scalars) arguments[each.name.c_str()] = each.value;
      reference_->object(**arguments);
    });
  }
  double tolerance() const override { return tolerance_; }

 private:
  std::unique_ptr<ObjectReference> check_, reference_;
  double tolerance_;
};

op::Access read_access(const std::string& text) {
  for (const op::Access each : {op::Access::read, op::Access::write, op::Access::update}) {
    if (op::name(each) == text) return each;
  }
  throw InvalidArgument(fmt::format("access must be \"read\", \"write\" or \"update\", got \"{}\"", printable(text)));
}

void declare_operand(op::OperandDeclaration* self, const Text& name, const nb::typed<nb::sequence, nb::object>& shape,
                     const Text& access, const nb::typed<nb::sequence, nb::object>& dtypes) {
  op::OperandDeclaration operand{
      .name = name.read("the name of an operand"), .shape = {}, .access = read_access(access.read("access"))};
  for (nb::handle extent : shape) {
    operand.shape.push_back(nb::isinstance<nb::int_>(extent)
                                ? std::to_string(read_signed(extent, "an extent", 0, INT64_MAX))
                                : read_text(extent, "an extent"));
  }
  for (nb::handle type : dtypes) operand.types.push_back(read_dtype(type));
  new (self) op::OperandDeclaration(std::move(operand));
}

std::shared_ptr<op::Operation> make_operation(const Text& name_text,
                                              const std::vector<op::OperandDeclaration>& operands,
                                              const nb::typed<nb::mapping, nb::str, nb::float_>& scalars,
                                              nb::handle product, nb::object check, nb::object reference,
                                              double tolerance) {
  std::string name = name_text.read("the name of an operation");
  std::vector<op::NamedScalar> values;
  for (nb::handle each : read_items(scalars, "scalars")) {
    std::string label = read_text(each[0], "the name of a scalar");
    const double value = read_number(each[1], label.c_str());
    values.push_back({std::move(label), value});
  }
  if (product.is_none()) {
    return std::make_shared<PythonOperation>(std::move(name), operands, std::move(values), std::move(check),
                                             std::move(reference), tolerance);
  }
  if (!check.is_none() || !reference.is_none())
    throw InvalidArgument("check and reference must be None if product is given: the library has its own");
  if (nb::len(product) != 3)
    throw InvalidArgument(fmt::format("product must name three operands, got {}", nb::len(product)));
  return std::make_shared<op::ProductOperation>(
      std::move(name), operands,
      std::array{read_text(product[0], "an operand"), read_text(product[1], "an operand"),
                 read_text(product[2], "an operand")},
      std::move(values));
}

/// @throws InvalidArgument, with the names that there are, if the operation has no scalar of this name
void check_scalar(const op::Operation& operation, const std::string& label) {
  std::vector<std::string> known;
  for (const op::NamedScalar& each : operation.scalars()) {
    if (each.name == label) return;
    known.push_back(each.name);
  }
  for (const op::OperandDeclaration& each : operation.operands()) known.push_back(each.name);
  throw InvalidArgument(fmt::format("{} has no operand or scalar '{}': it has {}", operation.name(), printable(label),
                                    fmt::join(known, ", ")));
}

void make_arguments(OperationArguments* self, const std::shared_ptr<op::Operation>& operation,
                    const nb::kwargs& given) {
  ArgumentsReader reader;
  std::vector<op::NamedTensor> tensors;
  std::vector<op::NamedScalar> scalars;
  for (const auto& [key, value] : given) {
    std::string label = nb::cast<std::string>(key);
    const auto declared = std::ranges::find(operation->operands(), label, &op::OperandDeclaration::name);
    if (declared == operation->operands().end()) {
      check_scalar(*operation, label);
      const double number = read_number(value, label.c_str());
      scalars.push_back({std::move(label), number});
    } else {
      const op::Tensor tensor = reader.read(value, op::is_written(declared->access), label.c_str());
      tensors.push_back({std::move(label), tensor});
    }
  }
  op::Custom problem = op::Custom::make(operation, std::move(tensors), std::move(scalars));
  new (self) OperationArguments{engine::Call(std::move(problem)), std::move(reader.streams), std::move(reader.owners),
                                std::move(reader.lent)};
}

/// Implements OperationArguments.__getattr__: the operand or scalar with that name.
nb::object attribute(const OperationArguments& self, const Text& text) {
  const std::string name = text.read("the name of an attribute");
  if (const auto* const custom = std::get_if<op::Custom>(&self.problem())) {
    for (const op::NamedTensor& each : custom->tensors) {
      if (each.name == name) return nb::cast(Operand{each.tensor});
    }
    for (const op::NamedScalar& each : custom->scalars) {
      if (each.name == name) return nb::cast(each.value);
    }
  }
  throw nb::attribute_error(
      fmt::format("arguments of {} have no '{}'", op::operation_name(self.problem()), printable(name)).c_str());
}

/// The name of an input that is identical to an output, so that its old values are lost; empty if there is none.
std::string overwritten_input(const op::Problem& problem) {
  const std::vector<op::ConstOperand> operands = op::operands(problem);
  for (const op::ConstOperand& input : operands) {
    if (!input.is_used || !op::is_read(input.access)) continue;
    const bool is_output = std::ranges::any_of(operands, [&](const op::ConstOperand& output) {
      return op::is_written(output.access) && op::are_same_elements(*output.tensor, *input.tensor);
    });
    if (is_output) return std::string(input.name);
  }
  return {};
}

}  // namespace

void bind_operation(nb::module_& module) {
  nb::class_<op::OperandDeclaration>(module, "OperandDeclaration", "Declares one operand of an Operation.")
      .def("__init__", &declare_operand, nb::arg("name"), nb::arg("shape"), nb::arg("access") = "read",
           nb::arg("dtypes") = nb::tuple(),
           "`shape` has an entry for each mode: a number, or the name of an extent. Modes with the same name must have "
           "the "
           "same extent. `access` says what kernels do with the operand: \"read\", \"write\", or \"update\", which is "
           "read and write. `dtypes` lists the accepted element types; an empty list accepts all.")
      .def_ro("name", &op::OperandDeclaration::name)
      .def_ro("shape", &op::OperandDeclaration::shape)
      .def_prop_ro("access", [](const op::OperandDeclaration& self) { return op::name(self.access); });
  nb::class_<op::Operation>(
      module, "Operation",
      "An operation other than GEMM, declared by its operands. Kernels for it are classes that derive from "
      "Kernel.")
      .def(
          nb::new_(&make_operation), nb::arg("name"), nb::arg("operands"), nb::arg("scalars") = nb::dict(),
          nb::kw_only(), nb::arg("product") = nb::none(), nb::arg("check") = nb::none(),
          nb::arg("reference") = nb::none(), nb::arg("tolerance") = 0.0,
          "`operands` is a list of OperandDeclaration. `scalars` has names and default values.\n\n"
          "`product` names three operands (a, b, d): d is the sum of a * b over the extents that d lacks, as in an "
          "einsum. The built-in GEMM kernels compute it.\n\n"
          "Without `product`, two functions may be given. `check(**extents)` returns None, or the reason for which the "
          "operation refuses these extents. `reference(**operands, **scalars)` writes the expected outputs to the "
          "NumPy arrays of the outputs, with which OperationArguments.verify() compares; what it returns is not used: "
          "a result x is correct if |x - y| <= tolerance * "
          "max(1, |y|), where y is the reference.")
      .def_prop_ro("name", [](const op::Operation& self) { return self.name(); })
      .def_prop_ro(
          "operands", [](const op::Operation& self) { return self.operands(); }, "The declarations of its operands.")
      .def("__repr__", [](const op::Operation& self) { return "Operation('" + self.name() + "')"; });
  nb::object arguments = module.attr("OperationArguments");
  nb::borrow<nb::class_<OperationArguments>>(arguments)
      .def("__init__", &make_arguments, nb::arg("operation"), nb::arg("operands"),
           nb::sig("def __init__(self, operation: Operation, **operands: object) -> None"),
           "Each keyword is the name of an operand or a scalar. Raises InvalidArgument, with the number that is wrong, "
           "if the operands do not fit the operation.")
      .def("__getattr__", &attribute, nb::arg("name"))
      .def(
          "verify",
          [](const OperationArguments& self) {
            const Unlocked unlocked;
            if (!op::has_reference(self.problem()))
              throw InvalidArgument(fmt::format("{} has no reference", op::operation_name(self.problem())));
            if (!self.is_on_host()) throw InvalidArgument("verify() needs arrays in host memory");
            if (const std::string lost = overwritten_input(self.problem()); !lost.empty()) {
              throw InvalidArgument(fmt::format(
                  "verify() needs the values that the kernel read, but {} is an output too, which it has overwritten",
                  op::quoted(lost)));
            }
            const op::Comparison found = op::compare(self.problem());
            return found.is_within_bound() ? Support() : Support(refuse("{}", op::describe_worst(found)));
          },
          "Compares the outputs, which must be in host memory, with the reference. The inputs must still have the "
          "values that the kernel read: raises InvalidArgument if one of them is an output too. Returns a Status, "
          "whose "
          "reason names the worst element.");
}

}  // namespace tilewright::python
