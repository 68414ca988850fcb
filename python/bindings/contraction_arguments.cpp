// tilewright.ContractionArguments: a contraction of two tensors on Python's arrays.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string>
#include <utility>

#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/epilogue_arguments.hpp"
#include "python/bindings/read.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

bool has(const std::string& modes, char mode) { return modes.find(mode) != std::string::npos; }

char kind_of(const op::Contraction& contraction, char mode) {
  const bool is_of_a = has(contraction.modes_a, mode), is_of_b = has(contraction.modes_b, mode);
  return is_of_a && is_of_b ? 'b' : is_of_a ? 'm' : 'n';
}

/// Whether a tensor with `rank` modes is the result of a reduction that has only the modes of D that are left, as in
/// NumPy without keepdims.
bool lacks_reduced_modes(const op::Contraction& contraction, const op::EpilogueTensor& role, int rank) {
  if (!role.is_written || role.broadcast == op::kFull || rank == contraction.d.shape.rank()) return false;
  return rank == std::ranges::count_if(contraction.modes_d, [&](char mode) {
           const char kind = kind_of(contraction, mode);
           return kind == 'b' || (kind == 'm' ? role.broadcast.along_m : role.broadcast.along_n);
         });
}

/// The tensor with as many modes as D: modes of extent 1 in place of those that a reduction has removed, else before
/// its own, as NumPy broadcasts.
op::Tensor with_rank(const op::Contraction& contraction, const op::EpilogueTensor& role, const op::Tensor& tensor) {
  op::Tensor result = tensor;
  result.shape = result.stride = {};
  const bool is_reduced = lacks_reduced_modes(contraction, role, tensor.shape.rank());
  const int rank = contraction.d.shape.rank();
  int own = is_reduced ? 0 : tensor.shape.rank() - rank;  // negative for the modes before its own
  for (int mode = 0; mode < rank; ++mode) {
    const char kind = kind_of(contraction, contraction.modes_d[static_cast<std::size_t>(mode)]);
    const bool is_removed =
        is_reduced && kind != 'b' && !(kind == 'm' ? role.broadcast.along_m : role.broadcast.along_n);
    const bool is_own = !is_removed && own >= 0;
    result.shape.append(is_own ? tensor.shape[own] : 1);
    result.stride.append(is_own ? tensor.stride[own] : 0);
    if (!is_removed) ++own;
  }
  return result;
}

void read_tensors(ArgumentsReader& reader, op::Contraction& contraction, nb::handle tensors) {
  if (tensors.is_none()) return;
  if (!nb::isinstance<nb::dict>(tensors))
    throw nb::type_error(fmt::format("tensors must be a dict of names and arrays, got {}", shown(tensors)).c_str());
  const std::vector<op::EpilogueTensor> expected = op::epilogue_tensors(contraction.epilogue);
  for (const auto& [key, array] : nb::cast<nb::dict>(tensors)) {
    std::string label = read_text(key, "the name of a tensor");
    const auto found = std::ranges::find(expected, std::string_view(label), &op::EpilogueTensor::label);
    if (found == expected.end())
      throw InvalidArgument(fmt::format("the epilogue has no tensor '{}'", printable(label)));
    const op::Tensor tensor = reader.read(array, found->is_written, label.c_str());
    const bool is_too_long = tensor.shape.rank() > contraction.d.shape.rank();  // op::validate() says so
    contraction.tensors.push_back({std::move(label), is_too_long ? tensor : with_rank(contraction, *found, tensor)});
  }
}

/// The output as a matrix, or as a batch of matrices if A and B share modes of D.
OutputExtents output_extents(const op::Contraction& contraction) {
  OutputExtents result{.batch = nb::none(), .m = 1, .n = 1, .modes = ""};
  std::int64_t batch = 1;
  for (int mode = 0; mode < contraction.d.shape.rank(); ++mode) {
    const char letter = contraction.modes_d[static_cast<std::size_t>(mode)];
    const char kind = kind_of(contraction, letter);
    (kind == 'b' ? batch : kind == 'm' ? result.m : result.n) *= contraction.d.shape[mode];
    result.modes += kind;
  }
  if (has(result.modes, 'b')) result.batch = nb::int_(batch);
  return result;
}

/// Calls compute(), and gives the output the name `out` in errors, which Python callers use.
template <class Compute>
auto with_name_of_out(const Compute& compute) {
  try {
    return compute();
  } catch (const InvalidArgument& error) {
    static const std::regex output(R"(\bD\b)");
    throw InvalidArgument(std::regex_replace(error.what(), output, "out"));
  }
}

/// Exchanges A and B if the last mode of D is one of A only, so that the columns of epilogues end with it.
void order_operands(op::Contraction& contraction) {
  if (contraction.modes_d.empty()) return;
  const char last = contraction.modes_d.back();
  if (!has(contraction.modes_a, last) || has(contraction.modes_b, last)) return;
  std::swap(contraction.a, contraction.b);
  std::swap(contraction.modes_a, contraction.modes_b);
}

