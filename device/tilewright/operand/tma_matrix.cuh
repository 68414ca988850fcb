// A matrix in global memory that TMA reads or writes.
#pragma once

#include "tilewright/ptx/tma.cuh"

namespace tilewright {

/// A tensor map of three modes: contiguous, strided, batch.
using TmaMatrix = ptx::TensorMap;

/// The tensor map through which the kernel loads an operand.
__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaMatrix& matrix) { return matrix; }

}  // namespace tilewright
