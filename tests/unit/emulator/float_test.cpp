// Floating-point instructions: exact results, rounding modes, special values and conversions.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "lane_kernel.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;
using H = std::uint16_t;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = 1e-40F;  // subnormal

std::vector<float> floats(unsigned seed) {
  std::vector<float> values{0.0F, -0.0F, 1.0F, -1.0F, kInf, -kInf, kTiny, -kTiny, 0x1p-126F, 0x1.fffffep127F};
  std::mt19937 random(seed);
  while (values.size() < 64) {
    const float value = std::bit_cast<float>(static_cast<U>(random()));
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : std::bit_cast<U>(a) == std::bit_cast<U>(b); }

TEST(Float, RoundToNearestMatchesTheHost) {
  const std::vector<float> a = floats(1);
  std::vector<float> b = floats(2);
  std::shuffle(b.begin(), b.end(), std::mt19937(3));
  const auto sum = run_instruction<float>("add.f32 %d, %s0, %s1;", a, b);
  const auto product = run_instruction<float>("mul.rn.f32 %d, %s0, %s1;", a, b);
  const auto quotient = run_instruction<float>("div.rn.f32 %d, %s0, %s1;", a, b);
  const auto root = run_instruction<float>("sqrt.rn.f32 %d, %s0;", a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same(sum[i], a[i] + b[i]));
    EXPECT_TRUE(same(product[i], a[i] * b[i]));
    EXPECT_TRUE(same(quotient[i], a[i] / b[i]));
    EXPECT_TRUE(same(root[i], std::sqrt(a[i])));
  }
}

TEST(Float, FmaRoundsOnce) {
  const std::vector<float> a{1.0F + 0x1p-12F}, c{-1.0F - 0x1p-11F};
  EXPECT_EQ(run_instruction<float>("fma.rn.f32 %d, %s0, %s0, %s1;", a, c)[0], 0x1p-24F);
  EXPECT_EQ(run_instruction<float>("mul.f32 %d, %s0, %s0; add.f32 %d, %d, %s1;", a, c)[0], 0.0F);
  const std::vector<double> x{1.0 + 0x1p-27}, z{-1.0 - 0x1p-26};
  EXPECT_EQ(run_instruction<double>("fma.rn.f64 %d, %s0, %s0, %s1;", x, z)[0], 0x1p-54);
}

TEST(Float, DirectedRounding) {
  const std::vector<float> a{1.0F, -1.0F}, b{0x1p-30F, -0x1p-30F};
  EXPECT_EQ(run_instruction<float>("add.rz.f32 %d, %s0, %s1;", a, b), (std::vector<float>{1.0F, -1.0F}));
  EXPECT_EQ(run_instruction<float>("add.rp.f32 %d, %s0, %s1;", a, b), (std::vector<float>{1.0F + 0x1p-23F, -1.0F}));
  EXPECT_EQ(run_instruction<float>("add.rm.f32 %d, %s0, %s1;", a, b), (std::vector<float>{1.0F, -1.0F - 0x1p-23F}));
  const std::vector<float> one{1.0F}, three{3.0F};
  const float down = run_instruction<float>("div.rm.f32 %d, %s0, %s1;", one, three)[0];
  const float up = run_instruction<float>("div.rp.f32 %d, %s0, %s1;", one, three)[0];
  EXPECT_EQ(std::nextafter(down, 1.0F), up);
}

TEST(Float, FlushesAndSaturates) {
  const std::vector<float> a{kTiny, -kTiny, 2.0F, -3.0F, 0.25F, kNan};
  const auto flushed = run_instruction<float>("mul.ftz.f32 %d, %s0, 0f3F800000;", a);
  EXPECT_TRUE(same(flushed[0], 0.0F) && same(flushed[1], -0.0F));
  EXPECT_EQ(run_instruction<float>("mul.f32 %d, %s0, 0f3F800000;", a)[0], kTiny);
  EXPECT_EQ(run_instruction<float>("add.sat.f32 %d, %s0, 0f00000000;", a),
            (std::vector<float>{kTiny, 0, 1, 0, 0.25F, 0}));
}

