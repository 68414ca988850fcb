#include "python/bindings/arguments.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <tuple>
#include <utility>

#include "python/bindings/dtype.hpp"
#include "python/bindings/epilogue_arguments.hpp"
#include "python/bindings/pointer_array.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/tensor.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/split_k.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// A dict from the names of an epilogue's tensors to how they are broadcast: "full", "row", "column" or "single".
using Broadcasts = nb::typed<nb::dict, nb::str, nb::str>;

nb::typed<nb::tuple, int, nb::ellipsis> tuple_of(const op::Dims& dims) {
  nb::list values;
  for (int mode = 0; mode < dims.rank(); ++mode) values.append(dims[mode]);
  return nb::tuple(values);
}

/// A vector or scalar as a matrix of one row or one column, according to its broadcast. A matrix stays as it is.
/// With `groups`, vectors in the rows of a matrix, and scalars in a vector, that has one for each group become a batch.
/// `extents` are those of a matrix that is not broadcast.
op::Tensor as_matrix(op::Tensor tensor, const op::Broadcast& broadcast, const op::Dims& extents,
                     std::optional<std::int64_t> groups) {
  const int rank = tensor.shape.rank();
  const bool is_vector = broadcast.along_m != broadcast.along_n;
  const bool is_single = !broadcast.along_m && !broadcast.along_n;
  const bool is_by_group = groups && rank > 0 && tensor.shape[0] == *groups;
  if (is_by_group && is_single && rank == 1) {
    tensor.shape = op::Dims{*groups, 1, 1};
    tensor.stride = op::Dims{tensor.stride[0], 1, 1};
    return tensor;
  }
  const int mode = broadcast.along_m ? 1 : 0;
  if (is_by_group && is_vector && rank == 2 && (tensor.shape[mode] != 1 || extents[1 - mode] == 1)) {
    const op::Dims steps = tensor.stride;
    const std::int64_t extent = tensor.shape[1];
    tensor.shape = broadcast.along_m ? op::Dims{*groups, extent, 1} : op::Dims{*groups, 1, extent};
    tensor.stride = broadcast.along_m ? op::Dims{steps[0], steps[1], 1} : op::Dims{steps[0], extent, steps[1]};
    return tensor;
  }
  if (tensor.shape.rank() >= 2) return tensor;
  const std::int64_t extent = tensor.shape.rank() == 1 ? tensor.shape[0] : 1;
  const std::int64_t step = tensor.shape.rank() == 1 ? tensor.stride[0] : 1;
  const bool is_column = broadcast.along_m && !broadcast.along_n;
  tensor.shape = is_column ? op::Dims{extent, 1} : op::Dims{1, extent};
  tensor.stride = is_column ? op::Dims{step, 1} : op::Dims{extent, step};
  return tensor;
}

/// Sets problem.epilogue and, if the epilogue binds them, alpha and beta. Returns the tensors that are bound to it, or
/// None. `Problem` is op::Gemm or op::ReduceSplitK, here and below. The batch is that of D, unless there are groups.
template <class Problem>
nb::object set_epilogue(Problem& problem, nb::handle epilogue, std::optional<std::int64_t> groups = std::nullopt) {
  const bool is_batch = groups || problem.d.shape.rank() == 3;
  const nb::object batch = is_batch ? nb::object(nb::int_(groups.value_or(problem.d.batch()))) : nb::none();
  const DType compute = op::default_compute(problem.accumulator, problem.d.dtype);
  ReadEpilogue read = read_epilogue(epilogue, {batch, problem.m(), problem.n()}, compute, problem.d.dtype);
  problem.epilogue = std::move(read.epilogue);
  problem.alpha = read.alpha.value_or(problem.alpha);
  problem.beta = read.beta.value_or(problem.beta);
  return read.tensors;
}

template <class Problem>
void read_tensors(ArgumentsReader& reader, Problem& problem, nb::handle tensors,
                  std::optional<std::int64_t> groups = std::nullopt) {
  if (tensors.is_none()) return;
  const std::vector<op::EpilogueTensor> expected = op::epilogue_tensors(problem.epilogue);
  if (!nb::isinstance<nb::dict>(tensors))
    throw nb::type_error(fmt::format("tensors must be a dict of names and arrays, got {}", shown(tensors)).c_str());
  for (const auto& [key, array] : nb::cast<nb::dict>(tensors)) {
    std::string label = read_text(key, "the name of a tensor");
    const auto found = std::ranges::find(expected, std::string_view(label), &op::EpilogueTensor::label);
    if (found == expected.end()) {
      std::vector<std::string> labels;
      for (const op::EpilogueTensor& each : expected) labels.emplace_back(each.label);
      throw InvalidArgument(
          fmt::format("the epilogue has no tensor '{}'{}", printable(label), suggestion(label, labels)));
    }
    // Each matrix of a batch has results of its own; what it reads may be the same for all.
    const bool has_own = !groups && found->is_written && problem.d.shape.rank() == 3;
    const op::Tensor tensor = as_matrix(reader.read(array, found->is_written, label.c_str()), found->broadcast,
                                        {problem.m(), problem.n()}, has_own ? problem.d.batch() : groups);
    problem.tensors.push_back({std::move(label), tensor});
  }
}

/// A Call of the problem. The library names its output D; errors are given the name that Python callers use, `out`.
engine::Call make_call(op::Problem problem) {
  try {
    return engine::Call(std::move(problem));
  } catch (const InvalidArgument& error) {
    static const std::regex output(R"(\bD\b)");
    throw InvalidArgument(std::regex_replace(error.what(), output, "out"));
  }
}

