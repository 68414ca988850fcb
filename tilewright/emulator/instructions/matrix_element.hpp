// The elements and accumulators of matrix instructions: their bits in registers and memory, and the numbers they are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {

struct HalfElement {
  using Stored = std::uint16_t;
  static double number(Stored bits) { return f16_to_f32(bits); }
};
struct BFloatElement {
  using Stored = std::uint16_t;
  static double number(Stored bits) { return bf16_to_f32(bits); }
};
struct Tf32Element {  // reads the upper 19 bits
  using Stored = std::uint32_t;
  static double number(Stored bits) { return std::bit_cast<float>(bits & 0xffffe000U); }
};
struct E4m3Element {
  using Stored = std::uint8_t;
  static double number(Stored bits) { return e4m3_to_f32(bits); }
};
struct E5m2Element {
  using Stored = std::uint8_t;
  static double number(Stored bits) { return e5m2_to_f32(bits); }
};
struct DoubleElement {
  using Stored = double;
  static double number(Stored value) { return value; }
};
struct SignedByteElement {
  using Stored = std::int8_t;
  static std::int64_t number(Stored value) { return value; }
};
struct ByteElement {
  using Stored = std::uint8_t;
  static std::int64_t number(Stored value) { return value; }
};

struct FloatAccumulator {
  using Stored = float;
  static double number(Stored value) { return value; }
  static Stored stored(double value, bool) { return static_cast<float>(value); }
};
struct HalfAccumulator {
  using Stored = std::uint16_t;
  static double number(Stored bits) { return f16_to_f32(bits); }
  static Stored stored(double value, bool) { return f64_to_f16(value); }
};
struct DoubleAccumulator {
  using Stored = double;
  static double number(Stored value) { return value; }
  static Stored stored(double value, bool) { return value; }
};
struct IntegerAccumulator {
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
