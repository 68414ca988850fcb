// Sums of products with truncated addends.
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/any_bit.hpp"
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
  using Shorts = std::int16_t __attribute__((vector_size(32)));
  using HalfShorts = std::int16_t __attribute__((vector_size(16)));
  using UnsignedShorts = std::uint16_t __attribute__((vector_size(32)));
  using UnsignedHalfShorts = std::uint16_t __attribute__((vector_size(16)));
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
  using Shorts = std::int16_t __attribute__((vector_size(64)));
  using HalfShorts = std::int16_t __attribute__((vector_size(32)));
  using UnsignedShorts = std::uint16_t __attribute__((vector_size(64)));
  using UnsignedHalfShorts = std::uint16_t __attribute__((vector_size(32)));
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

/// The largest magnitude of numbers that are integers below 2^22, or infinity if they are not.
template <int kRows>
[[gnu::always_inline]] inline float largest_integer(const float* values, int count) {
  constexpr float kInteger = 0x1.8p23F;  // adding and subtracting it rounds to an integer
  using Floats = typename Vectors<kRows>::Floats;
  using Ints = typename Vectors<kRows>::Ints;
  Ints rests = {}, most = {};
  for (int i = 0; i < count; i += kRows) {
    Floats some;
    load(some, values + i);
    Floats rest = some - ((some + kInteger) - kInteger);
    rests |= bits_of(rest) & kMagnitude;  // also of infinity and NaN
    raise(most, bits_of(some) & kMagnitude);
    if (i == 0 && any_bit(rests)) break;  // the first numbers of a tile with fractions usually have some
  }
  std::int32_t largest = 0;
  for (int i = 0; i < kRows; ++i) largest = std::max(largest, most[i]);
  const float magnitude = std::bit_cast<float>(largest);
  return any_bit(rests) || magnitude >= 0x1p22F ? std::bit_cast<float>(kInfinity) : magnitude;
}

[[gnu::always_inline]] inline int size_of_b(const ProductTiles& tiles) {
  return tiles.n * tiles.k * (tiles.b_has_rows ? kTileRows : 1);
}

