// The functions an epilogue graph is made of, for f32, f64 and s32. NaN propagates through maximum and minimum.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::numeric {

template <class T>
__device__ __forceinline__ T add(T x, T y) {
  return x + y;
}
template <class T>
__device__ __forceinline__ T sub(T x, T y) {
  return x - y;
}
template <class T>
__device__ __forceinline__ T mul(T x, T y) {
  return x * y;
}
template <class T>
__device__ __forceinline__ T div(T x, T y) {
  return x / y;
}
template <class T>
__device__ __forceinline__ T neg(T x) {
  return -x;
}

/// x where the comparison holds or x is NaN, y otherwise: y's NaN fails the comparison and is returned.
template <class T>
__device__ __forceinline__ T max(T x, T y) {
  return x > y || x != x ? x : y;
}
template <class T>
__device__ __forceinline__ T min(T x, T y) {
  return x < y || x != x ? x : y;
}

__device__ __forceinline__ float exp(float x) { return ::expf(x); }
__device__ __forceinline__ double exp(double x) { return ::exp(x); }
__device__ __forceinline__ float erf(float x) { return ::erff(x); }
__device__ __forceinline__ double erf(double x) { return ::erf(x); }
__device__ __forceinline__ float tanh(float x) { return ::tanhf(x); }
__device__ __forceinline__ double tanh(double x) { return ::tanh(x); }

}  // namespace tilewright::numeric
