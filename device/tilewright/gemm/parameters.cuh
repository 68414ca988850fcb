// The one by-value argument of every GEMM kernel.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// D is row-major: a column-major D is computed as the transposed problem. Fields in the order that the host packs
/// them.
template <class EpilogueScalars>
struct GemmParameters {
  const void* a;
  const void* b;
  const void* c;
  void* d;
  int64_t lda, ldb, ldc, ldd;  // elements
  int m, n, k;
  int tiles_m, tiles_n;
  EpilogueScalars epilogue;
};

}  // namespace tilewright
