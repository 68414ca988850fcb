// Integer and bit instructions, compared with formulas that are independent of the emulator's.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>

#include "lane_kernel.hpp"

namespace tilewright::emulator {
namespace {

template <class T>
std::vector<T> edge_and_random_values(unsigned seed) {
  std::vector<T> values{0, 1, 2, 7, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  std::mt19937_64 random(seed);
  while (values.size() < 64) values.push_back(static_cast<T>(random() >> (random() % (8 * sizeof(T)))));
  return values;
}

using I = std::int32_t;
using U = std::uint32_t;
using L = std::int64_t;
using W = std::uint64_t;

template <class D, class A, class B, class F>
void expect_binary(std::string_view instruction, F&& formula) {
  const std::vector<A> a = edge_and_random_values<A>(1);
  std::vector<B> b = edge_and_random_values<B>(2);
  std::shuffle(b.begin(), b.end(), std::mt19937(3));
  const std::vector<D> d = run_instruction<D>(std::string(instruction) + " %d, %s0, %s1;", a, b);
  for (std::size_t i = 0; i < d.size(); ++i) {
    EXPECT_EQ(d[i], static_cast<D>(formula(a[i], b[i]))) << instruction << " of " << a[i] << ", " << b[i];
  }
}

template <class D, class A, class F>
void expect_unary(std::string_view instruction, F&& formula) {
  const std::vector<A> a = edge_and_random_values<A>(4);
  const std::vector<D> d = run_instruction<D>(std::string(instruction) + " %d, %s0;", a);
  for (std::size_t i = 0; i < d.size(); ++i) {
    EXPECT_EQ(d[i], static_cast<D>(formula(a[i]))) << instruction << " of " << a[i];
  }
}

TEST(Integer, SumsWrap) {
  expect_binary<U, U, U>("add.u32", [](U a, U b) { return a + b; });
  expect_binary<W, W, W>("sub.s64", [](W a, W b) { return a - b; });
  expect_binary<std::uint16_t, std::uint16_t, std::uint16_t>("add.s16", [](U a, U b) { return a + b; });
  expect_binary<I, I, I>("add.sat.s32", [](L a, L b) { return std::clamp<L>(a + b, INT32_MIN, INT32_MAX); });
  expect_binary<I, I, I>("sub.sat.s32", [](L a, L b) { return std::clamp<L>(a - b, INT32_MIN, INT32_MAX); });
}

TEST(Integer, Products) {
  expect_binary<U, U, U>("mul.lo.s32", [](U a, U b) { return a * b; });
  expect_binary<U, U, U>("mul.hi.u32", [](W a, W b) { return (a * b) >> 32; });
  expect_binary<I, I, I>("mul.hi.s32", [](L a, L b) { return (a * b) >> 32; });
  expect_binary<L, I, I>("mul.wide.s32", [](L a, L b) { return a * b; });
  expect_binary<W, U, U>("mul.wide.u32", [](W a, W b) { return a * b; });
  expect_binary<W, W, W>("mul.hi.u64",
                         [](W a, W b) { return static_cast<W>((static_cast<unsigned __int128>(a) * b) >> 64); });
  expect_binary<U, U, U>("mul24.lo.u32", [](U a, U b) { return (a & 0xffffff) * (b & 0xffffff); });
}

TEST(Integer, MultiplyAdds) {
  const std::vector<U> a = edge_and_random_values<U>(5), b = edge_and_random_values<U>(6);
  const std::vector<W> c = edge_and_random_values<W>(7);
  const auto wide = run_instruction<W>("mad.wide.u32 %d, %s0, %s1, %s2;", a, b, c);
  const auto low = run_instruction<U>("mad.lo.s32 %d, %s0, %s1, 12;", a, b);
  const auto high = run_instruction<U>("mad.hi.u32 %d, %s0, %s1, %s0;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(wide[i], W{a[i]} * b[i] + c[i]);
    EXPECT_EQ(low[i], a[i] * b[i] + 12);
    EXPECT_EQ(high[i], static_cast<U>((W{a[i]} * b[i]) >> 32) + a[i]);
  }
}

TEST(Integer, DivisionByZeroGivesAllOnes) {
  expect_binary<U, U, U>("div.u32", [](U a, U b) { return b == 0 ? ~U{0} : a / b; });
  expect_binary<I, I, I>("div.s32", [](L a, L b) { return b == 0 ? L{-1} : a / b; });
  expect_binary<I, I, I>("rem.s32", [](L a, L b) { return b == 0 ? L{-1} : a % b; });
  expect_binary<W, W, W>("rem.u64", [](W a, W b) { return b == 0 ? ~W{0} : a % b; });
}

TEST(Integer, MinMaxAbsNeg) {
  expect_binary<I, I, I>("min.s32", [](I a, I b) { return std::min(a, b); });
  expect_binary<U, U, U>("max.u32", [](U a, U b) { return std::max(a, b); });
  expect_unary<U, I>("abs.s32", [](L a) { return a < 0 ? -a : a; });
  expect_unary<U, U>("neg.s32", [](U a) { return 0 - a; });
}

TEST(Integer, ByteDotProducts) {
  const std::vector<U> a = edge_and_random_values<U>(8), b = edge_and_random_values<U>(9);
  const auto d = run_instruction<I>("dp4a.s32.u32 %d, %s0, %s1, -100;", a, b);
  const auto e = run_instruction<I>("dp2a.hi.s32.s32 %d, %s0, %s1, 0;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    I expected = -100;
    for (int j = 0; j < 4; ++j) {
      expected += static_cast<std::int8_t>(a[i] >> (8 * j)) * static_cast<std::uint8_t>(b[i] >> (8 * j));
    }
    EXPECT_EQ(d[i], expected);
    EXPECT_EQ(e[i], static_cast<std::int16_t>(a[i]) * static_cast<std::int8_t>(b[i] >> 16) +
                        static_cast<std::int16_t>(a[i] >> 16) * static_cast<std::int8_t>(b[i] >> 24));
  }
}

TEST(Bits, Logic) {
  expect_binary<U, U, U>("and.b32", [](U a, U b) { return a & b; });
  expect_binary<W, W, W>("xor.b64", [](W a, W b) { return a ^ b; });
  expect_unary<std::uint16_t, std::uint16_t>("not.b16", [](U a) { return ~a; });
  expect_unary<U, U>("cnot.b32", [](U a) { return a == 0; });
}

TEST(Bits, ShiftsClampTheirAmounts) {
  std::vector<U> a(64, 0x80000001U), by(64);
  for (U i = 0; i < 64; ++i) by[i] = i;
  by[63] = 0xffffffffU;
  const auto left = run_instruction<U>("shl.b32 %d, %s0, %s1;", a, by);
  const auto right = run_instruction<U>("shr.u32 %d, %s0, %s1;", a, by);
  const auto arithmetic = run_instruction<U>("shr.s32 %d, %s0, %s1;", a, by);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(left[i], by[i] > 31 ? 0 : a[i] << by[i]);
    EXPECT_EQ(right[i], by[i] > 31 ? 0 : a[i] >> by[i]);
    EXPECT_EQ(arithmetic[i], by[i] > 31 ? ~U{0} : static_cast<U>(static_cast<I>(a[i]) >> by[i]));
  }
}

TEST(Bits, FunnelShifts) {
  const std::vector<U> a{0x11223344}, b{0x55667788};
  EXPECT_EQ(run_instruction<U>("shf.l.wrap.b32 %d, %s0, %s1, 8;", a, b)[0], 0x66778811U);
  EXPECT_EQ(run_instruction<U>("shf.l.wrap.b32 %d, %s0, %s1, 40;", a, b)[0], 0x66778811U);
  EXPECT_EQ(run_instruction<U>("shf.l.clamp.b32 %d, %s0, %s1, 40;", a, b)[0], 0x11223344U);
  EXPECT_EQ(run_instruction<U>("shf.r.clamp.b32 %d, %s0, %s1, 8;", a, b)[0], 0x88112233U);
  EXPECT_EQ(run_instruction<U>("shf.r.clamp.b32 %d, %s0, %s1, 32;", a, b)[0], 0x55667788U);
}

TEST(Bits, Lop3) {
  const std::vector<U> a{0xf0f0aaaaU}, b{0xcccc5555U}, c{0x12345678U};
  EXPECT_EQ(run_instruction<U>("lop3.b32 %d, %s0, %s1, %s2, 0x80;", a, b, c)[0], a[0] & b[0] & c[0]);
  EXPECT_EQ(run_instruction<U>("lop3.b32 %d, %s0, %s1, %s2, 0x96;", a, b, c)[0], a[0] ^ b[0] ^ c[0]);
  EXPECT_EQ(run_instruction<U>("lop3.b32 %d, %s0, %s1, %s2, 0xea;", a, b, c)[0], (a[0] & b[0]) | c[0]);
}

TEST(Bits, Prmt) {
  const std::vector<U> a{0x83020100U}, b{0x87060504U};
  EXPECT_EQ(run_instruction<U>("prmt.b32 %d, %s0, %s1, 0x7531;", a, b)[0], 0x87058301U);
  EXPECT_EQ(run_instruction<U>("prmt.b32 %d, %s0, %s1, 0xbc31;", a, b)[0], 0xff008301U);
  EXPECT_EQ(run_instruction<U>("prmt.b32.rc16 %d, %s0, %s1, 1;", a, b)[0], 0x83028302U);
  EXPECT_EQ(run_instruction<U>("prmt.b32.f4e %d, %s0, %s1, 1;", a, b)[0], 0x04830201U);
}

TEST(Bits, ExtractAndInsertFields) {
  const std::vector<U> a{0xabcd1234U}, b{0xffffffffU};
  EXPECT_EQ(run_instruction<U>("bfe.u32 %d, %s0, 8, 8;", a)[0], 0x12U);
  EXPECT_EQ(run_instruction<U>("bfe.s32 %d, %s0, 16, 8;", a)[0], 0xffffffcdU);
  EXPECT_EQ(run_instruction<U>("bfe.s32 %d, %s0, 28, 16;", a)[0], 0xfffffffaU);
  EXPECT_EQ(run_instruction<U>("bfe.u32 %d, %s0, 40, 8;", a)[0], 0U);
  EXPECT_EQ(run_instruction<U>("bfe.u32 %d, %s0, 0, 32;", a)[0], a[0]);
  EXPECT_EQ(run_instruction<U>("bfi.b32 %d, %s0, %s1, 8, 16;", a, b)[0], 0xff1234ffU);
  EXPECT_EQ(run_instruction<U>("bfi.b32 %d, %s0, %s1, 28, 16;", a, b)[0], 0x4fffffffU);
  const std::vector<W> wide{0x0123456789abcdefULL}, zero{0};
  EXPECT_EQ(run_instruction<W>("bfi.b64 %d, %s0, %s1, 32, 32;", wide, zero)[0], 0x89abcdef00000000ULL);
}

TEST(Bits, Counts) {
  expect_unary<U, U>("popc.b32", [](U a) { return std::popcount(a); });
  expect_unary<U, W>("clz.b64", [](W a) { return std::countl_zero(a); });
  expect_unary<U, U>("brev.b32", [](U a) {
    U reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= ((a >> i) & 1U) << (31 - i);
    return reversed;
  });
  expect_unary<U, U>("bfind.u32", [](U a) { return a == 0 ? ~U{0} : 31U - static_cast<U>(std::countl_zero(a)); });
  expect_unary<U, I>("bfind.shiftamt.s32", [](I a) {
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    return bits == 0 ? ~U{0} : static_cast<U>(std::countl_zero(bits));
  });
}

TEST(Comparison, SignedAndUnsignedIntegers) {
  const std::string select = " selp.u32 %d, 1, 0, %p;";
  const std::string declare = ".reg .pred %p, %q;\n";
  const std::vector<U> a = edge_and_random_values<U>(1);
  std::vector<U> b = a;
  std::rotate(b.begin(), b.begin() + 1, b.end());
  const auto check = [&](std::string_view comparison, auto&& formula) {
    const auto d = run_lanes<U>(fmt::format("setp.{} %p, %s0, %s1;{}", comparison, select), declare, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(d[i] != 0, formula(a[i], b[i])) << comparison;
  };
  check("lt.s32", [](U x, U y) { return static_cast<I>(x) < static_cast<I>(y); });
  check("lt.u32", [](U x, U y) { return x < y; });
  check("hs.u32", [](U x, U y) { return x >= y; });
  check("ge.s32", [](U x, U y) { return static_cast<I>(x) >= static_cast<I>(y); });
  check("ne.b32", [](U x, U y) { return x != y; });
}

TEST(Comparison, CombinesWithAPredicateAndComplements) {
  const std::vector<U> a{1, 2, 3, 4};
  const std::string declare = ".reg .pred %p, %q, %c;\n";
  const auto p =
      run_lanes<U>("setp.gt.u32 %c, %s0, 2; setp.lt.and.u32 %p|%q, %s0, 4, !%c; selp.u32 %d, 1, 0, %p;", declare, a);
  const auto q =
      run_lanes<U>("setp.gt.u32 %c, %s0, 2; setp.lt.and.u32 %p|%q, %s0, 4, %c; selp.u32 %d, 1, 0, %q;", declare, a);
  EXPECT_EQ(p, (std::vector<U>{1, 1, 0, 0}));
  EXPECT_EQ(q, (std::vector<U>{0, 0, 0, 1}));
  EXPECT_EQ(
      run_lanes<U>("setp.gt.u32 %p, %s0, 2; not.pred %q, %p; xor.pred %c, %p, %q; selp.u32 %d, 1, 0, %c;", declare, a),
      (std::vector<U>{1, 1, 1, 1}));
}

TEST(Comparison, SetAndSelectBySign) {
  const std::vector<I> a{-2, 0, 3};
  EXPECT_EQ(run_instruction<U>("set.lt.u32.s32 %d, %s0, 0;", a), (std::vector<U>{~U{0}, 0, 0}));
  EXPECT_EQ(run_instruction<float>("set.ge.f32.s32 %d, %s0, 0;", a), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(run_instruction<U>("slct.u32.s32 %d, 5, 6, %s0;", a), (std::vector<U>{6, 5, 5}));
}

TEST(Move, PacksAndUnpacks) {
  const std::vector<U> a{0x11112222U};
  const std::string halves = ".reg .b16 %h<2>;\n";
  EXPECT_EQ(run_lanes<U>("mov.b32 {%h0, %h1}, %s0; mov.b32 %d, {%h1, %h0};", halves, a)[0], 0x22221111U);
  EXPECT_EQ(run_instruction<W>("mov.b64 %d, {%s0, 7};", a)[0], 0x711112222ULL);
  EXPECT_EQ(run_lanes<U>("mov.b32 {%h0, _}, %s0; cvt.u32.u16 %d, %h0;", halves, a)[0], 0x2222U);
}

TEST(Unsupported, InstructionsThatAreNotExecutedAreNoFinding) {
  EXPECT_EQ(run_lanes<U>("mov.u32 %d, 7;\nbra END;\ntex.2d.v4.f32.f32 %d, %lane;\nwmma.nosuch %d;\nEND:", "",
                         std::vector<U>{1}),
            (std::vector<U>{7}));
  EXPECT_EQ(run_lanes<U>("setp.gt.u32 %p, %lane, 100;\nmov.u32 %d, 7;\n@%p call (%d), nowhere, (%lane);",
                         ".reg .pred %p;\n", std::vector<U>{1}),
            (std::vector<U>{7}));
}

TEST(Unsupported, InstructionsAreRefusedByName) {
  for (const std::string_view body :
       {"tex.2d.v4.f32.f32 %d, %lane;", "add.u128 %d, %lane, 1;", "add.weird.u32 %d, %lane, 1;", "mov.u32 %d, %nosuch;",
        "add.u32 %d, %lane;", "add.u32 %wide, %lane, 1;", "bra nowhere;", "ld.global.v8.u32 %d, [%at];",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32 %d, %d, %d, %d;"}) {
    const Finding finding = finding_of_body(body);
    EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction) << body << ": " << finding.detail;
    EXPECT_GT(finding.location.ptx_line, 0) << body;
    EXPECT_TRUE(finding.thread.has_value()) << "the finding is of the thread that executes it";
  }
  EXPECT_NE(finding_of_body("add.weird.u32 %d, %lane, 1;").detail.find(".weird"), std::string::npos);
  EXPECT_NE(finding_of_body("mov.u32 %d, %nosuch;").detail.find("%nosuch"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::emulator
