// Operands that stay in the stages of a ring from one tile to the next.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Tells the producer of a ring which tiles find an operand in their stages. If the steps of a tile divide the stages
/// of the ring, each stage has the same step of every tile. Once all stages have been filled for tiles that need the
/// same part of an operand, that part is not loaded again until another one is needed. The operand must have a place of
/// its own in a stage, which nothing else overwrites.
template <int kStages>
class KeptOperand {
 public:
  /// `steps` is the number of stages of a tile, at least 1.
  __device__ __forceinline__ explicit KeptOperand(int steps)
      : fills_(kStages % steps == 0 ? kStages / steps : 0x7fffffff) {}

  /// Begins the next tile, which needs the part at `mn` of matrix `batch`. Returns whether all its stages have it.
  __device__ __forceinline__ bool begin(int mn, int batch) {
    if (mn != mn_ || batch != batch_) {
      mn_ = mn;
      batch_ = batch;
      tiles_ = 0;
    }
    if (tiles_ == fills_) return true;
    ++tiles_;
    return false;
  }

 private:
  int fills_;      // tiles that fill the ring
  int tiles_ = 0;  // tiles that needed the same part, up to fills_
  int mn_ = -1, batch_ = 0;
};

}  // namespace tilewright
