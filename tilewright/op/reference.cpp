#include "tilewright/op/reference.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "tilewright/op/fill.hpp"
#include "tilewright/op/reference/checker.hpp"
#include "tilewright/op/reference/matrix_of_batch.hpp"
#include "tilewright/op/reference/operand_element.hpp"
#include "tilewright/op/reference/reduction_results.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kExhaustiveProducts = std::int64_t{1} << 31;
constexpr std::int64_t kExhaustiveAdditions = std::int64_t{1} << 26;
constexpr std::int64_t kSampledElements = 4096;
constexpr std::int64_t kSampledResults = 2;  // results checked per reduction; each needs a row or a column of D

EpilogueElement element_at(const GemmView& gemm, std::int64_t row, std::int64_t column, double accumulator) {
  EpilogueElement element{.accumulator = accumulator,
                          .source = gemm.reads_source ? load(gemm.c, row, column) : 0.0,
                          .alpha = gemm.alpha,
                          .beta = gemm.beta,
                          .row = static_cast<double>(gemm.first_row + row),
                          .column = static_cast<double>(gemm.first_column + column)};
  for (const EpilogueNode* node : gemm.epilogue->tensors())
    element.tensors.push_back(tensor_element(gemm, *node, row, column));
  return element;
}

void store_expected(const GemmView& gemm, const Accumulators& accumulators) {
  for (const std::int64_t index : computed_matrices(gemm)) {
    const MatrixOfBatch matrix(gemm, index);
    const GemmView& one = matrix.view();
    auto reduced =
        reduction_results<double>(one, [&](Reduction reduction) { return identity(reduction, one.epilogue->compute); });
    accumulators.for_each(one, [&](std::int64_t row, std::int64_t column, const Dots& dots) {
      const std::int64_t columns = one.epilogue->columns_per_element();
      std::array<EpilogueElement, 2> elements;
      for (std::int64_t c = 0; c < columns; ++c) {
        elements[static_cast<std::size_t>(c)] =
            element_at(one, row, column * columns + c, accumulator(one, dots[static_cast<std::size_t>(c)]).value);
      }
      const std::array<std::vector<double>, 2> values =
          columns == 2 ? evaluate_pair(*one.epilogue, elements)
                       : std::array<std::vector<double>, 2>{evaluate_nodes(*one.epilogue, elements[0])};
      store(one.d, row, column, values[0][static_cast<std::size_t>(one.epilogue->node_of_d())]);
      for (const EpilogueOutput& output : one.epilogue->outputs) {
        if (output.reduction != Reduction::none) continue;
        for (std::int64_t c = 0; c < columns; ++c) {
          store(one.tensor(output.label), row, column * columns + c,
                values[static_cast<std::size_t>(c)][static_cast<std::size_t>(output.node)]);
        }
      }
      for (ReductionResults<double>& each : reduced) {
        double& result = each.at(row, column);
        result = reduce(*one.epilogue, each.output().reduction, result,
                        values[0][static_cast<std::size_t>(each.output().node)]);
      }
    });
    for (const ReductionResults<double>& each : reduced) {
      each.for_each(
          [&](std::int64_t row, std::int64_t column, double value) { store(each.tensor(), row, column, value); });
    }
  }
}

}  // namespace

void reference(const GemmView& gemm) { store_expected(gemm, ProductAccumulators()); }

void reference(const ReduceSplitK& reduction) { store_expected(outputs_view(reduction), PartAccumulators(reduction)); }

std::string describe_worst(const Comparison& comparison) {
  const WorstElement& worst = comparison.worst;
  const std::string batch = comparison.batch == 1 ? "" : fmt::format("{},", worst.batch);
  return fmt::format("{}[{}{},{}] is {}, expected {} within {:.3g}", worst.tensor, batch, worst.row, worst.column,
                     worst.actual, worst.expected, worst.bound);
}

std::string to_string(const Comparison& comparison) {
  if (comparison.outside != 0) {
    return fmt::format("{} of {} elements wrong; first: {}", comparison.outside, comparison.checked,
                       describe_worst(comparison));
  }
  const std::string count = comparison.checked == comparison.elements
                                ? fmt::format("{} elements", comparison.checked)
                                : fmt::format("{} of {} elements, sampled,", comparison.checked, comparison.elements);
  if (comparison.is_exact()) return fmt::format("{} equal the reference bit for bit", count);
  return fmt::format("{} within the error bound ({} exact, largest error {:.3g})", count, comparison.equal,
                     comparison.max_error);
}

