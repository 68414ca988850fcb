// Carry arithmetic, bit fields, packed integers, wmma, movmatrix, calls through pointers and the heap of kernels,
// compared with formulas that are independent of the emulator's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "lane_kernel.hpp"
#include "tilewright/emulator/device_heap.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;
using I = std::int32_t;
using W = std::uint64_t;

template <class T>
std::vector<T> values(unsigned seed) {
  std::vector<T> all{0, 1, static_cast<T>(-1), static_cast<T>(T{1} << (8 * sizeof(T) - 1))};
  std::mt19937_64 random(seed);
  while (all.size() < 32) all.push_back(static_cast<T>(random() >> (random() % (8 * sizeof(T)))));
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

TEST(Carry, AddsAndSubtractsWideIntegers) {
  const std::vector<W> a = values<W>(1), b = values<W>(2);
  constexpr std::string_view kSplit = "mov.b64 {%l0, %h0}, %s0;\nmov.b64 {%l1, %h1}, %s1;\n";
  constexpr std::string_view kRegisters = ".reg .u32 %l0, %l1, %h0, %h1, %l, %h;\n";
  const auto run = [&](std::string_view body) {
    return run_lanes<W>(std::string(kSplit) + std::string(body) + "mov.b64 %d, {%l, %h};", kRegisters, a, b);
  };
  const std::vector<W> sums = run("add.cc.u32 %l, %l0, %l1;\naddc.u32 %h, %h0, %h1;\n");
  const std::vector<W> differences = run("sub.cc.u32 %l, %l0, %l1;\nsubc.u32 %h, %h0, %h1;\n");
  // The low word is a * b of the low words; the high word adds what the product carries.
  const std::vector<W> products =
      run("mul.lo.u32 %l, %l0, %l1;\nmad.lo.cc.u32 %l, %l0, 1, %l;\nmadc.hi.u32 %h, %l0, %l1, 0;\n");
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(sums[i], a[i] + b[i]) << i;
    EXPECT_EQ(differences[i], a[i] - b[i]) << i;
    const U l0 = static_cast<U>(a[i]), product = l0 * static_cast<U>(b[i]);
    const U carried = static_cast<U>((W{l0} * static_cast<U>(b[i])) >> 32) + (W{product} + l0 > ~U{0} ? 1 : 0);
    EXPECT_EQ(products[i], (W{carried} << 32 | static_cast<U>(product + l0))) << i;
  }
}

TEST(Carry, FlagIsThatOfTheLastInstructionThatWritesIt) {
  const std::vector<W> a = values<W>(3);
  const std::vector<U> carries = run_lanes<U>(
      "add.cc.u64 %t, %s0, -1;\nadd.u64 %t, %t, 5;\naddc.cc.u64 %t, 0, 0;\naddc.u32 %d, 0, 0;", ".reg .u64 %t;\n", a);
  EXPECT_EQ(carries, std::vector<U>(32, 0U));  // the middle sum of 0, 0 and the carry never carries
  const std::vector<W> borrows = run_lanes<W>("sub.cc.u64 %t, %s0, 100;\nsubc.u64 %d, 0, 0;", ".reg .u64 %t;\n", a);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(borrows[i], a[i] < 100 ? ~W{0} : 0) << a[i];
}

// After a subtraction, the flag is set if there was no borrow: nvcc's division of 128-bit integers adds it.
TEST(Carry, AdditionsReadTheFlagOfSubtractions) {
  const std::vector<U> a = values<U>(5), b = values<U>(6);
  const auto run = [&](std::string_view body) { return run_lanes<U>(body, ".reg .u32 %t;\n", a, b); };
  const std::vector<U> added = run("sub.cc.u32 %t, %s0, %s1;\naddc.u32 %d, 0, 0;");
  const std::vector<U> subtracted = run("add.cc.u32 %t, %s0, %s1;\nsubc.u32 %d, 0, 0;");
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(added[i], a[i] >= b[i] ? 1U : 0U) << a[i] << " - " << b[i];
    EXPECT_EQ(subtracted[i], W{a[i]} + b[i] > ~U{0} ? 0U : ~U{0}) << a[i] << " + " << b[i];
  }
}

