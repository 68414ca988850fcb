// Sums of products with truncated addends.
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

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

// Eight numbers at a time, in f32 and 32-bit integers. Vectors are passed by reference, as their ABI depends on the
// target.

using Eight = float __attribute__((vector_size(32)));
using EightBits = std::int32_t __attribute__((vector_size(32)));

constexpr std::int32_t kInfinity = 0x7f800000;

[[gnu::always_inline]] inline void load(Eight& to, const float* from) { std::memcpy(&to, from, sizeof(to)); }
[[gnu::always_inline]] inline EightBits& as_bits(Eight& value) { return reinterpret_cast<EightBits&>(value); }
[[gnu::always_inline]] inline void take_magnitude(Eight& value) { as_bits(value) &= 0x7fffffff; }
[[gnu::always_inline]] inline void raise(EightBits& value, const EightBits& to) { value = to > value ? to : value; }

/// Calls f(vector) for all numbers, of which there is a multiple of four.
template <class F>
[[gnu::always_inline]] inline void each_eight(const float* values, int count, F&& f) {
  Eight eight;
  for (int i = 0; i + 8 <= count; i += 8) {
    load(eight, values + i);
    f(eight);
  }
  if (count % 8 == 0) return;
  eight = Eight{};
  std::memcpy(&eight, values + count - 4, sizeof(eight) / 2);
  f(eight);
}

/// This struct holds what is true of all numbers of a tile.
struct Numbers {
  bool are_integers = true;  // of a magnitude below 2^22
  std::int32_t largest = 0;  // magnitude, as bits

  [[gnu::always_inline]] Numbers(const float* values, int count) {
    constexpr float kInteger = 0x1.8p23F;  // adding and subtracting it rounds to an integer
    EightBits rests = {}, most = {};
    each_eight(
        values, count, [&](Eight & eight) __attribute__((always_inline)) {
          Eight rest = eight - ((eight + kInteger) - kInteger);
          take_magnitude(rest);
          rests |= as_bits(rest);  // also of infinity and NaN
          take_magnitude(eight);
          raise(most, as_bits(eight));
        });
    for (int i = 0; i < 8; ++i) {
      are_integers = are_integers && rests[i] == 0;
      largest = std::max(largest, most[i]);
    }
    are_integers = are_integers && this->most() < 0x1p22F;
  }
  float most() const { return std::bit_cast<float>(largest); }
  bool are_finite() const { return largest < kInfinity; }
  int largest_exponent() const { return (largest >> 23) - 127; }
};

/// The least exponent of the numbers that are not zero; that of a subnormal number is `least`.
[[gnu::always_inline]] inline int smallest_exponent(const float* values, int count, int least) {
  EightBits smallest = EightBits{} + kInfinity;
  each_eight(
      values, count, [&](Eight & eight) __attribute__((always_inline)) {
        take_magnitude(eight);
        EightBits magnitude = as_bits(eight);
        magnitude = magnitude == 0 ? EightBits{} + kInfinity : magnitude;
        smallest = magnitude < smallest ? magnitude : smallest;
      });
  std::int32_t bits = kInfinity;
  for (int i = 0; i < 8; ++i) bits = std::min(bits, smallest[i]);
  return std::max((bits >> 23) - 127, least);
}

enum class Method : std::uint8_t {
  exact,     // in f32: nothing is cut off
  integers,  // addends are cut off as 32-bit integers
  doubles,
};

