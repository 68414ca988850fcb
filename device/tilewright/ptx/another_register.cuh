// Copies of registers that the compiler keeps apart.
#pragma once

namespace tilewright::ptx {

/// `x`, in a register that the compiler need not choose together with that of `x`. The elements of a vector that is
/// stored take adjacent registers. If they are accumulators, they take them during the whole mainloop, and then up to
/// 11 % of its multiply-adds read three operands from one bank of registers, which takes a clock more (simt_gemm of
/// f32, ptxas 13.0). Adding -0 changes no value, not even a zero's sign.
__device__ __forceinline__ float in_another_register(float x) {
  float copy;
  asm("add.rn.f32 %0, %1, 0f80000000;" : "=f"(copy) : "f"(x));
  return copy;
}
template <class T>
__device__ __forceinline__ T in_another_register(T x) {
  return x;
}

/// `x`, of which the compiler does not know that it is x: it computes what depends on it again, instead of keeping it
/// in registers.
__device__ __forceinline__ int unknown(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

}  // namespace tilewright::ptx