TEST(BitFields, MasksExtensionsAndPositions) {
  const std::vector<U> a = values<U>(4);
  std::vector<U> n(32);
  for (U i = 0; i < 32; ++i) n[i] = i < 16 ? i : 3 * i;  // some beyond 32
  const std::vector<U> masks = run_instruction<U>("bmsk.clamp.b32 %d, 4, %s0;", n);
  const std::vector<U> wrapped = run_instruction<U>("bmsk.wrap.b32 %d, %s0, 3;", n);
  const std::vector<U> zeros = run_instruction<U>("szext.clamp.u32 %d, %s0, %s1;", a, n);
  const std::vector<U> signs = run_instruction<U>("szext.wrap.s32 %d, %s0, %s1;", a, n);
  for (std::size_t i = 0; i < 32; ++i) {
    const U width = std::min(n[i], 32U), wrap = n[i] % 32;
    EXPECT_EQ(masks[i], static_cast<U>(((W{1} << width) - 1) << 4)) << n[i];
    EXPECT_EQ(wrapped[i], 7U << wrap) << n[i];
    EXPECT_EQ(zeros[i], width == 32 ? a[i] : a[i] % (1U << width)) << a[i] << " " << n[i];
    const U shift = 32 - wrap;
    EXPECT_EQ(signs[i], wrap == 0 ? 0 : static_cast<U>(static_cast<I>(a[i] << shift) >> shift)) << a[i] << " " << n[i];
  }
  const std::vector<U> third = run_instruction<U>("fns.b32 %d, %s0, 0, 3;", std::vector<U>{0xf0, 0x7, 0x3, 0x80010001});
  EXPECT_EQ((std::vector<U>{third.begin(), third.begin() + 4}), (std::vector<U>{6, 2, ~U{0}, 31}));
  const std::vector<U> down = run_instruction<U>("fns.b32 %d, %s0, 31, -2;", std::vector<U>{0xf0, 0x80000001});
  EXPECT_EQ((std::vector<U>{down[0], down[1]}), (std::vector<U>{6, 0}));
}

TEST(BitFields, Lop3CombinesItsResultWithAPredicate) {
  const std::vector<U> a = values<U>(5);
  const std::vector<U> both =
      run_lanes<U>("setp.gt.u32 %q, %s0, 100;\nlop3.and.b32 %t|%p, %s0, 1, 0, 0xc0, %q;\nselp.u32 %d, 1, 0, %p;",
                   ".reg .pred %p, %q;\n.reg .u32 %t;\n", a);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(both[i], (a[i] & 1) != 0 && a[i] > 100 ? 1U : 0U) << a[i];
}

TEST(PackedIntegers, HalvesAreIndependent) {
  const std::vector<U> a = values<U>(6), b = values<U>(7);
  const std::vector<U> sums = run_instruction<U>("add.u16x2 %d, %s0, %s1;", a, b);
  const std::vector<U> least = run_instruction<U>("min.s16x2 %d, %s0, %s1;", a, b);
  const std::vector<U> positive = run_instruction<U>("max.relu.s16x2 %d, %s0, %s1;", a, b);
  const std::vector<U> clipped = run_instruction<U>("min.relu.s32 %d, %s0, %s1;", a, b);
  EXPECT_EQ(run_instruction<U>("max.s16x2.relu %d, %s0, %s1;", a, b), positive) << "the order of CUDA's headers";
  EXPECT_EQ(run_instruction<U>("min.s32.relu %d, %s0, %s1;", a, b), clipped);
  for (std::size_t i = 0; i < a.size(); ++i) {
    U sum = 0, low = 0, relu = 0;
    for (int shift = 0; shift < 32; shift += 16) {
      const auto x = static_cast<std::int16_t>(a[i] >> shift), y = static_cast<std::int16_t>(b[i] >> shift);
      sum |= U{static_cast<std::uint16_t>(x + y)} << shift;
      low |= U{static_cast<std::uint16_t>(x < y ? x : y)} << shift;
      const int most = std::max({int{x}, int{y}, 0});
      relu |= static_cast<U>(most) << shift;
    }
    EXPECT_EQ(sums[i], sum);
    EXPECT_EQ(least[i], low);
    EXPECT_EQ(positive[i], relu);
    EXPECT_EQ(static_cast<I>(clipped[i]), std::max(std::min(static_cast<I>(a[i]), static_cast<I>(b[i])), 0));
  }
}

TEST(Products, HighPartsOf24BitsAndSaturation) {
  const std::vector<U> a = values<U>(11), b = values<U>(12), c = values<U>(13);
  const std::vector<U> high = run_instruction<U>("mul24.hi.s32 %d, %s0, %s1;", a, b);
  const std::vector<U> saturated = run_instruction<U>("mad.hi.sat.s32 %d, %s0, %s1, %s2;", a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto low24 = [](U value) { return static_cast<std::int64_t>(static_cast<I>(value << 8) >> 8); };
    EXPECT_EQ(high[i], static_cast<U>((low24(a[i]) * low24(b[i])) >> 16)) << i;
    const std::int64_t product = static_cast<std::int64_t>(static_cast<I>(a[i])) * static_cast<I>(b[i]);
    const std::int64_t sum = (product >> 32) + static_cast<I>(c[i]);
    EXPECT_EQ(static_cast<I>(saturated[i]), std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX)) << i;
  }
}