/// The interleaved matrix, or batch of matrices, in an array of shape ([batch,] blocks, extent, 32), in which the last
/// two modes are contiguous. `blocked` is the mode that consists of blocks. @throws InvalidArgument for other arrays
op::Tensor as_interleaved(const op::Tensor& array, op::InterleavedMode blocked, const char* name) {
  if (array.is_pointer_array())
    throw InvalidArgument(fmt::format("{} is interleaved: it must be one array, no list and no PointerArray", name));
  const int rank = array.shape.rank(), first = rank - 3;
  const bool has_blocks = (rank == 3 || rank == 4) && array.shape[rank - 1] == op::kInterleaved &&
                          array.stride[rank - 1] == 1 &&
                          (array.stride[rank - 2] == op::kInterleaved || array.shape[rank - 2] <= 1);
  if (!has_blocks) {
    throw InvalidArgument(
        fmt::format("{3} is interleaved: it must have shape (blocks, extent, {0}) with strides (any, {0}, 1), or be a "
                    "batch of such arrays, got shape {1} with strides {2}",
                    op::kInterleaved, op::to_string(array.shape), op::to_string(array.stride), name));
  }
  op::Tensor tensor = array;
  const bool by_rows = blocked == op::InterleavedMode::rows;
  const std::int64_t along = array.shape[first] * op::kInterleaved, other = array.shape[first + 1];
  tensor.shape = by_rows ? op::Dims{along, other} : op::Dims{other, along};
  tensor.stride =
      by_rows ? op::Dims{array.stride[first], op::kInterleaved} : op::Dims{op::kInterleaved, array.stride[first]};
  if (rank == 4) {
    tensor.shape = op::Dims{array.shape[0], tensor.shape[0], tensor.shape[1]};
    tensor.stride = op::Dims{array.stride[0], tensor.stride[0], tensor.stride[1]};
  }
  tensor.interleaved = blocked;
  return tensor;
}

/// Interleaves the operands whose letters are in `interleaved`: A, C and D by columns, B by rows, as in CUTLASS.
void interleave(op::Gemm& gemm, const std::string& interleaved, bool has_c) {
  for (const char letter : interleaved) {
    if (std::string_view("ABCD").find(letter) == std::string_view::npos || (letter == 'C' && !has_c)) {
      throw InvalidArgument(fmt::format(
          "interleaved must have letters of given operands, A, B, C or D for out, got \"{}\"", printable(interleaved)));
    }
    op::Tensor& tensor = letter == 'A' ? gemm.a : letter == 'B' ? gemm.b : letter == 'C' ? gemm.c : gemm.d;
    const std::string name(1, letter);
    tensor = as_interleaved(tensor, letter == 'B' ? op::InterleavedMode::rows : op::InterleavedMode::columns,
                            letter == 'D' ? "out" : name.c_str());
  }
}

/// Refuses lists of outputs that overlap; C counts if it is read.
void check_apart(ArgumentsReader& reader, bool reads_c) {
  if (!reads_c) std::erase_if(reader.matrices, [](const PlacedMatrix& each) { return *each.role == 'C'; });
  python::check_apart(reader.matrices);
}

void make_arguments(GemmArguments* self, nb::handle a, nb::handle b, nb::handle out, nb::handle accumulator_type,
                    nb::handle epilogue, nb::handle c, const Real& alpha, const Real& beta, nb::handle math,
                    nb::handle tensors, const Text& interleaved) {
  ArgumentsReader reader;
  op::Gemm gemm;
  gemm.a = read_operand(reader, a, false, "A");
  gemm.b = read_operand(reader, b, false, "B");
  gemm.d = read_operand(reader, out, true, "out");
  if (!c.is_none()) gemm.c = read_operand(reader, c, false, "C");
  interleave(gemm, interleaved.read("interleaved"), !c.is_none());
  gemm.alpha = alpha.read("alpha");
  gemm.beta = beta.read("beta");
  gemm.accumulator =
      read_optional_dtype(accumulator_type, "accumulator_type").value_or(op::default_accumulator(gemm.a.dtype));
  gemm.math = read_math(math);
  const nb::object bound = set_epilogue(gemm, epilogue);
  check_bound_output(epilogue, out, "out");
  check_used(gemm.epilogue, gemm.alpha, gemm.beta, !c.is_none());
  read_tensors(reader, gemm, bound);
  read_tensors(reader, gemm, tensors);
  const bool reads_c = op::reads_source(gemm);
  engine::Call call = make_call(std::move(gemm));
  check_apart(reader, reads_c);
  new (self)
      GemmArguments{{std::move(call), std::move(reader.streams), std::move(reader.owners), std::move(reader.lent)}};
}

/// Reads `offsets` or `counts`, whose name is `role`.
op::Tensor read_ends(ArgumentsReader& reader, nb::handle array, const char* role) {
  std::string type;
  if (nb::hasattr(array, "dtype")) type = as_text(array.attr("dtype"));
  const bool is_int64 = type.ends_with("int64");
  if (is_int64 || nb::isinstance<nb::list>(array) || nb::isinstance<nb::tuple>(array)) {
    throw InvalidArgument(fmt::format(
        "{0} must be an array of int32 where A is, got {1}: convert it once, as kernels read it in device memory", role,
        is_int64 ? type : shown(array)));
  }
  op::Tensor ends = reader.read(array, false, role);
  if (ends.dtype != DType::s32)
    throw InvalidArgument(fmt::format("{} must be an array of int32, got {}", role, name(ends.dtype)));
  if (ends.shape.rank() != 1) {
    throw InvalidArgument(fmt::format("{} must have one mode, with one number for each group, got shape {}", role,
                                      op::to_string(ends.shape)));
  }
  return ends;
}

