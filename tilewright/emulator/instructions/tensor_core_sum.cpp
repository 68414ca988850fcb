// Sums of products with truncated addends.
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kMaxM = 32;
constexpr int kMaxN = 256;
constexpr int kMaxK = 32;
constexpr int kLeastExponent = -126;  // the alignment never goes below it
constexpr int kDoubleFractionBits = 52;

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

/// What is cut off if all addends are integers.
enum class Cut : std::uint8_t {
  nothing,  // the result is the exact sum
  result,   // the last rounding may change it
  unknown,  // addends may be cut
};

/// `nothing` and `result` need exponents of at most `fraction_bits`, and sums between two blocks that fit into the
/// result.
[[gnu::always_inline]] inline Cut cut_of(const ProductTiles& tiles, const TensorCoreSum& how) {
  double a = 0, b = 0, c = 0;
  for (int m = 0; m < tiles.m; ++m) {
    double of_row = 0;
    if (!are_integers(tiles.a + m * tiles.a_stride, tiles.k, of_row)) return Cut::unknown;
    a = std::max(a, of_row);
  }
  if (!are_integers(tiles.b, tiles.k * tiles.n, b) || !are_integers(tiles.c, tiles.m * tiles.n, c)) return Cut::unknown;
  const double limit = power_of_two(how.fraction_bits);
  if (!(a * b < limit && c < limit)) return Cut::unknown;
  static constexpr int kResultBits[] = {11, 24, 14};
  if (a * b * tiles.k + c < power_of_two(kResultBits[static_cast<int>(how.rounding)])) return Cut::nothing;
  return tiles.k * tiles.element_bytes <= how.block_bytes ? Cut::result : Cut::unknown;
}

// Four columns at a time. Vectors are passed by reference, as their ABI depends on the target.

using Four = double __attribute__((vector_size(32)));
using FourBits = std::int64_t __attribute__((vector_size(32)));

[[gnu::always_inline]] inline void load(Four& to, const double* from) { std::memcpy(&to, from, sizeof(to)); }
[[gnu::always_inline]] inline void store(double* to, const Four& from) { std::memcpy(to, &from, sizeof(from)); }
[[gnu::always_inline]] inline void raise(Four& value, const Four& to) { value = to > value ? to : value; }

template <bool kHardware>
[[gnu::always_inline]] inline void truncate(Four& value) {
#if defined(__x86_64__)
  if constexpr (kHardware) {
    asm("vroundpd $3, %0, %0" : "+x"(value));
    return;
  }
#endif
  for (int i = 0; i < 4; ++i) value[i] = std::trunc(value[i]);
}

/// The power of two of each number's exponent, which is at least `least`; 0 for zero, infinity and NaN.
[[gnu::always_inline]] inline void powers(Four& value, double least) {
  constexpr std::int64_t kExponent = std::int64_t{0x7ff} << kDoubleFractionBits;
  const FourBits bits = reinterpret_cast<const FourBits&>(value) & kExponent;
  Four power = reinterpret_cast<const Four&>(bits);
  const Four floor = {least, least, least, least}, zero = {0, 0, 0, 0};
  raise(power, floor);
  value = (bits == 0) | (bits == kExponent) ? zero : power;
}

/// The sums of `kRows` rows and `kFours` times four columns stay in registers while k runs.
template <int kRows, int kFours>
[[gnu::always_inline]] inline void add_exact_part(const ProductTiles& tiles, int m, int first) {
  double* const c = tiles.c + m * tiles.n + first;
  const double* const a = tiles.a + m * tiles.a_stride;
  Four sums[kRows][kFours];
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kFours; ++i) load(sums[row][i], c + row * tiles.n + 4 * i);
  }
  for (int k = 0; k < tiles.k; ++k) {
    const double* const b = tiles.b + k * tiles.n + first;
    for (int i = 0; i < kFours; ++i) {
      Four of_b;
      load(of_b, b + 4 * i);
      for (int row = 0; row < kRows; ++row) sums[row][i] += a[row * tiles.a_stride + k] * of_b;
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kFours; ++i) store(c + row * tiles.n + 4 * i, sums[row][i]);
  }
}

[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  int m = 0;
  for (; m + 4 <= tiles.m; m += 4) {
    int first = 0;
    for (; first + 8 <= tiles.n; first += 8) add_exact_part<4, 2>(tiles, m, first);
    for (; first < tiles.n; first += 4) add_exact_part<4, 1>(tiles, m, first);
  }
  for (; m < tiles.m; ++m) {
    for (int first = 0; first < tiles.n; first += 4) add_exact_part<1, 1>(tiles, m, first);
  }
}