TEST(Float, ASubnormalNumberOfOneLaneChangesNoOther) {
  std::vector<float> a = floats(7), b = floats(8);
  for (std::size_t i = 0; i < a.size(); ++i) {  // the first warp has subnormal numbers, the second has none
    if (i >= 32 && std::fabs(a[i]) < 1) a[i] = 1;
    if (i >= 32) b[i] = 3;
  }
  for (const std::string_view op : {"add.ftz", "mul.ftz", "add.sat.ftz", "div.approx.ftz", "max.ftz", "add.rz.ftz"}) {
    const std::string body = std::string(op) + ".f32 %d, %s0, %s1;";
    const auto together = run_instruction<float>(body, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto alone = run_instruction<float>(body, std::vector<float>{a[i]}, std::vector<float>{b[i]});
      EXPECT_TRUE(same(together[i], alone[0])) << op << " " << a[i] << " " << b[i];
    }
  }
}

TEST(Float, FlushesWhatIsSubnormalAfterRoundingTo24Bits) {
  // 2^-126 * (1 - 2^-25), rounded to 24 bits, is 2^-126; times (1 - 2^-24), which is a number of 24 bits, it is less.
  const std::vector<float> a{0x1p-126F, 0x1p-126F, 0x1p-125F}, b{0x1.fffffep-1F, 1.0F, 0x1p-1F};
  EXPECT_EQ(run_instruction<float>("mul.ftz.f32 %d, %s0, %s1;", a, b), (std::vector<float>{0, 0x1p-126F, 0x1p-126F}));
  EXPECT_EQ(run_instruction<float>("mul.f32 %d, %s0, %s1;", a, b)[0], 0x1p-126F);
}

TEST(Float, TheHostsRoundingModeDoesNotMatter) {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  const auto nearest = run_instruction<float>("add.f32 %d, %s0, 0f2F800000;", std::vector{1.0F});
  const auto down = run_instruction<float>("sub.rm.f32 %d, %s0, 0f2F800000;", std::vector{1.0F});
  const int after = std::fegetround();
  std::fesetround(before);
  EXPECT_EQ(nearest[0], 1.0F);
  EXPECT_EQ(down[0], 0x1.fffffep-1F);
  EXPECT_EQ(after, FE_UPWARD);
}

TEST(Float, PolynomialsAreNearTheFunctions) {
  std::vector<float> x, powers;
  std::mt19937 random(5);
  for (int i = 0; i < 4096; ++i) x.push_back(static_cast<float>(random()) * 0x1p-32F * 276 - 150);
  for (const float each : x) powers.push_back(std::exp2(each / 2));
  const auto power = run_instruction<float>("ex2.approx.f32 %d, %s0;", x);
  const auto logarithm = run_instruction<float>("lg2.approx.f32 %d, %s0;", powers);
  const auto sine = run_instruction<float>("sin.approx.f32 %d, %s0;", x);
  const auto cosine = run_instruction<float>("cos.approx.f32 %d, %s0;", x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = x[i];
    EXPECT_NEAR(power[i], std::exp2(exact), 6e-8 * std::exp2(exact) + 0x1p-150) << x[i];
    const double of_power = std::log2(static_cast<double>(powers[i]));
    EXPECT_NEAR(logarithm[i], of_power, 6e-8 * std::fabs(of_power)) << powers[i];
    // The angle in turns is rounded to f32, and so is the factor.
    const double bound = 6e-8 + 1e-7 * std::fabs(exact);
    EXPECT_NEAR(sine[i], std::sin(exact), bound) << x[i];
    EXPECT_NEAR(cosine[i], std::cos(exact), bound) << x[i];
  }
}