/// The mode that ranks of A and B imply, with offsets or with counts; `named` is the mode that the caller gave, or
/// None.
op::GroupedMode read_mode(const op::Tensor& a, const op::Tensor& b, bool has_offsets, nb::handle named) {
  using enum op::GroupedMode;
  const int of_a = a.shape.rank(), of_b = b.shape.rank();
  if (!named.is_none()) {
    const std::string text = read_text(named, "mode");
    const std::optional<op::GroupedMode> mode = op::parse_grouped_mode(text);
    if (!mode || mode == independent) {
      throw InvalidArgument(fmt::format(
          "mode must be ragged_m, ragged_n, ragged_k, masked_m, masked_n or masked_k, got '{}'", printable(text)));
    }
    if (op::is_ragged(*mode) == has_offsets) return *mode;
    throw InvalidArgument(
        fmt::format("mode {} needs {}, got {}", text, op::ends_name(*mode), has_offsets ? "offsets" : "counts"));
  }
  if (!has_offsets) return masked_m;
  if (of_a == 2 && of_b == 3) return ragged_m;
  if (of_a == 3 && of_b == 2) return ragged_n;
  if (of_a == 2 && of_b == 2) return ragged_k;
  throw InvalidArgument(fmt::format(
      "offsets are for stacked groups: A and B must have ranks 2 and 3 (rows of A are stacked), 3 and 2 (columns of B) "
      "or 2 and 2 (k), got ranks {} and {}; batches of padded matrices take counts",
      of_a, of_b));
}

/// The sizes of groups that the caller expects: their mean, or a sequence of sizes.
op::GroupSummary read_expected(nb::handle expected, op::GroupedMode mode, std::int64_t groups) {
  if (expected.is_none()) return {};
  if (mode == op::GroupedMode::independent)
    throw InvalidArgument("expected_sizes are for groups with one size each, not for lists or groups at addresses");
  std::vector<std::int64_t> sizes;
  const auto add = [&](nb::handle size) {
    sizes.push_back(read_signed(size, "a size in expected_sizes", 0, std::numeric_limits<std::int64_t>::max()));
  };
  if (!nb::isinstance<nb::sequence>(expected)) {
    add(expected);
    return op::expect_mean(mode, groups, sizes[0]);
  }
  for (const nb::handle each : nb::borrow<nb::sequence>(expected)) add(each);
  if (sizes.size() == static_cast<std::size_t>(groups)) return op::summarize(mode, sizes);
  throw InvalidArgument(
      fmt::format("expected_sizes must be the mean size, or one for each of {} groups, got {}", groups, sizes.size()));
}

bool is_list(nb::handle operand) { return nb::isinstance<nb::list>(operand) || nb::isinstance<nb::tuple>(operand); }

/// How the sizes of groups are given.
struct GroupSizes {
  nb::handle offsets, counts, extents, leading_dimensions;
};

/// @throws InvalidArgument unless rows (columns) of two matrices of a group have the extent `expected`
void check_extent(std::int64_t given, std::int64_t expected, const char* what, std::size_t group) {
  if (given == expected) return;
  throw InvalidArgument(fmt::format("{1} of group {0} must be {3}, got {2}", group, what, given, expected));
}

/// Sets A, B, C and D of independent groups from lists of matrices of any shapes, and their numbers.
void read_independent(ArgumentsReader& reader, op::GroupedGemm& grouped, nb::handle a, nb::handle b, nb::handle c,
                      nb::handle out) {
  if (!c.is_none() && !is_list(c)) throw InvalidArgument("C must be a list of matrices, as A, B and out are");
  GroupMatrices of_a = read_group_matrices(reader, a, false, "A"), of_b = read_group_matrices(reader, b, false, "B"),
                of_d = read_group_matrices(reader, out, true, "out"), of_c;
  if (!c.is_none()) of_c = read_group_matrices(reader, c, false, "C");
  const std::size_t count = of_a.shapes.size();
  for (const auto& [role, matrices] : {std::pair{"B", &of_b}, {"out", &of_d}, {"C", &of_c}}) {
    if (matrices->shapes.empty() || matrices->shapes.size() == count) continue;
    throw InvalidArgument(
        fmt::format("{} is a list of {} matrices, but A is one of {}", role, matrices->shapes.size(), count));
  }
  std::vector<std::array<std::int64_t, 3>> of_groups;
  std::vector<std::int32_t> extents, lds;
  op::Dims most{0, 0, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t m = of_a.shapes[i][0], n = of_b.shapes[i][1], k = of_a.shapes[i][1];
    check_extent(of_b.shapes[i][0], k, "the rows of B", i);
    check_extent(of_d.shapes[i][0], m, "the rows of out", i);
    check_extent(of_d.shapes[i][1], n, "the columns of out", i);
    if (!c.is_none()) {
      check_extent(of_c.shapes[i][0], m, "the rows of C", i);
      check_extent(of_c.shapes[i][1], n, "the columns of C", i);
    }
    of_groups.push_back({m, n, k});
    for (const auto& [mode, extent] : {std::pair{0, m}, {1, n}, {2, k}}) {
      if (extent > std::numeric_limits<std::int32_t>::max())
        throw InvalidArgument(fmt::format("extents must be less than 2^31, got {} in group {}", extent, i));
      most[mode] = std::max(most[mode], extent);
      extents.push_back(static_cast<std::int32_t>(extent));
    }
    for (const GroupMatrices* const each : {&of_a, &of_b, c.is_none() ? &of_d : &of_c, &of_d})
      lds.push_back(static_cast<std::int32_t>(each->leading_dimensions[i]));
  }
  const auto at_capacity = [](const GroupMatrices& matrices, std::int64_t rows, std::int64_t columns) {
    const std::int64_t ld = std::max<std::int64_t>(std::ranges::max(matrices.leading_dimensions),
                                                   op::has_contiguous_rows(matrices.layout) ? columns : rows);
    op::Tensor tensor = matrices.tensor;
    const op::Tensor matrix = op::matrix(0, tensor.dtype, rows, columns, matrices.layout, ld, tensor.device);
    return op::pointer_array(matrix, tensor.address, tensor.batch(), tensor.pointer_alignment);
  };
  op::Gemm& gemm = grouped.gemm;
  gemm.a = at_capacity(of_a, most[0], most[2]);
  gemm.b = at_capacity(of_b, most[2], most[1]);
  gemm.d = at_capacity(of_d, most[0], most[1]);
  if (!c.is_none()) gemm.c = at_capacity(of_c, most[0], most[1]);
  grouped.mode = op::GroupedMode::independent;
  grouped.expected = op::summarize(of_groups);
  grouped.ends = group_numbers(reader, extents, static_cast<std::int64_t>(count), gemm.d.device);
  grouped.leading_dimensions = group_numbers(reader, lds, static_cast<std::int64_t>(count), gemm.d.device);
}