void make_contraction(ContractionArguments* self, const Text& expression, nb::handle a, nb::handle b, nb::handle out,
                      nb::handle accumulator_type, nb::handle epilogue, nb::handle c, double alpha, double beta,
                      nb::handle math, nb::handle tensors) {
  ArgumentsReader reader;
  op::Contraction contraction;
  const std::array<std::string, 3> modes = op::parse_contraction(expression.read("the expression")).value_or_throw();
  contraction.modes_a = modes[0];
  contraction.modes_b = modes[1];
  contraction.modes_d = modes[2];
  contraction.a = reader.read(a, false, "A");
  contraction.b = reader.read(b, false, "B");
  contraction.d = reader.read(out, true, "out");
  if (!c.is_none()) contraction.c = reader.read(c, false, "C");
  contraction.accumulator =
      read_optional_dtype(accumulator_type, "accumulator_type").value_or(op::default_accumulator(contraction.a.dtype));
  contraction.math = read_math(math);
  const DType compute = op::default_compute(contraction.accumulator, contraction.d.dtype);
  contraction.epilogue = op::linear_combination(compute);
  // The modes are checked before operands change their places and an epilogue is read, which needs the extents.
  with_name_of_out([&] { op::validate(contraction).or_throw(); });
  order_operands(contraction);
  ReadEpilogue read = read_epilogue(epilogue, output_extents(contraction), compute, contraction.d.dtype);
  check_bound_output(epilogue, out, "out");
  contraction.epilogue = std::move(read.epilogue);
  contraction.alpha = read.alpha.value_or(alpha);
  contraction.beta = read.beta.value_or(beta);
  check_used(contraction.epilogue, contraction.alpha, contraction.beta, !c.is_none());
  read_tensors(reader, contraction, read.tensors);
  read_tensors(reader, contraction, tensors);
  new (self) ContractionArguments{{with_name_of_out([&] { return engine::Call(op::Problem(std::move(contraction))); }),
                                   std::move(reader.streams), std::move(reader.owners), std::move(reader.lent)}};
}

}  // namespace

void bind_contraction(nb::module_& module) {
  const auto operand = [](op::Tensor op::Contraction::*which) {
    return [which](const ContractionArguments& self) { return Operand{self.contraction().*which}; };
  };
  const auto extent = [](std::int64_t (op::GemmView::*which)() const) {
    return [which](const ContractionArguments& self) { return (op::view(self.contraction()).*which)(); };
  };
  nb::class_<ContractionArguments, OperationArguments>(
      module, "ContractionArguments",
      "A contraction of two tensors, out = epilogue(sum of A * B, C), as an einsum writes it: \"abcd,dcef->abef\". "
      "Arrays are those that GemmArguments takes, with up to 8 modes and any strides. They are referred to and not "
      "copied. If the last mode of out is one of A, A and B are exchanged.")
      .def("__init__", &make_contraction, nb::arg("expression"), nb::arg("A"), nb::arg("B"), nb::arg("out"),
           nb::arg("accumulator_type") = nb::none(), nb::arg("epilogue") = nb::none(), nb::kw_only(),
           nb::arg("C") = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0, nb::arg("math") = nb::none(),
           nb::arg("tensors") = nb::none(),
           "Tensors of the epilogue have the modes of out, with extents of 1 where they are broadcast, which may be "
           "left "
           "out at the beginning; results of reductions may also lack the modes that are reduced, as in NumPy. They "
           "are broadcast along all modes of A that out has, or along none, and so for B and "
           "for the modes that both have. The other parameters are as in GemmArguments. Raises InvalidArgument, with "
           "the mode and the number that is wrong, if the arrays do not fit together.")
      .def_prop_ro("A", operand(&op::Contraction::a))
      .def_prop_ro("B", operand(&op::Contraction::b))
      .def_prop_ro("C", operand(&op::Contraction::c))
      .def_prop_ro("out", operand(&op::Contraction::d))
      .def_prop_ro("tensors",
                   [](const ContractionArguments& self) -> nb::typed<nb::dict, nb::str, Operand> {
                     nb::dict found;
                     for (const op::NamedTensor& each : self.contraction().tensors)
                       found[nb::cast(each.name)] = Operand{each.tensor};
                     return found;
                   })
      .def_prop_ro("expression",
                   [](const ContractionArguments& self) {
                     const op::Contraction& all = self.contraction();
                     return fmt::format("{},{}->{}", all.modes_a, all.modes_b, all.modes_d);
                   })
      .def_prop_ro(
          "classes", [](const ContractionArguments& self) { return op::classes_text(self.contraction()); },
          "How the modes form the GEMM that is computed: \"m = b*a, n = c, k = (de), batch = 1\". Modes in parentheses "
          "are merged; the first of each class changes fastest.")
      .def_prop_ro("m", extent(&op::GemmView::m), "As n, k and batch, an extent of the GEMM that is computed.")
      .def_prop_ro("n", extent(&op::GemmView::n))
      .def_prop_ro("k", extent(&op::GemmView::k))
      .def_prop_ro("batch", extent(&op::GemmView::batch))
      .def_prop_ro("alpha", [](const ContractionArguments& self) { return self.contraction().alpha; })
      .def_prop_ro("beta", [](const ContractionArguments& self) { return self.contraction().beta; })
      .def_prop_ro("accumulator_type", [](const ContractionArguments& self) { return self.contraction().accumulator; })
      .def_prop_ro("math", [](const ContractionArguments& self) { return op::name(self.contraction().math); })
      .def_prop_ro("epilogue", [](const ContractionArguments& self) { return self.contraction().epilogue; })
      .def("__repr__", [](const ContractionArguments& self) {
        const op::Contraction& all = self.contraction();
        return fmt::format("ContractionArguments('{},{}->{}', A={}, B={}, out={}, accumulator_type={}, epilogue='{}')",
                           all.modes_a, all.modes_b, all.modes_d, describe(all.a), describe(all.b), describe(all.d),
                           name(all.accumulator), op::signature(all.epilogue));
      });
  module.def(
      "_contraction_modes",
      [](const Text& expression) {
        const auto modes = op::parse_contraction(expression.read("the expression")).value_or_throw();
        return nb::make_tuple(modes[0], modes[1], modes[2]);
      },
      nb::arg("expression"), nb::sig("def _contraction_modes(expression: str) -> tuple[str, str, str]"));
}

}  // namespace tilewright::python
