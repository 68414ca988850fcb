// Problems that can be stated but have no kernels yet: validate() refuses them by name.
#pragma once

#include <string>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {

/// D = epilogue(A * B, C) summed over the modes that A and B share and D lacks. Each mode has a one-letter name.
struct Contraction {
  Tensor a, b, c, d;
  std::string modes_a, modes_b, modes_d;
  Epilogue epilogue = linear_combination();

  bool operator==(const Contraction&) const = default;
};

}  // namespace tilewright::op
