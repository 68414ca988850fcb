// The table of multiply-accumulate instructions agrees with itself and with the PTX ISA's fragment figures.
#include "tilewright/arch/mma_atom.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using enum DType;

TEST(MmaAtom, EveryRowAgreesWithItself) {
  for (const MmaAtom& atom : mma_atoms()) {
    EXPECT_TRUE(check(atom)) << check(atom).reason();
    EXPECT_EQ(threads(atom), 32) << atom.name;
  }
  for (const MmaAtom& atom : simt_atoms()) {
    EXPECT_TRUE(check(atom)) << check(atom).reason();
    EXPECT_EQ(threads(atom), 1) << atom.name;
  }
}

TEST(MmaAtom, NamesAreUniqueAndTellTheRow) {
  std::set<std::string_view> names;
  for (const MmaAtom& atom : mma_atoms()) {
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    const std::string shape = fmt::format("m{}n{}k{}", atom.m, atom.n, atom.k);
    EXPECT_EQ(atom.name, fmt::format("mma_{}_{}_{}_{}", shape, name(atom.c), name(atom.a), name(atom.b)));
    EXPECT_EQ(atom.ptx, fmt::format("mma.sync.aligned.{}.row.col.{}.{}.{}.{}", shape, name(atom.c), name(atom.a),
                                    name(atom.b), name(atom.c)));
  }
}

TEST(MmaAtom, CheckFindsWhatIsWrong) {
  const MmaAtom good = *find_mma_atom(16, 8, 16, f16, f16, f32);
  MmaAtom wrong_registers = good;
  wrong_registers.a_registers = 2;
  EXPECT_EQ(check(wrong_registers).reason(),
            "mma_m16n8k16_f32_f16_f16: A needs 4 registers of 32 bits, the row says 2");
  MmaAtom wrong_size = good;
  wrong_size.k = 8;
  EXPECT_EQ(check(wrong_size).reason(), "mma_m16n8k16_f32_f16_f16: A has 256 threads x values for a tile of 128");
  MmaAtom overlapping = good;
  overlapping.b_tv = layout::Layout({{4, 8}, {2, 2}}, {{16, 1}, {8, 8}});
  EXPECT_NE(check(overlapping).reason().find("B maps"), std::string::npos);
  MmaAtom outside = good;
  outside.c_tv = layout::Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 128}});
  EXPECT_NE(check(outside).reason().find("C maps"), std::string::npos);
}

TEST(MmaAtom, RegistersPerThread) {
  const struct {
    int m, n, k;
    DType a, c;
    int registers[3];
  } cases[] = {
      {16, 8, 8, f16, f16, {2, 1, 2}},  {16, 8, 8, bf16, f32, {2, 1, 4}}, {16, 8, 16, f16, f16, {4, 2, 2}},
      {16, 8, 16, f16, f32, {4, 2, 4}}, {16, 8, 4, tf32, f32, {2, 1, 4}}, {16, 8, 8, tf32, f32, {4, 2, 4}},
      {16, 8, 16, s8, s32, {2, 1, 4}},  {16, 8, 32, u8, s32, {4, 2, 4}},  {8, 8, 4, f64, f64, {1, 1, 2}},
      {16, 8, 4, f64, f64, {2, 1, 4}},  {16, 8, 8, f64, f64, {4, 2, 4}},  {16, 8, 16, f64, f64, {8, 4, 4}},
  };
  for (const auto& c : cases) {
    const MmaAtom* atom = find_mma_atom(c.m, c.n, c.k, c.a, c.a, c.c);
    ASSERT_NE(atom, nullptr) << c.m << "x" << c.n << "x" << c.k << " " << name(c.a);
    EXPECT_EQ(atom->a_registers, c.registers[0]) << atom->name;
    EXPECT_EQ(atom->b_registers, c.registers[1]) << atom->name;
    EXPECT_EQ(atom->c_registers, c.registers[2]) << atom->name;
    EXPECT_EQ(atom->register_bits, c.a == f64 ? 64 : 32) << atom->name;
  }
}

/// Where lane and value sit, as the PTX ISA writes it: groups of four lanes, the value's number.
struct Place {
  int major;  // row of A and C, column of B
  int minor;  // k of A and B, column of C
};

