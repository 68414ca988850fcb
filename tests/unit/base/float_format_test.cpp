// Every code of the 16-bit and 8-bit formats, and the rounding of every value halfway between two of them.
#include "tilewright/base/float_format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/unit/base/fp8_codes.hpp"

namespace tilewright {
namespace {

struct Format {
  const char* name;
  float (*widen)(std::uint16_t);
  std::uint16_t (*from_f32)(float);
  std::uint16_t (*from_f64)(double);
  std::uint16_t infinity;
  double smallest;  // the smallest positive subnormal
  double one_plus;  // the next number above 1
};

const Format kFormats[] = {
    {"f16", f16_to_f32, f32_to_f16, f64_to_f16, 0x7c00, 0x1p-24, 1.0 + 0x1p-10},
    {"bf16", bf16_to_f32, f32_to_bf16, f64_to_bf16, 0x7f80, 0x1p-133, 1.0 + 0x1p-7},
};

class FloatFormat : public testing::TestWithParam<Format> {};

TEST_P(FloatFormat, EveryCodeRoundTrips) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float value = GetParam().widen(bits);
    if ((bits & 0x7fff) > GetParam().infinity) {
      EXPECT_TRUE(std::isnan(value)) << std::hex << code;
      EXPECT_EQ(GetParam().from_f32(value), 0x7fff) << std::hex << code;
      EXPECT_EQ(GetParam().from_f64(value), 0x7fff) << std::hex << code;
    } else {
      EXPECT_EQ(GetParam().from_f32(value), bits) << std::hex << code;
      EXPECT_EQ(GetParam().from_f64(value), bits) << std::hex << code;
    }
  }
}

TEST_P(FloatFormat, ValuesIncreaseWithTheCode) {
  for (unsigned code = 0; code < GetParam().infinity; ++code) {
    EXPECT_LT(GetParam().widen(static_cast<std::uint16_t>(code)),
              GetParam().widen(static_cast<std::uint16_t>(code + 1)));
  }
}

TEST_P(FloatFormat, RoundsToNearestEven) {
  for (unsigned code = 0; code + 1 < GetParam().infinity; ++code) {
    const double low = GetParam().widen(static_cast<std::uint16_t>(code));
    const double high = GetParam().widen(static_cast<std::uint16_t>(code + 1));
    const double middle = (low + high) / 2;
    const unsigned even = code % 2 == 0 ? code : code + 1;
    for (const double sign : {1.0, -1.0}) {
      const unsigned sign_bit = sign < 0 ? 0x8000 : 0;
      const auto expect = [&](double value, unsigned expected) {
        EXPECT_EQ(GetParam().from_f64(sign * value), expected | sign_bit) << value;
        const auto narrow = static_cast<float>(sign * value);
        if (narrow == sign * value) {
          EXPECT_EQ(GetParam().from_f32(narrow), expected | sign_bit) << value;
        }
      };
      expect(middle, even);
      expect(std::nextafter(middle, 0.0), code);
      expect(std::nextafter(middle, 1e300), code + 1);
      const auto narrow_middle = static_cast<float>(middle);
      if (narrow_middle == middle) {
        expect(std::nextafter(narrow_middle, 0.0F), code);
        expect(std::nextafter(narrow_middle, std::numeric_limits<float>::infinity()), code + 1);
      }
    }
  }
}

TEST_P(FloatFormat, OverflowsHalfAnUlpPastTheLargest) {
  const double largest = GetParam().widen(static_cast<std::uint16_t>(GetParam().infinity - 1));
  const double below = GetParam().widen(static_cast<std::uint16_t>(GetParam().infinity - 2));
  const double edge = largest + (largest - below) / 2;
  EXPECT_EQ(GetParam().from_f64(edge), GetParam().infinity);
  EXPECT_EQ(GetParam().from_f64(-edge), GetParam().infinity | 0x8000);
  EXPECT_EQ(GetParam().from_f64(std::nextafter(edge, 0.0)), GetParam().infinity - 1);
  EXPECT_EQ(GetParam().from_f64(std::numeric_limits<double>::max()), GetParam().infinity);
  EXPECT_EQ(GetParam().from_f32(std::numeric_limits<float>::infinity()), GetParam().infinity);
}

TEST_P(FloatFormat, UnderflowKeepsTheSign) {
  EXPECT_EQ(GetParam().from_f64(GetParam().smallest), 1);
  EXPECT_EQ(GetParam().from_f64(GetParam().smallest / 2), 0);
  EXPECT_EQ(GetParam().from_f64(std::nextafter(GetParam().smallest / 2, 1.0)), 1);
  EXPECT_EQ(GetParam().from_f64(-1e-300), 0x8000);
  EXPECT_EQ(GetParam().from_f32(-0.0F), 0x8000);
  EXPECT_EQ(GetParam().from_f64(std::numeric_limits<double>::denorm_min()), 0);
}

