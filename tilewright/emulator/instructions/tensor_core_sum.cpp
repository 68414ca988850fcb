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

constexpr int kMaxN = 256;
constexpr int kMaxK = 32;
constexpr int kLeastExponent = -126;  // the alignment never goes below it
constexpr int kDoubleFractionBits = 52;
constexpr int kFloatFractionBits = 23;

[[gnu::always_inline]] inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(exponent + 1023))
                               << kDoubleFractionBits);
}

// Several rows of a column at a time: 16 where the CPU has vectors of 64 bytes, else 8. Vectors are passed by
// reference, as their ABI depends on the target.

template <int kRows>
struct Vectors;
template <>
struct Vectors<8> {
  using Floats = float __attribute__((vector_size(32)));
  using Ints = std::int32_t __attribute__((vector_size(32)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using HalfFloats = float __attribute__((vector_size(16)));
  using HalfInts = std::int32_t __attribute__((vector_size(16)));
  using HalfDoubles = double __attribute__((vector_size(32)));
  using HalfLongs = std::int64_t __attribute__((vector_size(32)));
};
template <>
struct Vectors<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Ints = std::int32_t __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using HalfFloats = float __attribute__((vector_size(32)));
  using HalfInts = std::int32_t __attribute__((vector_size(32)));
  using HalfDoubles = double __attribute__((vector_size(64)));
  using HalfLongs = std::int64_t __attribute__((vector_size(64)));
};

template <class Vector, class Element>
[[gnu::always_inline]] inline void load(Vector& to, const Element* from) {
  std::memcpy(&to, from, sizeof(to));
}
template <class Vector, class Element>
[[gnu::always_inline]] inline void store(Element* to, const Vector& from) {
  std::memcpy(to, &from, sizeof(from));
}
template <class Vector>
[[gnu::always_inline]] inline void raise(Vector& value, const Vector& to) {
  value = to > value ? to : value;
}

/// The bits of floats.
template <class Floats>
[[gnu::always_inline]] inline auto& bits_of(Floats& value) {
  return reinterpret_cast<typename Vectors<sizeof(Floats) / 4>::Ints&>(value);
}

constexpr std::int32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

/// What is true of all numbers of a tile.
struct Numbers {
  bool are_integers = true;    // of a magnitude below 2^22
  std::int32_t largest = 0;    // magnitude, as bits
  std::uint32_t smallest = 0;  // that is not zero, or kMagnitude if there is none