TEST(Float, MinAndMaxIgnoreNan) {
  const std::vector<float> a{kNan, 1.0F, kNan, -0.0F, 5.0F}, b{2.0F, kNan, kNan, 0.0F, -5.0F};
  const auto low = run_instruction<float>("min.f32 %d, %s0, %s1;", a, b);
  const auto high = run_instruction<float>("max.f32 %d, %s0, %s1;", a, b);
  const auto strict = run_instruction<float>("max.NaN.f32 %d, %s0, %s1;", a, b);
  const float low_expected[] = {2.0F, 1.0F, kNan, -0.0F, -5.0F};
  const float high_expected[] = {2.0F, 1.0F, kNan, 0.0F, 5.0F};
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same(low[i], low_expected[i])) << i;
    EXPECT_TRUE(same(high[i], high_expected[i])) << i;
    EXPECT_EQ(std::isnan(strict[i]), i < 3) << i;
  }
}

TEST(Float, ApproximateFunctions) {
  const std::vector<float> a{0.0F, 1.0F, 4.0F, 0.3F};
  const auto expect_near = [&](std::string_view body, auto&& formula) {
    const auto d = run_instruction<float>(body, a);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float expected = formula(a[i]);
      if (std::isinf(expected)) {
        EXPECT_EQ(d[i], expected) << body;
      } else {
        EXPECT_NEAR(d[i], expected, 1e-6F * (1.0F + std::fabs(expected))) << body;
      }
    }
  };
  expect_near("ex2.approx.ftz.f32 %d, %s0;", [](float x) { return std::exp2(x); });
  expect_near("lg2.approx.f32 %d, %s0;", [](float x) { return std::log2(x); });
  expect_near("rcp.approx.ftz.f32 %d, %s0;", [](float x) { return 1.0F / x; });
  expect_near("rsqrt.approx.f32 %d, %s0;", [](float x) { return 1.0F / std::sqrt(x); });
  expect_near("tanh.approx.f32 %d, %s0;", [](float x) { return std::tanh(x); });
  expect_near("sin.approx.f32 %d, %s0;", [](float x) { return std::sin(x); });
  expect_near("cos.approx.f32 %d, %s0;", [](float x) { return std::cos(x); });
}

TEST(Float, CopysignAbsNegTestp) {
  const std::vector<float> a{-2.0F, kNan, kInf, kTiny}, b{3.0F};
  EXPECT_EQ(run_instruction<float>("copysign.f32 %d, %s0, %s1;", a, b)[0], -3.0F);
  EXPECT_EQ(run_instruction<float>("abs.f32 %d, %s0;", a)[0], 2.0F);
  EXPECT_EQ(run_instruction<float>("neg.f32 %d, %s0;", a)[0], 2.0F);
  EXPECT_EQ(run_lanes<U>("testp.subnormal.f32 %p, %s0; selp.u32 %d, 1, 0, %p;", ".reg .pred %p;\n", a),
            (std::vector<U>{0, 0, 0, 1}));
}

TEST(Float, OrderedAndUnorderedComparisons) {
  const std::vector<float> a{1.0F, kNan, 2.0F}, b{1.0F, 1.0F, 1.0F};
  const auto check = [&](std::string_view comparison, std::vector<U> expected) {
    EXPECT_EQ(run_lanes<U>(fmt::format("setp.{}.f32 %p, %s0, %s1; selp.u32 %d, 1, 0, %p;", comparison),
                           ".reg .pred %p;\n", a, b),
              expected)
        << comparison;
  };
  check("eq", {1, 0, 0});
  check("ne", {0, 0, 1});
  check("neu", {0, 1, 1});
  check("gt", {0, 0, 1});
  check("gtu", {0, 1, 1});
  check("leu", {1, 1, 0});
  check("num", {1, 0, 1});
  check("nan", {0, 1, 0});
}

// 16-bit floats ----------------------------------------------------------------------------------------------------

