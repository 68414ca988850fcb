// The epilogue of a problem with a bound on the error of each value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reference/accumulators.hpp"
#include "tilewright/op/reference/bounded_value.hpp"

namespace tilewright::op {

/// Evaluates the graph node by node with an error bound for each value (running error analysis, Higham section 3.3).
class BoundedEpilogue {
 public:
  /// @pre the problem outlives this object
  explicit BoundedEpilogue(const GemmView& gemm);

  /// The value of every node, at each of the columns that the element (row, column) of D is computed from. `one` is the
  /// single-matrix problem.
  const std::array<std::vector<BoundedValue>, 2>& evaluate(const GemmView& one, std::int64_t row, std::int64_t column,
                                                           const Dots& dots);

 private:
  /// An element of A*B for which the graph is evaluated.
  struct ProductElement {
    const GemmView& one;
    std::int64_t row, column;
    std::size_t of_pair;  // 1 for the second column of a pair
    BoundedValue accumulated;
  };

  /// A value that is converted to the compute type.
  BoundedValue exact(double value) const;
  BoundedValue constant_leaf(const EpilogueNode& node) const;
  BoundedValue node(std::size_t index, const ProductElement& element) const;

  const GemmView& gemm_;
  Roundoff unit_;
  std::size_t columns_ = 1;  // columns of A*B for each column of D
  std::vector<BoundedValue> leaves_;
  std::array<std::vector<BoundedValue>, 2> values_;  // of each column and node
  bool reads_product_ = false;
  bool reads_source_ = false;
};

}  // namespace tilewright::op
