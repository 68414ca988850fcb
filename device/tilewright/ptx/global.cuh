// Loads of global memory whose order among themselves and before stores to shared memory is kept, so that many are in
// flight.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

__device__ __forceinline__ uint32_t load_global_b32(const char* address) {
  uint32_t value;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}

/// Leaves `value` as it is where `condition` is false.
__device__ __forceinline__ void load_global_b32_if(bool condition, uint32_t& value, const char* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "@p ld.global.b32 %0, [%1];\n"
      "}"
      : "+r"(value)
      : "l"(address), "r"(static_cast<int>(condition)));
}

__device__ __forceinline__ void load_global_v2_b32(uint32_t (&values)[2], const char* address) {
  asm volatile("ld.global.v2.b32 {%0,%1}, [%2];" : "=r"(values[0]), "=r"(values[1]) : "l"(address));
}

}  // namespace tilewright::ptx
