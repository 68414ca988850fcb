// How a warp converts the fragments that it loaded before it multiplies them: not at all, to tf32, to 16 bits, or to
// two tf32 parts. Each struct gives the shape of one load, the number of loads per instruction, and the terms of a
// product. A warp computes one term for all its tiles before the next term, so that no instruction waits for the
// previous one.
#pragma once

#include "tilewright/ptx/convert.cuh"
#include "tilewright/ptx/mma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The fragments are the instruction's operands without conversion.
template <class Instruction>
struct DirectMath {
  using Mma = Instruction;
  static constexpr int kTerms = 1, kLoadsPerStep = 1, kLoadK = Mma::kK;
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
  template <int kTerm, class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    Mma::fma(d, a, b);
  }
};

/// f32 fragments are rounded to the nearest tf32. The instruction by itself would truncate the low 13 bits.
template <class Instruction>
struct Tf32Math : DirectMath<Instruction> {
  using Base = DirectMath<Instruction>;

  template <class Raw>
  static __device__ __forceinline__ void prepare_a(typename Base::A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Instruction::kRegistersA; ++i) a[i] = ptx::round_to_tf32(raw[0][i]);
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(typename Base::B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Instruction::kRegistersB; ++i) b[i] = ptx::round_to_tf32(raw[0][i]);
  }
};

/// f32 fragments are rounded to Element, a 16-bit float. A load covers 8 k: lane t of a quad holds k = t and t+4, and
/// t+8 and t+12 of the second load, where the instruction expects 2t, 2t+1, 2t+8 and 2t+9. A and B have the same
/// permutation of k, which does not change the sum over k.
template <class Instruction, class Element>
struct FastMath {
  using Mma = Instruction;
  static constexpr int kTerms = 1, kLoadK = 8, kLoadsPerStep = Mma::kK / kLoadK;
  static constexpr int kLoadRegistersA = 4, kLoadRegistersB = 2;
  using A = uint32_t[Mma::kRegistersA];
  using B = uint32_t[Mma::kRegistersB];

  static __device__ __forceinline__ uint32_t pack(uint32_t low, uint32_t high) {
    return ptx::pack<Element>(__uint_as_float(low), __uint_as_float(high));
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_a(A& a, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersA; ++i) a[i] = pack(raw[i / 2][i % 2], raw[i / 2][i % 2 + 2]);
  }
  template <class Raw>
  static __device__ __forceinline__ void prepare_b(B& b, const Raw& raw) {
#pragma unroll
    for (int i = 0; i < Mma::kRegistersB; ++i) b[i] = pack(raw[i][0], raw[i][1]);
  }
  template <int kTerm, class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    Mma::fma(d, a, b);
  }
};

/// 3xTF32 (Ootomo and Yokota, arXiv 2203.03341): x = high + low, both of them tf32, and a product is high*low +
/// low*high + high*high, the small terms first. The terms left out, low*low and the rounding of both lows, are below 3
/// * 2^-20 of a product. An infinite operand gives NaN, since its low part is inf - inf. The high part of the caller's
/// A is in the first term also where kIsTransposed, so that the kernel's B is the caller's A: the bits of D do not
/// depend on its layout.
template <class Instruction, bool kIsTransposed>
struct SplitTf32Math {
  using Mma = Instruction;
  static constexpr int kTerms = 3, kLoadsPerStep = 1, kLoadK = Mma::kK;
  static constexpr int kLoadRegistersA = Mma::kRegistersA, kLoadRegistersB = Mma::kRegistersB;
  struct A {
    uint32_t high[Mma::kRegistersA], low[Mma::kRegistersA];
  };
  struct B {
    uint32_t high[Mma::kRegistersB], low[Mma::kRegistersB];
  };

  /// The instruction reads the upper 19 bits of its operands, so x serves as its own high part. The difference is exact
  /// in f32.
  static __device__ __forceinline__ void split(uint32_t& high, uint32_t& low, uint32_t bits) {
    high = bits;
    low = __float_as_uint(__uint_as_float(bits) - __uint_as_float(bits & 0xffffe000U));
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
  template <int kTerm, class Accumulator>
  static __device__ __forceinline__ void fma(Accumulator& d, const A& a, const B& b) {
    if constexpr (kTerm == 2) {
      Mma::fma(d, a.high, b.high);
    } else if constexpr ((kTerm == 0) != kIsTransposed) {
      Mma::fma(d, a.high, b.low);
    } else {
      Mma::fma(d, a.low, b.high);
    }
  }
};

}  // namespace tilewright