/// Sets A, B, C, D and the sizes of the groups.
void read_groups(ArgumentsReader& reader, op::GroupedGemm& grouped, nb::handle a, nb::handle b, nb::handle c,
                 nb::handle out, const GroupSizes& sizes, nb::handle mode) {
  const int given = int{!sizes.offsets.is_none()} + int{!sizes.counts.is_none()} + int{!sizes.extents.is_none()};
  if (given == 0 && is_list(a) && is_list(b) && is_list(out)) return read_independent(reader, grouped, a, b, c, out);
  if (given != 1) {
    throw InvalidArgument(
        fmt::format("one of offsets (stacked groups), counts (padded groups) and extents (groups at addresses) must be "
                    "given, unless A, B and out are lists of matrices; got {}",
                    given == 0 ? "none" : std::to_string(given)));
  }
  op::Gemm& gemm = grouped.gemm;
  gemm.a = read_operand(reader, a, false, "A");
  gemm.b = read_operand(reader, b, false, "B");
  gemm.d = read_operand(reader, out, true, "out");
  if (!c.is_none()) gemm.c = read_operand(reader, c, false, "C");
  if (sizes.extents.is_none()) {
    const bool has_offsets = !sizes.offsets.is_none();
    grouped.ends = read_ends(reader, has_offsets ? sizes.offsets : sizes.counts, has_offsets ? "offsets" : "counts");
    grouped.mode = read_mode(gemm.a, gemm.b, has_offsets, mode);
    return;
  }
  if (sizes.leading_dimensions.is_none()) throw InvalidArgument("extents need leading_dimensions, got None");
  grouped.mode = op::GroupedMode::independent;
  grouped.ends = reader.read(sizes.extents, false, "extents");
  grouped.leading_dimensions = reader.read(sizes.leading_dimensions, false, "leading_dimensions");
}

void make_grouped(GroupedGemmArguments* self, nb::handle a, nb::handle b, nb::handle out, nb::handle accumulator_type,
                  nb::handle epilogue, nb::handle offsets, nb::handle counts, nb::handle extents,
                  nb::handle leading_dimensions, nb::handle mode, nb::handle expected_sizes, nb::handle c, double alpha,
                  double beta, nb::handle math, nb::handle tensors) {
  ArgumentsReader reader;
  op::GroupedGemm grouped;
  op::Gemm& gemm = grouped.gemm;
  read_groups(reader, grouped, a, b, c, out, {offsets, counts, extents, leading_dimensions}, mode);
  if (!expected_sizes.is_none()) grouped.expected = read_expected(expected_sizes, grouped.mode, grouped.groups());
  gemm.alpha = alpha;
  gemm.beta = beta;
  gemm.accumulator =
      read_optional_dtype(accumulator_type, "accumulator_type").value_or(op::default_accumulator(gemm.a.dtype));
  gemm.math = read_math(math);
  const nb::object bound = set_epilogue(gemm, epilogue, grouped.groups());
  check_bound_output(epilogue, out, "out");
  op::check_grouped_epilogue(grouped.mode, gemm.epilogue).or_throw();  // before shapes that follow from the epilogue
  check_used(gemm.epilogue, gemm.alpha, gemm.beta, !c.is_none());
  read_tensors(reader, gemm, bound, grouped.groups());
  read_tensors(reader, gemm, tensors, grouped.groups());
  const bool reads_c = op::reads_source(gemm);
  engine::Call call = make_call(std::move(grouped));
  check_apart(reader, reads_c);
  new (self) GroupedGemmArguments{
      {std::move(call), std::move(reader.streams), std::move(reader.owners), std::move(reader.lent)}};
}

/// Refuses ends in host memory that kernels would clamp. Those in device memory are not read.
void check_ends(const GroupedGemmArguments& self) {
  const op::GroupedGemm& grouped = self.grouped();
  if (!self.is_on_host() || grouped.ends.address == 0 || grouped.mode == op::GroupedMode::independent) return;
  const std::string_view role = op::ends_name(grouped.mode);
  const op::Gemm& gemm = grouped.gemm;
  const char* const extent = op::differs_in_m(grouped.mode) ? "m" : op::differs_in_n(grouped.mode) ? "n" : "k";
  const std::int64_t most = *extent == 'm' ? gemm.m() : *extent == 'n' ? gemm.n() : gemm.k();
  std::int64_t least = 0;
  for (std::int64_t group = 0; group < grouped.groups(); ++group) {
    const auto end = static_cast<std::int64_t>(op::load_at(grouped.ends, group));
    if (end < 0 || end > most) {
      throw InvalidArgument(fmt::format("{}[{}] must be from 0 to {} = {}, got {}", role, group, extent, most, end));
    }
    if (op::is_ragged(grouped.mode) && end < least)
      throw InvalidArgument(fmt::format("{} must not decrease, got {} after {} at index {}", role, end, least, group));
    least = end;
  }
}

