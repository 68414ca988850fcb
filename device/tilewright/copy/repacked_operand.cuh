// Repacking: an operand whose alignment TMA does not support, or whose major mode wgmma does not support, is first
// copied to the workspace, and TMA loads tiles of the copy. All threads of the grid copy a part, and then wait until
// the copy is complete.
#pragma once

#include "tilewright/copy/repacked_lines.cuh"
#include "tilewright/copy/transposed_lines.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Source; if it is repacked, also kTransposes and the members that RepackedLines or TransposedLines
/// use.
template <class Operand, bool kRepacks = kIsRepacked<typename Operand::Source>>
class RepackedOperand : public Select<Operand::kTransposes, TransposedLines<Operand>, RepackedLines<Operand>> {
  using Lines = Select<Operand::kTransposes, TransposedLines<Operand>, RepackedLines<Operand>>;

 public:
  using Lines::Lines;
};

/// The empty specialization for an operand that is not repacked.
template <class Operand>
class RepackedOperand<Operand, false> {
 public:
  static constexpr int kWarpBytes = 0;

  template <class Source>
  __device__ __forceinline__ RepackedOperand(const Source&, char*, int, int, int) {}
  __device__ __forceinline__ void copy(uint32_t, uint32_t, uint32_t) const {}
};

}  // namespace tilewright
