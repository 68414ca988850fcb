// What a launch of an sm90_gemm kernel is given.
#pragma once

#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A matrix, or a batch of them, that threads reach by address. Strides in elements.
struct GlobalMatrix {
  const void* address;
  int64_t ld, batch_stride;
};

/// A matrix that TMA reaches: three modes, contiguous, strided, batch.
using TmaMatrix = ptx::TensorMap;

/// Fields in the order that the host packs them. Plan::OperandA::Source, OperandB::Source and Output are each TmaMatrix
/// or GlobalMatrix: how the kernel reaches A, B and D. m, n and k are of the problem as computed, which may be the
/// transposed one.
template <class Plan, class EpilogueScalars>
struct Sm90GemmParameters {
  typename Plan::OperandA::Source a;
  typename Plan::OperandB::Source b;
  typename Plan::Output d;
  GlobalMatrix c;
  int m, n, k, batches;
  /// Of the tensor maps' batch mode, from one of D's matrices to the next: 0 where one matrix serves all, else 1.
  int batch_step_a, batch_step_b;
  int cluster_tiles_m, cluster_tiles_n;
  char* workspace;  // of kernels that slice K: counters, then partial sums; else null
  EpilogueScalars epilogue;
};

}  // namespace tilewright
