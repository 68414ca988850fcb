// The sums of tensor cores, compared with a plain loop in long double over single elements.
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

int exponent(double value, int least) { return value == 0 ? -10000 : std::max(std::ilogb(value), least); }

double toward_zero(long double value, int fraction_bits) {
  if (value == 0 || !std::isfinite(value)) return static_cast<double>(value);
  const int unit = std::max(std::ilogb(value), -126) - fraction_bits;
  return static_cast<double>(std::ldexp(std::trunc(std::ldexp(value, -unit)), unit));
}

/// One element of D.
double element(const std::vector<double>& a, const std::vector<double>& b, double c, int least, int least_c,
               const TensorCoreSum& how, std::size_t block) {
  for (std::size_t first = 0; first < a.size(); first += block) {
    int largest = std::max(exponent(c, least_c), -126);
    for (std::size_t k = first; k < std::min(first + block, a.size()); ++k) {
      if (a[k] != 0 && b[k] != 0) largest = std::max(largest, exponent(a[k], least) + exponent(b[k], least));
    }
    const auto cut = [&](long double value) {
      return std::ldexp(std::trunc(std::ldexp(value, how.fraction_bits - largest)), largest - how.fraction_bits);
    };
    long double sum = cut(c);
    for (std::size_t k = first; k < std::min(first + block, a.size()); ++k) {
      sum += cut(static_cast<long double>(a[k]) * b[k]);
    }
    switch (how.rounding) {
      case SumRounding::f16_nearest:
        c = f16_to_f32(f64_to_f16(static_cast<double>(sum)));
        break;
      case SumRounding::f32_toward_zero:
        c = static_cast<float>(toward_zero(sum, 23));
        break;
      case SumRounding::f32_of_13_bits:
        c = static_cast<float>(toward_zero(sum, 13));
        break;
    }
    if (!std::isfinite(c)) return c;
  }
  return c;
}

struct Tiles {
  int n = 24, k = 16;
  std::vector<float> a, b, c;
};

/// Tiles as ProductTiles has them, aligned.
struct ColumnMajor {
  alignas(64) float a[kTileRows * 32] = {};
  alignas(64) float b[24 * 32] = {};
  alignas(64) float c[kTileRows * 24] = {};

  ProductTiles tiles(int n, int k, int element_bytes, int least, int least_c) {
    return {n, k, a, b, c, element_bytes, least, least, least_c};
  }
};

template <class Draw>
Tiles tiles(int k, Draw&& draw) {
  Tiles all;
  all.k = k;
  const auto fill = [&](std::vector<float>& values, int count) {
    for (int i = 0; i < count; ++i) values.push_back(draw());
  };
  fill(all.a, kTileRows * k);
  fill(all.b, k * all.n);
  fill(all.c, kTileRows * all.n);
  return all;
}

void expect_elements(Tiles all, const TensorCoreSum& how, int element_bytes, int least) {
  ColumnMajor column_major;
  std::ranges::copy(all.a, column_major.a);
  std::ranges::copy(all.b, column_major.b);
  std::ranges::copy(all.c, column_major.c);
  multiply_add(column_major.tiles(all.n, all.k, element_bytes, least, -126), how);
  for (int m = 0; m < kTileRows; ++m) {
    for (int n = 0; n < all.n; ++n) {
      std::vector<double> a, b;
      for (int k = 0; k < all.k; ++k) {
        a.push_back(all.a[static_cast<std::size_t>(k * kTileRows + m)]);
        b.push_back(all.b[static_cast<std::size_t>(n * all.k + k)]);
      }
      const auto at = static_cast<std::size_t>(n * kTileRows + m);
      const double expected =
          element(a, b, all.c[at], least, -126, how, static_cast<std::size_t>(how.block_bytes / element_bytes));
      double actual = column_major.c[at];
      if (how.rounding == SumRounding::f16_nearest) actual = f16_to_f32(f64_to_f16(actual));
      ASSERT_EQ(actual, expected) << m << " " << n << " of K = " << all.k;
    }
  }
}

