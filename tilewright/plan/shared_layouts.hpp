// Where kernels keep the tiles of A and B in shared memory, for people who look at a plan.
#pragma once

#include <string>
#include <vector>

#include "tilewright/layout/swizzle.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

/// The tile of one operand, of one stage.
struct SharedLayout {
  std::string operand{};  // of the caller's problem: "A" or "B"
  /// (line, element of the line) -> offset. A line is contiguous in global memory, that is along K if `is_k_major`,
  /// else along M or N.
  layout::ComposedLayout layout{};
  bool is_k_major = true;
  int unit_bits = 16;  // of the unit of the offsets: bits of an element, or 8
};

/// The layouts of A and B in a kernel of this design. Empty if the family has no plan for this signature, or does not
/// keep its operands in shared memory.
std::vector<SharedLayout> shared_layouts(const op::GemmSignature& signature, const Design& design);

}  // namespace tilewright::plan
