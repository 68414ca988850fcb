// Global memory: volatile loads, which the compiler keeps in order, ahead of stores to shared memory, so that many are
// in flight at once; stores; and the acquire and release operations by which the CTAs of a grid synchronise.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright::ptx {

/// Loads 64 bits that do not change while the kernel runs (ld.global.nc). The compiler may move the load and need not
/// repeat it. It is no inline PTX, with which an sm80_gemm kernel of 128 threads spilled 4 bytes.
__device__ __forceinline__ uint64_t load_global_constant_b64(const uint64_t* address) {
  return __ldg(reinterpret_cast<const unsigned long long*>(address));
}

/// The same for 32 bits.
__device__ __forceinline__ int load_global_constant_b32(const int* address) { return __ldg(address); }

__device__ __forceinline__ uint32_t load_global_b32(const char* address) {
  uint32_t value;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}

/// A predicated load: `value` is unchanged if `condition` is false.
__device__ __forceinline__ void load_global_b32_if(bool condition, uint32_t& value, const char* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "@p ld.global.b32 %0, [%1];\n"
      "}"
      : "+r"(value)
      : "l"(address), "r"(static_cast<int>(condition)));
}

/// Predicated loads of 16 and of 8 bits: `value` is unchanged if `condition` is false.
__device__ __forceinline__ void load_global_b16_if(bool condition, uint16_t& value, const void* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "@p ld.global.b16 %0, [%1];\n"
      "}"
      : "+h"(value)
      : "l"(address), "r"(static_cast<int>(condition)));
}
__device__ __forceinline__ void load_global_b8_if(bool condition, uint16_t& value, const void* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "@p ld.global.b8 %0, [%1];\n"
      "}"
      : "+h"(value)
      : "l"(address), "r"(static_cast<int>(condition)));
}

__device__ __forceinline__ void load_global_v2_b32(uint32_t (&values)[2], const char* address) {
  asm volatile("ld.global.v2.b32 {%0,%1}, [%2];" : "=r"(values[0]), "=r"(values[1]) : "l"(address));
}

/// Loads 4 or 8 bytes.
template <class Value>
__device__ __forceinline__ Value load_global_word(const Value* address) {
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "4 or 8 bytes");
  const char* const at = reinterpret_cast<const char*>(address);
  if constexpr (sizeof(Value) == 4) {
    return __builtin_bit_cast(Value, load_global_b32(at));
  } else {
    Vector<uint32_t, 2> words;
    load_global_v2_b32(words.element, at);
    return __builtin_bit_cast(Value, words);
  }
}

/// Loads 16 bytes.
template <class Value>
__device__ __forceinline__ Value load_global(const char* address) {
  static_assert(sizeof(Value) == 16, "16 bytes");
  Vector<uint32_t, 4> v;
  asm volatile("ld.global.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.element[0]), "=r"(v.element[1]), "=r"(v.element[2]), "=r"(v.element[3])
               : "l"(address)
               : "memory");
  return __builtin_bit_cast(Value, v);
}

/// A predicated load of 16 bytes: `value` is unchanged if `condition` is false.
__device__ __forceinline__ void load_global_if(bool condition, Vector<uint32_t, 4>& value, const char* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %5, 0;\n"
      "@p ld.global.v4.b32 {%0,%1,%2,%3}, [%4];\n"
      "}"
      : "+r"(value.element[0]), "+r"(value.element[1]), "+r"(value.element[2]), "+r"(value.element[3])
      : "l"(address), "r"(static_cast<int>(condition)));
}

/// The same for 8 bytes.
__device__ __forceinline__ void load_global_if(bool condition, Vector<uint32_t, 2>& value, const char* address) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %3, 0;\n"
      "@p ld.global.v2.b32 {%0,%1}, [%2];\n"
      "}"
      : "+r"(value.element[0]), "+r"(value.element[1])
      : "l"(address), "r"(static_cast<int>(condition)));
}

template <class Value>
__device__ __forceinline__ void store_global(char* address, const Value& value) {
  static_assert(sizeof(Value) == 16, "16 bytes");
  const auto v = __builtin_bit_cast(Vector<uint32_t, 4>, value);
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(address), "r"(v.element[0]), "r"(v.element[1]),
               "r"(v.element[2]), "r"(v.element[3])
               : "memory");
}

// Operations on a counter in global memory, at GPU scope.
__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
__device__ __forceinline__ uint32_t load_acquire(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
/// Releases all writes that happen before it, to threads that acquire the counter afterwards.
__device__ __forceinline__ void add_release(uint32_t* address, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
/// Increments the counter, which wraps to 0 after `end`, and returns its old value. Releases all writes that happen
/// before it, and acquires what earlier increments have released.
__device__ __forceinline__ uint32_t increment_to(uint32_t* counter, uint32_t end) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(end) : "memory");
  return before;
}
/// The same without any order of other accesses.
__device__ __forceinline__ uint32_t increment_to_relaxed(uint32_t* counter, uint32_t end) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(end) : "memory");
  return before;
}
/// Adds to the counter and returns its old value, with the same order as increment_to().
__device__ __forceinline__ uint32_t add_to(uint32_t* counter, uint32_t value) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

}  // namespace tilewright::ptx
