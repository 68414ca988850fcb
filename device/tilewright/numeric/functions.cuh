// The functions of epilogue graphs for f32, f64 and s32. NaN propagates through maximum and minimum.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::numeric {

// The compiler fuses x * y + z to a multiply-add where it sees fit, so the bits could differ between two kernels with
// the same epilogue. It does not fuse these; lower/cuda/epilogue fuses them in the same way for all kernels.
template <class T>
__device__ __forceinline__ T add(T x, T y) {
  return x + y;
}
__device__ __forceinline__ float add(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ double add(double x, double y) { return __dadd_rn(x, y); }
template <class T>
__device__ __forceinline__ T sub(T x, T y) {
  return x - y;
}
__device__ __forceinline__ float sub(float x, float y) { return __fsub_rn(x, y); }
__device__ __forceinline__ double sub(double x, double y) { return __dsub_rn(x, y); }
template <class T>
__device__ __forceinline__ T mul(T x, T y) {
  return x * y;
}
__device__ __forceinline__ float mul(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double mul(double x, double y) { return __dmul_rn(x, y); }
template <class T>
__device__ __forceinline__ T div(T x, T y) {
  return x / y;
}
template <class T>
__device__ __forceinline__ T neg(T x) {
  return -x;
}

/// The smallest and the largest finite value of a type.
template <class T>
__device__ __forceinline__ T lowest() {
  if constexpr (is_same<T, float>) return __builtin_bit_cast(float, 0xff800000U);
  if constexpr (is_same<T, double>) return __builtin_bit_cast(double, 0xfff0000000000000ULL);
  if constexpr (is_same<T, int32_t>) return -0x7fffffff - 1;
}
template <class T>
__device__ __forceinline__ T highest() {
  if constexpr (is_same<T, int32_t>) return 0x7fffffff;
  if constexpr (!is_same<T, int32_t>) return -lowest<T>();
}

/// Returns x if the comparison holds or x is NaN, else y. If y is NaN, the comparison fails and y is returned.
template <class T>
__device__ __forceinline__ T max(T x, T y) {
  return x > y || x != x ? x : y;
}
template <class T>
__device__ __forceinline__ T min(T x, T y) {
  return x < y || x != x ? x : y;
}

template <class T>
__device__ __forceinline__ T abs(T x) {
  return x < T(0) ? -x : x;
}
__device__ __forceinline__ float abs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double abs(double x) { return ::fabs(x); }

/// Comparisons return 1 or 0. Comparisons with NaN return 0.
template <class T>
__device__ __forceinline__ T less(T x, T y) {
  return x < y ? T(1) : T(0);
}
template <class T>
__device__ __forceinline__ T less_equal(T x, T y) {
  return x <= y ? T(1) : T(0);
}
template <class T>
__device__ __forceinline__ T equal(T x, T y) {
  return x == y ? T(1) : T(0);
}
template <class T>
__device__ __forceinline__ T where(T condition, T yes, T no) {
  return condition != T(0) ? yes : no;
}

__device__ __forceinline__ int32_t fma(int32_t x, int32_t y, int32_t z) { return x * y + z; }
__device__ __forceinline__ float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__device__ __forceinline__ double fma(double x, double y, double z) { return ::fma(x, y, z); }
__device__ __forceinline__ float pow(float x, float y) { return ::powf(x, y); }
__device__ __forceinline__ double pow(double x, double y) { return ::pow(x, y); }
__device__ __forceinline__ float rcp(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double rcp(double x) { return 1.0 / x; }
__device__ __forceinline__ float sqrt(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double sqrt(double x) { return ::sqrt(x); }
__device__ __forceinline__ float rsqrt(float x) { return ::rsqrtf(x); }
__device__ __forceinline__ double rsqrt(double x) { return ::rsqrt(x); }
__device__ __forceinline__ float log(float x) { return ::logf(x); }
__device__ __forceinline__ double log(double x) { return ::log(x); }
__device__ __forceinline__ float log1p(float x) { return ::log1pf(x); }
__device__ __forceinline__ double log1p(double x) { return ::log1p(x); }
__device__ __forceinline__ float floor(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor(double x) { return ::floor(x); }
__device__ __forceinline__ float round(float x) { return ::rintf(x); }
__device__ __forceinline__ double round(double x) { return ::rint(x); }
__device__ __forceinline__ float exp(float x) { return ::expf(x); }
__device__ __forceinline__ double exp(double x) { return ::exp(x); }
__device__ __forceinline__ float erf(float x) { return ::erff(x); }
__device__ __forceinline__ double erf(double x) { return ::erf(x); }
__device__ __forceinline__ float tanh(float x) { return ::tanhf(x); }
__device__ __forceinline__ double tanh(double x) { return ::tanh(x); }
/// 1 / (1 + e^-x), for float by the special function unit, with the error that op::EpilogueOp::logistic states.
__device__ __forceinline__ float logistic(float x) {
  constexpr float kLog2E = 1.44269504F;
  float power, y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(mul(-kLog2E, x)));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(add(1.0F, power)));
  return y;
}
__device__ __forceinline__ double logistic(double x) { return 1.0 / (1.0 + ::exp(-x)); }

}  // namespace tilewright::numeric
