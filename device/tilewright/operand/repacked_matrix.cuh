// A matrix that the kernel repacks because its alignment or its major mode is not supported: before the mainloop, all
// CTAs copy it to the workspace, in a layout that TMA can load and wgmma can read.
#pragma once

#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

struct RepackedMatrix {
  TmaMatrix copy;     // the tensor map of the copy
  GlobalMatrix from;  // the caller's matrix
  int64_t offset;     // offset of the copy in the workspace, in bytes
  int64_t pitch;      // bytes from one line of the copy to the next; the matrices of a batch follow each other
  /// If there are several, K consists of as many equal pieces, whose first elements are from.batch_stride elements
  /// apart, and there is one matrix: the taps of a filter, which are matrices of their own.
  int pieces;
};

template <class Source>
inline constexpr bool kIsRepacked = is_same<Source, RepackedMatrix>;

__device__ __forceinline__ const TmaMatrix& tma_matrix(const RepackedMatrix& matrix) { return matrix.copy; }

}  // namespace tilewright
