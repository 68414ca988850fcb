// Conversions of e4m3 and e5m2, by arithmetic on exact values.
#include "tilewright/emulator/instructions/small_formats.hpp"

#include <algorithm>
#include <cmath>

#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

/// A format with a sign, `exponent_bits` and `fraction_bits`.
struct Format {
  int exponent_bits;
  int fraction_bits;
  float largest;
};

constexpr Format kE4m3{4, 3, 448.0F};
constexpr Format kE5m2{5, 2, 57344.0F};
constexpr std::uint8_t kNan = 0x7f;

/// The bits of the largest finite value are those of any larger one.
std::uint8_t round_to(float value, const Format& format) {
  if (std::isnan(value)) return kNan;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  float magnitude = std::fabs(value);
  if (magnitude > format.largest) magnitude = format.largest;
  int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place; 2^fraction_bits and more where the number is normal.
  const float units = std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent));
  const auto fraction = static_cast<int>(units);
  const int code = ((exponent + bias - 1) << format.fraction_bits) + fraction;
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace

float e4m3_to_f32(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::nanf("");
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                        : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

float e5m2_to_f32(std::uint8_t bits) { return f16_to_f32(static_cast<std::uint16_t>(bits << 8)); }

std::uint8_t f32_to_e4m3(float value) { return round_to(value, kE4m3); }
std::uint8_t f32_to_e5m2(float value) { return round_to(value, kE5m2); }

}  // namespace tilewright::emulator
