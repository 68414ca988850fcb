// Repacking: an operand that TMA cannot load, or that wgmma cannot read as it lies, is first copied to the workspace,
// and TMA loads tiles of the copy. All threads of the grid take part, and all wait for the copy to be complete.
#pragma once

#include "tilewright/copy/repacked_lines.cuh"
#include "tilewright/copy/transposed_lines.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Source and, where that is RepackedMatrix, kTransposes and what RepackedLines or TransposedLines ask for.
template <class Operand, bool kIsRepacked = is_same<typename Operand::Source, RepackedMatrix>>
class RepackedOperand : public Select<Operand::kTransposes, TransposedLines<Operand>, RepackedLines<Operand>> {
  using Lines = Select<Operand::kTransposes, TransposedLines<Operand>, RepackedLines<Operand>>;

 public:
  using Lines::Lines;
};

/// An operand that is not repacked: nothing to do.
template <class Operand>
class RepackedOperand<Operand, false> {
 public:
  static constexpr int kWarpBytes = 0;

  template <class Source>
  __device__ __forceinline__ RepackedOperand(const Source&, char*, int, int, int) {}
  __device__ __forceinline__ void copy(uint32_t, uint32_t, uint32_t) const {}
};

}  // namespace tilewright
