#include "tilewright/base/float_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewright {
namespace {

// Rounds a double to a 16-bit format with `exponent_bits` and `fraction_bits`, to nearest even. NaN gives 0x7fff.
std::uint16_t round_to_16_bits(double value, int exponent_bits, int fraction_bits) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto infinity = static_cast<std::uint16_t>(((1U << exponent_bits) - 1U) << fraction_bits);
  if (std::isnan(value)) return 0x7fff;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0.0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  const int lowest_exponent = 1 - bias;
  const int unit_exponent = std::max(exponent - 1, lowest_exponent) - fraction_bits;  // exponent of the last place
  // Both scalings are by powers of two and exact; nearbyint rounds to even in the default mode.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit_exponent)));
  // A carry out of the fraction increments the exponent field.
  const std::uint32_t exponent_field = static_cast<std::uint32_t>(unit_exponent + fraction_bits - lowest_exponent);
  const std::uint32_t code = (exponent_field << fraction_bits) + units;
  if (code >= infinity) return static_cast<std::uint16_t>(sign | infinity);
  return static_cast<std::uint16_t>(sign | code);
}

/// A format with a sign, `exponent_bits` and `fraction_bits`. Larger values saturate to `largest`.
struct SaturatingFormat {
  int exponent_bits;
  int fraction_bits;
  double largest;
};
constexpr SaturatingFormat kE4m3{4, 3, 448.0};
constexpr SaturatingFormat kE5m2{5, 2, 57344.0};

std::uint8_t round_to_8_bits(double value, const SaturatingFormat& format) {
  if (std::isnan(value)) return 0x7f;
  const int lowest_exponent = 2 - (1 << (format.exponent_bits - 1));
  const unsigned sign = std::signbit(value) ? 0x80U : 0U;
  const double magnitude = std::min(std::fabs(value), format.largest);
  const int exponent = magnitude == 0.0 ? lowest_exponent : std::max(std::ilogb(magnitude), lowest_exponent);
  // In units of the last place. From 2^fraction_bits units on the value is normal, and a carry increments the exponent.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  const auto exponent_field = static_cast<unsigned>(exponent - lowest_exponent) << format.fraction_bits;
  return static_cast<std::uint8_t>(sign | (exponent_field + units));
}

}  // namespace

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

// Most values are normal: for them, rounding is one addition.
std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // [2^-14, 65504 + half an ulp): add half of the dropped field, ties to even, and shift.
  if (magnitude >= 0x38800000U && magnitude < 0x477ff000U) {
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | ((rounded - 0x38000000U) >> 13));
  }
  return round_to_16_bits(value, 5, 10);
}

std::uint16_t f64_to_f16(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffU;
  // The same in [2^-14, 65504 + half an ulp), with 42 bits to drop.
  if (magnitude >= 0x3f10000000000000U && magnitude < 0x40effe0000000000U) {
    const std::uint64_t rounded = magnitude + 0x1ffffffffffU + ((magnitude >> 42) & 1U);
    return static_cast<std::uint16_t>(((bits >> 48) & 0x8000U) | ((rounded - 0x3f00000000000000U) >> 42));
  }
  return round_to_16_bits(value, 5, 10);
}

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

std::uint16_t f64_to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffU;
  // The same from 2^-126 to the largest number and half an ulp, with 45 bits to drop.
  if (magnitude >= 0x3810000000000000U && magnitude < 0x47eff00000000000U) {
    const std::uint64_t rounded = magnitude + 0xfffffffffffU + ((magnitude >> 45) & 1U);
    return static_cast<std::uint16_t>(((bits >> 48) & 0x8000U) | ((rounded - 0x3800000000000000U) >> 45));
  }
  return round_to_16_bits(value, 8, 7);
}

float e4m3_to_f32(std::uint8_t bits) {
  if ((bits & 0x7fU) == 0x7fU) return std::bit_cast<float>(0x7fffffffU);
  // The exponent bias of f16 is greater by 8.
  return 0x1p8F * f16_to_f32(static_cast<std::uint16_t>((bits & 0x80U) << 8 | (bits & 0x7fU) << 7));
}

std::uint8_t f64_to_e4m3(double value) { return round_to_8_bits(value, kE4m3); }

float e5m2_to_f32(std::uint8_t bits) { return f16_to_f32(static_cast<std::uint16_t>(bits << 8)); }

std::uint8_t f64_to_e5m2(double value) { return round_to_8_bits(value, kE5m2); }

float round_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U) {
    return (bits & 0x7fffffU) != 0 ? std::bit_cast<float>(0x7fffffffU) : value;
  }
  return std::bit_cast<float>((bits + 0x1000U) & 0xffffe000U);
}

}  // namespace tilewright
