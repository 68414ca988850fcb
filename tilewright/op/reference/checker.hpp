// Compares what a kernel wrote with the reference, element by element.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reference.hpp"
#include "tilewright/op/reference/accumulators.hpp"
#include "tilewright/op/reference/bounded_epilogue.hpp"

namespace tilewright::op {

/// Adds elements of a kernel's outputs to a Comparison.
class Checker {
 public:
  /// @pre the arguments outlive this object
  Checker(const GemmView& gemm, const Accumulators& accumulators, Comparison& comparison)
      : epilogue_(gemm), accumulators_(accumulators), comparison_(comparison) {}

  /// Checks all elements and reductions of one matrix.
  void check_all(const GemmView& one, std::int64_t index);

  /// Checks the elements of D at `places`, and those at the same places in outputs that are not reduced.
  void check_elements(const GemmView& gemm, std::span<const Place> places);

  /// Checks the results of a reduction to which the elements at `places` contribute.
  void check_results(const GemmView& gemm, const EpilogueOutput& output, std::span<const Place> places);

 private:
  /// Checks one element of D and the elements at the same place in outputs that are not reduced. Returns the values of
  /// all nodes at the first column.
  const std::vector<BoundedValue>& check_element(const GemmView& one, const Place& at, const Dots& dots);
  void check_result(const GemmView& one, const EpilogueOutput& output, const Place& at);
  void record(std::string_view label, const OperandView& operand, const Place& at, const BoundedValue& expected);

  BoundedEpilogue epilogue_;
  const Accumulators& accumulators_;
  Comparison& comparison_;
};

}  // namespace tilewright::op
