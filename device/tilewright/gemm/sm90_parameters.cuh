// The struct that an sm90_gemm kernel takes by value.
#pragma once

#include "tilewright/operand/folded_matrix.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/operand/tap_columns.cuh"
#include "tilewright/operand/tma_batch.cuh"
#include "tilewright/operand/tma_folded.cuh"
#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/scheduler/groups.cuh"
#include "tilewright/scheduler/tile_grid.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The tensor maps of the outputs other than D that TMA stores.
template <int kCount>
struct TmaOutputMaps {
  TmaMatrix map[kCount];
};
template <>
struct TmaOutputMaps<0> {};

/// The groups of a problem, and D for plain stores: the last tile of a group is not stored by TMA.
struct Sm90Groups {
  const int* ends;  // see op::GroupedGemm
  GlobalMatrix d;
};

/// plan/sm90/launch writes these fields, and the emitted text asserts their offsets. Plan::Source and Plan::Output, the
/// types of C and D, are TmaMatrix or GlobalMatrix; D may also be a FoldedOutput, PixelOutput or TapColumns.
/// Plan::OperandA::Source and OperandB::Source may also be RepackedMatrix, TmaIm2col, TmaFolded or one of
/// operand/tma_batch.cuh. Plan::Groups is NoGroups, Groups, Sm90Groups, IndependentGroups or RowClasses; with groups,
/// m, n and k are the capacity. With classes of rows, A, B and D are TmaIm2colClasses; B may be RepackedClasses. m, n
/// and k are the extents of the problem as computed, which may be the transposed problem.
template <class Plan, class EpilogueParameters>
struct Sm90GemmParameters {
  [[no_unique_address]] TmaOutputMaps<Plan::kTmaOutputs> outputs;
  typename Plan::OperandA::Source a;
  typename Plan::OperandB::Source b;
  typename Plan::Output d;
  // After tensor maps, the fields from m to tiles fill one line of 64 bytes of the constant cache. A kernel reads these
  // fields before its first load and waits for each line.
  int m, n, k;
  int batches;  // number of matrices of D, or of groups
  /// The step along the batch mode of the tensor maps from one matrix of D to the next: 0 if one matrix is used for the
  /// whole batch, else 1.
  int batch_step_a, batch_step_b, batch_step_c;
  TileGrid tiles;
  typename Plan::Source c;
  [[no_unique_address]] typename Plan::Groups groups;
  ptx::CachePolicy policy_a, policy_b;  // L2 policies of TMA loads
  char* workspace;          // null unless the kernel has split-K, repacked operands, reductions or pointer arrays
  int64_t reduction_parts;  // offset of the reductions' partial results in it, bytes
  EpilogueParameters epilogue;
};

}  // namespace tilewright