/// powers() of all elements.
struct Powers {
  double a[kMaxM * kMaxK];
  double b[kMaxK * kMaxN];
};

/// Adds the products [from, to) of K to `kFours` times four columns of a row of C.
template <bool kHardware, int kFours>
[[gnu::always_inline]] inline void add_block(const ProductTiles& tiles, int fraction_bits, const Powers& exponents,
                                             int m, int first, int from, int to) {
  double* const c = tiles.c + m * tiles.n + first;
  const double* const a = tiles.a + m * tiles.a_stride;
  const double* const power_of_a = exponents.a + m * kMaxK;
  const double least_c = power_of_two(tiles.least_exponent_c), least = power_of_two(kLeastExponent);
  const Four floor = {least, least, least, least};
  Four sums[kFours], largest[kFours], scale[kFours];
  for (int i = 0; i < kFours; ++i) {
    load(sums[i], c + 4 * i);
    largest[i] = sums[i];
    powers(largest[i], least_c);
    raise(largest[i], floor);
  }
  for (int k = from; k < to; ++k) {
    for (int i = 0; i < kFours; ++i) {
      Four product;
      load(product, exponents.b + k * tiles.n + first + 4 * i);
      product *= power_of_a[k];
      raise(largest[i], product);
    }
  }
  // 2^fraction_bits / largest, by the exponents.
  const std::int64_t exponent_sum = std::int64_t{2 * 1023 + fraction_bits} << kDoubleFractionBits;
  for (int i = 0; i < kFours; ++i) {
    const FourBits bits = exponent_sum - reinterpret_cast<const FourBits&>(largest[i]);
    scale[i] = reinterpret_cast<const Four&>(bits);
    sums[i] *= scale[i];
    truncate<kHardware>(sums[i]);
  }
  for (int k = from; k < to; ++k) {
    for (int i = 0; i < kFours; ++i) {
      Four product;
      load(product, tiles.b + k * tiles.n + first + 4 * i);
      product = a[k] * product * scale[i];
      truncate<kHardware>(product);
      sums[i] += product;
    }
  }
  for (int i = 0; i < kFours; ++i) {
    sums[i] *= largest[i] * power_of_two(-fraction_bits);
    store(c + 4 * i, sums[i]);
  }
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

template <bool kHardware>
[[gnu::always_inline]] inline void add_aligned(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Powers exponents;
  const double least_a = power_of_two(tiles.least_exponent_a), least_b = power_of_two(tiles.least_exponent_b);
  const auto take_powers =
      [](const double* values, int count, double least, double* to) __attribute__((always_inline)) {
    for (int i = 0; i < count; i += 4) {
      Four four;
      load(four, values + i);
      powers(four, least);
      store(to + i, four);
    }
  };
  for (int m = 0; m < tiles.m; ++m)
    take_powers(tiles.a + m * tiles.a_stride, tiles.k, least_a, exponents.a + m * kMaxK);
  take_powers(tiles.b, tiles.k * tiles.n, least_b, exponents.b);
  const int block = how.block_bytes / tiles.element_bytes;
  for (int from = 0; from < tiles.k; from += block) {
    const int to = std::min(from + block, tiles.k);
    for (int m = 0; m < tiles.m; ++m) {
      for (int first = 0; first + 8 <= tiles.n; first += 8)
        add_block<kHardware, 2>(tiles, how.fraction_bits, exponents, m, first, from, to);
      if (tiles.n % 8 != 0) add_block<kHardware, 1>(tiles, how.fraction_bits, exponents, m, tiles.n - 4, from, to);
    }
    if (to < tiles.k) round_all(tiles.c, tiles.m * tiles.n, how.rounding);
  }
}

template <bool kHardware>
[[gnu::always_inline]] inline void multiply_add_inline(const ProductTiles& tiles, const TensorCoreSum& how) {
  const Cut cut = cut_of(tiles, how);
  if (cut == Cut::unknown) {
    add_aligned<kHardware>(tiles, how);
  } else {
    add_exact(tiles);
    if (cut == Cut::nothing) return;
  }
  // The caller rounds to f16 when it stores.
  if (how.rounding != SumRounding::f16_nearest) round_all(tiles.c, tiles.m * tiles.n, how.rounding);
}

TILEWRIGHT_TARGET_FMA void multiply_add_with_hardware(const ProductTiles& tiles, const TensorCoreSum& how) {
  multiply_add_inline<true>(tiles, how);
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
    multiply_add_inline<false>(tiles, how);
  }
}

}  // namespace tilewright::emulator
