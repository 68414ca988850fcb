// A matrix in global memory that threads read or write with plain loads and stores.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// One matrix, the first of a batch, or the array of the addresses of a batch: see matrix_of_batch(). The leading
/// dimension and the batch stride count elements.
struct GlobalMatrix {
  const void* address;
  int64_t ld, batch_stride;
};

}  // namespace tilewright
