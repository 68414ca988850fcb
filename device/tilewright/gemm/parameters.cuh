// The struct that the kernels of simt_gemm and sm80_gemm take by value.
#pragma once

#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The problem as computed: a column-major D is computed as the transposed problem. plan/gemm_tile writes these fields;
/// the emitted text asserts their offsets. GroupsOfProblem is NoGroups, Groups or IndependentGroups. With groups,
/// m, n and k are the capacity, and `tiles` includes tiles that there may not be. MatrixA to MatrixD say how the
/// operands are reached: the leading dimension has no meaning unless the matrix is strided, and the batch stride of a
/// folded matrix is 0.
template <class EpilogueParameters, class GroupsOfProblem = NoGroups, class MatrixA = StridedMatrix,
          class MatrixB = StridedMatrix, class MatrixC = StridedMatrix, class MatrixD = StridedMatrix>
struct GemmParameters {
  [[no_unique_address]] MatrixParameters<MatrixA, 'A'> matrix_a;
  [[no_unique_address]] MatrixParameters<MatrixB, 'B'> matrix_b;
  [[no_unique_address]] MatrixParameters<MatrixC, 'C'> matrix_c;
  [[no_unique_address]] MatrixParameters<MatrixD, 'D'> matrix_d;
  [[no_unique_address]] GroupsOfProblem groups;
  /// The first matrix of each operand, or the array of its matrices' addresses: see operand/matrix_of_batch.cuh.
  const void* a;
  const void* b;
  const void* c;
  void* d;
  int64_t lda, ldb, ldc, ldd;  // elements
  /// Elements from one matrix of a batch to the next; 0 if one matrix is used for the whole batch.
  int64_t batch_stride_a, batch_stride_b, batch_stride_c, batch_stride_d;
  int m, n, k;
  TileGrid tiles;
  uint32_t batch;           // number of matrices of D, or of groups
  char* workspace;          // null unless the kernel has split-K or reductions
  int64_t reduction_parts;  // offset of the reductions' partial results in it, bytes
  EpilogueParameters epilogue;
};

}  // namespace tilewright
