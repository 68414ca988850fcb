// The results of an epilogue's reductions, while they are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reference/bounded_value.hpp"

namespace tilewright::op {

/// The results of a reduction for one matrix of the batch.
template <class Value>
class ReductionResults {
 public:
  ReductionResults(const EpilogueOutput& output, const Tensor& tensor, const Value& identity)
      : output_(&output),
        tensor_(tensor),
        values_(static_cast<std::size_t>(tensor.rows() * tensor.columns()), identity) {}

  const EpilogueOutput& output() const { return *output_; }
  const Tensor& tensor() const { return tensor_; }
  /// The result to which the element (row, column) of D contributes.
  Value& at(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>((output_->broadcast.along_m ? row : 0) * tensor_.columns() +
                                            (output_->broadcast.along_n ? column : 0))];
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t row = 0; row < tensor_.rows(); ++row) {
      for (std::int64_t column = 0; column < tensor_.columns(); ++column)
        visit(row, column, values_[static_cast<std::size_t>(row * tensor_.columns() + column)]);
    }
  }

 private:
  const EpilogueOutput* output_;
  Tensor tensor_;
  std::vector<Value> values_;
};

/// One object for each reduction of the epilogue. `identity` returns the value with which a reduction begins.
template <class Value>
std::vector<ReductionResults<Value>> reduction_results(const GemmView& one, const auto& identity) {
  std::vector<ReductionResults<Value>> all;
  for (const EpilogueOutput& output : one.epilogue->outputs) {
    if (output.reduction != Reduction::none)
      all.emplace_back(output, one.tensor(output.label), identity(output.reduction));
  }
  return all;
}

/// Combines two values of a reduction in the epilogue's compute type.
double reduce(const Epilogue& epilogue, Reduction reduction, double x, double y);

/// A reduction in any order, with its error bound: a sum of n terms adds (n + 2) * 2u * sum|x| to the errors of its
/// terms, like the accumulator.
class BoundedReduction {
 public:
  explicit BoundedReduction(double identity) : value_(identity) {}

  void add(const Epilogue& epilogue, Reduction reduction, const BoundedValue& x);
  BoundedValue result(const Epilogue& epilogue, Reduction reduction) const;

 private:
  double value_, magnitude_ = 0.0, error_ = 0.0;
  std::int64_t count_ = 0;
};

}  // namespace tilewright::op
