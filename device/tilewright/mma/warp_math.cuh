// How a warp multiplies the fragments it loaded: as they are, rounded to tf32, rounded to 16 bits, or split in two tf32
// parts. Each struct says what one load holds and how many loads one instruction takes.
#pragma once

#include "tilewright/ptx/convert.cuh"
#include "tilewright/ptx/mma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The fragments are the instruction's operands.
template <class Instruction>
struct DirectMath {
  using Mma = Instruction;
  static constexpr int kLoadsPerStep = 1, kLoadK = Mma::kK;
  static constexpr int kLoadRegistersA = Mma::kRegistersA, kLoadRegistersB = Mma::kRegistersB;
  using A = typename Mma::RegisterA[Mma::kRegistersA];
  using B = typename Mma::RegisterA[Mma::kRegistersB];

  template <class Raw>
  static __device__ __forceinline__ void prepare_a(A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersA; ++i) a[i] = raw[0][i];
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersB; ++i) b[i] = raw[0][i];
  }
  template <class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    Mma::fma(d, a, b);
  }
};

/// f32 fragments, rounded to nearest tf32. (The instruction by itself drops the low 13 bits.)
template <class Instruction>
struct Tf32Math : DirectMath<Instruction> {
  using Base = DirectMath<Instruction>;

  template <class Raw>
  static __device__ __forceinline__ void prepare_a(typename Base::A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Instruction::kRegistersA; ++i) a[i] = ptx::to_tf32(__uint_as_float(raw[0][i]));
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(typename Base::B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Instruction::kRegistersB; ++i) b[i] = ptx::to_tf32(__uint_as_float(raw[0][i]));
  }
};

/// f32 fragments rounded to Element, a 16-bit float, for m16n8k16. Two loads of k 8 hold, for lane t of a quad, k = t,
/// t+4, t+8, t+12, where the instruction means 2t, 2t+1, 2t+8, 2t+9: the same permutation of k in A and in B, which no
/// sum over k can tell.
template <class Instruction, class Element>
struct FastMath {
  using Mma = Instruction;
  static_assert(Mma::kK == 16, "fast math is for m16n8k16");
  static constexpr int kLoadsPerStep = 2, kLoadK = 8;
  static constexpr int kLoadRegistersA = 4, kLoadRegistersB = 2;
  using A = uint32_t[4];
  using B = uint32_t[2];

  static __device__ __forceinline__ uint32_t pack(uint32_t low, uint32_t high) {
    return ptx::pack<Element>(__uint_as_float(low), __uint_as_float(high));
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_a(A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = pack(raw[i / 2][i % 2], raw[i / 2][i % 2 + 2]);
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < 2; ++i) b[i] = pack(raw[i][0], raw[i][1]);
  }
  template <class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    Mma::fma(d, a, b);
  }
};

/// 3xTF32: x = high + low, both tf32; high*low + low*high + high*high, the small products first. What is dropped,
/// low*low and the tail of low, is 2^-22 of a product. (Scheme: Ootomo and Yokota, arXiv 2203.03341.)
template <class Instruction>
struct SplitTf32Math {
  using Mma = Instruction;
  static constexpr int kLoadsPerStep = 1, kLoadK = Mma::kK;
  static constexpr int kLoadRegistersA = Mma::kRegistersA, kLoadRegistersB = Mma::kRegistersB;
  struct A {
    uint32_t high[Mma::kRegistersA], low[Mma::kRegistersA];
  };
  struct B {
    uint32_t high[Mma::kRegistersB], low[Mma::kRegistersB];
  };

  /// low is exact in f32; the instruction reads its upper 19 bits. Infinity would give inf - inf: its low part is 0.
  static __device__ __forceinline__ void split(uint32_t& high, uint32_t& low, uint32_t bits) {
    const float x = __uint_as_float(bits);
    high = ptx::to_tf32(x);
    const float rest = x - __uint_as_float(high);
    low = (high & 0x7f800000U) == 0x7f800000U ? 0U : __float_as_uint(rest);
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_a(A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersA; ++i) split(a.high[i], a.low[i], raw[0][i]);
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersB; ++i) split(b.high[i], b.low[i], raw[0][i]);
  }
  template <class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    Mma::fma(d, a.high, b.low);
    Mma::fma(d, a.low, b.high);
    Mma::fma(d, a.high, b.high);
  }
};

}  // namespace tilewright
