// A short notation for designs of sm90_gemm that is independent of the problem's types.
#pragma once

#include <array>
#include <ostream>
#include <utility>

#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::conformance {

/// A design; `tile` is that of the problem as the kernel computes it (after swapping operands), and `k_bytes` the
/// length of its rows along K.
struct DesignCase {
  const char* name;
  std::array<int, 2> tile;
  int consumers;
  int stages;
  std::array<int, 2> cluster{1, 1};
  plan::Schedule schedule = plan::Schedule::cooperative;
  bool swaps = false;
  int split_k = 1;
  int k_bytes = 128;
};
inline std::ostream& operator<<(std::ostream& out, const DesignCase& tested) { return out << tested.name; }

inline plan::Sm90GemmDesign design_of(const DesignCase& tested, const op::GemmSignature& signature) {
  const plan::TileShape tile{tested.tile[0], tested.tile[1], tested.k_bytes / bytes(signature.a.element)};
  plan::Sm90GemmDesign design = plan::sm90_design({tile, tested.stages, {4 * tested.consumers, 1}}, tested.cluster);
  design.schedule = tested.schedule;
  design.swaps_operands = tested.swaps;
  design.split_k = tested.split_k;
  return tested.swaps != (signature.d.layout == plan::kColumn) ? plan::transposed(design) : design;
}

}  // namespace tilewright::conformance
