#include "python/bindings/epilogue_arguments.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/read.hpp"
#include "python/bindings/tensor.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace nb = nanobind;

namespace tilewright::python {

op::Epilogue make_epilogue(const std::string& text, DType output, DType compute,
                           const std::map<std::string, double>& scalars) {
  const bool is_name = text.find_first_of("=;( ") == std::string::npos;
  if (!is_name) return op::parse_epilogue(text, compute, scalars).value_or_throw();
  op::Epilogue epilogue = op::named_epilogue(text, output, compute).value_or_throw();
  const std::vector<std::string> labels = epilogue.scalars();
  for (const auto& [label, value] : scalars) {
    if (std::ranges::find(labels, label) == labels.end())
      throw InvalidArgument(fmt::format("the epilogue '{}' has no scalar '{}'", printable(text), printable(label)));
    for (op::EpilogueNode& node : epilogue.nodes) {
      if (node.op == op::EpilogueOp::scalar && node.label == label) node.value = value;
    }
  }
  return epilogue;
}

ReadEpilogue read_epilogue(nb::handle epilogue, const OutputExtents& extents, DType compute, DType output) {
  if (epilogue.is_none()) return {op::linear_combination(compute), nb::none(), {}, {}};
  if (nb::isinstance<op::Epilogue>(epilogue)) return {nb::cast<const op::Epilogue&>(epilogue), nb::none(), {}, {}};
  if (nb::isinstance<nb::str>(epilogue))
    return {make_epilogue(read_text(epilogue, "the epilogue"), output, compute, {}), nb::none(), {}, {}};
  const nb::object bind = nb::getattr(epilogue, "_bind", nb::none());
  if (bind.is_none()) {
    throw nb::type_error(
        fmt::format("epilogue must be a str, an Epilogue or EpilogueArguments, got {}", shown(epilogue)).c_str());
  }
  const Locked gil;  // _bind() traces Python functions, which may take long
  const nb::object bound = extents.modes.empty()
                               ? bind(extents.batch, extents.m, extents.n, compute, output)
                               : bind(extents.batch, extents.m, extents.n, compute, output, extents.modes);
  if (!nb::isinstance<nb::tuple>(bound) || nb::len(bound) != 3 || !nb::isinstance<op::Epilogue>(bound[0]) ||
      !nb::isinstance<nb::dict>(bound[2])) {
    throw nb::type_error(
        fmt::format("_bind() of an epilogue must return (Epilogue, tensors, scalars), got {}", shown(bound)).c_str());
  }
  ReadEpilogue read{nb::cast<const op::Epilogue&>(bound[0]), bound[1], {}, {}};
  for (const auto& [key, value] : nb::cast<nb::dict>(bound[2])) {
    const std::string label = read_text(key, "the name of a scalar of the epilogue");
    if (label == "alpha") read.alpha = read_number(value, "alpha");
    if (label == "beta") read.beta = read_number(value, "beta");
  }
  return read;
}

void check_bound_output(nb::handle epilogue, nb::handle output, const char* name) {
  const nb::object find = nb::getattr(epilogue, "_bound_output", nb::none());
  if (find.is_none()) return;
  const nb::object bound = find();
  if (bound.is_none()) return;
  const nb::object array = bound[1];
  if (array.is(output)) return;
  const std::string label = read_text(bound[0], "the name of the output of an epilogue");
  const auto is_list = [](nb::handle object) {
    return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  };
  if (!is_list(array) && !is_list(output) && nb::hasattr(array, "shape") && nb::hasattr(output, "shape")) {
    const op::Tensor given = read_tensor(array, label.c_str()).tensor, written = read_tensor(output, name).tensor;
    if (given.dtype == written.dtype && op::are_same_elements(given, written)) return;
  }
  throw InvalidArgument(fmt::format(
      "the array {0}= is the result of the epilogue, which is written to {1}, but it is another array: pass it as {1}",
      label, name));
}

void check_used(const op::Epilogue& epilogue, double given_alpha, double given_beta, bool has_c) {
  const std::vector<std::string> scalars = epilogue.scalars();
  for (const auto& [label, value, unused] : {std::tuple{"alpha", given_alpha, 1.0}, {"beta", given_beta, 0.0}}) {
    if (value != unused && !(label == std::string_view("beta") && has_c) &&
        std::ranges::find(scalars, label) == scalars.end())
      throw InvalidArgument(fmt::format("the epilogue does not use {}, got {}", label, value));
  }
  if (has_c && !epilogue.reads_source()) throw InvalidArgument("C is given, but the epilogue does not read it");
  if (has_c || !epilogue.reads_source()) return;
  const std::optional<std::string> gate = epilogue.gate(op::EpilogueOp::source);
  if (!gate) throw InvalidArgument("the epilogue reads C, but no C is given");
  const double factor = op::scalar_value(epilogue, *gate, given_alpha, given_beta);
  if (factor != 0.0) throw InvalidArgument(fmt::format("{} is {}, but no C is given", *gate, factor));
}

op::MathOperation read_math(nb::handle math) {
  if (math.is_none()) return op::MathOperation::multiply_add;
  const std::string text = read_text(math, "math");
  if (const auto found = op::parse_math_operation(text)) return *found;
  using enum op::MathOperation;
  std::vector<std::string> names;
  for (const op::MathOperation each : {multiply_add, multiply_add_tf32, multiply_add_fast_f16, multiply_add_fast_bf16,
                                       multiply_add_fast_f32, multiply_add_fast_accumulate})
    names.emplace_back(op::name(each));
  throw InvalidArgument(
      fmt::format("unknown math operation '{}': known are {}", printable(text), fmt::join(names, ", ")));
}

std::string describe(const op::Tensor& tensor) {
  return fmt::format("{}{}{} on {}", name(tensor.dtype), op::to_string(tensor.shape),
                     tensor.is_pointer_array() ? " by pointers" : "", op::to_string(tensor.device));
}

}  // namespace tilewright::python
