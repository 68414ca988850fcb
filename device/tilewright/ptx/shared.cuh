// Loads and stores of shared memory by 32-bit address: scalars, pairs, and ldmatrix and stmatrix, which move 8x8
// matrices of 16-bit elements between it and a warp's registers in the order that mma takes.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

__device__ __forceinline__ uint32_t load_shared_b32(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ double load_shared_f64(uint32_t address) {
  double value;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(address) : "memory");
  return value;
}

/// Lane l gives the address of row l%8 of matrix l/8. Each lane receives, of matrix i, the pair at row lane/4, columns
/// 2*(lane%4) and the next; with kTranspose, of the transposed matrix.
template <bool kTranspose>
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&matrix)[4], uint32_t row_address) {
  if constexpr (kTranspose) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(row_address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(row_address)
                 : "memory");
  }
}

/// Stores four matrices, each lane its pair of each, as ldmatrix_x4 would load them (sm_90).
__device__ __forceinline__ void stmatrix_x4(uint32_t row_address, const uint32_t (&matrix)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1,%2,%3,%4};" ::"r"(row_address), "r"(matrix[0]),
               "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
               : "memory");
}

/// Stores two neighbouring elements at once.
template <class Element>
__device__ __forceinline__ void store_shared(uint32_t address, const Vector<Element, 2>& pair) {
  if constexpr (sizeof(Element) == 4) {
    const auto bits = __builtin_bit_cast(Vector<uint32_t, 2>, pair);
    asm volatile("st.shared.v2.b32 [%0], {%1,%2};" ::"r"(address), "r"(bits.element[0]), "r"(bits.element[1])
                 : "memory");
  } else {
    static_assert(sizeof(Element) == 1, "pairs of 1 or 4 bytes an element");
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(__builtin_bit_cast(uint16_t, pair)) : "memory");
  }
}

}  // namespace tilewright::ptx
