// Loads and stores of shared memory by 32-bit address: scalars, vectors, and ldmatrix and stmatrix, which move 8x8
// matrices of 16-bit elements between shared memory and the fragments of a warp.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// The 32-bit shared address of a generic pointer to shared memory.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

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

/// Lane l gives the address of row l%8 of matrix l/8. In matrix[i] it receives the elements of matrix i, or with
/// kTranspose of its transpose, at row l/4 and columns 2*(l%4) and 2*(l%4)+1.
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

/// Stores four matrices from the fragments that ldmatrix_x4 would load (sm_90).
template <bool kTranspose>
__device__ __forceinline__ void stmatrix_x4(uint32_t row_address, const uint32_t (&matrix)[4]) {
  if constexpr (kTranspose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1,%2,%3,%4};" ::"r"(row_address),
                 "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1,%2,%3,%4};" ::"r"(row_address),
                 "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
  }
}

/// As stmatrix_x4, for two matrices; lanes 0 to 15 give the row addresses.
template <bool kTranspose>
__device__ __forceinline__ void stmatrix_x2(uint32_t row_address, const uint32_t (&matrix)[2]) {
  if constexpr (kTranspose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1,%2};" ::"r"(row_address),
                 "r"(matrix[0]), "r"(matrix[1])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%0], {%1,%2};" ::"r"(row_address), "r"(matrix[0]),
                 "r"(matrix[1])
                 : "memory");
  }
}

/// Stores one value of 1, 2, 4, 8 or 16 bytes: an element, or a vector of elements.
template <class Value>
__device__ __forceinline__ void store_shared(uint32_t address, const Value& value) {
  if constexpr (sizeof(Value) == 16) {
    const auto bits = __builtin_bit_cast(Vector<uint32_t, 4>, value);
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(bits.element[0]), "r"(bits.element[1]),
                 "r"(bits.element[2]), "r"(bits.element[3])
                 : "memory");
  } else if constexpr (sizeof(Value) == 8) {
    const auto bits = __builtin_bit_cast(Vector<uint32_t, 2>, value);
    asm volatile("st.shared.v2.b32 [%0], {%1,%2};" ::"r"(address), "r"(bits.element[0]), "r"(bits.element[1])
                 : "memory");
  } else if constexpr (sizeof(Value) == 4) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(__builtin_bit_cast(uint32_t, value)) : "memory");
  } else if constexpr (sizeof(Value) == 2) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(__builtin_bit_cast(uint16_t, value)) : "memory");
  } else {
    static_assert(sizeof(Value) == 1, "1, 2, 4, 8 or 16 bytes");
    asm volatile("st.shared.b8 [%0], %1;" ::"r"(address), "r"(static_cast<uint32_t>(__builtin_bit_cast(uint8_t, value)))
                 : "memory");
  }
}

/// Loads one value of 1, 2, 4, 8 or 16 bytes.
template <class Value>
__device__ __forceinline__ Value load_shared(uint32_t address) {
  if constexpr (sizeof(Value) == 16) {
    Vector<uint32_t, 4> v;
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.element[0]), "=r"(v.element[1]), "=r"(v.element[2]), "=r"(v.element[3])
                 : "r"(address)
                 : "memory");
    return __builtin_bit_cast(Value, v);
  } else if constexpr (sizeof(Value) == 8) {
    Vector<uint32_t, 2> v;
    asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];" : "=r"(v.element[0]), "=r"(v.element[1]) : "r"(address) : "memory");
    return __builtin_bit_cast(Value, v);
  } else if constexpr (sizeof(Value) == 4) {
    return __builtin_bit_cast(Value, load_shared_b32(address));
  } else if constexpr (sizeof(Value) == 2) {
    uint16_t v;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(v) : "r"(address) : "memory");
    return __builtin_bit_cast(Value, v);
  } else {
    static_assert(sizeof(Value) == 1, "1, 2, 4, 8 or 16 bytes");
    uint32_t v;
    asm volatile("ld.shared.b8 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
    return __builtin_bit_cast(Value, static_cast<uint8_t>(v));
  }
}

/// Loads 4 or 8 bytes from the shared memory of the CTA `rank` of this cluster (sm_90). `address` is that of the
/// same object in this CTA.
template <class Value>
__device__ __forceinline__ Value load_cluster_shared(uint32_t address, int rank) {
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "4 or 8 bytes");
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  Vector<uint32_t, sizeof(Value) / 4> words;
  if constexpr (sizeof(Value) == 4) {
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(words.element[0]) : "r"(remote) : "memory");
  } else {
    asm volatile("ld.shared::cluster.v2.b32 {%0,%1}, [%2];"
                 : "=r"(words.element[0]), "=r"(words.element[1])
                 : "r"(remote)
                 : "memory");
  }
  return __builtin_bit_cast(Value, words);
}

}  // namespace tilewright::ptx
