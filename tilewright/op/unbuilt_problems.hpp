// Problems that can be stated but have no kernels yet: validate() refuses them by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {

/// A two-dimensional convolution of an NHWC activation with a (K, R, S, C/groups) filter to an NPQK output.
struct Conv2d {
  enum class Kind : std::uint8_t { forward, input_gradient, weight_gradient };

  Kind kind = Kind::forward;
  Tensor activation, filter, output;
  std::array<int, 2> padding{0, 0}, stride{1, 1}, dilation{1, 1};
  int groups = 1;
  Epilogue epilogue = linear_combination();

  bool operator==(const Conv2d&) const = default;
};

/// D = epilogue(A * B, C) summed over the modes that A and B share and D lacks. Each mode has a one-letter name.
struct Contraction {
  Tensor a, b, c, d;
  std::string modes_a, modes_b, modes_d;
  Epilogue epilogue = linear_combination();

  bool operator==(const Contraction&) const = default;
};

}  // namespace tilewright::op