TEST(Float, ComparisonsFlushWithFtz) {
  const std::vector<float> a{1e-40F, -1e-40F, 0.0F, 2e-38F};
  EXPECT_EQ(
      run_lanes<std::uint32_t>("setp.gt.ftz.f32 %p, %s0, 0f00000000;\nselp.u32 %d, 1, 0, %p;", ".reg .pred %p;\n", a),
      (std::vector<std::uint32_t>{0, 0, 0, 1}));
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.gt.f32 %p, %s0, 0f00000000;\nselp.u32 %d, 1, 0, %p;", ".reg .pred %p;\n", a),
            (std::vector<std::uint32_t>{1, 0, 0, 1}));
  EXPECT_EQ(run_instruction<std::uint32_t>("set.lt.ftz.u32.f32 %d, %s0, 0f00000000;", a),
            (std::vector<std::uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(run_instruction<std::uint32_t>("slct.ftz.u32.f32 %d, 5, 6, %s0;", a),
            (std::vector<std::uint32_t>{5, 5, 5, 5}));
  EXPECT_EQ(run_instruction<std::uint32_t>("slct.u32.f32 %d, 5, 6, %s0;", a), (std::vector<std::uint32_t>{5, 6, 5, 5}));
}

TEST(Float, ApproximateReciprocalsAndQuotients) {
  const auto upper = [](double value) { return (std::bit_cast<std::uint64_t>(value) & 0xffffffff) == 0; };
  for (const double value :
       run_instruction<double>("rcp.approx.ftz.f64 %d, %s0;", std::vector<double>{3.0, 0.7, 1e300}))
    EXPECT_TRUE(upper(value)) << value;
  EXPECT_EQ(run_instruction<double>("rcp.approx.ftz.f64 %d, %s0;", std::vector<double>{1e-310}),
            (std::vector<double>{std::numeric_limits<double>::infinity()}));
  const std::vector<float> a{1e38F, -1e38F, 8.0F}, b{2e38F, 2e38F, 2.0F};
  EXPECT_EQ(run_instruction<float>("div.approx.f32 %d, %s0, %s1;", a, b), (std::vector<float>{0.0F, -0.0F, 4.0F}));
  EXPECT_EQ(run_instruction<float>("div.full.f32 %d, %s0, %s1;", a, b), (std::vector<float>{0.5F, -0.5F, 4.0F}));
}

TEST(Float, AtomicsFlushInGlobalMemoryOnly) {
  const std::string body = R"(
    .shared .f32 cell;
    mov.f32 %d, 0f00000000;
    ld.param.u64 %at, [out];
    st.global.f32 [%at], 0f000116c2;
    st.shared.f32 [cell], 0f000116c2;
    bar.warp.sync 0xffffffff;
    atom.{}.add.f32 %d, [{}], 0f000116c2;
    ld.{}.f32 %d, [{}];)";
  const auto sum = [&](std::string_view space, std::string_view address) {
    return run_lanes<float>(fmt::format(fmt::runtime(body), space, address, space, address), "",
                            std::vector<float>{0.0F})[0];
  };
  EXPECT_EQ(sum("global", "%at"), 0.0F);
  EXPECT_GT(sum("shared", "cell"), 0.0F);
}

TEST(SmallFloat, ArithmeticRoundsOnce) {
  std::vector<H> a, b;
  std::mt19937 random(1);
  for (int i = 0; i < 512; ++i) {
    a.push_back(static_cast<H>(random()));
    b.push_back(static_cast<H>(random()));
  }
  const auto sum = run_instruction<H>("add.f16 %d, %s0, %s1;", a, b);
  const auto product = run_instruction<H>("mul.rn.bf16 %d, %s0, %s1;", a, b);
  const auto fused = run_instruction<H>("fma.rn.f16 %d, %s0, %s1, %s0;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = f16_to_f32(a[i]), y = f16_to_f32(b[i]);
    EXPECT_EQ(sum[i], f64_to_f16(x + y));
    EXPECT_EQ(product[i], f64_to_bf16(double{bf16_to_f32(a[i])} * bf16_to_f32(b[i])));
    // A long double holds the product and the sum of these f16 numbers exactly.
    const long double exact = static_cast<long double>(x) * y + x;
    const H expected = f64_to_f16(static_cast<double>(exact));
    EXPECT_EQ(f16_to_f32(fused[i]) == f16_to_f32(expected) || std::isnan(f16_to_f32(expected)), true);
  }
}