namespace {

std::vector<Place> sampled_places(const GemmView& gemm, std::uint64_t seed) {
  std::vector<Place> places;
  const std::vector<std::int64_t> matrices = nonempty_matrices(gemm);
  if (matrices.empty()) return places;
  std::array<std::int32_t, 3> drawn{};
  const Tensor draw = matrix(drawn.data(), DType::s32, 1, 3);
  for (std::int64_t i = 0; i < kSampledElements; ++i) {
    fill_integers(draw, 0, std::numeric_limits<std::int32_t>::max(), seed + static_cast<std::uint64_t>(i));
    const std::int64_t index = matrices[static_cast<std::size_t>(drawn[2]) % matrices.size()];
    const DExtents extents = d_extents(gemm, index);
    places.push_back({index, drawn[0] % extents.rows, drawn[1] % extents.columns});
  }
  return places;
}

Comparison nothing_checked(const GemmView& gemm) {
  Comparison comparison;
  comparison.batch = gemm.batch();
  if (gemm.groups != GroupedMode::none) {
    for (const std::int64_t index : nonempty_matrices(gemm)) {
      const auto [rows, columns] = d_extents(gemm, index);
      comparison.elements += rows * columns;
      for (const EpilogueOutput& output : gemm.epilogue->outputs) {
        comparison.elements += (output.broadcast.along_m ? rows : 1) *
                               (output.broadcast.along_n ? columns * gemm.epilogue->columns_per_element() : 1);
      }
    }
    return comparison;
  }
  comparison.elements = gemm.batch() * gemm.m() * gemm.d_columns();
  for (const EpilogueOutput& output : gemm.epilogue->outputs) {
    const Tensor& tensor = gemm.tensor(output.label);
    comparison.elements += gemm.batch() * tensor.rows() * tensor.columns();
  }
  return comparison;
}

// Checks all elements, or samples drawn from `seed`.
Comparison compare_with(const GemmView& gemm, const Accumulators& accumulators, bool is_exhaustive,
                        std::uint64_t seed) {
  Comparison comparison = nothing_checked(gemm);
  if (gemm.is_empty()) return comparison;
  Checker checker(gemm, accumulators, comparison);
  if (is_exhaustive) {
    for (const std::int64_t index : computed_matrices(gemm))
      checker.check_all(MatrixOfBatch(gemm, index).view(), index);
    return comparison;
  }
  const std::vector<Place> places = sampled_places(gemm, seed);
  checker.check_elements(gemm, places);
  for (const EpilogueOutput& output : gemm.epilogue->outputs) {
    if (output.reduction != Reduction::none && output.broadcast != kSingle)
      checker.check_results(gemm, output, std::span(places).first(kSampledResults));
  }
  return comparison;
}

}  // namespace

Comparison compare(const GemmView& gemm, std::uint64_t seed) {
  return compare_with(gemm, ProductAccumulators(), operations(gemm) / 2.0 <= static_cast<double>(kExhaustiveProducts),
                      seed);
}

Comparison compare(const ReduceSplitK& reduction, std::uint64_t seed) {
  const bool is_exhaustive = operations(reduction) <= static_cast<double>(kExhaustiveAdditions);
  return compare_with(outputs_view(reduction), PartAccumulators(reduction), is_exhaustive, seed);
}

Comparison compare_at(const GemmView& gemm, std::span<const Place> places) {
  Comparison comparison = nothing_checked(gemm);
  Checker(gemm, ProductAccumulators(), comparison).check_elements(gemm, places);
  return comparison;
}

Comparison compare_results_at(const GemmView& gemm, std::string_view label, std::span<const Place> places) {
  const auto output = std::ranges::find(gemm.epilogue->outputs, label, &EpilogueOutput::label);
  TILEWRIGHT_CHECK(output != gemm.epilogue->outputs.end() && output->reduction != Reduction::none,
                   "'{}' is not a reduction", label);
  Comparison comparison = nothing_checked(gemm);
  Checker(gemm, ProductAccumulators(), comparison).check_results(gemm, *output, places);
  return comparison;
}

}  // namespace tilewright::op