[[gnu::always_inline]] inline Method method_of(const ProductTiles& tiles, const TensorCoreSum& how) {
  const Numbers a(tiles.a, tiles.m * tiles.k), b(tiles.b, tiles.k * tiles.n), c(tiles.c, tiles.m * tiles.n);
  if (!a.are_finite() || !b.are_finite() || !c.are_finite()) return Method::doubles;
  if (a.are_integers && b.are_integers && c.are_integers) {
    // Addends below 2^fraction_bits are not cut off. Sums that fit into the result need no rounding between two blocks.
    static constexpr int kResultBits[] = {11, 24, 14};
    const bool one_block = tiles.k * tiles.element_bytes <= how.block_bytes;
    const int bits = one_block ? 24 : kResultBits[static_cast<int>(how.rounding)];
    const double most = double{a.most()} * b.most(), limit = power_of_two(how.fraction_bits);
    if (most < limit && c.most() < limit && most * tiles.k + c.most() < power_of_two(bits)) return Method::exact;
  }
  // Products must be exact in f32, and so must the powers of two that scale them.
  constexpr int kLeast = -100, kMost = 125;
  const int of_products = smallest_exponent(tiles.a, tiles.m * tiles.k, tiles.least_exponent_a) +
                          smallest_exponent(tiles.b, tiles.k * tiles.n, tiles.least_exponent_b);
  const int of_c = smallest_exponent(tiles.c, tiles.m * tiles.n, tiles.least_exponent_c);
  const bool fits = of_products >= kLeast && of_c >= kLeast && a.largest_exponent() + b.largest_exponent() <= kMost;
  return fits && tiles.n % 8 == 0 && tiles.m * tiles.k % 8 == 0 ? Method::integers : Method::doubles;
}

/// The sums of `kRows` rows and eight columns stay in registers while k runs.
template <int kRows>
[[gnu::always_inline]] inline void add_exact_rows(const ProductTiles& tiles, int m, int first) {
  float* const c = tiles.c + m * tiles.n + first;
  const float* const a = tiles.a + m * tiles.k;
  Eight sums[kRows];
  for (int row = 0; row < kRows; ++row) load(sums[row], c + row * tiles.n);
  for (int k = 0; k < tiles.k; ++k) {
    Eight of_b;
    load(of_b, tiles.b + k * tiles.n + first);
    for (int row = 0; row < kRows; ++row) sums[row] += a[row * tiles.k + k] * of_b;
  }
  for (int row = 0; row < kRows; ++row) std::memcpy(c + row * tiles.n, &sums[row], sizeof(Eight));
}

[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  for (int first = 0; first + 8 <= tiles.n; first += 8) {
    int m = 0;
    for (; m + 8 <= tiles.m; m += 8) add_exact_rows<8>(tiles, m, first);
    for (; m < tiles.m; ++m) add_exact_rows<1>(tiles, m, first);
  }
  for (int m = 0; m < tiles.m; ++m) {
    for (int n = tiles.n / 8 * 8; n < tiles.n; ++n) {
      for (int k = 0; k < tiles.k; ++k) tiles.c[m * tiles.n + n] += tiles.a[m * tiles.k + k] * tiles.b[k * tiles.n + n];
    }
  }
}

/// The exponents of the numbers, which are at least `least`. That of zero is so small that no sum with it counts.
[[gnu::always_inline]] inline void exponents_of(const Eight& values, int least, EightBits& to) {
  constexpr std::int32_t kOfZero = -1000;
  Eight magnitudes = values;
  take_magnitude(magnitudes);
  const EightBits bits = as_bits(magnitudes);
  to = (bits >> 23) - 127;
  raise(to, EightBits{} + least);
  to = bits == 0 ? EightBits{} + kOfZero : to;
}

/// Eight columns of B, and the exponents of its numbers.
struct Panel {
  alignas(32) float b[kMaxK][8];
  alignas(32) std::int32_t exponents[kMaxK][8];

  [[gnu::always_inline]] void take(const ProductTiles& tiles, int first) {
    for (int k = 0; k < tiles.k; ++k) {
      Eight values;
      load(values, tiles.b + k * tiles.n + first);
      EightBits of_values;
      exponents_of(values, tiles.least_exponent_b, of_values);
      std::memcpy(b[k], &values, sizeof(values));
      std::memcpy(exponents[k], &of_values, sizeof(of_values));
    }
  }
};

/// The sum of addends that were all cut off to zero is -0 if they are all negative.
inline bool is_negative_zero(const ProductTiles& tiles, int m, int n, int from, int to) {
  bool negative = std::signbit(tiles.c[m * tiles.n + n]);
  for (int k = from; k < to && negative; ++k)
    negative = std::signbit(tiles.a[m * tiles.k + k]) != std::signbit(tiles.b[k * tiles.n + n]);
  return negative;
}

