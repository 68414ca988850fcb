// Conversions between element types. They round once, to nearest even. Integers saturate, and NaN becomes 0; FP8 types
// saturate at the largest finite value and keep NaN.
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

__device__ __forceinline__ float to_float(e5m2_t value) {
  return to_float(half_t{static_cast<uint16_t>(value.bits << 8)});  // e5m2 is the upper byte of an f16
}

/// Moves the fields into an f16, whose exponent bias is greater by 8, and scales by 2^8. NaN is handled apart, as its
/// bits would be a finite f16.
__device__ __forceinline__ float to_float(e4m3_t value) {
  const uint32_t magnitude = value.bits & 0x7FU;
  if (magnitude == 0x7FU) return __uint_as_float(0x7FFFFFFFU);
  return 0x1p8F * to_float(half_t{static_cast<uint16_t>((value.bits & 0x80U) << 8 | magnitude << 7)});
}

/// Converts two floats to a pair of FP8 values, by cvt.rn.satfinite (sm_89 and later).
template <class Element>
__device__ __forceinline__ Vector<Element, 2> to_fp8_pair_by_instruction(float low, float high) {
  uint16_t pair;
  if constexpr (is_same<Element, e4m3_t>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  } else {
    static_assert(is_same<Element, e5m2_t>, "an 8-bit float");
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  }
  return __builtin_bit_cast(Vector<Element, 2>, pair);
}

/// The same conversion of one float in integer arithmetic, for GPUs before sm_89.
template <class Element>
__device__ __forceinline__ Element to_fp8_in_integers(float value) {
  constexpr bool kIsE4m3 = is_same<Element, e4m3_t>;
  constexpr int kDropped = kIsE4m3 ? 20 : 21;                         // fraction bits of f32 that are rounded off
  constexpr uint32_t kLargest = kIsE4m3 ? 0x43E00000U : 0x47600000U;  // 448, 57344
  constexpr uint32_t kSmallestNormal = kIsE4m3 ? 0x3C800000U : 0x38800000U;  // 2^-6, 2^-14
  // Floats of this size have a ulp of 2^-9, 2^-16, which is the spacing of the format's subnormals: adding it rounds.
  constexpr float kSubnormalUnits = kIsE4m3 ? 0x1p14F : 0x1p7F;
  const uint32_t bits = __float_as_uint(value);
  uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {0x7F};
  magnitude = magnitude < kLargest ? magnitude : kLargest;
  uint32_t code;
  if (magnitude < kSmallestNormal) {
    code = __float_as_uint(__uint_as_float(magnitude) + kSubnormalUnits) - __float_as_uint(kSubnormalUnits);
  } else {
    const uint32_t rounded = magnitude + ((1U << (kDropped - 1)) - 1U) + (magnitude >> kDropped & 1U);
    constexpr uint32_t kOneBelowNormal = (kSmallestNormal >> kDropped) - (1U << (23 - kDropped));
    code = (rounded >> kDropped) - kOneBelowNormal;
  }
  return {static_cast<uint8_t>(code | bits >> 24 & 0x80U)};
}

template <class Element>
__device__ __forceinline__ Vector<Element, 2> to_fp8_pair(float low, float high) {
#if __CUDA_ARCH__ >= 890
  return to_fp8_pair_by_instruction<Element>(low, high);
#else
  return {to_fp8_in_integers<Element>(low), to_fp8_in_integers<Element>(high)};
#endif
}

/// Converts two floats to 16-bit floats and packs them into one register, `low` in the low half.
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

/// Faithful rounding to tf32 for instructions that ignore the low 13 bits. It adds 1/3 to 2/3 of a tf32 ulp, depending
/// on where x lies between two powers of two, so that after truncation the error is below 2/3 ulp with a mean near 0.
/// Values that tf32 represents, infinity and NaN are unchanged. Takes one instruction, where cvt.rna.tf32.f32 takes
/// three; see docs/decisions/tf32_rounding.md.
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
