// Offsets in swizzled shared memory that move by constants.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// The swizzled offset of the sum of two places, given `offset`, the swizzled offset of the place that a thread has at
/// run time, and `step`, the swizzled offset of the other one, which is a constant. The swizzle changes the bits
/// kSwizzledBits. The plan's layouts ensure that the two places have no bit in common that the swizzle reads or changes
/// (plan/smem_access.hpp).
template <uint32_t kSwizzledBits>
__device__ __forceinline__ uint32_t moved(uint32_t offset, uint32_t step) {
  return (offset ^ (step & kSwizzledBits)) + (step & ~kSwizzledBits);
}

}  // namespace tilewright
