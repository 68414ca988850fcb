// Element and accumulator types of mma and wgmma: how they are stored, and their values as numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {

// kLeastExponent: of a normal number.

struct F16Element {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -14;
  static double number(Stored bits) { return f16_value(bits); }
};
struct Bf16Element {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -126;
  static double number(Stored bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};
struct Tf32Element {  // the hardware ignores the lower 13 bits
  using Stored = std::uint32_t;
  static constexpr int kLeastExponent = -126;
  static double number(Stored bits) { return std::bit_cast<float>(bits & 0xffffe000U); }
};
struct E4m3Element {
  using Stored = std::uint8_t;
  static constexpr int kLeastExponent = -6;
  static double number(Stored bits) { return e4m3_to_f32(bits); }
};
struct E5m2Element {
  using Stored = std::uint8_t;
  static constexpr int kLeastExponent = -14;
  static double number(Stored bits) { return e5m2_to_f32(bits); }
};
struct F64Element {
  using Stored = double;
  static double number(Stored value) { return value; }
};
struct S8Element {
  using Stored = std::int8_t;
  static std::int64_t number(Stored value) { return value; }
};
struct U8Element {
  using Stored = std::uint8_t;
  static std::int64_t number(Stored value) { return value; }
};

struct F32Accumulator {
  using Stored = float;
  static constexpr int kLeastExponent = -126;
  static double number(Stored value) { return value; }
  static Stored stored(double value, bool) { return canonical(static_cast<float>(value)); }
};
struct F16Accumulator {
  using Stored = std::uint16_t;
  static constexpr int kLeastExponent = -14;
  static double number(Stored bits) { return f16_value(bits); }
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

}  // namespace tilewright::emulator
