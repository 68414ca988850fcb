// Sums of products with truncated addends.
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kMaxM = 32;
constexpr int kMaxN = 256;
constexpr int kMaxK = 32;
constexpr int kNoExponent = -10000;   // of zero, infinity and NaN, which do not take part in the alignment
constexpr int kLeastExponent = -126;  // the alignment never goes below it
constexpr int kDoubleFractionBits = 52;

[[gnu::always_inline]] inline int exponent_of(double value, int least) {
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(value) >> kDoubleFractionBits & 0x7ff);
  const int exponent = std::max(field - 1023, least);
  return field == 0 || field == 0x7ff ? kNoExponent : exponent;
}

[[gnu::always_inline]] inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(exponent + 1023))
                               << kDoubleFractionBits);
}

/// Cuts off fraction bits, so that `bits` are left; numbers below 2^-126 keep the same absolute precision.
[[gnu::always_inline]] inline double cut(double value, int bits) {
  const double subnormal =
      std::trunc(value * power_of_two(bits - kLeastExponent)) * power_of_two(kLeastExponent - bits);
  const std::uint64_t mask = ~((std::uint64_t{1} << (kDoubleFractionBits - bits)) - 1);
  const double normal = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & mask);
  const double magnitude = std::fabs(value);
  const double finite = magnitude < 0x1p-126 ? subnormal : normal;
  return magnitude <= 0x1p1000 ? finite : value;  // infinity and NaN stay
}

/// Whether all numbers are integers; and the largest magnitude. In integer arithmetic, which the compiler vectorises.
[[gnu::always_inline]] inline bool are_integers(const double* values, int count, double& largest) {
  constexpr double kInteger = 0x1.8p52;  // adding and subtracting it rounds to an integer
  constexpr std::int64_t kMagnitude = 0x7fffffffffffffff;
  std::int64_t most = 0, fractions = 0;
  for (int i = 0; i < count; ++i) {
    const double rest = values[i] - ((values[i] + kInteger) - kInteger);
    fractions |= std::bit_cast<std::int64_t>(rest) & kMagnitude;  // also of infinity and NaN
    const std::int64_t magnitude = std::bit_cast<std::int64_t>(values[i]) & kMagnitude;
    most = magnitude > most ? magnitude : most;
  }
  largest = std::bit_cast<double>(most);
  return fractions == 0;
}

/// Whether nothing is cut off before the last rounding: all addends are integers, their exponents are at most
/// `fraction_bits`, and sums between two blocks fit into the result.
[[gnu::always_inline]] inline bool cuts_nothing(const ProductTiles& tiles, const TensorCoreSum& how) {
  double a = 0, b = 0, c = 0;
  for (int m = 0; m < tiles.m; ++m) {
    double of_row = 0;
    if (!are_integers(tiles.a + m * tiles.a_stride, tiles.k, of_row)) return false;
    a = std::max(a, of_row);
  }
  if (!are_integers(tiles.b, tiles.k * tiles.n, b) || !are_integers(tiles.c, tiles.m * tiles.n, c)) return false;
  const double limit = power_of_two(how.fraction_bits);
  if (!(a * b < limit && c < limit)) return false;
  if (tiles.k * tiles.element_bytes <= how.block_bytes) return true;
  static constexpr int kResultBits[] = {11, 24, 14};
  return a * b * tiles.k + c < power_of_two(kResultBits[static_cast<int>(how.rounding)]);
}

// The loops over n below take restricted pointers, as the compiler would not vectorise them otherwise. kN: the extent,
// if it is known; else 0.

template <int kN>
[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  const int n_count = kN != 0 ? kN : tiles.n, k_count = tiles.k;
  for (int m = 0; m < tiles.m; ++m) {
    double* __restrict__ const row = tiles.c + m * n_count;
    const double* __restrict__ const a = tiles.a + m * tiles.a_stride;
    for (int k = 0; k < k_count; ++k) {
      const double* __restrict__ const b = tiles.b + k * n_count;
      const double x = a[k];
      for (int n = 0; n < n_count; ++n) row[n] += x * b[n];
    }
  }
}

/// The exponents of all elements.
struct Exponents {
  int a[kMaxM * kMaxK];
  int b[kMaxK * kMaxN];
};