  float most() const { return std::bit_cast<float>(largest); }
  bool are_finite() const { return largest < kInfinity; }
  int largest_exponent() const { return (largest >> kFloatFractionBits) - 127; }
  /// A subnormal number has the exponent `least`.
  int smallest_exponent(int least) const {
    return std::max(static_cast<int>(smallest >> kFloatFractionBits) - 127, least);
  }
};

template <int kRows>
[[gnu::always_inline]] inline Numbers numbers_of(const float* values, int count) {
  constexpr float kInteger = 0x1.8p23F;  // adding and subtracting it rounds to an integer
  using Floats = typename Vectors<kRows>::Floats;
  using Ints = typename Vectors<kRows>::Ints;
  using Words = typename Vectors<kRows>::Words;
  Ints rests = {}, most = {};
  Words least = Words{} + kMagnitude;  // minus 1, so that zero is not the least
  for (int i = 0; i < count; i += kRows) {
    Floats some;
    load(some, values + i);
    Floats rest = some - ((some + kInteger) - kInteger);
    rests |= bits_of(rest);  // also of infinity and NaN
    const Ints magnitude = bits_of(some) & kMagnitude;
    raise(most, magnitude);
    const Words before = reinterpret_cast<const Words&>(magnitude) - 1;
    least = before < least ? before : least;
  }
  rests &= kMagnitude;
  Numbers numbers;
  numbers.smallest = kMagnitude;
  std::int32_t rest = 0;
  for (int i = 0; i < kRows; ++i) {
    rest |= rests[i];
    numbers.largest = std::max(numbers.largest, most[i]);
    numbers.smallest = std::min(numbers.smallest, least[i] + 1);
  }
  numbers.are_integers = rest == 0 && numbers.most() < 0x1p22F;
  return numbers;
}

[[gnu::always_inline]] inline int size_of_b(const ProductTiles& tiles) {
  return tiles.n * tiles.k * (tiles.b_has_rows ? kTileRows : 1);
}

enum class Method : std::uint8_t {
  exact,     // in f32: nothing is cut off
  integers,  // addends are cut off as 32-bit integers
  doubles,
};

template <int kRows>
[[gnu::always_inline]] inline Method method_of(const ProductTiles& tiles, const TensorCoreSum& how) {
  const int size_a = tiles.k * kTileRows, size_b = size_of_b(tiles), size_c = tiles.n * kTileRows;
  const Numbers a = numbers_of<kRows>(tiles.a, size_a), b = numbers_of<kRows>(tiles.b, size_b);
  const Numbers c = numbers_of<kRows>(tiles.c, size_c);
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
  const int of_products = a.smallest_exponent(tiles.least_exponent_a) + b.smallest_exponent(tiles.least_exponent_b);
  const int of_c = c.smallest_exponent(tiles.least_exponent_c);
  const bool fits = of_products >= kLeast && of_c >= kLeast && a.largest_exponent() + b.largest_exponent() <= kMost;
  return fits ? Method::integers : Method::doubles;
}

/// The distance of elements k and k + 1 of a column of B.
template <bool kHasRows>
constexpr int kStrideOfB = kHasRows ? kTileRows : 1;

/// Element k of a column of B: a number, or a number for each row.
template <bool kHasRows, class Element>
[[gnu::always_inline]] inline auto element_of(const Element* column, int k) {
  if constexpr (kHasRows) {
    return column + k * kTileRows;
  } else {
    return column[k];
  }
}

/// The elements from k of column n of B, for rows [row, ...) of A.
template <bool kHasRows, class Element>
[[gnu::always_inline]] inline const Element* column_of(const ProductTiles& tiles, const Element* b, int row, int n,
                                                       int k = 0) {
  return b + (n * tiles.k + k) * kStrideOfB<kHasRows> + (kHasRows ? row : 0);
}

template <class Vector, class Element>
[[gnu::always_inline]] inline void multiply(Vector& value, Element by) {
  if constexpr (std::is_pointer_v<Element>) {
    Vector factor;
    load(factor, by);
    value *= factor;
  } else {
    value *= by;
  }
}
template <class Vector, class Element>
[[gnu::always_inline]] inline void add(Vector& value, Element addend) {
  if constexpr (std::is_pointer_v<Element>) {
    Vector other;
    load(other, addend);
    value += other;
  } else {
    value += addend;
  }
}

/// The sums of `kColumns` columns stay in registers while k runs.
template <int kRows, int kColumns, bool kHasRows>
[[gnu::always_inline]] inline void add_exact_columns(const ProductTiles& tiles, int row, int first) {
  using Floats = typename Vectors<kRows>::Floats;
  float* const c = tiles.c + first * kTileRows + row;
  const float* columns[kColumns];
  Floats sums[kColumns];
  for (int n = 0; n < kColumns; ++n) {
    load(sums[n], c + n * kTileRows);
    columns[n] = column_of<kHasRows>(tiles, tiles.b, row, first + n);
  }
  for (int k = 0; k < tiles.k; ++k) {
    Floats a;
    load(a, tiles.a + k * kTileRows + row);
    for (int n = 0; n < kColumns; ++n) {
      Floats product = a;
      multiply(product, element_of<kHasRows>(columns[n], k));
      sums[n] += product;
    }
  }
  for (int n = 0; n < kColumns; ++n) store(c + n * kTileRows, sums[n]);
}

template <int kRows, bool kHasRows>
[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  constexpr int kColumns = 8;
  for (int row = 0; row < kTileRows; row += kRows) {
    int n = 0;
    for (; n + kColumns <= tiles.n; n += kColumns) add_exact_columns<kRows, kColumns, kHasRows>(tiles, row, n);
    for (; n < tiles.n; ++n) add_exact_columns<kRows, 1, kHasRows>(tiles, row, n);
  }
}

// Addends as 32-bit integers ----------------------------------------------------------------------------------------

/// The exponents of the numbers, which are at least `least`. That of zero is so small that no sum with it counts.
template <class Ints>
[[gnu::always_inline]] inline void exponents_of(const Ints& values, int least, Ints& to) {
  constexpr std::int32_t kOfZero = -1000;
  const Ints bits = values & kMagnitude;
  to = (bits >> kFloatFractionBits) - 127;
  raise(to, Ints{} + least);
  to = bits == 0 ? Ints{} + kOfZero : to;
}

template <int kRows>
[[gnu::always_inline]] inline void all_exponents(const float* values, int count, int least, std::int32_t* to) {
  for (int i = 0; i < count; i += kRows) {
    typename Vectors<kRows>::Ints bits, exponents;
    load(bits, values + i);
    exponents_of(bits, least, exponents);
    store(to + i, exponents);
  }
}

/// Halves of eight or sixteen integers, and two halves together.
template <bool kUpper, class Ints, class HalfInts>
[[gnu::always_inline]] inline void take_half(const Ints& from, HalfInts& to) {
  constexpr int kFirst = kUpper ? static_cast<int>(sizeof(HalfInts) / 4) : 0;
  if constexpr (sizeof(Ints) == 64) {
    to = __builtin_shufflevector(from, from, kFirst, kFirst + 1, kFirst + 2, kFirst + 3, kFirst + 4, kFirst + 5,
                                 kFirst + 6, kFirst + 7);
  } else {
    to = __builtin_shufflevector(from, from, kFirst, kFirst + 1, kFirst + 2, kFirst + 3);
  }
}
template <class HalfFloats, class Floats>
[[gnu::always_inline]] inline void join(const HalfFloats& low, const HalfFloats& high, Floats& to) {
  if constexpr (sizeof(Floats) == 64) {
    to = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  } else {
    to = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }
}

/// Half of the sums of integers, of which the bits that the result does not have are cut off. Where the result will be
/// rounded to the nearest f16, the last bit is set if anything was cut off.
template <bool kUpper, int kRows>
[[gnu::always_inline]] inline void rounded_half(const typename Vectors<kRows>::Ints& even,
                                                const typename Vectors<kRows>::Ints& odd, SumRounding rounding,
                                                typename Vectors<kRows>::HalfFloats& to) {
  using HalfDoubles = typename Vectors<kRows>::HalfDoubles;
  using HalfLongs = typename Vectors<kRows>::HalfLongs;
  typename Vectors<kRows>::HalfInts of_even, of_odd;
  take_half<kUpper>(even, of_even);
  take_half<kUpper>(odd, of_odd);
  HalfDoubles sum = __builtin_convertvector(of_even, HalfDoubles) + __builtin_convertvector(of_odd, HalfDoubles);
  const int fraction_bits = rounding == SumRounding::f32_of_13_bits ? 13 : kFloatFractionBits;
  const std::int64_t last = std::int64_t{1} << (kDoubleFractionBits - fraction_bits);
  auto& bits = reinterpret_cast<HalfLongs&>(sum);
  if (rounding == SumRounding::f16_nearest) {
    const HalfLongs rest = bits & (last - 1);
    bits |= rest != 0 ? HalfLongs{} + last : HalfLongs{};
  }
  bits &= -last;
  to = __builtin_convertvector(sum, typename Vectors<kRows>::HalfFloats);
}

/// Rounds to the nearest f16; what is 65520 or more becomes infinity.
template <class Floats>
[[gnu::always_inline]] inline void round_to_f16(Floats& value) {
  constexpr int kCut = kFloatFractionBits - 10;
  constexpr float kSubnormal = 0x1.8p-1F;  // its last bit is that of a subnormal f16
  auto bits = bits_of(value);
  const auto sign = bits & ~kMagnitude;
  bits &= kMagnitude;
  const auto magnitudes = bits;
  bits += ((1 << (kCut - 1)) - 1) + ((bits >> kCut) & 1);
  bits &= ~((1 << kCut) - 1);
  bits = bits > std::bit_cast<std::int32_t>(65504.0F) ? bits * 0 + kInfinity : bits;
  const Floats subnormal = (reinterpret_cast<const Floats&>(magnitudes) + kSubnormal) - kSubnormal;
  bits = magnitudes < std::bit_cast<std::int32_t>(0x1p-14F) ? bits_of(const_cast<Floats&>(subnormal)) : bits;
  bits |= sign;
  value = reinterpret_cast<const Floats&>(bits);
}

struct Exponents {
  alignas(64) std::int32_t a[kMaxK * kTileRows];
  alignas(64) std::int32_t b[kMaxN * kMaxK];
};

/// Rows of A, or of the exponents of A, and a column of B, or of its exponents.
template <class Element>
struct Factors {
  const Element* a = nullptr;
  const Element* b = nullptr;
};

/// Adds `count` products to rows of a column of C.
template <int kRows, bool kHasRows, class Count>
[[gnu::always_inline]] inline void add_integers(const Factors<float>& numbers, const Factors<std::int32_t>& exponents,
                                                Count count, int least_exponent_c, const TensorCoreSum& how,
                                                typename Vectors<kRows>::Floats& c) {
  using Floats = typename Vectors<kRows>::Floats;
  using Ints = typename Vectors<kRows>::Ints;
  Ints largest;
  exponents_of(bits_of(c), std::max(least_exponent_c, kLeastExponent), largest);
  raise(largest, Ints{} + kLeastExponent);
  for (int k = 0; k < count; ++k) {
    Ints exponent;
    load(exponent, exponents.a + k * kTileRows);
    add(exponent, element_of<kHasRows>(exponents.b, k));
    raise(largest, exponent);
  }
  constexpr int kLargestScale = 127;  // more is needed for zeros only
  Ints scale_bits = how.fraction_bits - largest;
  const Ints most = Ints{} + kLargestScale;
  scale_bits = ((scale_bits < most ? scale_bits : most) + 127) << kFloatFractionBits;
  const Floats& scale = reinterpret_cast<const Floats&>(scale_bits);
  // The scaled addends are less than 2^27, so that two sums of up to 16 each do not overflow. A sum of addends that
  // were all cut off to zero is -0 if they are all negative.
  Ints sums[2] = {__builtin_convertvector(c * scale, Ints), Ints{}};
  Ints all_negative = bits_of(c);
  for (int k = 0; k < count; k += 2) {
    for (int odd = 0; odd < 2; ++odd) {
      Floats product;
      load(product, numbers.a + (k + odd) * kTileRows);
      multiply(product, element_of<kHasRows>(numbers.b, k + odd));
      all_negative &= bits_of(product);
      sums[odd] += __builtin_convertvector(product * scale, Ints);
    }
  }
  typename Vectors<kRows>::HalfFloats low, high;
  rounded_half<false, kRows>(sums[0], sums[1], how.rounding, low);
  rounded_half<true, kRows>(sums[0], sums[1], how.rounding, high);
  Floats sum;
  join(low, high, sum);
  const Ints power_bits = (largest + 127) << kFloatFractionBits;
  sum *= static_cast<float>(power_of_two(-how.fraction_bits));
  sum *= reinterpret_cast<const Floats&>(power_bits);
  if (how.rounding == SumRounding::f16_nearest) round_to_f16(sum);
  bits_of(sum) |= all_negative & ~kMagnitude;
  constexpr int kOfInfinity = 128;  // the sum of the blocks before may be infinite
  c = largest >= kOfInfinity ? c : sum;
}

template <int kRows, bool kHasRows>
[[gnu::always_inline]] inline void add_all_integers(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Exponents exponents;
  Exponents& all = exponents;
  all_exponents<kRows>(tiles.a, tiles.k * kTileRows, tiles.least_exponent_a, all.a);
  all_exponents<kRows>(tiles.b, size_of_b(tiles), tiles.least_exponent_b, all.b);
  constexpr int kUsual = 16;  // elements of a block, of which the loops are unrolled
  const int block = how.block_bytes / tiles.element_bytes;
  for (int n = 0; n < tiles.n; ++n) {
    for (int row = 0; row < kTileRows; row += kRows) {
      typename Vectors<kRows>::Floats c;
      load(c, tiles.c + n * kTileRows + row);
      for (int from = 0; from < tiles.k; from += block) {
        const int count = std::min(block, tiles.k - from);
        const int of_a = from * kTileRows + row;
        const Factors<float> numbers{tiles.a + of_a, column_of<kHasRows>(tiles, tiles.b, row, n, from)};
        const Factors<std::int32_t> of_factors{all.a + of_a, column_of<kHasRows>(tiles, all.b, row, n, from)};
        if (count == kUsual) {
          constexpr std::integral_constant<int, kUsual> kConstant;
          add_integers<kRows, kHasRows>(numbers, of_factors, kConstant, tiles.least_exponent_c, how, c);
        } else {
          add_integers<kRows, kHasRows>(numbers, of_factors, count, tiles.least_exponent_c, how, c);
        }
      }
      store(tiles.c + n * kTileRows + row, c);
    }
  }
}

// Addends in f64 ----------------------------------------------------------------------------------------------------

using Four = double __attribute__((vector_size(32)));
using FourBits = std::int64_t __attribute__((vector_size(32)));
constexpr int kFours = kTileRows / 4;

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

/// The tiles of A and B, and powers() of all elements.
struct Doubles {
  alignas(32) double a[kMaxK * kTileRows], power_of_a[kMaxK * kTileRows];
  alignas(32) double b[kMaxN * kMaxK], power_of_b[kMaxN * kMaxK];
};

/// Adds the products [from, to) of K to a column of C.
template <bool kHardware, bool kHasRows>
[[gnu::always_inline]] inline void add_block(const ProductTiles& tiles, int fraction_bits, const Doubles& doubles,
                                             int n, int from, int to, double* c) {
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
      load(product, doubles.power_of_a + k * kTileRows + 4 * i);
      multiply(product, element_of<kHasRows>(column_of<kHasRows>(tiles, doubles.power_of_b, 4 * i, n), k));
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
      load(product, doubles.a + k * kTileRows + 4 * i);
      multiply(product, element_of<kHasRows>(column_of<kHasRows>(tiles, doubles.b, 4 * i, n), k));
      product *= scale[i];
      truncate<kHardware>(product);
      sums[i] += product;
    }
  }
  for (int i = 0; i < kFours; ++i) {
    sums[i] *= largest[i] * power_of_two(-fraction_bits);
    store(c + 4 * i, sums[i]);
  }
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