/// Rounds toward zero; what is 2^128 or more becomes infinity.
[[gnu::always_inline]] inline float f32_toward_zero(double value) {
  const auto nearest = static_cast<float>(value);
  const bool too_large = std::fabs(double{nearest}) > std::fabs(value) && std::fabs(value) < 0x1p128;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - (too_large ? 1U : 0U));
}

/// Adds the products [from, from + count) of K to eight columns of a row of C. Gives the sums before they are rounded.
[[gnu::always_inline]] inline void add_integers(const ProductTiles& tiles, int fraction_bits, const Panel& panel,
                                                const std::int32_t* exponents_of_a, int m, int first, int from,
                                                int count, double* result) {
  const float* const a = tiles.a + m * tiles.k + from;
  Eight addend;
  load(addend, tiles.c + m * tiles.n + first);
  EightBits largest;
  exponents_of(addend, std::max(tiles.least_exponent_c, kLeastExponent), largest);
  raise(largest, EightBits{} + kLeastExponent);
  for (int k = 0; k < count; ++k) {
    EightBits exponent;
    std::memcpy(&exponent, panel.exponents[from + k], sizeof(exponent));
    exponent += exponents_of_a[from + k];
    raise(largest, exponent);
  }
  constexpr int kLargestScale = 127;  // more is needed for zeros only
  EightBits scale_bits = fraction_bits - largest;
  const EightBits most = EightBits{} + kLargestScale;
  scale_bits = ((scale_bits < most ? scale_bits : most) + 127) << 23;
  const Eight& scale = reinterpret_cast<const Eight&>(scale_bits);
  // The scaled addends are less than 2^27, so that two sums of up to 16 each do not overflow.
  EightBits even = __builtin_convertvector(addend * scale, EightBits), odd = {};
  for (int k = 0; k < count; k += 2) {
    load(addend, panel.b[from + k]);
    even += __builtin_convertvector(a[k] * addend * scale, EightBits);
    load(addend, panel.b[from + k + 1]);
    odd += __builtin_convertvector(a[k + 1] * addend * scale, EightBits);
  }
  // The sum of the blocks before may be infinite.
  constexpr int kOfInfinity = 128;
  bool special = false;
  for (int i = 0; i < 8; ++i) {
    result[i] = (double(even[i]) + double(odd[i])) * power_of_two(largest[i] - fraction_bits);
    special |= result[i] == 0 || largest[i] >= kOfInfinity;
  }
  for (int i = 0; special && i < 8; ++i) {
    if (largest[i] >= kOfInfinity) result[i] = tiles.c[m * tiles.n + first + i];
    if (result[i] == 0 && is_negative_zero(tiles, m, first + i, from, from + count)) result[i] = -0.0;
  }
}

// Four columns at a time. Vectors are passed by reference, as their ABI depends on the target.

using Four = double __attribute__((vector_size(32)));
using FourBits = std::int64_t __attribute__((vector_size(32)));

[[gnu::always_inline]] inline void load(Four& to, const double* from) { std::memcpy(&to, from, sizeof(to)); }
[[gnu::always_inline]] inline void store(double* to, const Four& from) { std::memcpy(to, &from, sizeof(from)); }
[[gnu::always_inline]] inline void raise(Four& value, const Four& to) { value = to > value ? to : value; }

template <bool kHardware>
[[gnu::always_inline]] inline void truncate(Four& value) {
#if defined(__x86_64__) && !defined(__clang__)  // clang has no such vectors in code for any x86-64
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
  value = ((bits == 0) | (bits == kExponent)) ? zero : power;
}

/// The tiles in f64, with the same strides but for that of A, and powers() of all elements.
struct Doubles {
  double a[kMaxM * kMaxK], power_of_a[kMaxM * kMaxK];
  double b[kMaxK * kMaxN], power_of_b[kMaxK * kMaxN];
  double c[kMaxM * kMaxN];
};

