// Loads from shared memory: scalars by 32-bit address, and ldmatrix, which hands 8x8 matrices of 16-bit elements to a
// warp in the order that mma takes.
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

}  // namespace tilewright::ptx