TEST(PackedHalves, ComparisonsHaveAResultForEachHalf) {
  // Halves: 1.0 and 2.0; NaN and 1.0; -0.0 and a subnormal number.
  const std::vector<U> a{0x40003c00, 0x3c007e00, 0x00018000}, b{0x3c004000, 0x3c003c00, 0x00000000};
  const auto run = [&](std::string_view body) {
    std::vector<U> d = run_lanes<U>(body, ".reg .pred %p, %q, %r;\n.reg .u32 %t;\n", a, b);
    d.resize(3);
    return d;
  };
  // Bit 0: the low half, bit 1: the upper half.
  const auto predicates = [&](const std::string& comparison) {
    return run("setp.ne.u32 %r, %s0, 0;\nsetp." + comparison +
               ";\nselp.u32 %d, 1, 0, %p;\nselp.u32 %t, 2, 0, %q;\nadd.u32 %d, %d, %t;");
  };
  EXPECT_EQ(predicates("lt.f16x2 %p|%q, %s0, %s1"), (std::vector<U>{1, 0, 0}));
  EXPECT_EQ(predicates("geu.f16x2 %p|%q, %s0, %s1"), (std::vector<U>{2, 3, 3}));
  EXPECT_EQ(predicates("gt.ftz.f16x2 %p|%q, %s0, %s1"), (std::vector<U>{2, 0, 0}));
  EXPECT_EQ(predicates("lt.xor.f16x2 %p|%q, %s0, %s1, %r"), (std::vector<U>{2, 3, 3}));
  EXPECT_EQ(predicates("eq.and.f16x2 %p|%q, %s0, %s1, !%r"), (std::vector<U>{0, 0, 0}));
  EXPECT_EQ(run("set.lt.u32.f16x2 %d, %s0, %s1;"), (std::vector<U>{0xffff, 0, 0}));
  EXPECT_EQ(run("set.ge.f16x2.f16x2 %d, %s0, %s1;"), (std::vector<U>{0x3c000000, 0x3c000000, 0x3c003c00}));
  EXPECT_EQ(run("set.neu.bf16x2.bf16x2 %d, %s0, %s1;"), (std::vector<U>{0x3f803f80, 0x00003f80, 0x3f800000}));
  EXPECT_EQ(run("set.nan.s32.f16x2 %d, %s0, %s1;"), (std::vector<U>{0, 0xffff, 0}));
}

TEST(PackedHalves, SixteenBitResultsOfComparisons) {
  const std::vector<float> a{1, 2, std::numeric_limits<float>::quiet_NaN()}, b{2, 1, 1};
  using H = std::uint16_t;
  const auto run = [&](std::string_view body) {
    std::vector<H> d = run_lanes<H>(body, "", a, b);
    d.resize(3);
    return d;
  };
  EXPECT_EQ(run("set.lt.f16.f32 %d, %s0, %s1;"), (std::vector<H>{0x3c00, 0, 0}));
  EXPECT_EQ(run("set.ltu.bf16.f32 %d, %s0, %s1;"), (std::vector<H>{0x3f80, 0, 0x3f80}));
}

TEST(Extrema, OfMagnitudesHaveTheProductOfTheSigns) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{-3, 3, -2, nan, 0}, b{2, -5, -4, -1, -0.0F};
  std::vector<float> least = run_instruction<float>("min.xorsign.abs.f32 %d, %s0, %s1;", a, b);
  least.resize(5);
  EXPECT_EQ((std::vector<float>{least.begin(), least.begin() + 3}), (std::vector<float>{-2, -3, 2}));
  EXPECT_EQ(std::fabs(least[3]), 1);
  EXPECT_TRUE(least[4] == 0 && std::signbit(least[4]));
  const std::vector<float> propagated = run_instruction<float>("max.NaN.xorsign.abs.f32 %d, %s0, %s1;", a, b);
  EXPECT_EQ(propagated[0], -3);
  EXPECT_TRUE(std::isnan(propagated[3]));
  const std::vector<U> halves =
      run_instruction<U>("max.xorsign.abs.f16x2 %d, %s0, %s1;", std::vector<U>{0xbc004000}, std::vector<U>{0xc400c200});
  EXPECT_EQ(halves[0], 0x4400c200U);  // -1 and -4, 2 and -3
}

TEST(MultiplyAdd, AProductOutsideTheTensorMakesTheResultZero) {
  const std::vector<U> a{0x7ff73c00, 0x3c003c00}, b{0x40004000, 0x40007ff7}, c{0x3c003c00, 0x3c003c00};
  std::vector<U> d = run_instruction<U>("fma.rn.oob.f16x2 %d, %s0, %s1, %s2;", a, b, c);
  EXPECT_EQ((std::vector<U>{d[0], d[1]}), (std::vector<U>{0x00004200, 0x42000000}));  // 1 * 2 + 1 is 3
  d = run_instruction<U>("fma.rn.oob.relu.bf16x2 %d, %s0, %s1, %s2;", std::vector<U>{0xbf80bf80},
                         std::vector<U>{0x4000}, std::vector<U>{0x3f80});
  EXPECT_EQ(d[0], 0U);  // -1 * 2 + 1 and -1 * 0 + 0 are negative
}

