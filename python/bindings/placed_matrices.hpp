// The places in memory of the matrices in lists, which the library sees only as arrays of addresses.
#pragma once

#include <string>
#include <vector>

#include "tilewright/op/tensor.hpp"

namespace tilewright::python {

/// A matrix of a list, or an operand that is one array.
struct PlacedMatrix {
  static constexpr int kWhole = -1;

  const char* role = "";  // "A", "out"
  int index = kWhole;     // in the list
  op::Tensor tensor;
  bool is_written = false;
};

/// Refuses matrices of output lists that have elements in common with each other or with an input. C[i] may be out[i].
/// Pairs of operands that are one array each are not compared. Matrices may lie between each other's lines, as slices
/// of the columns of one array do. @throws InvalidArgument with both names
void check_apart(const std::vector<PlacedMatrix>& matrices);

}  // namespace tilewright::python
