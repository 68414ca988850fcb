// mma.sync of f64 operands.
#pragma once

#include "tilewright/ptx/mma.cuh"

namespace tilewright::ptx {

template <>
struct Mma<8, 8, 4, double, double, double> {
  TILEWRIGHT_MMA_SHAPE(8, 8, 4, double, 1, 1, double, 2)
  static __device__ __forceinline__ void fma(double (&d)[2], const double (&a)[1], const double (&b)[1]) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a[0]), "d"(b[0]));
  }
};

// Shapes that only sm_90 has.
template <>
struct Mma<16, 8, 4, double, double, double> {
  TILEWRIGHT_MMA_SHAPE(16, 8, 4, double, 2, 1, double, 4)
  static __device__ __forceinline__ void fma(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b[0]));
  }
};

template <>
struct Mma<16, 8, 8, double, double, double> {
  TILEWRIGHT_MMA_SHAPE(16, 8, 8, double, 4, 2, double, 4)
  static __device__ __forceinline__ void fma(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
  }
};

template <>
struct Mma<16, 8, 16, double, double, double> {
  TILEWRIGHT_MMA_SHAPE(16, 8, 16, double, 8, 4, double, 4)
  static __device__ __forceinline__ void fma(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
        "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
          "d"(b[2]), "d"(b[3]));
  }
};

}  // namespace tilewright::ptx