TEST(Conversion, PacksSmallIntegersAboveTheLowBitsOfC) {
  const std::vector<U> a{7, 100, static_cast<U>(-9), 1}, b{static_cast<U>(-1), 3, 4, static_cast<U>(-100)},
      c{0x12345678};
  std::vector<U> d = run_instruction<U>("cvt.pack.sat.s4.s32.b32 %d, %s0, %s1, %s2;", a, b, c);
  d.resize(4);
  EXPECT_EQ(d, (std::vector<U>{0x3456787f, 0x34567873, 0x34567884, 0x34567818}));
  d = run_instruction<U>("cvt.pack.sat.u2.s32.b32 %d, %s0, %s1, %s2;", a, b, c);
  d.resize(4);
  EXPECT_EQ(d, (std::vector<U>{0x2345678c, 0x2345678f, 0x23456783, 0x23456784}));
}

TEST(Quadwords, MoveThroughRegistersAndMemory) {
  const std::vector<W> a = values<W>(14), b = values<W>(15);
  constexpr std::string_view kRegisters =
      ".reg .b128 %q, %r;\n.reg .b64 %t;\n.shared .align 16 .b8 memory[512];\n"
      ".reg .b32 %m;\n";
  const std::vector<W> moved = run_lanes<W>(
      "mov.b128 %q, {%s0, %s1};\nmov.u32 %m, memory;\nmad.lo.u32 %m, %lane, 16, %m;\nst.shared.b128 [%m], %q;\n"
      "ld.shared.b128 %r, [%m];\nmov.b128 %q, %r;\nmov.b128 {%t, %d}, %q;\nsub.u64 %d, %d, %t;",
      kRegisters, a, b);
  // Lanes with an even value exchange it; the compare fails for the others.
  const std::vector<W> swapped = run_lanes<W>(
      "mov.u32 %m, memory;\nmad.lo.u32 %m, %lane, 16, %m;\nand.b64 %t, %s0, -2;\nst.shared.v2.b64 [%m], {%t, %s1};\n"
      "mov.b128 %q, {%s0, %s1};\nmov.b128 %r, {%s1, %s0};\natom.shared.cas.b128 %q, [%m], %q, %r;\n"
      "ld.shared.b64 %d, [%m];",
      kRegisters, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(moved[i], b[i] - a[i]) << i;
    EXPECT_EQ(swapped[i], a[i] % 2 == 0 ? b[i] : a[i] - 1) << i;
  }
}

TEST(Atomics, VectorsUpdateEachElement) {
  const auto device = test_device();
  const runtime::DeviceBuffer sums = upload(device, std::vector<float>{1, 2, 3, 4});
  const runtime::DeviceBuffer extrema = upload(device, std::vector<U>{0x3c003c00, 0x3c00c000});
  const std::string ptx = std::string(kHeader) + R"(
.visible .entry k(.param .u64 sums, .param .u64 extrema) {
.reg .u64 %p<2>; .reg .f32 %f<8>; .reg .b32 %r<3>;
ld.param.u64 %p0, [sums]; ld.param.u64 %p1, [extrema];
mov.f32 %f0, 1.0; mov.f32 %f1, 2.0;
atom.global.add.v4.f32 {%f4, %f5, %f6, %f7}, [%p0], {%f0, %f1, %f0, %f1};
mov.b32 %r0, 0x40000000; mov.b32 %r1, 0;
red.global.max.noftz.v2.f16x2 [%p1], {%r0, %r1};
ret;
})";
  launch(*device, ptx, "k", {sums.address(), extrema.address()}, {32, 1, 1});
  EXPECT_EQ(download<float>(*device, sums), (std::vector<float>{33, 66, 35, 68}));
  EXPECT_EQ(download<U>(*device, extrema), (std::vector<U>{0x40003c00, 0x3c000000}));
}

