// Exchange of values between lanes of a warp.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// The value of lane (own lane ^ mask). All 32 lanes must call it; values of 4 or 8 bytes.
template <class Value>
__device__ __forceinline__ Value shuffle_xor(const Value& value, int mask) {
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "4 or 8 bytes");
  using Words = Vector<uint32_t, sizeof(Value) / 4>;
  const auto words = __builtin_bit_cast(Words, value);
  Words received;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(Value) / 4); ++i) {
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(received.element[i])
                 : "r"(words.element[i]), "r"(mask));
  }
  return __builtin_bit_cast(Value, received);
}

}  // namespace tilewright::ptx
