// Rounding, .ftz, .sat and NaN rules of the floating-point instructions, and 16-bit floats in registers.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {

enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// Sets the host's rounding mode for a scope.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : before_(std::fegetround()) {
    static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<int>(rounding)]);
  }
  ~RoundingScope() { std::fesetround(before_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int before_;
};

/// The modifiers of a floating-point instruction, packed into Instruction::mode.
struct FloatMode {
  Rounding rounding = Rounding::nearest;
  bool flush = false;     // .ftz: subnormal inputs and results become zero, with their sign
  bool saturate = false;  // .sat: clamps the result to [0, 1], NaN to 0

  std::uint8_t pack() const {
    return static_cast<std::uint8_t>(static_cast<int>(rounding) | (flush ? 4 : 0) | (saturate ? 8 : 0));
  }
  static FloatMode unpack(std::uint8_t mode) {
    return {static_cast<Rounding>(mode & 3), (mode & 4) != 0, (mode & 8) != 0};
  }
};

/// .ftz applies to f32 only.
inline float flushed(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}
inline double flushed(double value) { return value; }

inline double quieted(double nan) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | std::uint64_t{1} << 51);
}

/// The NaN of all f32 arithmetic; f64 arithmetic keeps the operand's payload. Measured on an H200.
inline constexpr std::uint32_t kCanonicalNan = 0x7fffffff;
inline float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(kCanonicalNan) : value; }
inline double canonical(double value) { return value; }

template <class T>
T saturated(T value) {
  const T positive = value > T(0) ? value : T(0);
  return positive < T(1) ? positive : T(1);
}

// 16-bit floats in registers. Arithmetic on them is done in f32 or f64 and rounded once.

/// f16_to_f32() without branches, so that loops over it vectorise.
inline float f16_value(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffU;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t special = magnitude << 13 | 0x7f800000U;  // infinity or NaN
  const std::uint32_t value = magnitude >= 0x7c00U ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(value | (bits & 0x8000U) << 16);
}

struct F16 {
  std::uint16_t bits = 0;
  float value() const { return f16_value(bits); }
  static F16 nearest(float value) { return {f32_to_f16(value)}; }
  static F16 nearest(double value) { return {f64_to_f16(value)}; }
};

struct BF16 {
  std::uint16_t bits = 0;
  float value() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static BF16 nearest(float value) { return {f32_to_bf16(value)}; }
  static BF16 nearest(double value) { return {f64_to_bf16(value)}; }
};

template <class T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

/// Rounds to nearest, then steps back if that was not the direction.
template <class Small>
Small rounded_to(double value, Rounding rounding) {
  Small result = Small::nearest(value);
  const double nearest = result.value();
  const bool steps_down = nearest > value && (rounding == Rounding::down || (rounding == Rounding::zero && value > 0));
  const bool steps_up = nearest < value && (rounding == Rounding::up || (rounding == Rounding::zero && value < 0));
  if (!steps_down && !steps_up) return result;
  constexpr std::uint16_t kSign = 0x8000;
  if (nearest == 0) return {static_cast<std::uint16_t>(steps_down ? kSign | 1 : 1)};
  const bool grows = steps_up == (nearest > 0);
  result.bits = static_cast<std::uint16_t>(grows ? result.bits + 1 : result.bits - 1);
  return result;
}

/// The integer as f64, rounded to odd, so that rounding that to a format of at most 51 bits is right.
template <class Integer>
double to_odd(Integer value) {
  const bool negative = value < 0;
  const auto unsigned_value = static_cast<std::uint64_t>(value);
  std::uint64_t magnitude = negative ? std::uint64_t{0} - unsigned_value : unsigned_value;
  if (const int excess = 64 - std::countl_zero(magnitude) - 53; excess > 0) {
    const std::uint64_t low = (std::uint64_t{1} << excess) - 1;
    const std::uint64_t sticky = (magnitude & low) != 0 ? low + 1 : 0;
    magnitude = (magnitude & ~low) | sticky;
  }
  const auto result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

/// a + b rounded to odd, so that rounding the result to a format of at most 51 bits gives the correctly rounded sum.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  bits += (error > 0) == (sum > 0) ? 1 : ~std::uint64_t{0};
  return std::bit_cast<double>(bits);
}

}  // namespace tilewright::emulator