/// Adds the products [first, last) of K to one row of C.
template <int kN>
[[gnu::always_inline]] inline void add_block(const ProductTiles& tiles, int fraction_bits, const Exponents& exponents,
                                             int m, int first, int last) {
  const int n_count = kN != 0 ? kN : tiles.n, least_c = tiles.least_exponent_c;
  double* __restrict__ const c = tiles.c + m * n_count;
  const double* __restrict__ const a = tiles.a + m * tiles.a_stride;
  int largest[kN != 0 ? kN : kMaxN];
  double sum[kN != 0 ? kN : kMaxN], scale[kN != 0 ? kN : kMaxN];
  for (int n = 0; n < n_count; ++n) largest[n] = std::max(exponent_of(c[n], least_c), kLeastExponent);
  for (int k = first; k < last; ++k) {
    const int of_a = exponents.a[m * kMaxK + k];
    const int* __restrict__ const of_b = exponents.b + k * n_count;
    for (int n = 0; n < n_count; ++n) largest[n] = std::max(largest[n], of_a + of_b[n]);
  }
  for (int n = 0; n < n_count; ++n) {
    scale[n] = power_of_two(fraction_bits - largest[n]);
    sum[n] = std::trunc(c[n] * scale[n]);
  }
  for (int k = first; k < last; ++k) {
    const double x = a[k];
    const double* __restrict__ const b = tiles.b + k * n_count;
    for (int n = 0; n < n_count; ++n) sum[n] += std::trunc(x * b[n] * scale[n]);
  }
  for (int n = 0; n < n_count; ++n) c[n] = sum[n] * power_of_two(largest[n] - fraction_bits);
}

[[gnu::always_inline]] inline void round_all(double* __restrict__ values, int count, SumRounding rounding) {
  switch (rounding) {
    case SumRounding::f16_nearest:
      for (int i = 0; i < count; ++i) values[i] = f16_to_f32(f64_to_f16(values[i]));
      break;
    case SumRounding::f32_toward_zero:
      for (int i = 0; i < count; ++i) values[i] = cut(values[i], 23);
      break;
    case SumRounding::f32_of_13_bits:
      for (int i = 0; i < count; ++i) values[i] = cut(values[i], 13);
      break;
  }
}

template <int kN>
[[gnu::always_inline]] inline void add_aligned(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Exponents exponents;
  int* __restrict__ const of_a = exponents.a;
  int* __restrict__ const of_b = exponents.b;
  const int n_count = kN != 0 ? kN : tiles.n, k_count = tiles.k;
  const int least_a = tiles.least_exponent_a, least_b = tiles.least_exponent_b;
  for (int m = 0; m < tiles.m; ++m) {
    const double* __restrict__ const a = tiles.a + m * tiles.a_stride;
    for (int k = 0; k < k_count; ++k) of_a[m * kMaxK + k] = exponent_of(a[k], least_a);
  }
  const double* __restrict__ const b = tiles.b;
  for (int i = 0; i < k_count * n_count; ++i) of_b[i] = exponent_of(b[i], least_b);
  const int block = how.block_bytes / tiles.element_bytes;
  for (int first = 0; first < k_count; first += block) {
    const int last = std::min(first + block, k_count);
    for (int m = 0; m < tiles.m; ++m) add_block<kN>(tiles, how.fraction_bits, exponents, m, first, last);
    if (last < k_count) round_all(tiles.c, tiles.m * n_count, how.rounding);
  }
}

template <int kN>
[[gnu::always_inline]] inline void multiply_add_inline(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (cuts_nothing(tiles, how)) {
    add_exact<kN>(tiles);
  } else {
    add_aligned<kN>(tiles, how);
  }
  // The caller rounds to f16 when it stores.
  if (how.rounding != SumRounding::f16_nearest) round_all(tiles.c, tiles.m * tiles.n, how.rounding);
}

[[gnu::always_inline]] inline void multiply_add_of_extent(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (tiles.n == 8) {
    multiply_add_inline<8>(tiles, how);
  } else {
    multiply_add_inline<0>(tiles, how);
  }
}

TILEWRIGHT_TARGET_FMA void multiply_add_with_hardware(const ProductTiles& tiles, const TensorCoreSum& how) {
  multiply_add_of_extent(tiles, how);
}

}  // namespace

TensorCoreSum sum_of_mma(const Target& target, int element_bytes, bool f16_result) {
  const SumRounding rounding = f16_result ? SumRounding::f16_nearest : SumRounding::f32_toward_zero;
  if (target.sm >= 90) return {25, 32, rounding};
  if (element_bytes == 1) return {13, 16, f16_result ? rounding : SumRounding::f32_of_13_bits};
  return {24, 16, rounding};
}

TensorCoreSum sum_of_wgmma(int element_bytes, bool f16_result) {
  const SumRounding rounding = f16_result ? SumRounding::f16_nearest : SumRounding::f32_toward_zero;
  if (element_bytes == 1) return {13, 32, f16_result ? rounding : SumRounding::f32_of_13_bits};
  return {25, 32, rounding};
}

void multiply_add(const ProductTiles& tiles, const TensorCoreSum& how) {
  static const bool hardware = has_hardware_fma();
  if (hardware) {
    multiply_add_with_hardware(tiles, how);
  } else {
    multiply_add_of_extent(tiles, how);
  }
}

}  // namespace tilewright::emulator
