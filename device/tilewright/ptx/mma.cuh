// Warp-wide matrix instructions mma.sync: D = A * B + D with A (m,k) row, B (k,n) column. One struct an instruction:
// its shape, its registers a lane, and fma().
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Specialised below for every instruction of the table arch/mma_atom.cpp.
template <int kM, int kN, int kK, class A, class B, class C>
struct Mma;

// The forms differ in register counts only: A registers, B registers, C registers and their constraint letter.
#define TILEWRIGHT_MMA_SHAPE(M, N, K, A_REGISTER, A_COUNT, B_COUNT, C_REGISTER, C_COUNT) \
  static constexpr int kM = M, kN = N, kK = K;                                           \
  using RegisterA = A_REGISTER;                                                          \
  using RegisterC = C_REGISTER;                                                          \
  static constexpr int kRegistersA = A_COUNT, kRegistersB = B_COUNT, kRegistersC = C_COUNT;

#define TILEWRIGHT_MMA_4_2_4(M, N, K, A, B, C, LETTER, TEXT)                                                \
  template <>                                                                                               \
  struct Mma<M, N, K, A, B, C> {                                                                            \
    TILEWRIGHT_MMA_SHAPE(M, N, K, uint32_t, 4, 2, C, 4)                                                     \
    static __device__ __forceinline__ void fma(C (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
      asm volatile(TEXT " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                            \
                   : "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                     \
    }                                                                                                       \
  };

#define TILEWRIGHT_MMA_2_1_4(M, N, K, A, B, C, LETTER, TEXT)                                                \
  template <>                                                                                               \
  struct Mma<M, N, K, A, B, C> {                                                                            \
    TILEWRIGHT_MMA_SHAPE(M, N, K, uint32_t, 2, 1, C, 4)                                                     \
    static __device__ __forceinline__ void fma(C (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1]) { \
      asm volatile(TEXT " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                                     \
                   : "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])                 \
                   : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                      \
    }                                                                                                       \
  };

TILEWRIGHT_MMA_4_2_4(16, 8, 16, half_t, half_t, float, "f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
TILEWRIGHT_MMA_4_2_4(16, 8, 16, bfloat16_t, bfloat16_t, float, "f",
                     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
TILEWRIGHT_MMA_4_2_4(16, 8, 8, float, float, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, int8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, uint8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, int8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32")
TILEWRIGHT_MMA_4_2_4(16, 8, 32, uint8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32")

TILEWRIGHT_MMA_2_1_4(16, 8, 8, half_t, half_t, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 8, bfloat16_t, bfloat16_t, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 4, float, float, float, "f", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, int8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, uint8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, int8_t, uint8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32")
TILEWRIGHT_MMA_2_1_4(16, 8, 16, uint8_t, int8_t, int32_t, "r", "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32")

#undef TILEWRIGHT_MMA_2_1_4
#undef TILEWRIGHT_MMA_4_2_4

/// f16 accumulators: each register holds two neighbouring columns.
template <>
struct Mma<16, 8, 16, half_t, half_t, half_t> {
  TILEWRIGHT_MMA_SHAPE(16, 8, 16, uint32_t, 4, 2, uint32_t, 2)
  static __device__ __forceinline__ void fma(uint32_t (&d)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

template <>
struct Mma<16, 8, 8, half_t, half_t, half_t> {
  TILEWRIGHT_MMA_SHAPE(16, 8, 8, uint32_t, 2, 1, uint32_t, 2)
  static __device__ __forceinline__ void fma(uint32_t (&d)[2], const uint32_t (&a)[2], const uint32_t (&b)[1]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};

template <>
struct Mma<8, 8, 4, double, double, double> {
  TILEWRIGHT_MMA_SHAPE(8, 8, 4, double, 1, 1, double, 2)
  static __device__ __forceinline__ void fma(double (&d)[2], const double (&a)[1], const double (&b)[1]) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a[0]), "d"(b[0]));
  }
};

// The f64 shapes of sm_90.
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

#undef TILEWRIGHT_MMA_SHAPE

}  // namespace tilewright::ptx
