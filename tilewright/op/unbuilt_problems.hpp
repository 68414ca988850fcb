// Problems that the library can state and has no kernels for yet: validate() refuses them by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {

/// Many GEMMs of different extents in one launch.
struct GroupedGemm {
  std::vector<Gemm> groups;

  bool operator==(const GroupedGemm&) const = default;
};

/// A two-dimensional convolution: N,H,W,C with K,R,S,C/groups gives N,P,Q,K.
struct Conv2d {
  enum class Kind : std::uint8_t { forward, input_gradient, weight_gradient };

  Kind kind = Kind::forward;
  Tensor activation, filter, output;
  std::array<int, 2> padding{0, 0}, stride{1, 1}, dilation{1, 1};
  int groups = 1;
  Epilogue epilogue = linear_combination();

  bool operator==(const Conv2d&) const = default;
};

/// D = epilogue(sum over the modes that A and B share and D lacks of A * B, C). A letter names each mode of a tensor.
struct Contraction {
  Tensor a, b, c, d;
  std::string modes_a, modes_b, modes_d;
  Epilogue epilogue = linear_combination();

  bool operator==(const Contraction&) const = default;
};

}  // namespace tilewright::op
