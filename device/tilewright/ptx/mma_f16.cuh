// mma.sync of f16 and bf16 operands.
#pragma once

#include "tilewright/ptx/mma.cuh"

namespace tilewright::ptx {

TILEWRIGHT_MMA_4_2_4(16, 8, 16, half_t, half_t, float, "f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
TILEWRIGHT_MMA_4_2_4(16, 8, 16, bfloat16_t, bfloat16_t, float, "f",
                     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 8, half_t, half_t, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
TILEWRIGHT_MMA_2_1_4(16, 8, 8, bfloat16_t, bfloat16_t, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")

/// f16 accumulators: a register holds two adjacent columns.
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

}  // namespace tilewright::ptx
