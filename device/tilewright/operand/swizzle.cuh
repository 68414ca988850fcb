// CuTe's Swizzle<bits, base, shift> on byte offsets of shared memory.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Returns o ^ ((o & yyy) >> shift), where yyy is `bits` ones from bit base + shift on.
template <class Swizzle>
__host__ __device__ constexpr uint32_t swizzled(uint32_t offset) {
  constexpr uint32_t kMask = ((1U << Swizzle::kBits) - 1U) << (Swizzle::kBase + Swizzle::kShift);
  return offset ^ ((offset & kMask) >> Swizzle::kShift);
}

}  // namespace tilewright