/// A kernel of two CTAs in which CTA 0 stores to the shared memory of CTA 1, which waits for 16 bytes, and stores
/// `results` words of it.
std::vector<U> stored_by_the_peer(std::string_view store, std::string_view before_wait = "") {
  const auto device = test_device();
  const runtime::DeviceBuffer out = upload(device, std::vector<U>(4));
  const std::string ptx = std::string(kHeader) + R"(
.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1 {
.reg .u64 %p, %w; .reg .b32 %r<8>, %rank, %bar, %buf; .reg .pred %q;
.shared .align 8 .b64 bar; .shared .align 16 .b32 buf[4];
mov.u32 %rank, %cluster_ctarank; mov.u32 %bar, bar; mov.u32 %buf, buf;
mov.u32 %r0, 5; mov.u32 %r1, 6; mov.u32 %r2, 7; mov.u32 %r3, 8;
st.shared.v4.b32 [%buf], {%r0, %r0, %r0, %r0};
mbarrier.init.shared.b64 [%bar], 1;
mbarrier.arrive.expect_tx.shared.b64 %w, [%bar], 16;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mapa.shared::cluster.u32 %r4, %buf, 1; mapa.shared::cluster.u32 %r5, %bar, 1;
setp.ne.u32 %q, %rank, 0;
@%q bra reader;
)" + std::string(store) + R"(
bra end;
reader:
)" + std::string(before_wait) +
                          R"(
wait: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0;
@!%q bra wait;
ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%buf];
ld.param.u64 %p, [out];
st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3};
end: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
})";
  const auto kernel = device->load(runtime::Image{{}, ptx}, "k", 0);
  runtime::LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = {1, 1, 1};
  config.cluster = {2, 1, 1};
  kernel->launch(config, pack_addresses({out.address()}));
  return download<U>(*device, out);
}

TEST(AsyncStores, CompleteOnAnMbarrierOfThePeer) {
  EXPECT_EQ(stored_by_the_peer("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r4], {%r0,%r1,%r2,%r3}, "
                               "[%r5];"),
            (std::vector<U>{5, 6, 7, 8}));
  EXPECT_EQ(
      stored_by_the_peer("mov.b64 %w, {%r2, %r3};\n"
                         "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r4 + 8], %w, [%r5];\n"
                         "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r4], {%r3, %r2}, [%r5];"),
      (std::vector<U>{8, 7, 7, 8}));
  EXPECT_EQ(
      stored_by_the_peer("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r1, "
                         "[%r5];\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 "
                         "[%r4 + 4], %r1, [%r5];\nmov.b64 %w, 1;\n"
                         "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r4 + 8], "
                         "%w, [%r5];"),
      (std::vector<U>{11, 3, 6, 5}));
}

TEST(AsyncStores, MustBeWaitedFor) {
  const Finding finding = finding_of([] {
    stored_by_the_peer(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r4], {%r0,%r1,%r2,%r3}, [%r5];",
        "early: mbarrier.test_wait.parity.shared.b64 %q, [%bar], 1;\nld.shared.u32 %r0, [%buf];\nsetp.eq.u32 %q, %r0, "
        "99;\n@%q bra early;");
  });
  EXPECT_EQ(finding.kind, FindingKind::shared_race) << finding.detail;
}

TEST(Video, ScalarsAreSaturatedAndMerged) {
  const std::vector<U> a{0x7fffffff, 0x80000000, 0xffffffff, 5}, b{1, 0x80000000, 1, 7},
      c{0x11223344, 0x11223344, 0, 9};
  const auto run = [&](std::string_view instruction) { return run_instruction<U>(instruction, a, b, c); };
  EXPECT_EQ(run("vadd.s32.s32.s32 %d, %s0, %s1;"), (std::vector<U>{0x80000000, 0, 0, 12}));
  EXPECT_EQ(run("vadd.s32.s32.s32.sat %d, %s0, %s1;"), (std::vector<U>{0x7fffffff, 0x80000000, 0, 12}));
  EXPECT_EQ(run("vsub.u32.u32.u32.sat %d, %s1, %s0;"), (std::vector<U>{0, 0, 0, 2}));
  // The result is merged into c.
  EXPECT_EQ(run("vadd.s32.s32.s32 %d.b1, %s0, %s1, %s2;"), (std::vector<U>{0x11220044, 0x11220044, 0, 0xc09}));
  // Parts of the sources are extended by their sign.
  EXPECT_EQ(run("vmin.s32.s32.s32 %d, %s0.b0, %s1.h1;"), (std::vector<U>{~U{0}, 0xffff8000, ~U{0}, 0}));
  EXPECT_EQ(run("vabsdiff.u32.s32.s32.add %d, %s0.b3, %s1, %s2;"),
            (std::vector<U>{0x11223344 + 126, 0x11223344U + 0x7fffff80U, 2, 16}));
  EXPECT_EQ(run("vset.u32.u32.gt.max %d, %s0, %s1, %s2;"), (std::vector<U>{0x11223344, 0x11223344, 1, 9}));
}

TEST(Video, ShiftsClampOrWrap) {
  const std::vector<U> a{0x80000001, 0x80000001, 0x80000001, 0x80000001}, b{1, 31, 32, 33}, c{0, 0, 0, 0};
  const auto run = [&](std::string_view instruction) { return run_instruction<U>(instruction, a, b, c); };
  EXPECT_EQ(run("vshl.u32.u32.u32.clamp %d, %s0, %s1;"), (std::vector<U>{2, 0x80000000, 0, 0}));
  EXPECT_EQ(run("vshl.u32.u32.u32.wrap %d, %s0, %s1;"), (std::vector<U>{2, 0x80000000, 0x80000001, 2}));
  EXPECT_EQ(run("vshr.s32.s32.u32.clamp %d, %s0, %s1;"), (std::vector<U>{0xc0000000, ~U{0}, ~U{0}, ~U{0}}));
  EXPECT_EQ(run("vshr.u32.u32.u32.wrap %d, %s0, %s1;"), (std::vector<U>{0x40000000, 1, 0x80000001, 0x40000000}));
}

