// The element types and integers of device code. No CUDA header is included, because these take longer to compile than
// the kernels.
#pragma once

/// offsetof as a constant expression. NVRTC without standard headers has neither the macro of <stddef.h> nor nvcc's
/// builtin, but its front end has __INTADDR__.
#ifdef __CUDACC_RTC__
#define TILEWRIGHT_OFFSET_OF(Struct, field) (static_cast<unsigned long>(__INTADDR__(&(((Struct*)0)->field))))
#else
#define TILEWRIGHT_OFFSET_OF(Struct, field) __builtin_offsetof(Struct, field)
#endif

namespace tilewright {

using int8_t = signed char;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;

/// IEEE binary16, as its bits.
struct half_t {
  uint16_t bits;
};

/// bfloat16, as its bits.
struct bfloat16_t {
  uint16_t bits;
};

/// 8-bit floats, as their bits: 4 bits of exponent and 3 of fraction without infinity, 5 and 2 with it.
struct e4m3_t {
  uint8_t bits;
};
struct e5m2_t {
  uint8_t bits;
};

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <bool Condition, class Yes, class No>
struct SelectType {
  using type = Yes;
};
template <class Yes, class No>
struct SelectType<false, Yes, No> {
  using type = No;
};
template <bool Condition, class Yes, class No>
using Select = typename SelectType<Condition, Yes, No>::type;

/// `kCount` elements moved by one memory instruction.
template <class Element, int kCount>
struct alignas(sizeof(Element) * kCount) Vector {
  Element element[kCount];
};

/// Divides by a number that only the host knows: a multiplication and a shift. A division by a variable takes about 30
/// dependent instructions. plan::Divisor computes both values.
struct Divisor {
  uint32_t multiplier, shift;

  /// @pre dividend >= 0
  __device__ __forceinline__ int quotient(int dividend) const {
    return static_cast<int>(static_cast<uint64_t>(static_cast<uint32_t>(dividend)) * multiplier >> shift);
  }
};

__host__ __device__ constexpr int minimum(int x, int y) { return x < y ? x : y; }
__host__ __device__ constexpr int maximum(int x, int y) { return x > y ? x : y; }
__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

}  // namespace tilewright
