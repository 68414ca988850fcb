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

[[gnu::always_inline]] inline double rounded(double sum, SumRounding rounding) {
  switch (rounding) {
    case SumRounding::f16_nearest:
      return f16_to_f32(f64_to_f16(sum));
    case SumRounding::f32_toward_zero:
      return cut(sum, 23);
    case SumRounding::f32_of_13_bits:
      return cut(sum, 13);
  }
  return sum;
}

/// Whether all numbers are integers below `limit`.
[[gnu::always_inline]] inline bool are_integers(const double* values, int rows, int columns, int stride,
                                                double& limit) {
  constexpr double kInteger = 0x1.8p52;  // adding and subtracting it rounds to an integer
  double largest = 0;
  double fractions = 0;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const double value = values[row * stride + column];
      const double rest = value - ((value + kInteger) - kInteger);
      fractions = rest != 0 || value != value ? 1 : fractions;
      largest = std::max(largest, std::fabs(value));
    }
  }
  limit = largest;
  return fractions == 0;
}

/// Whether nothing is cut off before the last rounding: all addends are integers, their exponents are at most
/// `fraction_bits`, and sums between two blocks fit into the result.
[[gnu::always_inline]] inline bool cuts_nothing(const ProductTiles& tiles, const TensorCoreSum& how) {
  double a = 0, b = 0, c = 0;
  if (!are_integers(tiles.a, tiles.m, tiles.k, tiles.a_stride, a)) return false;
  if (!are_integers(tiles.b, 1, tiles.k * tiles.n, 0, b) || !are_integers(tiles.c, 1, tiles.m * tiles.n, 0, c)) {
    return false;
  }
  const double limit = power_of_two(how.fraction_bits);
  if (!(a * b < limit && c < limit)) return false;
  if (tiles.k * tiles.element_bytes <= how.block_bytes) return true;
  static constexpr int kResultBits[] = {11, 24, 14};
  return a * b * tiles.k + c < power_of_two(kResultBits[static_cast<int>(how.rounding)]);
}

[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  for (int m = 0; m < tiles.m; ++m) {
    double* const row = tiles.c + m * tiles.n;
    for (int k = 0; k < tiles.k; ++k) {
      const double x = tiles.a[m * tiles.a_stride + k];
      const double* const b = tiles.b + k * tiles.n;
      for (int n = 0; n < tiles.n; ++n) row[n] += x * b[n];
    }
  }
}

/// The exponents of all elements.
struct Exponents {
  int a[kMaxM * kMaxK];
  int b[kMaxK * kMaxN];
};

/// Adds the products [first, last) of K to one row of C.
[[gnu::always_inline]] inline void add_block(const ProductTiles& tiles, const TensorCoreSum& how,
                                             const Exponents& exponents, int m, int first, int last) {
  double* const c = tiles.c + m * tiles.n;
  int largest[kMaxN];
  double sum[kMaxN], scale[kMaxN];
  for (int n = 0; n < tiles.n; ++n) largest[n] = std::max(exponent_of(c[n], tiles.least_exponent_c), kLeastExponent);
  for (int k = first; k < last; ++k) {
    const int of_a = exponents.a[m * kMaxK + k];
    const int* const of_b = exponents.b + k * tiles.n;
    for (int n = 0; n < tiles.n; ++n) largest[n] = std::max(largest[n], of_a + of_b[n]);
  }
  for (int n = 0; n < tiles.n; ++n) {
    scale[n] = power_of_two(how.fraction_bits - largest[n]);
    sum[n] = std::trunc(c[n] * scale[n]);
  }
  for (int k = first; k < last; ++k) {
    const double a = tiles.a[m * tiles.a_stride + k];
    const double* const b = tiles.b + k * tiles.n;
    for (int n = 0; n < tiles.n; ++n) sum[n] += std::trunc(a * b[n] * scale[n]);
  }
  for (int n = 0; n < tiles.n; ++n) c[n] = sum[n] * power_of_two(largest[n] - how.fraction_bits);
}

[[gnu::always_inline]] inline void add_aligned(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Exponents exponents;
  for (int m = 0; m < tiles.m; ++m) {
    for (int k = 0; k < tiles.k; ++k) {
      exponents.a[m * kMaxK + k] = exponent_of(tiles.a[m * tiles.a_stride + k], tiles.least_exponent_a);
    }
  }
  for (int i = 0; i < tiles.k * tiles.n; ++i) exponents.b[i] = exponent_of(tiles.b[i], tiles.least_exponent_b);
  const int block = how.block_bytes / tiles.element_bytes;
  for (int m = 0; m < tiles.m; ++m) {
    double* const c = tiles.c + m * tiles.n;
    for (int first = 0; first < tiles.k; first += block) {
      const int last = std::min(first + block, tiles.k);
      add_block(tiles, how, exponents, m, first, last);
      if (last == tiles.k) break;
      for (int n = 0; n < tiles.n; ++n) c[n] = rounded(c[n], how.rounding);
    }
  }
}

[[gnu::always_inline]] inline void multiply_add_inline(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (cuts_nothing(tiles, how)) {
    add_exact(tiles);
  } else {
    add_aligned(tiles, how);
  }
  if (how.rounding == SumRounding::f16_nearest) return;  // the caller stores f16
  for (int i = 0; i < tiles.m * tiles.n; ++i) tiles.c[i] = rounded(tiles.c[i], how.rounding);
}

TILEWRIGHT_TARGET_FMA void multiply_add_with_hardware(const ProductTiles& tiles, const TensorCoreSum& how) {
  multiply_add_inline(tiles, how);
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
    multiply_add_inline(tiles, how);
  }
}

}  // namespace tilewright::emulator
