// Where a matrix of a batch lies: at a stride from the one before, or at an address that an array has.
#pragma once

#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The first element of matrix `index` of an operand. The matrix number 0 lies at `address`, and the others follow at
/// `stride` elements. With kIsPointerArray, `address` is an array of the addresses of all matrices; it is null if the
/// call does not access the operand, and then so is the result.
template <bool kIsPointerArray, class Element>
__device__ __forceinline__ Element* matrix_of_batch(const void* address, [[maybe_unused]] int64_t stride,
                                                    int64_t index) {
  if constexpr (kIsPointerArray) {
    const auto addresses = static_cast<const uint64_t*>(address);
    return addresses == nullptr ? nullptr
                                : reinterpret_cast<Element*>(ptx::load_global_constant_b64(addresses + index));
  } else {
    return static_cast<Element*>(const_cast<void*>(address)) + index * stride;
  }
}

}  // namespace tilewright
