// mma.sync: D = A * B + D with A (m,k) row-major and B (k,n) column-major. One struct per instruction, with its shape,
// its fragment sizes in registers per lane, and fma(). Each operand type has its own file, mma_TYPE.cuh, so that the
// compiler reads only the instructions that a kernel uses.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Specialised for the instructions of arch/mma_atom.cpp that kernels use.
template <int kM, int kN, int kK, class A, class B, class C>
struct Mma;

// The macros below are named after the numbers of registers of A, B and C. LETTER is the asm constraint of C's
// registers.
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

}  // namespace tilewright::ptx