template <class Formula>
void expect_places(const MmaAtom& atom, const layout::Layout& tv, int rows, Formula&& formula) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < size(tv) / 32; ++value) {
      const Place place = formula(lane / 4, lane % 4, value);
      EXPECT_EQ(tv(lane, value), place.major + rows * place.minor)
          << atom.name << " lane " << lane << " value " << value;
    }
  }
}

TEST(MmaAtom, PlacesElementsAsThePtxIsaSays) {
  const MmaAtom& half = *find_mma_atom(16, 8, 16, f16, f16, f32);
  expect_places(half, half.a_tv, 16, [](int group, int lane, int i) {
    return Place{group + (i % 4 >= 2 ? 8 : 0), lane * 2 + i % 2 + (i >= 4 ? 8 : 0)};
  });
  expect_places(half, half.b_tv, 8, [](int group, int lane, int i) {
    return Place{group, lane * 2 + i % 2 + (i >= 2 ? 8 : 0)};
  });
  const MmaAtom& byte = *find_mma_atom(16, 8, 32, s8, u8, s32);
  expect_places(byte, byte.a_tv, 16, [](int group, int lane, int i) {
    return Place{group + (i % 8 >= 4 ? 8 : 0), lane * 4 + i % 4 + (i >= 8 ? 16 : 0)};
  });
  expect_places(byte, byte.b_tv, 8, [](int group, int lane, int i) {
    return Place{group, lane * 4 + i % 4 + (i >= 4 ? 16 : 0)};
  });
  const MmaAtom& tf = *find_mma_atom(16, 8, 8, tf32, tf32, f32);
  expect_places(tf, tf.a_tv, 16, [](int group, int lane, int i) {
    return Place{group + (i % 2) * 8, lane + (i / 2) * 4};
  });
  expect_places(tf, tf.b_tv, 8, [](int group, int lane, int i) { return Place{group, lane + i * 4}; });
  const MmaAtom& wide = *find_mma_atom(16, 8, 16, f64, f64, f64);
  expect_places(wide, wide.a_tv, 16, [](int group, int lane, int i) {
    return Place{group + (i % 2) * 8, lane + (i / 2) * 4};
  });
  expect_places(wide, wide.b_tv, 8, [](int group, int lane, int i) { return Place{group, lane + i * 4}; });
  for (const MmaAtom* atom : {&half, &byte, &tf, &wide}) {
    expect_places(*atom, atom->c_tv, 16, [](int group, int lane, int i) {
      return Place{group + (i >= 2 ? 8 : 0), lane * 2 + i % 2};
    });
  }
  const MmaAtom& small = *find_mma_atom(8, 8, 4, f64, f64, f64);
  expect_places(small, small.a_tv, 8, [](int group, int lane, int) { return Place{group, lane}; });
  expect_places(small, small.c_tv, 8, [](int group, int lane, int i) { return Place{group, lane * 2 + i}; });
}

TEST(MmaAtom, LookupsSayWhatThereIs) {
  EXPECT_EQ(find_mma_atom(16, 8, 16, tf32, tf32, f32), nullptr);
  EXPECT_EQ(find_mma_atom(16, 8, 16, bf16, bf16, bf16), nullptr);
  EXPECT_EQ(known_instructions(f16, f16), "m16n8k8 f16, m16n8k8 f32, m16n8k16 f16, m16n8k16 f32");
  EXPECT_EQ(known_instructions(u8, s8), "m16n8k16 s32, m16n8k32 s32");
  EXPECT_EQ(known_instructions(f64, f64), "m8n8k4 f64, m16n8k4 f64 (sm_90), m16n8k8 f64 (sm_90), m16n8k16 f64 (sm_90)");
  EXPECT_EQ(known_instructions(f32, f32), "none");
}

TEST(SimtAtom, ServesEveryTensorType) {
  EXPECT_NE(find_simt_atom(f64, f64, f64), nullptr);
  EXPECT_NE(find_simt_atom(f32, f32, f32), nullptr);
  EXPECT_NE(find_simt_atom(bf16, bf16, f32), nullptr);
  EXPECT_EQ(find_simt_atom(f16, f16, f32)->ptx, "fma.rn.f32");
  EXPECT_EQ(find_simt_atom(u8, s8, s32)->ptx, "mad.lo.s32");
  EXPECT_EQ(find_simt_atom(f32, f16, f32), nullptr);
}

}  // namespace
}  // namespace tilewright::arch