TEST(SmallFloat, FmaDoesNotRoundTwice) {
  // The product is 2^-11 - 2^-31, so that the sum is just below a tie; rounded to f32 first, it would become the tie
  // and round up.
  const std::vector<H> a{f32_to_f16(1.0F + 0x1p-10F)}, b{f32_to_f16(0x1p-11F - 0x1p-21F)};
  const std::vector<H> c{f32_to_f16(1.0F + 0x1p-10F)};
  EXPECT_EQ(run_instruction<H>("fma.rn.f16 %d, %s0, %s1, %s2;", a, b, c)[0], c[0]);
}

TEST(SmallFloat, PackedPairs) {
  const std::vector<U> a{U{f32_to_f16(1.5F)} | (U{f32_to_f16(-2.0F)} << 16)};
  const std::vector<U> b{U{f32_to_f16(0.5F)} | (U{f32_to_f16(0.25F)} << 16)};
  EXPECT_EQ(run_instruction<U>("add.f16x2 %d, %s0, %s1;", a, b)[0],
            U{f32_to_f16(2.0F)} | (U{f32_to_f16(-1.75F)} << 16));
  EXPECT_EQ(run_instruction<U>("fma.rn.relu.f16x2 %d, %s0, %s1, %s1;", a, b)[0], U{f32_to_f16(1.25F)});
  EXPECT_EQ(run_instruction<U>("max.f16x2 %d, %s0, %s1;", a, b)[0], U{f32_to_f16(1.5F)} | (U{f32_to_f16(0.25F)} << 16));
  EXPECT_EQ(run_instruction<U>("neg.bf16x2 %d, %s0;", a)[0], a[0] ^ 0x80008000U);
}

// Conversions ------------------------------------------------------------------------------------------------------

TEST(Conversion, IntegersExtendTruncateAndSaturate) {
  const std::vector<U> a{0xffffff85U, 0x00000070U};
  EXPECT_EQ(run_instruction<std::uint64_t>("cvt.s64.s32 %d, %s0;", a)[0], 0xffffffffffffff85ULL);
  EXPECT_EQ(run_instruction<std::uint64_t>("cvt.u64.u32 %d, %s0;", a)[0], 0xffffff85ULL);
  EXPECT_EQ(run_instruction<U>("cvt.s32.s8 %d, %s0;", a)[0], 0xffffff85U);
  EXPECT_EQ(run_instruction<U>("cvt.u32.u8 %d, %s0;", a)[0], 0x85U);
  EXPECT_EQ(run_instruction<U>("cvt.sat.u8.s32 %d, %s0;", a), (std::vector<U>{0, 0x70}));
  EXPECT_EQ(run_instruction<H>("cvt.sat.s8.s32 %d, %s0;", std::vector<U>{500, 0xfffffe00U}),
            (std::vector<H>{127, 0xff80}));
}

TEST(Conversion, FloatToIntegerRoundsAndClamps) {
  const std::vector<float> a{2.5F, -2.5F, 3.5F, 1e20F, -1e20F, kNan};
  EXPECT_EQ(run_instruction<U>("cvt.rni.s32.f32 %d, %s0;", a),
            (std::vector<U>{2, U(-2), 4, 0x7fffffffU, 0x80000000U, 0}));
  EXPECT_EQ(run_instruction<U>("cvt.rzi.s32.f32 %d, %s0;", a)[1], U(-2));
  EXPECT_EQ(run_instruction<U>("cvt.rmi.s32.f32 %d, %s0;", a)[1], U(-3));
  EXPECT_EQ(run_instruction<U>("cvt.rpi.s32.f32 %d, %s0;", a)[0], 3U);
  EXPECT_EQ(run_instruction<U>("cvt.rzi.u32.f32 %d, %s0;", a)[1], 0U);
  EXPECT_EQ(run_instruction<float>("cvt.rni.f32.f32 %d, %s0;", a)[0], 2.0F);
  EXPECT_EQ(run_instruction<std::uint64_t>("cvt.rzi.s64.f32 %d, %s0;", a)[5], 0x8000000000000000ULL);
}

