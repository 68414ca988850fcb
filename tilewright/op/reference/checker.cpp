#include "tilewright/op/reference/checker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tilewright/op/fill.hpp"
#include "tilewright/op/reference/matrix_of_batch.hpp"
#include "tilewright/op/reference/operand_element.hpp"
#include "tilewright/op/reference/reduction_results.hpp"

namespace tilewright::op {
namespace {

double largest_finite(DType type) {
  switch (type) {
    case DType::f16:
      return 65504.0;
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::bf16:
      return 0x1.fep127;
    case DType::e4m3:
      return 448.0;
    case DType::e5m2:
      return 57344.0;
    default:
      return std::numeric_limits<float>::max();
  }
}

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

/// The bound after rounding to the stored type, which adds a relative error for a float and 1/2 for an integer.
double stored_bound(DType type, const BoundedValue& expected) {
  if (is_integer(type)) return expected.error + 0.5;
  return rounded(expected, roundoff(type)).error;
}

bool is_acceptable(DType type, double actual, const BoundedValue& expected, double bound) {
  if (std::isnan(expected.value)) return is_integer(type) ? actual == 0.0 : std::isnan(actual);
  if (std::isnan(actual)) return false;
  if (same(actual, round_to(type, expected.value))) return true;
  if (std::isinf(expected.value)) return false;
  if (std::isinf(actual)) {
    // An overflow is acceptable only if the bound exceeds the largest finite value of the same sign.
    return std::signbit(actual) == std::signbit(expected.value) &&
           std::fabs(expected.value) + bound >= largest_finite(type);
  }
  return std::fabs(actual - expected.value) <= bound;
}

/// Whether rounding `value` to the type has saturated.
bool is_saturated(DType type, double stored, double value) {
  if (is_fp8(type)) return std::fabs(value) > largest_finite(type);
  return is_integer(type) && std::fabs(stored - value) > 0.5;
}

void add_element(Comparison& comparison, DType type, double actual, const BoundedValue& expected, WorstElement place) {
  const double stored = round_to(type, expected.value);
  BoundedValue in_range = expected;
  if (is_saturated(type, stored, expected.value)) in_range.value = stored;
  const double bound = stored_bound(type, in_range);
  const double error = std::fabs(actual - in_range.value);
  ++comparison.checked;
  if (same(actual, stored)) ++comparison.equal;
  if (!same(actual, stored) && std::isfinite(error)) comparison.max_error = std::max(comparison.max_error, error);
  const bool outside = !is_acceptable(type, actual, in_range, bound);
  place.actual = actual;
  place.expected = in_range.value;
  place.bound = bound;
  // The worst element is the first one outside its bound; if there is none, the one closest to its bound.
  const auto closeness = [](const WorstElement& w) {
    return w.bound > 0.0 ? std::fabs(w.actual - w.expected) / w.bound : 0.0;
  };
  if (outside ? comparison.outside == 0 : comparison.outside == 0 && closeness(place) > closeness(comparison.worst)) {
    comparison.worst = place;
  }
  if (outside) ++comparison.outside;
}

}  // namespace

void Checker::check_all(const GemmView& one, std::int64_t index) {
  auto reduced = reduction_results<BoundedReduction>(
      one, [&](Reduction reduction) { return BoundedReduction(identity(reduction, one.epilogue->compute)); });
  accumulators_.for_each(one, [&](std::int64_t row, std::int64_t column, const Dots& dots) {
    const std::vector<BoundedValue>& values = check_element(one, {index, row, column}, dots);
    for (ReductionResults<BoundedReduction>& each : reduced) {
      each.at(row, column)
          .add(*one.epilogue, each.output().reduction, values[static_cast<std::size_t>(each.output().node)]);
    }
  });
  for (const ReductionResults<BoundedReduction>& each : reduced) {
    each.for_each([&](std::int64_t row, std::int64_t column, const BoundedReduction& result) {
      record(each.output().label, OperandView::of(each.tensor()), {index, row, column},
             result.result(*one.epilogue, each.output().reduction));
    });
  }
}

const std::vector<BoundedValue>& Checker::check_element(const GemmView& one, const Place& at, const Dots& dots) {
  const auto& values = epilogue_.evaluate(one, at.row, at.column, dots);
  record("D", one.d, at, values[0][static_cast<std::size_t>(one.epilogue->node_of_d())]);
  const std::int64_t columns = one.epilogue->columns_per_element();
  for (const EpilogueOutput& output : one.epilogue->outputs) {
    if (output.reduction != Reduction::none) continue;
    for (std::int64_t c = 0; c < columns; ++c) {
      record(output.label, OperandView::of(one.tensor(output.label)), {at.batch, at.row, at.column * columns + c},
             values[static_cast<std::size_t>(c)][static_cast<std::size_t>(output.node)]);
    }
  }
  return values[0];
}

void Checker::check_elements(const GemmView& gemm, std::span<const Place> places) {
  for (const Place& at : places) {
    const MatrixOfBatch one(gemm, at.batch);
    check_element(one.view(), at, accumulators_.at(one.view(), at.row, at.column));
  }
}

void Checker::check_results(const GemmView& gemm, const EpilogueOutput& output, std::span<const Place> places) {
  for (const Place& at : places) check_result(MatrixOfBatch(gemm, at.batch).view(), output, at);
}

void Checker::check_result(const GemmView& one, const EpilogueOutput& output, const Place& at) {
  const auto [along_m, along_n] = output.broadcast;
  BoundedReduction result(identity(output.reduction, one.epilogue->compute));
  for (std::int64_t row = along_m ? at.row : 0; row < (along_m ? at.row + 1 : one.m()); ++row) {
    for (std::int64_t column = along_n ? at.column : 0; column < (along_n ? at.column + 1 : one.n()); ++column) {
      const auto& values = epilogue_.evaluate(one, row, column, accumulators_.at(one, row, column));
      result.add(*one.epilogue, output.reduction, values[0][static_cast<std::size_t>(output.node)]);
    }
  }
  record(output.label, OperandView::of(one.tensor(output.label)),
         {at.batch, along_m ? at.row : 0, along_n ? at.column : 0}, result.result(*one.epilogue, output.reduction));
}

void Checker::record(std::string_view label, const OperandView& operand, const Place& at,
                     const BoundedValue& expected) {
  add_element(comparison_, operand.tensor.dtype, load(operand, at.row, at.column), expected,
              {std::string(label), at.batch, at.row, at.column, 0.0, 0.0, 0.0});
}

}  // namespace tilewright::op
