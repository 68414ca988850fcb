// What a launch of an sm90_gemm kernel is given.
#pragma once

#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// D is row-major: a column-major D is computed as the transposed problem. Fields in the order that the host packs
/// them. Tensor maps have three modes: contiguous, strided, batch.
template <class EpilogueScalars>
struct Sm90GemmParameters {
  ptx::TensorMap a, b, d;
  const void* c;
  int64_t ldc, batch_stride_c;  // elements
  int m, n, k, batches;
  int cluster_tiles_m, cluster_tiles_n;
  EpilogueScalars epilogue;
};

}  // namespace tilewright