void make_reduction(ReduceSplitKArguments* self, nb::handle parts, nb::handle out, nb::handle accumulator_type,
                    nb::handle epilogue, nb::handle c, double alpha, double beta, nb::handle tensors) {
  ArgumentsReader reader;
  op::ReduceSplitK reduction;
  reduction.parts = reader.read(parts, false, "parts");
  reduction.d = reader.read(out, true, "out");
  if (!c.is_none()) reduction.c = reader.read(c, false, "C");
  reduction.alpha = alpha;
  reduction.beta = beta;
  reduction.accumulator =
      read_optional_dtype(accumulator_type, "accumulator_type").value_or(op::sum_accumulator(reduction.parts.dtype));
  op::check_strides(reduction.parts, "parts").or_throw();  // its extents are needed before the problem is validated
  const nb::object bound = set_epilogue(reduction, epilogue);
  check_bound_output(epilogue, out, "out");
  check_used(reduction.epilogue, reduction.alpha, reduction.beta, !c.is_none());
  read_tensors(reader, reduction, bound);
  read_tensors(reader, reduction, tensors);
  new (self) ReduceSplitKArguments{
      {make_call(std::move(reduction)), std::move(reader.streams), std::move(reader.owners), std::move(reader.lent)}};
}

void bind_operand(nb::module_& module) {
  nb::class_<Operand>(
      module, "Operand",
      "One tensor of a call. It can be passed as a kernel parameter. The attributes of arguments, such as args.A, are "
      "Operands.")
      .def_prop_ro("shape", [](const Operand& self) { return tuple_of(self.tensor.shape); })
      .def_prop_ro(
          "stride", [](const Operand& self) { return tuple_of(self.tensor.stride); }, "In elements.")
      .def_prop_ro("dtype", [](const Operand& self) { return self.tensor.dtype; })
      .def_prop_ro(
          "data_ptr", [](const Operand& self) { return self.tensor.address; },
          "The address, as an integer. Of a pointer array, that of the array.")
      .def_prop_ro(
          "is_pointer_array", [](const Operand& self) { return self.tensor.is_pointer_array(); },
          "Whether data_ptr is the address of an array of 64-bit addresses, one for each matrix of the batch.")
      .def_prop_ro(
          "device", [](const Operand& self) { return op::to_string(self.tensor.device); },
          "Where the memory is: \"host\" or \"cuda:0\".")
      .def_prop_ro(
          "rows", [](const Operand& self) { return self.tensor.rows(); }, "The extent of the last but one mode.")
      .def_prop_ro(
          "columns", [](const Operand& self) { return self.tensor.columns(); }, "The extent of the last mode.")
      .def_prop_ro("row_stride", [](const Operand& self) { return self.tensor.row_stride(); })
      .def_prop_ro("column_stride", [](const Operand& self) { return self.tensor.column_stride(); })
      .def_prop_ro(
          "batch_stride", [](const Operand& self) { return self.tensor.batch_stride(); },
          "The stride of the batch mode; 0 for a single matrix, which is broadcast to the batch.")
      .def("__repr__", [](const Operand& self) { return "Operand(" + describe(self.tensor) + ")"; });
}