TEST(Conversion, IntegerToFloatRounds) {
  const std::vector<U> a{16777217U, 16777219U, 0xffffffffU};
  EXPECT_EQ(run_instruction<float>("cvt.rn.f32.u32 %d, %s0;", a),
            (std::vector<float>{16777216.0F, 16777220.0F, 0x1p32F}));
  EXPECT_EQ(run_instruction<float>("cvt.rz.f32.u32 %d, %s0;", a)[1], 16777218.0F);
  EXPECT_EQ(run_instruction<float>("cvt.rn.f32.s32 %d, %s0;", a)[2], -1.0F);
}

TEST(Conversion, FloatToFloatRoundsAndSaturates) {
  const std::vector<double> wide{1.0 + 0x1p-30, 1e300, 0x1.002p0 + 0x1p-40};
  EXPECT_EQ(run_instruction<float>("cvt.rn.f32.f64 %d, %s0;", wide)[0], 1.0F);
  EXPECT_EQ(run_instruction<float>("cvt.rp.f32.f64 %d, %s0;", wide)[0], 1.0F + 0x1p-23F);
  EXPECT_EQ(run_instruction<float>("cvt.rn.f32.f64 %d, %s0;", wide)[1], kInf);
  EXPECT_EQ(run_instruction<H>("cvt.rn.f16.f64 %d, %s0;", wide)[2], f32_to_f16(1.0F) + 1);  // just above the tie
  const std::vector<float> a{65519.0F, 65520.0F, -1.0F, kNan, 0x1.ffcp0F};
  EXPECT_EQ(run_instruction<H>("cvt.rn.f16.f32 %d, %s0;", a), (std::vector<H>{0x7bff, 0x7c00, 0xbc00, 0x7fff, 0x3fff}));
  EXPECT_EQ(run_instruction<H>("cvt.rz.f16.f32 %d, %s0;", a)[1], 0x7bff);
  EXPECT_EQ(run_instruction<H>("cvt.rn.relu.f16.f32 %d, %s0;", a)[2], 0);
  EXPECT_EQ(run_instruction<float>("cvt.sat.f32.f32 %d, %s0;", a), (std::vector<float>{1, 1, 0, 0, 1}));
  EXPECT_EQ(run_instruction<float>("cvt.f32.bf16 %d, %s0;", std::vector<H>{0x3fc0})[0], 1.5F);
}

TEST(Conversion, PacksTheFirstSourceIntoTheUpperHalf) {
  const std::vector<float> a{1.0F}, b{-2.0F};
  EXPECT_EQ(run_instruction<U>("cvt.rn.f16x2.f32 %d, %s0, %s1;", a, b)[0], 0x3c00c000U);
  EXPECT_EQ(run_instruction<U>("cvt.rn.bf16x2.f32 %d, %s0, %s1;", a, b)[0], 0x3f80c000U);
  const std::vector<U> x{300, 0xffffff00U}, y{5};
  EXPECT_EQ(run_instruction<U>("cvt.pack.sat.s8.s32.b32 %d, %s0, %s1, 0x1234;", x, y),
            (std::vector<U>{0x12347f05U, 0x12348005U}));
}

TEST(Conversion, Tf32RoundingModes) {
  const std::vector<float> a{1.0F + 0x1p-11F, -1.0F - 0x1p-11F, 1.0F + 0x1p-12F};
  EXPECT_EQ(run_instruction<float>("cvt.rna.tf32.f32 %d, %s0;", a),
            (std::vector<float>{1.0F + 0x1p-10F, -1.0F - 0x1p-10F, 1.0F}));
  EXPECT_EQ(run_instruction<float>("cvt.rn.tf32.f32 %d, %s0;", a)[0], 1.0F);
  EXPECT_EQ(run_instruction<float>("cvt.rz.tf32.f32 %d, %s0;", a)[0], 1.0F);
}

}  // namespace
}  // namespace tilewright::emulator