/// Adds the products [from, to) of K to `kFours` times four columns of a row of C.
template <bool kHardware, int kFours>
[[gnu::always_inline]] inline void add_block(const ProductTiles& tiles, int fraction_bits, Doubles& doubles, int m,
                                             int first, int from, int to) {
  double* const c = doubles.c + m * tiles.n + first;
  const double* const a = doubles.a + m * kMaxK;
  const double* const power_of_a = doubles.power_of_a + m * kMaxK;
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
      load(product, doubles.power_of_b + k * tiles.n + first + 4 * i);
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
      load(product, doubles.b + k * tiles.n + first + 4 * i);
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
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(cut(values[i], 23));
      break;
    case SumRounding::f32_of_13_bits:
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(cut(values[i], 13));
      break;
  }
}

[[gnu::always_inline]] inline void take_doubles(const float* values, int count, double least, double* to,
                                                double* power) {
  for (int i = 0; i < count; ++i) to[i] = values[i];
  for (int i = 0; i < count; i += 4) {
    Four four;
    load(four, to + i);
    powers(four, least);
    store(power + i, four);
  }
}

template <bool kHardware>
[[gnu::always_inline]] inline void add_doubles(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Doubles doubles;
  const double least_a = power_of_two(tiles.least_exponent_a), least_b = power_of_two(tiles.least_exponent_b);
  for (int m = 0; m < tiles.m; ++m) {
    take_doubles(tiles.a + m * tiles.k, tiles.k, least_a, doubles.a + m * kMaxK, doubles.power_of_a + m * kMaxK);
  }
  take_doubles(tiles.b, tiles.k * tiles.n, least_b, doubles.b, doubles.power_of_b);
  const int count = tiles.m * tiles.n;
  for (int i = 0; i < count; ++i) doubles.c[i] = tiles.c[i];
  const int block = how.block_bytes / tiles.element_bytes;
  for (int from = 0; from < tiles.k; from += block) {
    const int to = std::min(from + block, tiles.k);
    for (int m = 0; m < tiles.m; ++m) {
      for (int first = 0; first + 8 <= tiles.n; first += 8)
        add_block<kHardware, 2>(tiles, how.fraction_bits, doubles, m, first, from, to);
      if (tiles.n % 8 != 0) add_block<kHardware, 1>(tiles, how.fraction_bits, doubles, m, tiles.n - 4, from, to);
    }
    round_all(doubles.c, count, how.rounding);
  }
  for (int i = 0; i < count; ++i) tiles.c[i] = static_cast<float>(doubles.c[i]);
}

[[gnu::always_inline]] inline void add_all_integers(const ProductTiles& tiles, const TensorCoreSum& how) {
  alignas(32) std::int32_t exponents_of_a[kMaxM * kMaxK];
  for (int i = 0; i < tiles.m * tiles.k; i += 8) {
    Eight values;
    load(values, tiles.a + i);
    EightBits exponents;
    exponents_of(values, tiles.least_exponent_a, exponents);
    std::memcpy(exponents_of_a + i, &exponents, sizeof(exponents));
  }
  Panel panel;
  const int block = how.block_bytes / tiles.element_bytes;
  const auto add = [&](int first, int from, auto count) __attribute__((always_inline)) {
    for (int m = 0; m < tiles.m; ++m) {
      alignas(32) double sums[8];
      add_integers(tiles, how.fraction_bits, panel, exponents_of_a + m * tiles.k, m, first, from, count, sums);
      float* const c = tiles.c + m * tiles.n + first;
      if (how.rounding == SumRounding::f32_toward_zero) {
        for (int i = 0; i < 8; ++i) c[i] = f32_toward_zero(sums[i]);
      } else {
        round_all(sums, 8, how.rounding);
        for (int i = 0; i < 8; ++i) c[i] = static_cast<float>(sums[i]);
      }
    }
  };
  constexpr int kUsual = 16;  // elements of a block, of which the loops are unrolled
  for (int first = 0; first < tiles.n; first += 8) {
    panel.take(tiles, first);
    for (int from = 0; from < tiles.k; from += block) {
      const int count = std::min(block, tiles.k - from);
      if (count == kUsual) {
        add(first, from, std::integral_constant<int, kUsual>());
      } else {
        add(first, from, count);
      }
    }
  }
}