void bind_epilogue(nb::module_& module) {
  nb::class_<op::Epilogue>(
      module, "Epilogue",
      "The computation on the accumulators before they are stored: elementwise operations and reductions. "
      "docs/epilogues.md describes the language.")
      .def(
          "__init__",
          [](op::Epilogue* self, const Text& text, nb::handle compute,
             const nb::typed<nb::mapping, nb::str, nb::float_>& given, nb::handle output) {
            std::map<std::string, double> scalars;
            for (nb::handle each : read_items(given, "scalars")) {
              const std::string label = read_text(each[0], "the name of a scalar of the epilogue");
              scalars.insert_or_assign(label, read_number(each[1], label.c_str()));
            }
            const DType type = read_optional_dtype(compute, "compute").value_or(DType::f32);
            new (self) op::Epilogue(make_epilogue(text.read("the epilogue"),
                                                  read_optional_dtype(output, "output").value_or(type), type, scalars));
          },
          nb::arg("text"), nb::arg("compute") = nb::none(), nb::arg("scalars") = nb::dict(),
          nb::arg("output") = nb::none(),
          "`text` is an epilogue in the language (\"D = relu(acc + row(bias))\") or the name of one (\"relu\", "
          "\"linear_combination\"). `compute` is the type in which it computes, f32 by default. `scalars` has the "
          "values of its $names. `output` is the element type of D; only \"linear_combination_clamp\" uses it, which "
          "clamps to its range.")
      .def_prop_ro("name", [](const op::Epilogue& self) { return self.name; })
      .def_prop_ro("compute", [](const op::Epilogue& self) { return self.compute; })
      .def_prop_ro(
          "signature", [](const op::Epilogue& self) { return op::signature(self); },
          "One line that determines the code: epilogues with equal signatures compile to the same code.")
      .def_prop_ro(
          "inputs",
          [](const op::Epilogue& self) -> Broadcasts {
            nb::dict found;
            for (const op::EpilogueTensor& each : op::epilogue_tensors(self))
              if (!each.is_written) found[nb::cast(each.label)] = nb::cast(name(each.broadcast));
            return found;
          },
          "The tensors that the epilogue reads, by name, each with its broadcast: \"full\" (m x n), \"row\" (1 x n), "
          "\"column\" (m x 1) or \"single\" (1 x 1).")
      .def_prop_ro(
          "outputs",
          [](const op::Epilogue& self) -> Broadcasts {
            nb::dict found;
            for (const op::EpilogueTensor& each : op::epilogue_tensors(self))
              if (each.is_written) found[nb::cast(each.label)] = nb::cast(name(each.broadcast));
            return found;
          },
          "The tensors that the epilogue writes besides D, by name, each with its shape in the same words.")
      .def_prop_ro(
          "is_gated", [](const op::Epilogue& self) { return self.is_gated(); },
          "Whether each column of D is computed from a pair of columns of A @ B, as in SwiGLU: out has n / 2 columns.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const op::Epilogue& self) { return std::hash<std::string>()(op::signature(self)); })
      .def("__repr__", [](const op::Epilogue& self) { return "Epilogue('" + op::signature(self) + "')"; });
}

void bind_grouped(nb::module_& module) {
  const auto operand = [](op::Tensor op::Gemm::*which) {
    return [which](const GroupedGemmArguments& self) { return Operand{self.grouped().gemm.*which}; };
  };
  nb::class_<GroupedGemmArguments, OperationArguments>(
      module, "GroupedGemmArguments",
      "out = epilogue(A @ B, C) for groups of different sizes in one launch. The sizes are in device memory, and the "
      "host never reads them. With `offsets`, an int32 array with the end of each group, the groups are stacked: if A "
      "and B have ranks 2 and 3, rows of A and out are; with 3 and 2, columns of B and out; with 2 and 2, columns of A "
      "and rows of B, and out has rank 3. Group g has the rows, or columns, from offsets[g-1] to offsets[g]. With "
      "`counts`, A, B and out have rank 3, and group g uses the first counts[g] rows of A[g] and out[g]. Without "
      "either, A, B and out are lists of matrices of any shapes. Arrays are those that GemmArguments takes. What "
      "belongs to no group is not written.")
      .def("__init__", &make_grouped, nb::arg("A"), nb::arg("B"), nb::arg("out"),
           nb::arg("accumulator_type") = nb::none(), nb::arg("epilogue") = nb::none(), nb::kw_only(),
           nb::arg("offsets") = nb::none(), nb::arg("counts") = nb::none(), nb::arg("extents") = nb::none(),
           nb::arg("leading_dimensions") = nb::none(), nb::arg("mode") = nb::none(),
           nb::arg("expected_sizes") = nb::none(), nb::arg("C") = nb::none(), nb::arg("alpha") = 1.0,
           nb::arg("beta") = 0.0, nb::arg("math") = nb::none(), nb::arg("tensors") = nb::none(),
           "`mode` is \"ragged_m\", \"ragged_n\", \"ragged_k\", \"masked_m\", \"masked_n\" or \"masked_k\"; the "
           "default follows from the ranks of A and B, and is \"masked_m\" with `counts`. `expected_sizes`, the mean "
           "size of a group or a sequence with the size of each, is what the host expects; it only concerns which "
           "kernel ranks first, and which tuning record applies. `extents`, of shape (groups, 3), and "
           "`leading_dimensions`, of shape (groups, 4), are int32 arrays with m, n and k of each group and the leading "
           "dimensions of A, B, C and out, which are then each a PointerArray whose shape is the largest. Tensors of "
           "the epilogue that have a stacked mode "
           "are "
           "stacked as out is; of the others there is one for all groups, or one for each: a row is (n,) or "
           "(groups, n), a single number (1,) or (groups,). The other parameters are as in GemmArguments. Values of "
           "`offsets` and `counts` outside of the arrays are clamped. Raises InvalidArgument, with the number that is "
           "wrong, if the arrays do not fit together.")
      .def_prop_ro("A", operand(&op::Gemm::a))
      .def_prop_ro("B", operand(&op::Gemm::b))
      .def_prop_ro("C", operand(&op::Gemm::c))
      .def_prop_ro("out", operand(&op::Gemm::d))
      .def_prop_ro(
          "ends", [](const GroupedGemmArguments& self) { return Operand{self.grouped().ends}; },
          "`offsets` or `counts`.")
      .def_prop_ro("mode", [](const GroupedGemmArguments& self) { return op::name(self.grouped().mode); })
      .def_prop_ro("groups", [](const GroupedGemmArguments& self) { return self.grouped().groups(); })
      .def_prop_ro("tensors",
                   [](const GroupedGemmArguments& self) -> nb::typed<nb::dict, nb::str, Operand> {
                     nb::dict found;
                     for (const op::NamedTensor& each : self.grouped().gemm.tensors)
                       found[nb::cast(each.name)] = Operand{each.tensor};
                     return found;
                   })
      .def_prop_ro(
          "m", [](const GroupedGemmArguments& self) { return self.grouped().gemm.m(); },
          "As n and k, the extent of the arrays: the sum of all groups if they are stacked along it.")
      .def_prop_ro("n", [](const GroupedGemmArguments& self) { return self.grouped().gemm.n(); })
      .def_prop_ro("k", [](const GroupedGemmArguments& self) { return self.grouped().gemm.k(); })
      .def_prop_ro("alpha", [](const GroupedGemmArguments& self) { return self.grouped().gemm.alpha; })
      .def_prop_ro("beta", [](const GroupedGemmArguments& self) { return self.grouped().gemm.beta; })
      .def_prop_ro("accumulator_type", [](const GroupedGemmArguments& self) { return self.grouped().gemm.accumulator; })
      .def_prop_ro("math", [](const GroupedGemmArguments& self) { return op::name(self.grouped().gemm.math); })
      .def_prop_ro("epilogue", [](const GroupedGemmArguments& self) { return self.grouped().gemm.epilogue; })
      .def("_check_ends", &check_ends,
           "Raises InvalidArgument for offsets or counts in host memory that lie outside of the arrays or decrease.")
      .def("__repr__", [](const GroupedGemmArguments& self) {
        const op::Gemm& gemm = self.grouped().gemm;
        return fmt::format(
            "GroupedGemmArguments(A={}, B={}, out={}, mode='{}', groups={}, accumulator_type={}, "
            "epilogue='{}')",
            describe(gemm.a), describe(gemm.b), describe(gemm.d), op::name(self.grouped().mode),
            self.grouped().groups(), name(gemm.accumulator), op::signature(gemm.epilogue));
      });
}

/// The parts that split-K in parallel mode has, and the workspace for them.
op::SplitK split(const GemmArguments& gemm, std::int64_t parts, std::uint64_t workspace) {
  return op::split_k(gemm.gemm(), parts, workspace).value_or_throw();
}

nb::typed<nb::tuple, nb::typed<nb::tuple, int, int, int>, DType> split_k_workspace(const GemmArguments& gemm,
                                                                                   std::int64_t parts) {
  const op::Tensor sums = split(gemm, parts, 0).reduction.parts;
  return nb::make_tuple(tuple_of(sums.shape), sums.dtype);
}

nb::typed<nb::tuple, nb::typed<nb::list, GemmArguments>, ReduceSplitKArguments> split_k(const GemmArguments& gemm,
                                                                                        std::int64_t parts,
                                                                                        nb::handle workspace) {
  ArgumentsReader reader{.streams = gemm.streams, .owners = gemm.owners, .lent = gemm.lent, .matrices = {}};
  const op::Tensor memory = reader.read(workspace, true, "workspace");
  const op::SplitK problems = split(gemm, parts, memory.address);
  std::int64_t elements = 1;
  for (int mode = 0; mode < memory.shape.rank(); ++mode) elements *= memory.shape[mode];
  const std::int64_t bytes_given = elements * bytes(memory.dtype);
  if (op::span_bytes(memory) != bytes_given) throw InvalidArgument("the elements of workspace must be contiguous");
  if (bytes_given < problems.workspace_bytes()) {
    throw InvalidArgument(fmt::format("workspace must have {} bytes, got {}", problems.workspace_bytes(), bytes_given));
  }
  if (memory.device != gemm.memory()) {
    throw InvalidArgument(fmt::format("workspace is on {}, but out is on {}", op::to_string(memory.device),
                                      op::to_string(gemm.memory())));
  }
  const auto arguments = [&](op::Problem problem) {
    return OperationArguments{make_call(std::move(problem)), reader.streams, reader.owners, reader.lent};
  };
  nb::list gemms;
  for (const op::Gemm& each : problems.gemms) gemms.append(GemmArguments{arguments(each)});
  return nb::make_tuple(gemms, ReduceSplitKArguments{arguments(problems.reduction)});
}

void bind_reduce_split_k(nb::module_& module) {
  const auto operand = [](op::Tensor op::ReduceSplitK::*which) {
    return [which](const ReduceSplitKArguments& self) { return Operand{self.reduction().*which}; };
  };
  nb::class_<ReduceSplitKArguments, OperationArguments>(
      module, "ReduceSplitKArguments",
      "out = epilogue(sum of parts over its first mode, C): the second half of split-K in parallel mode. parts has the "
      "shape (count, m, n), or (m, n) for one part; C and out have (m, n). The parts are added in ascending order, in "
      "the accumulator type. Arrays are those that GemmArguments takes.")
      .def("__init__", &make_reduction, nb::arg("parts"), nb::arg("out"), nb::arg("accumulator_type") = nb::none(),
           nb::arg("epilogue") = nb::none(), nb::kw_only(), nb::arg("C") = nb::none(), nb::arg("alpha") = 1.0,
           nb::arg("beta") = 0.0, nb::arg("tensors") = nb::none(),
           "`parts` is float64, float32, float16, bfloat16 or int32. `accumulator_type` is float64 for float64, int32 "
           "for int32, else float32. `epilogue` and `tensors` are as in GemmArguments, with the sum in place of A @ B; "
           "by default it is alpha * sum + beta * C. Raises InvalidArgument, with the number that is wrong, if the "
           "arrays do not fit together.")
      .def_prop_ro("parts", operand(&op::ReduceSplitK::parts))
      .def_prop_ro("C", operand(&op::ReduceSplitK::c))
      .def_prop_ro("out", operand(&op::ReduceSplitK::d))
      .def_prop_ro(
          "count", [](const ReduceSplitKArguments& self) { return self.reduction().count(); }, "The number of parts.")
      .def_prop_ro("m", [](const ReduceSplitKArguments& self) { return self.reduction().m(); })
      .def_prop_ro("n", [](const ReduceSplitKArguments& self) { return self.reduction().n(); })
      .def_prop_ro("alpha", [](const ReduceSplitKArguments& self) { return self.reduction().alpha; })
      .def_prop_ro("beta", [](const ReduceSplitKArguments& self) { return self.reduction().beta; })
      .def_prop_ro("accumulator_type", [](const ReduceSplitKArguments& self) { return self.reduction().accumulator; })
      .def_prop_ro("epilogue", [](const ReduceSplitKArguments& self) { return self.reduction().epilogue; })
      .def("__repr__", [](const ReduceSplitKArguments& self) {
        const op::ReduceSplitK& reduction = self.reduction();
        return fmt::format("ReduceSplitKArguments(parts={}, out={}, accumulator_type={}, epilogue='{}')",
                           describe(reduction.parts), describe(reduction.d), name(reduction.accumulator),
                           op::signature(reduction.epilogue));
      });
  module.def(
      "split_k_workspace", &split_k_workspace, nb::arg("args"), nb::arg("parts"),
      "The shape (count, m, n) and the element type of the partial sums that split_k(args, parts, workspace) "
      "writes. count may be less than `parts`, so that each part of A and B is as aligned as the whole, and is 0 "
      "if A @ B is not read. Raises InvalidArgument for a batch.");
  module.def(
      "split_k", &split_k, nb::arg("args"), nb::arg("parts"), nb::arg("workspace"),
      "Split-K in parallel mode: splits K of the GEMM `args` into at most `parts` parts. Returns GEMMs that write "
      "partial sums to `workspace`, and the ReduceSplitKArguments that reduces them with the epilogue of `args` "
      "to its `out`. Run the GEMMs in any order, then the reduction, on one stream. Only the memory of "
      "`workspace` matters, which is where `out` is; split_k_workspace() has its shape and type.");
}

}  // namespace