[[gnu::always_inline]] inline void round_column(double* values, SumRounding rounding) {
  switch (rounding) {
    case SumRounding::f16_nearest:
      for (int i = 0; i < kTileRows; ++i) values[i] = f16_to_f32(f64_to_f16(values[i]));
      break;
    case SumRounding::f32_toward_zero:
      for (int i = 0; i < kTileRows; ++i) values[i] = static_cast<float>(cut(values[i], kFloatFractionBits));
      break;
    case SumRounding::f32_of_13_bits:
      for (int i = 0; i < kTileRows; ++i) values[i] = static_cast<float>(cut(values[i], 13));
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

template <bool kHardware, bool kHasRows>
[[gnu::always_inline]] inline void add_doubles(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Doubles of_thread;
  Doubles& doubles = of_thread;
  take_doubles(tiles.a, tiles.k * kTileRows, power_of_two(tiles.least_exponent_a), doubles.a, doubles.power_of_a);
  take_doubles(tiles.b, size_of_b(tiles), power_of_two(tiles.least_exponent_b), doubles.b, doubles.power_of_b);
  const int block = how.block_bytes / tiles.element_bytes;
  for (int n = 0; n < tiles.n; ++n) {
    alignas(32) double c[kTileRows];
    for (int m = 0; m < kTileRows; ++m) c[m] = tiles.c[n * kTileRows + m];
    for (int from = 0; from < tiles.k; from += block) {
      add_block<kHardware, kHasRows>(tiles, how.fraction_bits, doubles, n, from, std::min(from + block, tiles.k), c);
      round_column(c, how.rounding);
    }
    for (int m = 0; m < kTileRows; ++m) tiles.c[n * kTileRows + m] = static_cast<float>(c[m]);
  }
}

// Dispatch ----------------------------------------------------------------------------------------------------------

template <int kRows, bool kHardware, bool kHasRows>
[[gnu::always_inline]] inline void multiply_add_inline(const ProductTiles& of_caller,
                                                       const TensorCoreSum& how_of_caller) {
  const ProductTiles tiles = of_caller;  // copies, which no store to C can change
  const TensorCoreSum how = how_of_caller;
  switch (method_of<kRows>(tiles, how)) {
    case Method::exact: {
      add_exact<kRows, kHasRows>(tiles);
      // The caller rounds to f16 when it stores, and what has 13 bits is cut here.
      if (how.rounding != SumRounding::f32_of_13_bits) return;
      for (int i = 0; i < tiles.n * kTileRows; ++i) tiles.c[i] = static_cast<float>(cut(double{tiles.c[i]}, 13));
      return;
    }
    case Method::integers:
      return add_all_integers<kRows, kHasRows>(tiles, how);
    case Method::doubles:
      return add_doubles<kHardware, kHasRows>(tiles, how);
  }
}

constexpr int kShort = 8, kLong = 16;

TILEWRIGHT_TARGET_AVX512 void multiply_add_with_avx512(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (tiles.b_has_rows) return multiply_add_inline<kLong, true, true>(tiles, how);
  multiply_add_inline<kLong, true, false>(tiles, how);
}
TILEWRIGHT_TARGET_FMA void multiply_add_with_fma(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (tiles.b_has_rows) return multiply_add_inline<kShort, true, true>(tiles, how);
  multiply_add_inline<kShort, true, false>(tiles, how);
}
void multiply_add_anywhere(const ProductTiles& tiles, const TensorCoreSum& how) {
  if (tiles.b_has_rows) return multiply_add_inline<kShort, false, true>(tiles, how);
  multiply_add_inline<kShort, false, false>(tiles, how);
}

TILEWRIGHT_TARGET_AVX512 void add_exact_with_avx512(const ProductTiles& tiles) {
  if (tiles.b_has_rows) return add_exact<kLong, true>(tiles);
  add_exact<kLong, false>(tiles);
}
TILEWRIGHT_TARGET_FMA void add_exact_with_fma(const ProductTiles& tiles) {
  if (tiles.b_has_rows) return add_exact<kShort, true>(tiles);
  add_exact<kShort, false>(tiles);
}
void add_exact_anywhere(const ProductTiles& tiles) {
  if (tiles.b_has_rows) return add_exact<kShort, true>(tiles);
  add_exact<kShort, false>(tiles);
}

/// Adds half of the products at a time: those with k % 4 < 2, then the others. n is at most 8.
void multiply_add_as_f16(const ProductTiles& tiles, const TensorCoreSum& how) {
  constexpr int kLeastExponentOfF16 = -14;
  constexpr int kColumns = 8;
  alignas(64) float a[kTileRows * kMaxK / 2], sums[kTileRows * kColumns] = {};
  alignas(64) float b[kColumns * kMaxK / 2 * kTileRows];
  const int of_b = tiles.b_has_rows ? kTileRows : 1;  // numbers of an element of B
  for (const int half : {0, 1}) {
    for (int i = 0; i < tiles.k / 2; ++i) {
      const int k = i / 2 * 4 + i % 2 + 2 * half;
      std::copy_n(tiles.a + k * kTileRows, kTileRows, a + i * kTileRows);
      for (int n = 0; n < tiles.n; ++n)
        std::copy_n(tiles.b + (n * tiles.k + k) * of_b, of_b, b + (n * tiles.k / 2 + i) * of_b);
    }
    ProductTiles of_half = tiles;
    of_half.k = tiles.k / 2;
    of_half.a = a;
    of_half.b = b;
    of_half.c = sums;
    of_half.element_bytes = 2;
    of_half.least_exponent_a = of_half.least_exponent_b = kLeastExponentOfF16;
    multiply_add(of_half, how);
  }
  for (int i = 0; i < kTileRows * tiles.n; ++i) {
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
  static const auto chosen = has_avx512()         ? &add_exact_with_avx512
                             : has_hardware_fma() ? &add_exact_with_fma
                                                  : &add_exact_anywhere;
  chosen(tiles);
}

void multiply_add(const ProductTiles& tiles, const TensorCoreSum& how) {
  static const auto chosen = has_avx512()         ? &multiply_add_with_avx512
                             : has_hardware_fma() ? &multiply_add_with_fma
                                                  : &multiply_add_anywhere;
  chosen(tiles, how);
}

}  // namespace tilewright::emulator
