// A matrix that TMA cannot load as it lies in global memory. The kernel repacks it: before the mainloop, all CTAs copy
// it to the workspace, in a layout that TMA can load.
#pragma once

#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

struct RepackedMatrix {
  TmaMatrix copy;     // the tensor map of the copy
  GlobalMatrix from;  // the caller's matrix
  int64_t offset;     // of the copy from the workspace's beginning, in bytes
  int64_t pitch;      // from one line of the copy to the next, in bytes; the matrices of a batch follow each other
};

__device__ __forceinline__ const TmaMatrix& tma_matrix(const RepackedMatrix& matrix) { return matrix.copy; }

}  // namespace tilewright
