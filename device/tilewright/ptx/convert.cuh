// Conversions between element types: one rounding, to nearest even; integers saturate and take NaN to 0.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

__device__ __forceinline__ float to_float(half_t value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

__device__ __forceinline__ float to_float(bfloat16_t value) {
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
}

__device__ __forceinline__ half_t to_half(float value) {
  half_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

__device__ __forceinline__ bfloat16_t to_bfloat16(float value) {
  bfloat16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

/// Two floats in one register, `low` in the low half.
template <class Element>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t result;
  if constexpr (is_same<Element, half_t>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  } else {
    static_assert(is_same<Element, bfloat16_t>, "pack takes half_t or bfloat16_t");
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  }
  return result;
}

/// Rounds to 10 fraction bits, ties away from zero, for an instruction that drops the low 13 bits itself: what
/// cvt.rna.tf32.f32 gives, by an addition at four times its rate. A NaN stays as it is.
__device__ __forceinline__ uint32_t round_to_tf32(uint32_t bits) {
  const float value = __uint_as_float(bits);
  return value == value ? bits + 0x1000U : bits;
}

__device__ __forceinline__ int32_t to_int32(float value) {
  int32_t result;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

__device__ __forceinline__ int8_t to_int8(int32_t value) {
  int32_t result;
  asm("cvt.sat.s8.s32 %0, %1;" : "=r"(result) : "r"(value));
  return static_cast<int8_t>(result);
}

__device__ __forceinline__ uint8_t to_uint8(int32_t value) {
  uint32_t result;
  asm("cvt.sat.u8.s32 %0, %1;" : "=r"(result) : "r"(value));
  return static_cast<uint8_t>(result);
}

}  // namespace tilewright::ptx