TEST(TensorCoreSum, EqualsTheDefinition) {
  std::mt19937 random(1);
  const auto f16 = [&] { return f16_to_f32(static_cast<std::uint16_t>(random() % 0x7c00 | (random() & 1) << 15)); };
  const auto bf16 = [&] { return bf16_to_f32(static_cast<std::uint16_t>(random() % 0x7f80 | (random() & 1) << 15)); };
  const auto e4m3 = [&] { return e4m3_to_f32(static_cast<std::uint8_t>(random() % 0x7f | (random() & 1) << 7)); };
  const auto integer = [&] { return static_cast<float>(static_cast<int>(random() % 4097) - 2048); };
  for (const int k : {8, 16}) {
    for (const Target& target : {kSm80, kSm90a}) {
      for (const bool f16_result : {false, true}) {
        const TensorCoreSum how = sum_of_mma(target, 2, f16_result);
        expect_elements(tiles(k, f16), how, 2, -14);
        expect_elements(tiles(k, integer), how, 2, -14);
      }
      expect_elements(tiles(k, bf16), sum_of_mma(target, 2, false), 2, -126);
    }
  }
  for (const bool f16_result : {false, true}) expect_elements(tiles(32, e4m3), sum_of_wgmma(1, f16_result), 1, -6);
  expect_elements(tiles(32, e4m3), sum_of_mma(Target{89}, 1, false), 1, -6);
}

/// One product and an accumulator, in the corner of a tile of zeros.
double sum_of(const TensorCoreSum& how, double product, double c) {
  ColumnMajor all;
  all.a[0] = static_cast<float>(product);
  all.b[0] = 1;
  all.c[0] = static_cast<float>(c);
  multiply_add(all.tiles(4, 4, 2, -14, -126), how);
  return all.c[0];
}

TEST(TensorCoreSum, CutsOffAndRoundsTowardZero) {
  const TensorCoreSum hopper = sum_of_mma(kSm90a, 2, false), ampere = sum_of_mma(kSm80, 2, false);
  EXPECT_EQ(sum_of(hopper, -0x1p-14, 0x1p11), 0x1p11 - 0x1p-13);  // 2^-14 is the last of the 25 bits: rounded down
  EXPECT_EQ(sum_of(ampere, -0x1p-14, 0x1p11), 0x1p11);            // and is cut off where there are 24
  EXPECT_EQ(sum_of(hopper, 1.0, 0x1.fffffep24), 0x1.fffffep24);
  EXPECT_EQ(sum_of(sum_of_wgmma(1, false), 1.0, 0x1.0001p0), 2.0);  // 13 bits
}

TEST(TensorCoreSum, WhatIsLeftOfTheFirstBlockIsTheSmallestAddendOfTheNext) {
  const TensorCoreSum how = sum_of_mma(kSm80, 2, false);  // blocks of eight elements
  for (const int exponent : {-30, -35, -36, -50, -60}) {
    const auto scale = static_cast<float>(std::ldexp(1.0, exponent));
    Tiles all = tiles(16, [] { return 0.0F; });
    for (std::size_t m = 0; m < 2; ++m) {
      all.a[m] = 1.5F * scale;
      all.a[kTileRows + m] = -(1 + 127 / 128.0F) * scale;
    }
    for (std::size_t n = 0; n < 24; ++n) {
      all.b[16 * n] = (1 + 127 / 128.0F) * scale;
      all.b[16 * n + 1] = n % 2 == 0 ? 1.5F * scale : (1.5F + 1 / 128.0F) * scale;
    }
    expect_elements(all, how, 2, -126);
  }
}

TEST(TensorCoreSum, SumsOfTheLargestAddends) {
  // All products are almost 4, so that the sum of 16 with 25 bits of fraction is more than 2^31.
  std::mt19937 random(2);
  const auto large = [&] { return 1.9375F + static_cast<float>(random() % 64) / 1024; };
  for (const bool f16_result : {false, true}) {
    for (const float sign : {1.0F, -1.0F}) {
      Tiles all = tiles(16, large);
      for (float& c : all.c) c *= sign;
      for (float& a : all.a) a *= sign;
      expect_elements(all, sum_of_mma(kSm90a, 2, f16_result), 2, -14);
    }
  }
}

TEST(TensorCoreSum, ProductsThatF32CannotHold) {
  std::mt19937 random(3);
  for (const int exponent : {-75, -60, -35, 60, 63, 70}) {
    const auto factor = [&] {
      const float magnitude = std::ldexp(1 + static_cast<float>(random() % 128) / 128, exponent);
      return random() % 2 == 0 ? magnitude : -magnitude;
    };
    Tiles all = tiles(16, factor);
    if (exponent < 0) {
      for (float& c : all.c) c *= all.a[0];
    }
    expect_elements(all, sum_of_mma(kSm90a, 2, false), 2, -126);
    expect_elements(all, sum_of_mma(kSm80, 2, false), 2, -126);
  }
}