/// Whether f32 holds all sums, so that nothing is cut off.
template <int kRows>
[[gnu::always_inline]] inline bool is_exact(const ProductTiles& tiles, const TensorCoreSum& how) {
  constexpr float kNone = std::bit_cast<float>(kInfinity);
  const float a = largest_integer<kRows>(tiles.a, tiles.k * kTileRows);
  if (a == kNone) return false;
  const float b = largest_integer<kRows>(tiles.b, size_of_b(tiles));
  if (b == kNone) return false;
  const float c = largest_integer<kRows>(tiles.c, tiles.n * kTileRows);
  if (c == kNone) return false;
  // Addends below 2^fraction_bits are not cut off. Sums that fit into the result need no rounding between two blocks.
  static constexpr int kResultBits[] = {11, 24, 14};
  const bool one_block = tiles.k * tiles.element_bytes <= how.block_bytes;
  const int bits = one_block ? 24 : kResultBits[static_cast<int>(how.rounding)];
  const double most = double{a} * b, limit = power_of_two(how.fraction_bits);
  return most < limit && c < limit && most * tiles.k + c < power_of_two(bits);
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

constexpr int kUsualK = 16;  // loops over so many elements are unrolled

/// Calls f(count), with a constant if it is the usual one.
template <class F>
[[gnu::always_inline]] inline void with_count(int count, F&& f) {
  if (count == kUsualK) return f(std::integral_constant<int, kUsualK>());
  f(count);
}

/// The sums of `kColumns` columns stay in registers while k runs. C is added last, so that the products do not wait for
/// it: most often, it is the result of the instruction before. As all sums are exact, their order does not matter, and
/// a sum is -0 only if all addends are.
template <int kRows, int kColumns, bool kHasRows, class Count>
[[gnu::always_inline]] inline void add_exact_columns(const ProductTiles& tiles, int row, int first, Count count) {
  using Floats = typename Vectors<kRows>::Floats;
  float* const c = tiles.c + first * kTileRows + row;
  const float* const columns = column_of<kHasRows>(tiles, tiles.b, row, first);
  Floats sums[kColumns];
  for (Floats& sum : sums) sum = -Floats{};  // adding -0 changes nothing
  for (int k = 0; k < count; ++k) {
    Floats a;
    load(a, tiles.a + k * kTileRows + row);
    for (int n = 0; n < kColumns; ++n) {
      Floats product = a;
      multiply(product, element_of<kHasRows>(columns, n * count + k));
      sums[n] += product;
    }
  }
  for (int n = 0; n < kColumns; ++n) {
    add(sums[n], c + n * kTileRows);
    store(c + n * kTileRows, sums[n]);
  }
}

template <int kRows, bool kHasRows>
[[gnu::always_inline]] inline void add_exact(const ProductTiles& tiles) {
  constexpr int kColumns = 8;
  with_count(
      tiles.k, [&](auto count) __attribute__((always_inline)) {
        for (int row = 0; row < kTileRows; row += kRows) {
          int n = 0;
          for (; n + kColumns <= tiles.n; n += kColumns)
            add_exact_columns<kRows, kColumns, kHasRows>(tiles, row, n, count);
          for (; n < tiles.n; ++n) add_exact_columns<kRows, 1, kHasRows>(tiles, row, n, count);
        }
      });
}

// Addends as 32-bit integers ----------------------------------------------------------------------------------------

// Products must be exact in f32, and so must the powers of two that scale them. Numbers of A and B have magnitudes of
// 2^kLeastFactor to 2^kMostFactor, so that a sum of products that is not zero is at least 2^kLeastAddend, as C is.
constexpr int kLeastFactor = -35, kMostFactor = 62;
constexpr int kLeastAddend = 2 * kLeastFactor - 25;

/// The extremes of the magnitudes of floats, each of which `Lanes` has as its upper half.
template <class Lanes, class UnsignedLanes>
struct Magnitudes {
  Lanes largest = {};
  UnsignedLanes smallest = UnsignedLanes{} - 1;  // minus 1, so that zero is not the smallest

  [[gnu::always_inline]] void count(const Lanes& magnitude) {
    raise(largest, magnitude);
    const UnsignedLanes before = reinterpret_cast<const UnsignedLanes&>(magnitude) - 1;
    smallest = before < smallest ? before : smallest;
  }
  /// `exponent_bit`: the lowest bit of the exponent in a lane.
  [[gnu::always_inline]] bool are_within(int least_exponent, int most_exponent, int exponent_bit) const {
    using Lane = std::remove_cvref_t<decltype(largest[0])>;
    using UnsignedLane = std::remove_cvref_t<decltype(smallest[0])>;
    const auto least_bits = static_cast<UnsignedLane>(((least_exponent + 127) << exponent_bit) - 1);
    const auto most_bits = static_cast<Lane>(((most_exponent + 128) << exponent_bit) - 1);
    const UnsignedLanes least = UnsignedLanes{} + least_bits;
    const Lanes most = Lanes{} + most_bits;
    // Comparisons of vectors of 16-bit integers would be made one by one.
    const UnsignedLanes less = smallest < least ? smallest : least;
    const Lanes more = largest > most ? largest : most;
    const UnsignedLanes outside =
        (less ^ least) | reinterpret_cast<const UnsignedLanes&>(static_cast<const Lanes&>(more ^ most));
    return !any_bit(outside);
  }
};

/// The exponents of the numbers of which `upper` has the upper halves. They are at least `least`; that of zero is so
/// small that no sum with it counts. bf16 and narrower types are not zero if their upper half is not.
template <class Shorts, class Range>
[[gnu::always_inline]] inline void exponents_of(const Shorts& upper, int least, Range& range, std::int16_t* to) {
  constexpr std::int16_t kOfZero = -1000;
  constexpr int kUpperFractionBits = kFloatFractionBits - 16;
  const Shorts magnitude = upper & std::int16_t{0x7fff};
  range.count(magnitude);
  Shorts exponent = (magnitude >> kUpperFractionBits) - std::int16_t{127};
  raise(exponent, Shorts{} + static_cast<std::int16_t>(least));
  exponent = magnitude == 0 ? Shorts{} + kOfZero : exponent;
  store(to, exponent);
}

/// The exponents of elements k and k + 1 of each row, next to each other. False if a number is not within the limits.
template <int kRows>
[[gnu::always_inline]] inline bool exponents_of_rows(const float* values, int columns, int least, std::int16_t* to) {
  using Words = typename Vectors<kRows>::Words;
  using Shorts = typename Vectors<kRows>::Shorts;
  using UnsignedShorts = typename Vectors<kRows>::UnsignedShorts;
  Magnitudes<Shorts, UnsignedShorts> range;
  for (int k = 0; k < columns; k += 2) {
    for (int row = 0; row < kTileRows; row += kRows) {
      Words even, odd;
      load(even, values + k * kTileRows + row);
      load(odd, values + (k + 1) * kTileRows + row);
      const Words both = even >> 16 | (odd & 0xffff0000U);
      exponents_of(reinterpret_cast<const Shorts&>(both), least, range, to + k * kTileRows + 2 * row);
    }
  }
  return range.are_within(kLeastFactor, kMostFactor, kFloatFractionBits - 16);
}

/// The same for columns, which have k and k + 1 next to each other.
template <int kRows>
[[gnu::always_inline]] inline bool exponents_of_columns(const float* values, int count, int least, std::int16_t* to) {
  using Ints = typename Vectors<kRows>::Ints;
  using HalfShorts = typename Vectors<kRows>::HalfShorts;
  Magnitudes<HalfShorts, typename Vectors<kRows>::UnsignedHalfShorts> range;
  for (int i = 0; i < count; i += kRows) {
    Ints bits;
    load(bits, values + i);
    exponents_of(__builtin_convertvector(bits >> 16, HalfShorts), least, range, to + i);
  }
  return range.are_within(kLeastFactor, kMostFactor, kFloatFractionBits - 16);
}

template <int kRows>
[[gnu::always_inline]] inline bool addends_are_within(const float* values, int count) {
  using Ints = typename Vectors<kRows>::Ints;
  Magnitudes<Ints, typename Vectors<kRows>::Words> range;
  for (int i = 0; i < count; i += kRows) {
    Ints bits;
    load(bits, values + i);
    range.count(bits & kMagnitude);
  }
  return range.are_within(kLeastAddend, 127, kFloatFractionBits);
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

/// Sums of integers, which need not fit into 32 bits, rounded as rounded_half() says.
template <int kRows>
[[gnu::always_inline]] inline void rounded_sums(const typename Vectors<kRows>::Ints& even,
                                                const typename Vectors<kRows>::Ints& odd, SumRounding rounding,
                                                typename Vectors<kRows>::Floats& to) {
  typename Vectors<kRows>::HalfFloats low, high;
  rounded_half<false, kRows>(even, odd, rounding, low);
  rounded_half<true, kRows>(even, odd, rounding, high);
  join(low, high, to);
}

/// The same where the sums fit into 32 bits, by an instruction that rounds toward zero.
template <int kRows>
[[gnu::always_inline]] inline void rounded_totals(const typename Vectors<kRows>::Ints& totals, SumRounding rounding,
                                                  typename Vectors<kRows>::Floats& to) {
  using Ints = typename Vectors<kRows>::Ints;
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (sizeof(Ints) == 64) {
    asm("vcvtdq2ps %{rz-sae%}, %1, %0" : "=v"(to) : "v"(totals));
    if (rounding == SumRounding::f32_of_13_bits) bits_of(to) &= -(1 << (kFloatFractionBits - 13));
    if (rounding == SumRounding::f16_nearest)
      bits_of(to) |= __builtin_convertvector(to, Ints) != totals ? Ints{} + 1 : Ints{};
    return;
  }
#endif
  rounded_sums<kRows>(totals, Ints{}, rounding, to);
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
  alignas(64) std::int16_t a[kMaxK * kTileRows];
  alignas(64) std::int16_t b[kMaxN * kMaxK];
};

/// Rows of A and a column of B. Each word of the exponents has those of two elements, k and k + 1.
struct Factors {
  const float* a = nullptr;
  const float* b = nullptr;
  const std::int16_t* exponents_a = nullptr;
  const std::int16_t* exponents_b = nullptr;
};

/// The largest exponents of `count` products.
template <int kRows, bool kHasRows, class Count>
[[gnu::always_inline]] inline void largest_exponents(const Factors& factors, Count count,
                                                     typename Vectors<kRows>::Ints& to) {
  using Ints = typename Vectors<kRows>::Ints;
  using Shorts = typename Vectors<kRows>::Shorts;
  Shorts largest = Shorts{} + std::int16_t{-2000};
  for (int k = 0; k < count; k += 2) {
    Shorts of_a, of_b;
    load(of_a, factors.exponents_a + k * kTileRows);
    if constexpr (kHasRows) {
      load(of_b, factors.exponents_b + k * kTileRows);
    } else {
      std::int32_t pair;
      load(pair, factors.exponents_b + k);
      const Ints pairs = Ints{} + pair;
      of_b = reinterpret_cast<const Shorts&>(pairs);
    }
    raise(largest, of_a + of_b);
  }
  const auto& pairs = reinterpret_cast<const Ints&>(largest);
  to = pairs >> 16;
  const Ints of_even = reinterpret_cast<const Ints&>(static_cast<const typename Vectors<kRows>::Words&>(
                           reinterpret_cast<const typename Vectors<kRows>::Words&>(largest) << 16)) >>
                       16;
  raise(to, of_even);
}

/// Adds `count` products, of which `largest` has the largest exponents, to rows of a column of C.
template <int kRows, bool kHasRows, class Count>
[[gnu::always_inline]] inline void add_integers(const Factors& factors, Count count, int least_exponent_c,
                                                const TensorCoreSum& how, typename Vectors<kRows>::Ints& largest,
                                                typename Vectors<kRows>::Floats& c) {
  using Floats = typename Vectors<kRows>::Floats;
  using Ints = typename Vectors<kRows>::Ints;
  using Words = typename Vectors<kRows>::Words;
  const Ints magnitude = bits_of(c) & kMagnitude;
  Ints of_c = (magnitude >> kFloatFractionBits) - 127;
  constexpr int kFloor = kLeastAddend - 1;  // of zeros
  if (least_exponent_c > kFloor) {
    raise(of_c, Ints{} + least_exponent_c);
    of_c = magnitude == 0 ? Ints{} + kFloor : of_c;
  }
  raise(largest, of_c);
  raise(largest, Ints{} + kFloor);
  Ints scale_bits = (how.fraction_bits + 127 - largest) << kFloatFractionBits;
  const Floats& scale = reinterpret_cast<const Floats&>(scale_bits);
  const auto product_of = [&](int k, Floats& product) {
    load(product, factors.a + k * kTileRows);
    multiply(product, element_of<kHasRows>(factors.b, k));
  };
  // The scaled addends are less than 2^27, so that two sums of up to 16 each do not overflow.
  Ints sums[2] = {__builtin_convertvector(c * scale, Ints), Ints{}};
  for (int k = 0; k < count; k += 2) {
    for (int odd = 0; odd < 2; ++odd) {
      Floats product;
      product_of(k + odd, product);
      sums[odd] += __builtin_convertvector(product * scale, Ints);
    }
  }
  const Words wrapped = reinterpret_cast<const Words&>(sums[0]) + reinterpret_cast<const Words&>(sums[1]);
  const auto& totals = reinterpret_cast<const Ints&>(wrapped);
  const Ints overflows = (sums[0] ^ totals) & (sums[1] ^ totals) & ~kMagnitude;
  const Ints zeros = totals == 0;
  Ints all_negative = {};
  Floats sum;
  if (any_bit(overflows | zeros)) [[unlikely]] {
    rounded_sums<kRows>(sums[0], sums[1], how.rounding, sum);
    // A sum of addends that were all cut off to zero is -0 if they are all negative.
    all_negative = bits_of(c);
    for (int k = 0; k < count; ++k) {
      Floats product;
      product_of(k, product);
      all_negative &= bits_of(product);
    }
  } else {
    rounded_totals<kRows>(totals, how.rounding, sum);
  }
  const Ints power_bits = (largest + (127 - how.fraction_bits)) << kFloatFractionBits;
  sum *= reinterpret_cast<const Floats&>(power_bits);
  if (how.rounding == SumRounding::f16_nearest) round_to_f16(sum);
  bits_of(sum) |= all_negative & ~kMagnitude;
  c = magnitude >= kInfinity ? c : sum;  // the sum of the blocks before may be infinite
}

/// Adds `count` products from `from` on to rows of `columns` columns, which are at most kColumns. The exponents of all
/// columns come first: the products of a column must wait for them, and meanwhile the host computes those of the next.
template <int kRows, int kColumns, bool kHasRows, class Count>
[[gnu::always_inline]] inline void add_integers_of_columns(const ProductTiles& tiles, const TensorCoreSum& how,
                                                           const Exponents& exponents, int row, int first, int columns,
                                                           int from, Count count) {
  const int of_a = from * kTileRows;
  const auto factors_of = [&](int n) __attribute__((always_inline)) {
    const int of_b = (n * tiles.k + from) * kStrideOfB<kHasRows>;
    return Factors{tiles.a + of_a + row, tiles.b + of_b + (kHasRows ? row : 0), exponents.a + of_a + 2 * row,
                   exponents.b + of_b + (kHasRows ? 2 * row : 0)};
  };
  typename Vectors<kRows>::Ints largest[kColumns];
  for (int i = 0; i < columns; ++i) largest_exponents<kRows, kHasRows>(factors_of(first + i), count, largest[i]);
  for (int i = 0; i < columns; ++i) {
    float* const to = tiles.c + (first + i) * kTileRows + row;
    typename Vectors<kRows>::Floats c;
    load(c, to);
    add_integers<kRows, kHasRows>(factors_of(first + i), count, tiles.least_exponent_c, how, largest[i], c);
    store(to, c);
  }
}

/// False, and nothing is done, if a number is not within the limits.
template <int kRows, bool kHasRows>
[[gnu::always_inline]] inline bool add_all_integers(const ProductTiles& tiles, const TensorCoreSum& how) {
  thread_local Exponents of_thread;
  Exponents& exponents = of_thread;
  if (!addends_are_within<kRows>(tiles.c, tiles.n * kTileRows)) return false;
  if (!exponents_of_rows<kRows>(tiles.a, tiles.k, tiles.least_exponent_a, exponents.a)) return false;
  if constexpr (kHasRows) {
    if (!exponents_of_rows<kRows>(tiles.b, tiles.n * tiles.k, tiles.least_exponent_b, exponents.b)) return false;
  } else {
    if (!exponents_of_columns<kRows>(tiles.b, tiles.n * tiles.k, tiles.least_exponent_b, exponents.b)) return false;
  }
  const int block = how.block_bytes / tiles.element_bytes;
  constexpr int kColumns = 8;
  for (int from = 0; from < tiles.k; from += block) {
    with_count(
        std::min(block, tiles.k - from), [&](auto count) __attribute__((always_inline)) {
          for (int n = 0; n < tiles.n; n += kColumns) {
            const int columns = std::min(kColumns, tiles.n - n);
            for (int row = 0; row < kTileRows; row += kRows)
              add_integers_of_columns<kRows, kColumns, kHasRows>(tiles, how, exponents, row, n, columns, from, count);
          }
        });
  }
  return true;
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
  // 2^fraction_bits / largest, by the exponents, whose sum may need one bit more.
  using FourWords = std::uint64_t __attribute__((vector_size(32)));
  const std::uint64_t exponent_sum = static_cast<std::uint64_t>(2 * 1023 + fraction_bits) << kDoubleFractionBits;
  for (int i = 0; i < kFours; ++i) {
    const FourWords bits = exponent_sum - reinterpret_cast<const FourWords&>(largest[i]);
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
  if (is_exact<kRows>(tiles, how)) {
    add_exact<kRows, kHasRows>(tiles);
    // The caller rounds to f16 when it stores, and what has 13 bits is cut here.
    if (how.rounding != SumRounding::f32_of_13_bits) return;
    for (int i = 0; i < tiles.n * kTileRows; ++i) tiles.c[i] = static_cast<float>(cut(double{tiles.c[i]}, 13));
    return;
  }
  if (!add_all_integers<kRows, kHasRows>(tiles, how)) add_doubles<kHardware, kHasRows>(tiles, how);
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
