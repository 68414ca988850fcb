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

/// Rounds faithfully for an instruction that itself drops the low 13 bits: adds from 1/3 to 2/3 of a unit of the tenth
/// fraction bit, depending on where x lies between powers of two, so that the error stays below 2/3 of a unit and its
/// mean is near 0. Values with 10 fraction bits, infinity and NaN stay what they are. One instruction, where
/// cvt.rna.tf32.f32 is three: see docs/decisions/tf32_rounding.md.
__device__ __forceinline__ uint32_t round_to_tf32(uint32_t bits) {
  constexpr float kScale = 0x1.001556p+0F;  // 1 + 2/3 * 2^-11
  return __float_as_uint(__fmul_rn(__uint_as_float(bits), kScale));
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
