// Element and accumulator types of mma and wgmma: how they are stored, and their values as numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/block_transpose.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {

// kLeastExponent: of a normal number.

struct F16Element {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -14;
  static float number(Stored bits) { return static_cast<float>(f16_value(bits)); }
};
struct Bf16Element {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -126;
  static float number(Stored bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};
struct Tf32Element {  // the hardware ignores the lower 13 bits
  using Stored = std::uint32_t;
  static constexpr int kLeastExponent = -126;
  static float number(Stored bits) { return std::bit_cast<float>(bits & 0xffffe000U); }
};
struct E4m3Element {
  using Stored = std::uint8_t;
  static constexpr int kLeastExponent = -6;
  static float number(Stored bits) { return e4m3_to_f32(bits); }
};
struct E5m2Element {
  using Stored = std::uint8_t;
  static constexpr int kLeastExponent = -14;
  static float number(Stored bits) { return e5m2_to_f32(bits); }
};
struct F64Element {
  using Stored = double;
  static double number(Stored value) { return value; }
};
struct S8Element {
  using Stored = std::int8_t;
  static float number(Stored value) { return value; }
};
struct U8Element {
  using Stored = std::uint8_t;
  static float number(Stored value) { return value; }
};

struct F32Accumulator {
  using Stored = float;
  static constexpr int kLeastExponent = -126;
  static float number(Stored value) { return value; }
  static Stored stored(float value, bool) { return canonical(value); }
};
struct F16Accumulator {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -14;
  static float number(Stored bits) { return static_cast<float>(f16_value(bits)); }
  static Stored stored(double value, bool) { return f64_to_f16(value); }
};
struct F64Accumulator {
  using Stored = double;
  static double number(Stored value) { return value; }
  static Stored stored(double value, bool) { return value; }
};
struct S32Accumulator {
  using Stored = std::int32_t;
  static std::int64_t number(Stored value) { return value; }
  static Stored stored(std::int64_t value, bool saturates) {
    if (saturates) {
      value = std::clamp<std::int64_t>(value, std::numeric_limits<Stored>::min(), std::numeric_limits<Stored>::max());
    }
    return static_cast<Stored>(value);
  }
};

/// float, or double for f64.
template <class Element>
using NumberOf = decltype(Element::number(typename Element::Stored()));

template <class Element, int kCount>
[[gnu::always_inline]] inline void read_numbers_inline(const typename Element::Stored* from, NumberOf<Element>* to) {
  for (int i = 0; i < kCount; ++i) to[i] = Element::number(from[i]);
}

/// f16 has an instruction, which quiets NaNs.
template <class Element, int kCount>
TILEWRIGHT_TARGET_FMA void read_numbers_with_hardware(const typename Element::Stored* from, NumberOf<Element>* to) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Element, F16Element> && kCount % 8 == 0) {
    for (int i = 0; i < kCount; i += 8) {
      const __m256 numbers = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
      _mm256_storeu_ps(to + i, numbers);
    }
    return;
  }
#endif
  read_numbers_inline<Element, kCount>(from, to);
}

/// The numbers of stored elements.
template <class Element, int kCount>
void read_numbers(const typename Element::Stored* from, NumberOf<Element>* to) {
  if (has_hardware_fma()) {
    read_numbers_with_hardware<Element, kCount>(from, to);
  } else {
    read_numbers_inline<Element, kCount>(from, to);
  }
}

/// The numbers of stored elements, in `room` unless they are stored as numbers.
template <class Element, int kCount>
[[gnu::always_inline]] inline const NumberOf<Element>* numbers_in(const typename Element::Stored* from,
                                                                  NumberOf<Element>* room) {
  if constexpr (std::is_same_v<Element, F32Accumulator> || std::is_same_v<Element, F64Accumulator>) {
    return from;
  } else {
    read_numbers<Element, kCount>(from, room);
    return room;
  }
}

/// The numbers of eight rows of stored elements, in code for AVX-512.
template <class Element, int kWidth>
[[gnu::always_inline]] inline void read_block(const typename Element::Stored* from, RowBlock<kWidth>& rows) {
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (std::is_same_v<Element, F16Element> || std::is_same_v<Element, F16Accumulator>) {
    for (int i = 0; i < kWidth / 2; ++i) {
      const auto& sixteen = *reinterpret_cast<const EightFloats*>(from + 16 * i);  // as bytes
      asm("vcvtph2ps %1, %0" : "=v"(rows[i]) : "m"(sixteen));
    }
    return;
  }
#endif
  alignas(64) float room[8 * kWidth];
  load_block<kWidth>(numbers_in<Element, 8 * kWidth>(from, room), rows);
}

template <class Accumulator, int kCount, class Number>
[[gnu::always_inline]] inline void store_numbers_inline(const Number* from, typename Accumulator::Stored* to,
                                                        bool saturates) {
  for (int i = 0; i < kCount; ++i) to[i] = Accumulator::stored(from[i], saturates);
}

template <class Accumulator, int kCount, class Number>
TILEWRIGHT_TARGET_FMA void store_numbers_with_hardware(const Number* from, typename Accumulator::Stored* to,
                                                       bool saturates) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Accumulator, F16Accumulator> && kCount % 8 == 0) {
    for (int i = 0; i < kCount; i += 8) {
      const __m256 numbers = _mm256_loadu_ps(from + i);
      const __m128i rounded = _mm256_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), rounded);
      if (_mm256_movemask_ps(_mm256_cmp_ps(numbers, numbers, _CMP_UNORD_Q)) != 0)
        store_numbers_inline<Accumulator, 8>(from + i, to + i, saturates);  // NaNs are 0x7fff
    }
    return;
  }
#endif
  store_numbers_inline<Accumulator, kCount>(from, to, saturates);
}

/// The inverse of read_numbers() for an accumulator.
template <class Accumulator, int kCount, class Number>
void store_numbers(const Number* from, typename Accumulator::Stored* to, bool saturates) {
  if (has_hardware_fma()) {
    store_numbers_with_hardware<Accumulator, kCount>(from, to, saturates);
  } else {
    store_numbers_inline<Accumulator, kCount>(from, to, saturates);
  }
}

/// The inverse of read_block() for an accumulator of floats.
template <class Accumulator, int kWidth>
[[gnu::always_inline]] inline void store_block(RowBlock<kWidth>& rows, typename Accumulator::Stored* to) {
  if constexpr (std::is_same_v<Accumulator, F32Accumulator>) {
    const SixteenFloats nan = SixteenFloats{} + canonical(std::numeric_limits<float>::quiet_NaN());
    for (SixteenFloats& row : rows) row = row == row ? row : nan;
    std::memcpy(to, &rows, sizeof(rows));
  } else {
    alignas(64) float numbers[8 * kWidth];
    std::memcpy(numbers, &rows, sizeof(rows));
    store_numbers<Accumulator, 8 * kWidth>(numbers, to, false);
  }
}

}  // namespace tilewright::emulator