TEST(Video, MultiplyAddNegatesScalesAndSaturates) {
  const std::vector<U> a{3, 0xffffffff, 0x7fffffff, 0x10000}, b{5, 2, 0x7fffffff, 0x10000}, c{1, 1, 1, 0xffffffff};
  const auto run = [&](std::string_view instruction) { return run_instruction<U>(instruction, a, b, c); };
  EXPECT_EQ(run("vmad.s32.s32.s32 %d, %s0, %s1, %s2;"), (std::vector<U>{16, ~U{0}, 2, ~U{0}}));
  EXPECT_EQ(run("vmad.s32.s32.s32 %d, -%s0, %s1, %s2;"), (std::vector<U>{static_cast<U>(-14), 3, 0, ~U{0}}));
  EXPECT_EQ(run("vmad.s32.s32.s32 %d, %s0, %s1, -%s2;"), (std::vector<U>{14, static_cast<U>(-3), 0, 1}));
  EXPECT_EQ(run("vmad.u32.u32.u32.po %d, %s0, %s1, %s2;"), (std::vector<U>{17, 0, 3, 0}));
  EXPECT_EQ(run("vmad.s32.s32.s32.sat %d, %s0, %s1, %s2;"), (std::vector<U>{16, ~U{0}, 0x7fffffff, 0x7fffffff}));
  EXPECT_EQ(run("vmad.s32.s32.s32.shr7 %d, %s0, %s1, %s2;"), (std::vector<U>{0, ~U{0}, 0xfe000000, 0x01ffffff}));
}

// The PTX ISA says 0xffffffff for the first, ptxas makes code that computes 0x80000000 + 0x80000000 = 0.
TEST(Video, FormsThatPtxasComputesOtherwiseAreRefused) {
  const std::vector<U> a{0x80000000}, b{0x80000000}, c{0};
  for (const auto& [instruction, reason] :
       {std::pair{"vadd.u32.u32.u32.sat %d, %s0, %s1;", ".sat of an unsigned result"},
        {"vabsdiff.u32.s32.u32.sat %d, %s0, %s1;", ".sat of an unsigned result"},
        {"vmin.s32.s32.s32.sat %d.b1, %s0, %s1, %s2;", ".sat of a part of d"},
        {"vadd.u32.u32.u32 %d.h1, %s0, %s1, %s2;", "part .h1 of d"},
        {"vshl.s32.s32.u32.sat.clamp %d, %s0, %s1;", ".sat"},
        {"vshr.u32.u32.u32.sat.clamp.min %d, %s0, %s1, %s2;", ".sat of an unsigned result"},
        {"vset.s32.s32.lt.min %d, %s0, %s1, %s2;", ".min or .max of a comparison of signed numbers"},
        {"vmad.u32.u32.u32.shr7 %d, %s0, %s1, %s2;", ".sat, .shr7 or .shr15 of unsigned factors"}}) {
    EXPECT_THAT([&] { run_instruction<U>(instruction, a, b, c); },
                testing::ThrowsMessage<Error>(
                    testing::HasSubstr(std::string(reason) + ", which ptxas computes otherwise than the PTX ISA says")))
        << instruction;
  }
}

TEST(Video, PartsOfVectorsAreSelectedAndMerged) {
  const std::vector<U> a{0x04030201}, b{0x08070605}, c{0xaabbccdd};
  const auto run = [&](std::string_view instruction) { return run_instruction<U>(instruction, a, b, c).at(0); };
  EXPECT_EQ(run("vadd4.u32.u32.u32 %d.b20, %s0.b0123, %s1.b7654, %s2;"), 0xaa09cc09U);
  EXPECT_EQ(run("vadd4.u32.u32.u32.add %d.b20, %s0.b0123, %s1.b7654, %s2;"), 0xaabbccddU + 9 + 9);
  EXPECT_EQ(run("vsub2.s32.s32.s32 %d.h1, %s0.h31, %s1.h00, %s2;"), 0x0606ccddU);
  EXPECT_EQ(run("vset2.u32.u32.lt %d, %s0.h02, %s1.h20, %s2;"), 0x00010000U);
}