op::Tensor ArgumentsReader::read(nb::handle array, bool is_written, const char* role) {
  ReadTensor read = read_tensor(array, role);
  if (is_written && read.is_read_only) throw InvalidArgument(fmt::format("{} is read-only", role));
  streams.add(read.stream);
  if (read.stream.kind == StreamSource::Kind::lent) lent.push_back(read.owner);
  owners.push_back(std::move(read.owner));
  return read.tensor;
}

nb::object arguments_of(const op::Problem& problem, bool is_for_gemm) {
  if (is_for_gemm && !std::holds_alternative<op::Gemm>(problem))
    return arguments_of(op::to_gemm(op::view(problem).value_or_throw()), true);
  OperationArguments arguments{.call = engine::Call(problem), .streams = {}, .owners = {}, .lent = {}};
  if (is_for_gemm) return nb::cast(GemmArguments{std::move(arguments)});
  return nb::cast(std::move(arguments));
}

void bind_arguments(nb::module_& module) {
  module.def("_default_output", &op::default_output, nb::arg("a"));
  bind_operand(module);
  bind_epilogue(module);
  nb::class_<OperationArguments>(
      module, "OperationArguments",
      "The arrays and scalars of one call of an Operation. GemmArguments is the class for GEMMs.")
      .def_prop_ro("operation", [](const OperationArguments& self) { return op::operation_name(self.problem()); })
      .def_prop_ro(
          "operands",
          [](const OperationArguments& self) -> nb::typed<nb::dict, nb::str, Operand> {
            nb::dict found;
            for (const op::ConstOperand& operand : op::operands(self.problem()))
              found[nb::cast(operand.name)] = Operand{*operand.tensor};
            return found;
          },
          "The tensors by name.")
      .def_prop_rw(
          "_refusal", [](const OperationArguments& self) { return self.refusal; },
          [](OperationArguments& self, const std::string& reason) { self.refusal = reason; },
          "Why kernels refuse these arguments whatever their tensors are, or None.");
  const auto operand = [](op::Tensor op::Gemm::*which) {
    return [which](const GemmArguments& self) { return Operand{self.gemm().*which}; };
  };
  nb::class_<GemmArguments, OperationArguments>(
      module, "GemmArguments",
      "out = epilogue(A @ B, C), for arrays of the shapes (m, k), (k, n) and (m, n), or batches of them with the batch "
      "first. Arrays may be of PyTorch, NumPy, CuPy or JAX, or any object with DLPack or an array interface. They are "
      "referred to and not copied. Instead of a batch, A, B, C and out may each be a list or tuple of matrices that "
      "are "
      "alike, or a PointerArray; all of them are computed in one launch.")
      .def(
          "__init__", &make_arguments, nb::arg("A"), nb::arg("B"), nb::arg("out"),
          nb::arg("accumulator_type") = nb::none(), nb::arg("epilogue") = nb::none(), nb::kw_only(),
          nb::arg("C") = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0, nb::arg("math") = nb::none(),
          nb::arg("tensors") = nb::none(), nb::arg("interleaved") = "",
          "`accumulator_type` is the type of the accumulators: by default float64 for float64, int32 for 8-bit "
          "integers, "
          "else float32. `epilogue` is a str (a name or a text), an Epilogue or an EpilogueArguments; by default it is "
          "alpha * A @ B + beta * C. `math` says how the products are computed: \"multiply_add\" (default), "
          "\"multiply_add_tf32\", \"multiply_add_fast_f32\" (3xTF32), ... `tensors` has the arrays of the epilogue by "
          "name. `interleaved` has the letters of the operands of a GEMM of 8-bit integers that are interleaved, D for "
          "out: A has shape (k/32, m, 32), B (k/32, n, 32), C and out (n/32, m, 32), or these with the batch first. "
          "Raises InvalidArgument, with the number that is wrong, if the arrays do not fit together.")
      .def_prop_ro("A", operand(&op::Gemm::a))
      .def_prop_ro("B", operand(&op::Gemm::b))
      .def_prop_ro("C", operand(&op::Gemm::c))
      .def_prop_ro("out", operand(&op::Gemm::d))
      .def_prop_ro("tensors",
                   [](const GemmArguments& self) -> nb::typed<nb::dict, nb::str, Operand> {
                     nb::dict found;
                     for (const op::NamedTensor& each : self.gemm().tensors)
                       found[nb::cast(each.name)] = Operand{each.tensor};
                     return found;
                   })
      .def_prop_ro("m", [](const GemmArguments& self) { return self.gemm().m(); })
      .def_prop_ro("n", [](const GemmArguments& self) { return self.gemm().n(); })
      .def_prop_ro("k", [](const GemmArguments& self) { return self.gemm().k(); })
      .def_prop_ro("batch", [](const GemmArguments& self) { return self.gemm().batch(); })
      .def_prop_ro("alpha", [](const GemmArguments& self) { return self.gemm().alpha; })
      .def_prop_ro("beta", [](const GemmArguments& self) { return self.gemm().beta; })
      .def_prop_ro("accumulator_type", [](const GemmArguments& self) { return self.gemm().accumulator; })
      .def_prop_ro("math", [](const GemmArguments& self) { return op::name(self.gemm().math); })
      .def_prop_ro("epilogue", [](const GemmArguments& self) { return self.gemm().epilogue; })
      .def("__repr__", [](const GemmArguments& self) {
        return fmt::format("GemmArguments(A={}, B={}, out={}, accumulator_type={}, epilogue='{}')",
                           describe(self.gemm().a), describe(self.gemm().b), describe(self.gemm().d),
                           name(self.gemm().accumulator), op::signature(self.gemm().epilogue));
      });
  bind_grouped(module);
  bind_conv2d(module);
  bind_contraction(module);
  bind_reduce_split_k(module);
}

}  // namespace tilewright::python
