// The table of wgmma atoms is consistent for every n, and its layouts are the register fragments of the PTX ISA.
#include "tilewright/arch/wgmma_atom.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using enum DType;
using enum OperandSource;

TEST(WgmmaAtom, EveryRowIsConsistentForEveryN) {
  std::set<std::string> names;
  for (const WgmmaAtom& atom : wgmma_atoms()) {
    EXPECT_TRUE(check(atom)) << check(atom).reason();
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    EXPECT_EQ(find_wgmma_atom(atom.a, atom.b, atom.c, atom.a_source), &atom) << atom.name;
  }
  EXPECT_EQ(names.size(), 32U) << "16 combinations of types, with A in shared memory or in registers";
}

// PTX ISA, wgmma.mma_async, "Shape": the table of n; ptxas accepts the same integer ns.
TEST(WgmmaAtom, ValuesOfN) {
  const WgmmaAtom& half = *find_wgmma_atom(f16, f16, f32, shared_memory);
  EXPECT_EQ(n_values(half).size(), 32U);
  EXPECT_EQ(n_values(half).front(), 8);
  EXPECT_EQ(n_values(half).back(), 256);
  const WgmmaAtom& byte = *find_wgmma_atom(s8, u8, s32, registers);
  EXPECT_EQ(n_values(byte),
            (std::vector<int>{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256}));
  EXPECT_EQ(supports_n(half, 12).reason(), "wgmma_k16_f32_f16_f16_ss: n must be a multiple of 8 from 8 to 256, got 12");
  EXPECT_FALSE(supports_n(half, 0));
  EXPECT_FALSE(supports_n(half, 264));
  EXPECT_TRUE(supports_n(half, 40));
  EXPECT_EQ(supports_n(byte, 40).reason(), "wgmma_k32_s32_s8_u8_rs: n past 32 must be a multiple of 16, got 40");
  EXPECT_EQ(instruction(byte, 40).reason(), supports_n(byte, 40).reason());
}

TEST(WgmmaAtom, MnMajorOperands) {
  for (const WgmmaAtom& atom : wgmma_atoms()) {
    const bool is_16_bit = atom.a == f16 || atom.a == bf16;
    EXPECT_EQ(atom.b_may_be_mn_major, is_16_bit) << atom.name;
    EXPECT_EQ(atom.a_may_be_mn_major, is_16_bit && atom.a_source == shared_memory) << atom.name;
    EXPECT_EQ(atom.takes_scales, atom.c != s32) << atom.name;
  }
}

