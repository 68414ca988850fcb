// A copy of a tensor whose modes lie in another order in memory: to[i, j, ...] = from[i, j, ...].
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Both tensors have the same shape and element type; only their strides differ. A mode of stride 0 in both repeats its
/// elements, which are copied once.
struct Permutation {
  Tensor from, to;

  bool operator==(const Permutation&) const = default;
};

/// A mode of a permutation, or several that follow each other in both tensors.
struct PermutedMode {
  std::int64_t extent = 1;
  std::int64_t from = 0, to = 0;  // strides in elements

  bool operator==(const PermutedMode&) const = default;
};

/// The modes that a copy has to walk, sorted by their strides in `to`: modes of extent 1 and those that repeat are left
/// out, and modes that follow each other in both tensors are merged.
std::vector<PermutedMode> permuted_modes(const Permutation& permutation);

/// The number of elements that are copied.
std::int64_t elements(const Permutation& permutation);

}  // namespace tilewright::op