TEST(Video, PartsAreIndependentOrAddedUp) {
  const std::vector<U> a = values<U>(21), b = values<U>(22), c = values<U>(23);
  const std::vector<U> sums = run_instruction<U>("vadd4.s32.s32.s32.sat %d, %s0, %s1, %s2;", a, b, c);
  const std::vector<U> distances = run_instruction<U>("vabsdiff4.u32.u32.u32.add %d, %s0, %s1, %s2;", a, b, c);
  const std::vector<U> averages = run_instruction<U>("vavrg2.u32.u32.u32 %d, %s0, %s1, %s2;", a, b, c);
  const std::vector<U> larger = run_instruction<U>("vset2.s32.s32.gt %d, %s0, %s1, %s2;", a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    U sum = 0, distance = c[i], average = 0, set = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      const int x = static_cast<std::int8_t>(a[i] >> shift), y = static_cast<std::int8_t>(b[i] >> shift);
      sum |= (static_cast<U>(std::clamp(x + y, -128, 127)) & 0xff) << shift;
      distance +=
          static_cast<U>(std::abs(static_cast<int>(a[i] >> shift & 0xff) - static_cast<int>(b[i] >> shift & 0xff)));
    }
    for (int shift = 0; shift < 32; shift += 16) {
      average |= (((a[i] >> shift & 0xffff) + (b[i] >> shift & 0xffff) + 1) / 2) << shift;
      set |= U{static_cast<std::int16_t>(a[i] >> shift) > static_cast<std::int16_t>(b[i] >> shift)} << shift;
    }
    EXPECT_EQ(sums[i], sum) << i;
    EXPECT_EQ(distances[i], distance) << i;
    EXPECT_EQ(averages[i], average) << i;
    EXPECT_EQ(larger[i], set) << i;
  }
}

/// mma.m16n8 with the registers of each lane in `a` and `b`, and 0 in C.
std::vector<I> narrow_product(std::string_view instruction, const std::vector<U>& a, const std::vector<U>& b) {
  const auto device = test_device();
  const runtime::DeviceBuffer da = upload(device, a), db = upload(device, b), dc(device, 512);
  const std::string ptx = std::string(kHeader) + R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc) {
.reg .u64 %p<3>; .reg.b32 %t, %a<4>, %b<2>, %c<4>;
mov.u32 %t, %tid.x; ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc];
mad.wide.u32 %p0, %t, 16, %p0; mad.wide.u32 %p1, %t, 8, %p1; mad.wide.u32 %p2, %t, 16, %p2;
ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p0]; ld.global.v2.b32 {%b0, %b1}, [%p1];
mov.u32 %c0, 0; mov.u32 %c1, 0; mov.u32 %c2, 0; mov.u32 %c3, 0;
)" + std::string(instruction) +
                          R"( {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
st.global.v4.b32 [%p2], {%c0, %c1, %c2, %c3};
ret;
})";
  launch(*device, ptx, "k", {da.address(), db.address(), dc.address()}, {32, 1, 1});
  return download<I>(*device, dc);
}

TEST(NarrowMma, ProductsOfFourBitsAndOneBit) {
  std::mt19937 random(31);
  std::vector<U> a(128), b(64);
  for (U& each : a) each = static_cast<U>(random());
  for (U& each : b) each = static_cast<U>(random());
  // PTX ISA: register r of A has row lane / 4 + 8 * (r % 2); k runs over the lanes of a row, then the registers.
  const auto word_of_a = [&](int m, int word) {
    return a[static_cast<std::size_t>(4 * (m % 8 * 4 + word % 4) + m / 8 + 2 * (word / 4))];
  };
  const auto word_of_b = [&](int n, int word) {
    return b[static_cast<std::size_t>(2 * (n * 4 + word % 4) + word / 4)];
  };
  const std::vector<I> nibbles = narrow_product("mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", a, b);
  const std::vector<I> bits = narrow_product("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", a, b);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      I product = 0, common = 0;
      for (int word = 0; word < 8; ++word) {
        const U x = word_of_a(m, word), y = word_of_b(n, word);
        common += std::popcount(x & y);
        for (int i = 0; i < 32; i += 4) product += static_cast<I>(x >> i & 15) * (static_cast<I>(y << (28 - i)) >> 28);
      }
      const auto at = static_cast<std::size_t>(4 * (m % 8 * 4 + n / 2) + m / 8 * 2 + n % 2);
      EXPECT_EQ(nibbles[at], product) << m << " " << n;
      EXPECT_EQ(bits[at], common) << m << " " << n;
    }
  }
}

TEST(Movmatrix, Transposes) {
  std::vector<U> a(32);
  for (U lane = 0; lane < 32; ++lane) a[lane] = (2 * lane + 1) << 16 | 2 * lane;  // element (r, c) is 8 * r + c
  const std::vector<U> d = run_instruction<U>("movmatrix.sync.aligned.m8n8.trans.b16 %d, %s0;", a);
  for (U lane = 0; lane < 32; ++lane) {
    const U row = lane / 4, column = 2 * (lane % 4);
    EXPECT_EQ(d[lane], (8 * (column + 1) + row) << 16 | (8 * column + row)) << lane;
  }
}