TEST(WgmmaAtom, Instructions) {
  const MmaAtom half = *instruction(*find_wgmma_atom(f16, f16, f32, shared_memory), 128);
  EXPECT_EQ(half.name, "wgmma_m64n128k16_f32_f16_f16_ss");
  EXPECT_EQ(half.ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16");
  EXPECT_EQ(threads(half), 128);
  EXPECT_EQ(half.min_target, kSm90a);
  EXPECT_EQ(half.a_registers, 0);
  EXPECT_EQ(half.b_registers, 0);
  EXPECT_EQ(half.c_registers, 64);
  EXPECT_EQ(instruction(*find_wgmma_atom(e5m2, e4m3, f16, registers), 24)->c_registers, 6);
  EXPECT_EQ(instruction(*find_wgmma_atom(s8, s8, s32, registers), 256)->c_registers, 128);
  for (const DType type : {f16, bf16, tf32, e4m3, s8}) {
    const DType c = type == s8 ? s32 : f32;
    EXPECT_EQ(find_wgmma_atom(type, type, c, registers)->a_registers, 4) << name(type);
  }
}

// ALayout, BLayout and CLayout of CuTe's mma_traits_sm90_gmma.hpp.
TEST(WgmmaAtom, LayoutsAreThoseOfCute) {
  const auto a_tv = [](DType type, DType c, OperandSource source) {
    return to_string(instruction(*find_wgmma_atom(type, type, c, source), 64)->a_tv);
  };
  EXPECT_EQ(a_tv(tf32, f32, registers), "((4,8,4),(2,2)):((64,1,16),(8,256))");
  EXPECT_EQ(a_tv(bf16, f32, registers), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(a_tv(e4m3, f16, registers), "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))");
  EXPECT_EQ(a_tv(u8, s32, registers), "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))");
  EXPECT_EQ(a_tv(f16, f32, shared_memory), "(128,(64,16)):(0,(1,64))");
  EXPECT_EQ(a_tv(tf32, f32, shared_memory), "(128,(64,8)):(0,(1,64))");
  const WgmmaAtom& half = *find_wgmma_atom(f16, f16, f32, shared_memory);
  EXPECT_EQ(to_string(instruction(half, 96)->b_tv), "(128,(96,16)):(0,(1,96))");
  EXPECT_EQ(to_string(instruction(half, 8)->c_tv), "((4,8,4),(2,2,1)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(instruction(half, 256)->c_tv), "((4,8,4),(2,2,32)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(instruction(half, 64)->thread_ids), "128:1");
}

// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma: warp w of the warpgroup has rows 16w to
// 16w + 15, in the fragments of mma.sync.
TEST(WgmmaAtom, FragmentsAreThoseOfThePtxIsa) {
  const auto expect = [](const MmaAtom& atom, const layout::Layout& tv, auto&& row_in_warp, auto&& column) {
    for (int thread = 0; thread < 128; ++thread) {
      const int lane = thread % 32;
      for (int i = 0; i < size(tv) / 128; ++i) {
        const int row = 16 * (thread / 32) + row_in_warp(lane, i);
        ASSERT_EQ(tv(thread, i), row + 64 * column(lane, i)) << atom.name << " thread " << thread << " element " << i;
      }
    }
  };
  for (const WgmmaAtom& row : wgmma_atoms()) {
    for (const int n : {8, 64, 256}) {
      const MmaAtom atom = *instruction(row, n);
      expect(
          atom, atom.c_tv, [](int lane, int i) { return lane / 4 + (i % 4 < 2 ? 0 : 8); },
          [](int lane, int i) { return 8 * (i / 4) + lane % 4 * 2 + i % 2; });
      if (row.a_source == shared_memory) continue;
      const int packed = 32 / bits(row.a);
      expect(
          atom, atom.a_tv, [&](int lane, int i) { return lane / 4 + (i / packed % 2 == 0 ? 0 : 8); },
          [&](int lane, int i) { return lane % 4 * packed + i % packed + (i < 2 * packed ? 0 : 4 * packed); });
    }
  }
}

TEST(WgmmaAtom, CheckRefusesInconsistentRows) {
  WgmmaAtom registers_of_a = *find_wgmma_atom(f16, f16, f32, registers);
  registers_of_a.a_registers = 2;
  EXPECT_EQ(check(registers_of_a).reason(),
            "wgmma_m64n8k16_f32_f16_f16_rs: A needs 4 registers of 32 bits, but the row has 2");
  WgmmaAtom source = *find_wgmma_atom(f16, f16, f32, registers);
  source.a_registers = 0;
  EXPECT_EQ(check(source).reason(),
            "wgmma_m64n8k16_f32_f16_f16_rs: A is in shared memory, but threads hold different elements");
  MmaAtom tile = *instruction(*find_wgmma_atom(f16, f16, f32, shared_memory), 64);
  tile.b_tv = layout::Layout({128, {32, 16}}, {0, {1, 32}});
  EXPECT_EQ(check(tile).reason(), "wgmma_m64n64k16_f32_f16_f16_ss: B has 512 values for a tile of 1024");
}

TEST(WgmmaAtom, LookupsFindRowsAndListAlternatives) {
  EXPECT_EQ(find_wgmma_atom(bf16, bf16, bf16, shared_memory), nullptr);
  EXPECT_EQ(find_wgmma_atom(f16, bf16, f32, shared_memory), nullptr);
  EXPECT_EQ(known_wgmma(f16, f16), "m64nNk16 f16, m64nNk16 f32");
  EXPECT_EQ(known_wgmma(e4m3, e5m2), "m64nNk32 f16, m64nNk32 f32");
  EXPECT_EQ(known_wgmma(u8, s8), "m64nNk32 s32");
  EXPECT_EQ(known_wgmma(f64, f64), "none");
}

}  // namespace
}  // namespace tilewright::arch
