// prmt: byte permutation of two registers.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Byte i of the result is the byte that nibble i of `selector` names: 0 to 3 are the bytes of `low`, 4 to 7 those of
/// `high`.
__device__ __forceinline__ uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

}  // namespace tilewright::ptx