template <bool kHardware>
[[gnu::always_inline]] inline void multiply_add_inline(const ProductTiles& tiles, const TensorCoreSum& how) {
  switch (method_of(tiles, how)) {
    case Method::exact: {
      add_exact(tiles);
      if (how.rounding == SumRounding::f32_toward_zero) return;
      // The caller rounds to f16 when it stores, and what has 13 bits is cut here.
      if (how.rounding == SumRounding::f16_nearest) return;
      double row[kMaxN];
      for (int m = 0; m < tiles.m; ++m) {
        float* const c = tiles.c + m * tiles.n;
        for (int n = 0; n < tiles.n; ++n) row[n] = c[n];
        round_all(row, tiles.n, how.rounding);
        for (int n = 0; n < tiles.n; ++n) c[n] = static_cast<float>(row[n]);
      }
      return;
    }
    case Method::integers:
      return add_all_integers(tiles, how);
    case Method::doubles:
      return add_doubles<kHardware>(tiles, how);
  }
}

TILEWRIGHT_TARGET_FMA void multiply_add_with_hardware(const ProductTiles& tiles, const TensorCoreSum& how) {
  multiply_add_inline<true>(tiles, how);
}

TILEWRIGHT_TARGET_FMA void multiply_add_integers_with_hardware(const ProductTiles& tiles) { add_exact(tiles); }

/// Adds half of the products at a time: those with k % 4 < 2, then the others. n is at most 8.
void multiply_add_as_f16(const ProductTiles& tiles, const TensorCoreSum& how) {
  constexpr int kLeastExponentOfF16 = -14;
  constexpr int kMaxOfA = kMaxM * kMaxK / 2, kMaxOfB = kMaxK / 2 * 8, kMaxOfC = kMaxM * 8;
  alignas(32) float a[kMaxOfA], b[kMaxOfB], sums[kMaxOfC] = {};
  for (const int half : {0, 1}) {
    for (int i = 0; i < tiles.k / 2; ++i) {
      const int k = i / 2 * 4 + i % 2 + 2 * half;
      for (int m = 0; m < tiles.m; ++m) a[m * (tiles.k / 2) + i] = tiles.a[m * tiles.k + k];
      std::copy_n(tiles.b + k * tiles.n, tiles.n, b + i * tiles.n);
    }
    multiply_add({tiles.m, tiles.n, tiles.k / 2, a, b, sums, 2, kLeastExponentOfF16, kLeastExponentOfF16,
                  tiles.least_exponent_c},
                 how);
  }
  for (int i = 0; i < tiles.m * tiles.n; ++i) {
    tiles.c[i] = how.rounding == SumRounding::f16_nearest ? f16_to_f32(f64_to_f16(double{tiles.c[i]} + sums[i]))
                                                          : tiles.c[i] + sums[i];
  }
}

}  // namespace

TensorCoreSum sum_of_mma(const Target& target, int element_bytes, bool f16_result) {
  const SumRounding rounding = f16_result ? SumRounding::f16_nearest : SumRounding::f32_toward_zero;
  if (target.sm >= 90) return {25, 32, rounding};
  if (element_bytes == 1) return {13, 16, f16_result ? rounding : SumRounding::f32_of_13_bits};
  return {24, 16, rounding};
}

void multiply_add_of_mma(const ProductTiles& tiles, const Target& target, bool f16_result) {
  if (tiles.element_bytes == 1 && target.sm == 90) {
    multiply_add_as_f16(tiles, sum_of_mma(target, 2, f16_result));
  } else {
    multiply_add(tiles, sum_of_mma(target, tiles.element_bytes, f16_result));
  }
}

TensorCoreSum sum_of_wgmma(int element_bytes, bool f16_result) {
  const SumRounding rounding = f16_result ? SumRounding::f16_nearest : SumRounding::f32_toward_zero;
  if (element_bytes == 1) return {13, 32, f16_result ? rounding : SumRounding::f32_of_13_bits};
  return {25, 32, rounding};
}

void multiply_add_integers(const ProductTiles& tiles) {
  if (has_hardware_fma()) {
    multiply_add_integers_with_hardware(tiles);
  } else {
    add_exact(tiles);
  }
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