TEST(Wmma, ProductOfBytesIsExact) {
  const auto device = test_device();
  std::vector<std::int8_t> a(256), b(256);
  std::vector<I> c(256);
  std::mt19937 random(8);
  for (std::int8_t& each : a) each = static_cast<std::int8_t>(random());
  for (std::int8_t& each : b) each = static_cast<std::int8_t>(random());
  for (I& each : c) each = static_cast<I>(random() % 1000);
  const runtime::DeviceBuffer da = upload(device, a), db = upload(device, b), dc = upload(device, c);
  const std::string ptx = std::string(kHeader) + R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc) {
.reg .u64 %p<3>; .reg .b32 %a<2>, %b<2>, %c<8>;
ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc];
wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%a0, %a1}, [%p0], 16;
wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%b0, %b1}, [%p1], 16;
wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, [%p2], 16;
wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, {%a0, %a1}, {%b0, %b1},
  {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};
wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%p2], {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, 16;
ret;
})";
  launch(*device, ptx, "k", {da.address(), db.address(), dc.address()}, {32, 1, 1});
  const std::vector<I> d = download<I>(*device, dc);
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 16; ++n) {
      I sum = c[16 * m + n];
      for (std::size_t k = 0; k < 16; ++k) sum += a[16 * m + k] * b[16 * n + k];
      EXPECT_EQ(d[16 * m + n], sum) << m << " " << n;
    }
  }
}

/// Two functions of one signature, and a table of pointers to them.
constexpr std::string_view kFunctions = R"(
.func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }
.func (.param .b32 r) square(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; mul.lo.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }
.global .u64 table[2] = {twice, square};
)";
constexpr std::string_view kCaller = R"(
.visible .entry k(.param .u64 out) {
.reg .u64 %p<3>; .reg .b32 %t, %v; .reg .pred %odd;
mov.u32 %t, %tid.x;
and.b32 %v, %t, 1;
setp.eq.u32 %odd, %v, 1;
mov.u64 %p0, table;
ld.global.u64 %p1, [%p0];
@%odd ld.global.u64 %p1, [%p0 + 8];
{ .param .b32 x; .param .b32 r; st.param.b32 [x], %t; prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r), %p1, (x), prototype; ld.param.b32 %v, [r]; }
ld.param.u64 %p0, [out];
mad.wide.u32 %p0, %t, 4, %p0;
st.global.u32 [%p0], %v;
ret;
})";

TEST(IndirectCall, LanesCallDifferentFunctions) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, 128);
  launch(*device, std::string(kHeader) + std::string(kFunctions) + std::string(kCaller), "k", {out.address()},
         {32, 1, 1});
  const std::vector<U> results = download<U>(*device, out);
  for (U t = 0; t < 32; ++t) EXPECT_EQ(results[t], t % 2 == 1 ? t * t : 2 * t) << t;
}

TEST(IndirectCall, APointerToNoFunctionIsRefused) {
  const Finding finding = finding_of([] {
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 128);
    std::string caller(kCaller);
    caller.replace(caller.find("ld.global.u64 %p1, [%p0];"), 25, "mov.u64 %p1, 12;");
    launch(*device, std::string(kHeader) + std::string(kFunctions) + caller, "k", {out.address()}, {32, 1, 1});
  });
  EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction);
  EXPECT_NE(finding.detail.find("a call through a pointer that is no function"), std::string::npos) << finding.detail;
}

TEST(DeviceHeap, BlocksDoNotOverlapAndAreUsedAgain) {
  DeviceHeap heap(4096);
  const W first = heap.allocate(100), second = heap.allocate(0), third = heap.allocate(50);
  EXPECT_EQ(first, 4096U);
  EXPECT_GE(second, first + 100);
  EXPECT_GT(third, second);
  EXPECT_EQ(first % 16 + second % 16 + third % 16, 0U);
  EXPECT_TRUE(heap.deallocate(first));
  EXPECT_FALSE(heap.deallocate(first));
  EXPECT_EQ(heap.allocate(90), first);
  EXPECT_EQ(heap.allocate(DeviceHeap::kBytes), 0U);
  EXPECT_EQ(heap.allocate(~W{0}), 0U);
}

TEST(Names, WarpSizeAndBreakpoints) {
  EXPECT_EQ(run_instruction<U>("add.u32 %d, %s0, WARP_SZ;", std::vector<U>{1}), std::vector<U>{33});
  EXPECT_EQ(finding_of_body("mov.u32 %d, 1;\n@%p brkpt;", ".reg .pred %p;\n").detail, "");
  EXPECT_EQ(finding_of_body("brkpt;\nmov.u32 %d, 1;").kind, FindingKind::trap);
}

}  // namespace
}  // namespace tilewright::emulator