TEST_P(FloatFormat, FromF64RoundsOnce) {
  // Slightly above the midpoint of 1 and the next number. Rounding to f32 first would make it a tie.
  const double value = (1.0 + GetParam().one_plus) / 2 + 0x1p-40;
  EXPECT_EQ(GetParam().widen(GetParam().from_f64(value)), static_cast<float>(GetParam().one_plus));
}

INSTANTIATE_TEST_SUITE_P(All, FloatFormat, testing::ValuesIn(kFormats),
                         [](const auto& format) { return std::string(format.param.name); });

struct ByteFormat {
  const char* name;
  float (*widen)(std::uint8_t);
  std::uint8_t (*from_f64)(double);
  const std::array<double, 128>& codes;
  unsigned largest;  // code of the largest finite value
};

const ByteFormat kByteFormats[] = {
    {"e4m3", e4m3_to_f32, f64_to_e4m3, kE4m3Codes, 0x7e},
    {"e5m2", e5m2_to_f32, f64_to_e5m2, kE5m2Codes, 0x7b},
};

class Fp8Format : public testing::TestWithParam<ByteFormat> {
 protected:
  static void expect_code(double value, unsigned code) {
    EXPECT_EQ(GetParam().from_f64(value), code) << value;
    EXPECT_EQ(GetParam().from_f64(-value), code | 0x80U) << -value;
  }
};

TEST_P(Fp8Format, EveryCodeHasTheTabulatedValue) {
  for (unsigned code = 0; code < 256; ++code) {
    const double value = GetParam().codes[code & 0x7fU];
    const float widened = GetParam().widen(static_cast<std::uint8_t>(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widened)) << code;
      EXPECT_EQ(GetParam().from_f64(widened), 0x7f) << code;
      continue;
    }
    EXPECT_EQ(widened, code < 0x80U ? value : -value) << code;
    EXPECT_EQ(std::signbit(widened), code >= 0x80U) << code;
    if (std::isinf(value)) continue;  // saturates
    EXPECT_EQ(GetParam().from_f64(widened), code);
  }
}

TEST_P(Fp8Format, RoundsToNearestEven) {
  for (unsigned code = 0; code < GetParam().largest; ++code) {
    const double middle = (GetParam().codes[code] + GetParam().codes[code + 1]) / 2;
    expect_code(middle, code + code % 2);
    expect_code(std::nextafter(middle, 0.0), code);
    expect_code(std::nextafter(middle, 1e300), code + 1);
  }
}

TEST_P(Fp8Format, Saturates) {
  for (const double value : {GetParam().codes[GetParam().largest] * 1.01, 1e9, 1e300, kFp8Infinity}) {
    expect_code(value, GetParam().largest);
  }
  EXPECT_EQ(GetParam().from_f64(kFp8Nan), 0x7f);
  EXPECT_EQ(GetParam().from_f64(-kFp8Nan), 0x7f);
}

INSTANTIATE_TEST_SUITE_P(All, Fp8Format, testing::ValuesIn(kByteFormats),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(Tf32, RoundsToTenFractionBitsTiesAwayFromZero) {
  EXPECT_EQ(round_to_tf32(1.0F + 0x1p-10F), 1.0F + 0x1p-10F);
  EXPECT_EQ(round_to_tf32(1.0F + 0x1p-11F), 1.0F + 0x1p-10F);
  EXPECT_EQ(round_to_tf32(-1.0F - 0x1p-11F), -1.0F - 0x1p-10F);
  EXPECT_EQ(round_to_tf32(1.0F + 0x1p-11F - 0x1p-23F), 1.0F);
  EXPECT_EQ(round_to_tf32(2.0F - 0x1p-23F), 2.0F);
  EXPECT_EQ(round_to_tf32(-0.0F), 0.0F);
  EXPECT_TRUE(std::signbit(round_to_tf32(-0.0F)));
}

TEST(Tf32, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_to_tf32(infinity), infinity);
  EXPECT_EQ(round_to_tf32(-infinity), -infinity);
  EXPECT_EQ(round_to_tf32(std::numeric_limits<float>::max()), infinity);
  EXPECT_TRUE(std::isnan(round_to_tf32(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(round_to_tf32(0x1p-149F), 0.0F);
  EXPECT_EQ(round_to_tf32(0x1p-136F), 0x1p-136F);
}

TEST(Tf32, IsIdempotentAndClearsThirteenBits) {
  for (std::uint64_t bits = 0; bits < 0x7f800000U; bits += 40503) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const float rounded = round_to_tf32(value);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded) & 0x1fffU, 0U);
    EXPECT_EQ(round_to_tf32(rounded), rounded);
    if (std::isfinite(rounded)) {
      const float spacing = std::ldexp(1.0F, std::max(std::ilogb(std::max(value, 0x1p-149F)), -126) - 10);
      EXPECT_LE(std::fabs(rounded - value), spacing / 2) << value;
    }
  }
}

}  // namespace
}  // namespace tilewright
