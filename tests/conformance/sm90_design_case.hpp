// A short notation for designs of sm90_gemm that is independent of the problem's types.
#pragma once

#include <array>
#include <ostream>
#include <utility>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::conformance {

/// A design; `tile` is that of the problem as the kernel computes it (after swapping operands). K tiles have 128 bytes.
struct DesignCase {
  const char* name;
  std::array<int, 2> tile;
  int consumers;
  int stages;
  std::array<int, 3> cluster{1, 1, 1};
  plan::Schedule schedule = plan::Schedule::cooperative;
  bool swaps = false;
  int split_k = 1;
};
inline std::ostream& operator<<(std::ostream& out, const DesignCase& tested) { return out << tested.name; }

inline plan::Design design_of(const DesignCase& tested, const op::GemmSignature& description) {
  const int element_bytes = bytes(description.a.element);
  plan::Design design = plan::tensor_design(
      description, {64, tested.tile[1], 32 / element_bytes},
      {{tested.tile[0], tested.tile[1], 128 / element_bytes}, tested.stages, {4 * tested.consumers, 1, 1}},
      plan::kSm90);
  design.tile.cluster_shape = tested.cluster;
  design.tile.schedule = tested.schedule;
  design.tile.swaps_operands = tested.swaps;
  design.split_k = tested.split_k;
  if (tested.swaps != (description.d.layout == plan::kColumn)) {
    std::swap(design.tile.threadblock_shape[0], design.tile.threadblock_shape[1]);
    std::swap(design.tile.warp_count[0], design.tile.warp_count[1]);
    std::swap(design.tile.cluster_shape[0], design.tile.cluster_shape[1]);
  }
  return design;
}

}  // namespace tilewright::conformance