TEST(TensorCoreSum, SumsOfNothingHaveTheSignOfTheirAddends) {
  const TensorCoreSum how = sum_of_mma(kSm90a, 2, false);
  for (const float a : {0.0F, -0.0F, 0.3F, -0.3F}) {
    for (const float c : {0.0F, -0.0F}) {
      ColumnMajor all;
      for (int k = 0; k < 16; ++k) all.a[k * kTileRows + 1] = a;
      for (int k = 0; k < 16; ++k) all.a[k * kTileRows + 3] = 0.7F;  // fractions elsewhere in the tile
      for (int m = 0; m < kTileRows; ++m) all.c[m] = c;
      multiply_add(all.tiles(8, 16, 2, -14, -126), how);
      EXPECT_EQ(all.c[1], 0);
      EXPECT_EQ(std::signbit(all.c[1]), std::signbit(a) && std::signbit(c)) << a << " " << c;
    }
  }
}

/// Each element of D where A has the same rows and B the same columns.
float sum_of_all(const TensorCoreSum& how, const std::vector<std::pair<float, float>>& factors, float c, int least_c) {
  ColumnMajor all;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    for (std::size_t m = 0; m < kTileRows; ++m) all.a[k * kTileRows + m] = factors[k].first;
    for (std::size_t n = 0; n < 8; ++n) all.b[n * 16 + k] = factors[k].second;
  }
  std::fill_n(all.c, kTileRows * 8, c);
  multiply_add(all.tiles(8, 16, 2, -14, least_c), how);
  for (int i = 1; i < kTileRows * 8; ++i) EXPECT_EQ(all.c[i], all.c[0]) << i;
  return all.c[0];
}

TEST(TensorCoreSum, BitsThatDecideTheRoundingToF16) {
  const TensorCoreSum how = sum_of_mma(kSm90a, 2, true);
  constexpr int kLeast = -14;
  // A tie, and a bit that f32 has no room for.
  EXPECT_EQ(sum_of_all(how, {{1, 1}, {0x1p-5F, 0x1p-6F}, {0x1p-12F, 0x1p-13F}}, 0, kLeast), 1 + 0x1p-10F);
  EXPECT_EQ(sum_of_all(how, {{1, 1}, {0x1p-5F, 0x1p-6F}}, 0, kLeast), 1);
  // The same bit is cut off if C is subnormal, as it counts as 2^-14; but not if C is zero.
  EXPECT_EQ(sum_of_all(how, {{2.5F * 0x1p-12F, 0x1p-12F}, {0x1p-24F, 0x1p-20F}}, 0, kLeast), 3 * 0x1p-24F);
  EXPECT_EQ(sum_of_all(how, {{1.5F * 0x1p-12F, 0x1p-12F}, {0x1p-24F, 0x1p-20F}}, 0x1p-24F, kLeast), 2 * 0x1p-24F);
}

TEST(TensorCoreSum, IntegersThat13BitsCannotHold) {
  std::mt19937 random(4);
  for (const int most : {8, 64, 448}) {
    for (const int most_c : {16, 8000, 1 << 20}) {
      for (const TensorCoreSum& how : {sum_of_wgmma(1, false), sum_of_mma(Target{89}, 1, false)}) {
        Tiles all = tiles(32, [&] {
          float value = 0.5F;
          while (value != std::trunc(value) || std::fabs(value) > static_cast<float>(most))
            value = e4m3_to_f32(static_cast<std::uint8_t>(random() % 0x7f | (random() & 1) << 7));
          return value;
        });
        for (float& c : all.c) c = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(most_c)));
        expect_elements(all, how, 1, -6);
      }
    }
  }
}

TEST(TensorCoreSum, EightBitFloatsAreSummedBeforeTheAccumulatorIsAdded) {
  // Each product is more than 25 bits below the accumulator, but their sum is its last bit.
  for (const bool f16_result : {false, true}) {
    const float c = f16_result ? 0x1p-13F : 1, sum = 0x1p-23F;
    ColumnMajor all;
    for (int k = 0; k < 32; ++k) all.a[k * kTileRows] = all.b[k] = 0x1p-14F;
    all.c[0] = c;
    multiply_add_of_mma(all.tiles(8, 32, 1, -6, f16_result ? -14 : -126), kSm90a, f16_result);
    EXPECT_EQ(all.c[0], f16_result ? 0x1p-13F + 0x1p-23F : c + sum);
  }
}

TEST(TensorCoreSum, InfinityAndNan) {
  const TensorCoreSum how = sum_of_mma(kSm90a, 2, false);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum_of(how, kInf, 1), kInf);
  EXPECT_EQ(sum_of(how, 3, -kInf), -kInf);
  EXPECT_TRUE(std::isnan(sum_of(how, kInf, -kInf)));
  EXPECT_TRUE(std::isnan(sum_of(how, std::numeric_limits<double>::quiet_NaN(), 1)));
  EXPECT_TRUE(std::isnan(sum_of(how, 1, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(static_cast<float>(sum_of(how, 0x1p103, 0x1.fffffep127)), 0x1.fffffep127F);
}

}  // namespace
}  // namespace tilewright::emulator
