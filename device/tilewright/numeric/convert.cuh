// convert<To>(from) for every pair of types that a kernel uses. Float to 8-bit integer goes through s32; both steps
// saturate.
#pragma once

#include "tilewright/ptx/convert.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

template <class Element>
inline constexpr bool is_fp8 = is_same<Element, e4m3_t> || is_same<Element, e5m2_t>;

template <class To, class From>
__device__ __forceinline__ To convert(From from) {
  if constexpr (is_same<To, From>) {
    return from;
  } else if constexpr (is_same<From, half_t> || is_same<From, bfloat16_t> || is_fp8<From>) {
    return convert<To>(ptx::to_float(from));
  } else if constexpr (is_fp8<To>) {
    return ptx::to_fp8_pair<To>(static_cast<float>(from), 0.0F).element[0];
  } else if constexpr (is_same<To, half_t>) {
    return ptx::to_half(static_cast<float>(from));
  } else if constexpr (is_same<To, bfloat16_t>) {
    return ptx::to_bfloat16(static_cast<float>(from));
  } else if constexpr (is_same<To, int8_t>) {
    return ptx::to_int8(convert<int32_t>(from));
  } else if constexpr (is_same<To, uint8_t>) {
    return ptx::to_uint8(convert<int32_t>(from));
  } else if constexpr (is_same<To, int32_t> && is_same<From, float>) {
    return ptx::to_int32(from);
  } else {
    return static_cast<To>(from);
  }
}

/// Converts two adjacent elements. Two 8-bit floats are converted by one instruction.
template <class To, class From>
__device__ __forceinline__ Vector<To, 2> convert_pair(From low, From high) {
  if constexpr (is_fp8<To> && !is_same<To, From>) {
    return ptx::to_fp8_pair<To>(convert<float>(low), convert<float>(high));
  } else {
    return {convert<To>(low), convert<To>(high)};
  }
}

}  // namespace tilewright
