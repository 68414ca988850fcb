// The table of MMA atoms is consistent, and its layouts are the matrix fragments of the PTX ISA.
#include "tilewright/arch/mma_atom.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tilewright/arch/fragment.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using enum DType;

TEST(MmaAtom, EveryRowIsConsistent) {
  const std::pair<const std::vector<MmaAtom>&, int> tables[] = {
      {mma_atoms(), 32}, {quad_pair_atoms(), 8}, {simt_atoms(), 1}};
  for (const auto& [atoms, together] : tables) {
    for (const MmaAtom& atom : atoms) {
      EXPECT_TRUE(check(atom)) << check(atom).reason();
      EXPECT_EQ(threads(atom), together) << atom.name;
    }
  }
}

TEST(MmaAtom, NamesAreUnique) {
  std::set<std::string> names;
  for (const MmaAtom& atom : mma_atoms()) {
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    const std::string shape = fmt::format("m{}n{}k{}", atom.m, atom.n, atom.k);
    const std::string types = fmt::format("{}_{}_{}", name(atom.c), name(atom.a), name(atom.b));
    const std::string qualifiers =
        fmt::format("row.col.{}.{}.{}.{}", name(atom.c), name(atom.a), name(atom.b), name(atom.c));
    const std::string op = atom.op == MmaOp::multiply_add ? "" : atom.op == MmaOp::xor_popc ? "xor" : "and";
    EXPECT_EQ(atom.name, fmt::format("mma_{}_{}{}", shape, types, op.empty() ? "" : "_" + op + "_popc"));
    EXPECT_EQ(atom.ptx,
              fmt::format("mma.sync.aligned.{}.{}{}", shape, qualifiers, op.empty() ? "" : "." + op + ".popc"));
    EXPECT_EQ(find_mma_atom(atom.m, atom.n, atom.k, atom.a, atom.b, atom.c, atom.op), &atom) << atom.name;
  }
}

// PTX ISA 9.7.14.5, "mma", without sparsity, block scaling and the types of sm_120.
TEST(MmaAtom, CountsByOperandType) {
  const auto count = [](DType a) {
    return std::count_if(mma_atoms().begin(), mma_atoms().end(), [&](const MmaAtom& x) { return x.a == a; });
  };
  EXPECT_EQ(count(f16), 4);
  EXPECT_EQ(count(bf16), 2);
  EXPECT_EQ(count(tf32), 2);
  EXPECT_EQ(count(f64), 4);
  EXPECT_EQ(count(s8) + count(u8), 12);
  EXPECT_EQ(count(s4) + count(u4), 12);
  EXPECT_EQ(count(e4m3) + count(e5m2), 16);
  EXPECT_EQ(count(b1), 6);
  EXPECT_EQ(quad_pair_atoms().size(), 8U);
}

TEST(MmaAtom, CheckRefusesInconsistentRows) {
  const MmaAtom good = *find_mma_atom(16, 8, 16, f16, f16, f32);
  MmaAtom wrong_registers = good;
  wrong_registers.a_registers = 2;
  EXPECT_EQ(check(wrong_registers).reason(),
            "mma_m16n8k16_f32_f16_f16: A needs 4 registers of 32 bits, but the row has 2");
  MmaAtom wrong_size = good;
  wrong_size.k = 8;
  EXPECT_EQ(check(wrong_size).reason(), "mma_m16n8k16_f32_f16_f16: A has 256 threads x values for a tile of 128");
  MmaAtom overlapping = good;
  overlapping.b_tv = layout::Layout({{4, 8}, {2, 2}}, {{16, 1}, {8, 8}});
  EXPECT_NE(check(overlapping).reason().find("B maps"), std::string::npos);
  MmaAtom outside = good;
  outside.c_tv = layout::Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 128}});
  EXPECT_NE(check(outside).reason().find("C maps"), std::string::npos);
  MmaAtom unequal_threads = good;
  unequal_threads.b_tv = layout::Layout({16, 8}, {1, 16});
  EXPECT_EQ(check(unequal_threads).reason(), "mma_m16n8k16_f32_f16_f16: B is held by 16 threads of 32");
  MmaAtom no_registers = good;
  no_registers.b_registers = 0;
  EXPECT_NE(check(no_registers).reason().find("threads hold different elements"), std::string::npos);
}

TEST(MmaAtom, RegistersPerThread) {
  const struct {
    int m, n, k;
    DType a, c;
    int registers[3];
  } cases[] = {
      {16, 8, 8, f16, f16, {2, 1, 2}},  {16, 8, 8, bf16, f32, {2, 1, 4}},  {16, 8, 16, f16, f16, {4, 2, 2}},
      {16, 8, 16, f16, f32, {4, 2, 4}}, {16, 8, 4, tf32, f32, {2, 1, 4}},  {16, 8, 8, tf32, f32, {4, 2, 4}},
      {16, 8, 16, s8, s32, {2, 1, 4}},  {16, 8, 32, u8, s32, {4, 2, 4}},   {8, 8, 4, f64, f64, {1, 1, 2}},
      {16, 8, 4, f64, f64, {2, 1, 4}},  {16, 8, 8, f64, f64, {4, 2, 4}},   {16, 8, 16, f64, f64, {8, 4, 4}},
      {8, 8, 16, s8, s32, {1, 1, 2}},   {8, 8, 32, s4, s32, {1, 1, 2}},    {16, 8, 32, u4, s32, {2, 1, 4}},
      {16, 8, 64, s4, s32, {4, 2, 4}},  {16, 8, 16, e4m3, f32, {2, 1, 4}}, {16, 8, 32, e5m2, f16, {4, 2, 2}},
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

/// The place of element i of a fragment, where `group` is the lane's groupID (lane / 4) and `t` its threadID_in_group
/// (lane % 4).
struct Place {
  int row;
  int column;
};
using Formula = Place (*)(int group, int t, int i);

/// The formulas of PTX ISA 9.7.14.5, "Matrix Fragments", for each shape. Rows of B are k, its columns are n.
struct IsaFragments {
  int m, k, bits;
  Formula a, b;
};

constexpr IsaFragments kIsa[] = {
    {8, 4, 64,
     [](int group, int t, int) {
       return Place{group, t};
     },
     [](int group, int t, int) {
       return Place{t, group};
     }},
    {8, 16, 8,
     [](int group, int t, int i) {
       return Place{group, t * 4 + i};
     },
     [](int group, int t, int i) {
       return Place{t * 4 + i, group};
     }},
    {8, 32, 4,
     [](int group, int t, int i) {
       return Place{group, t * 8 + i};
     },
     [](int group, int t, int i) {
       return Place{t * 8 + i, group};
     }},
    {8, 128, 1,
     [](int group, int t, int i) {
       return Place{group, t * 32 + i};
     },
     [](int group, int t, int i) {
       return Place{t * 32 + i, group};
     }},
    {16, 4, 64,
     [](int group, int t, int i) {
       return Place{i == 0 ? group : group + 8, t};
     },
     [](int group, int t, int) {
       return Place{t, group};
     }},
    {16, 4, 32,
     [](int group, int t, int i) {
       return Place{i == 0 ? group : group + 8, t};
     },
     [](int group, int t, int) {
       return Place{t, group};
     }},
    {16, 8, 64,
     [](int group, int t, int i) {
       return Place{i % 2 == 0 ? group : group + 8, i < 2 ? t : t + 4};
     },
     [](int group, int t, int i) {
       return Place{t + i * 4, group};
     }},
    {16, 8, 32,
     [](int group, int t, int i) {
       return Place{i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4};
     },
     [](int group, int t, int i) {
       return Place{i == 0 ? t : t + 4, group};
     }},
    {16, 16, 64,
     [](int group, int t, int i) {
       return Place{i % 2 == 0 ? group : group + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
     },
     [](int group, int t, int i) {
       return Place{i * 4 + t, group};
     }},
    {16, 8, 16,
     [](int group, int t, int i) {
       return Place{i < 2 ? group : group + 8, t * 2 + (i & 1)};
     },
     [](int group, int t, int i) {
       return Place{t * 2 + i, group};
     }},
    {16, 16, 16,
     [](int group, int t, int i) {
       return Place{i < 2 || (4 <= i && i < 6) ? group : group + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
     },
     [](int group, int t, int i) {
       return Place{t * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
     }},
    {16, 16, 8,
     [](int group, int t, int i) {
       return Place{i < 4 ? group : group + 8, t * 4 + (i & 3)};
     },
     [](int group, int t, int i) {
       return Place{t * 4 + i, group};
     }},
    {16, 32, 8,
     [](int group, int t, int i) {
       return Place{i < 4 || (8 <= i && i < 12) ? group : group + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
     },
     [](int group, int t, int i) {
       return Place{t * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
     }},
    {16, 32, 4,
     [](int group, int t, int i) {
       return Place{i < 8 ? group : group + 8, t * 8 + (i & 7)};
     },
     [](int group, int t, int i) {
       return Place{t * 8 + (i & 7), group};
     }},
    {16, 64, 4,
     [](int group, int t, int i) {
       return Place{i < 8 || (16 <= i && i < 24) ? group : group + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
     },
     [](int group, int t, int i) {
       return Place{t * 8 + (i & 7) + (i >= 8 ? 32 : 0), group};
     }},
    {16, 128, 1,
     [](int group, int t, int i) {
       return Place{i < 32 ? group : group + 8, t * 32 + (i & 31)};
     },
     [](int group, int t, int i) {
       return Place{t * 32 + i, group};
     }},
    {16, 256, 1,
     [](int group, int t, int i) {
       return Place{i < 32 || (64 <= i && i < 96) ? group : group + 8, t * 32 + (i & 31) + (i >= 64 ? 128 : 0)};
     },
     [](int group, int t, int i) {
       return Place{t * 32 + (i & 31) + (i >= 32 ? 128 : 0), group};
     }},
};

/// Expects tv(lane, value) == offset(lane, value) for every lane and value.
template <class Offset>
void expect_places(const MmaAtom& atom, const layout::Layout& tv, Offset&& offset) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < size(tv) / 32; ++i)
      ASSERT_EQ(tv(lane, i), offset(lane, i)) << atom.name << " lane " << lane << " element " << i;
  }
}

TEST(MmaAtom, FragmentsAreThoseOfThePtxIsa) {
  for (const MmaAtom& atom : mma_atoms()) {
    const auto* isa = std::find_if(std::begin(kIsa), std::end(kIsa), [&](const IsaFragments& x) {
      return x.m == atom.m && x.k == atom.k && x.bits == bits(atom.a);
    });
    ASSERT_NE(isa, std::end(kIsa)) << atom.name;
    expect_places(atom, atom.a_tv, [&](int lane, int i) {
      const Place place = isa->a(lane / 4, lane % 4, i);
      return place.row + atom.m * place.column;
    });
    expect_places(atom, atom.b_tv, [&](int lane, int i) {
      const Place place = isa->b(lane / 4, lane % 4, i);
      return place.column + atom.n * place.row;
    });
    expect_places(atom, atom.c_tv,
                  [&](int lane, int i) { return lane / 4 + (i < 2 ? 0 : 8) + atom.m * (lane % 4 * 2 + (i & 1)); });
  }
}

// The layouts of CuTe's MMA_Traits for SM75, SM80 and SM89.
TEST(MmaAtom, LayoutsAreThoseOfCute) {
  const struct {
    int m, k;
    DType a, c;
    const char *a_tv, *b_tv, *c_tv;
  } cases[] = {
      {16, 16, f16, f32, "((4,8),(2,2,2)):((32,1),(16,8,128))", "((4,8),(2,2)):((16,1),(8,64))",
       "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 8, bf16, f32, "((4,8),(2,2)):((32,1),(16,8))", "((4,8),2):((16,1),8)", "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 4, tf32, f32, "((4,8),2):((16,1),8)", "((4,8),1):((8,1),0)", "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 8, tf32, f32, "((4,8),(2,2)):((16,1),(8,64))", "((4,8),2):((8,1),32)", "((4,8),(2,2)):((32,1),(16,8))"},
      {8, 4, f64, f64, "((4,8),1):((8,1),0)", "((4,8),1):((8,1),0)", "((4,8),2):((16,1),8)"},
      {16, 16, f64, f64, "((4,8),(2,4)):((16,1),(8,64))", "((4,8),4):((8,1),32)", "((4,8),(2,2)):((32,1),(16,8))"},
      {8, 16, s8, s32, "((4,8),4):((32,1),8)", "((4,8),4):((32,1),8)", "((4,8),2):((16,1),8)"},
      {16, 16, u8, s32, "((4,8),(4,2)):((64,1),(16,8))", "((4,8),4):((32,1),8)", "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 32, e4m3, f32, "((4,8),(4,2,2)):((64,1),(16,8,256))", "((4,8),(4,2)):((32,1),(8,128))",
       "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 32, s4, s32, "((4,8),(8,2)):((128,1),(16,8))", "((4,8),8):((64,1),8)", "((4,8),(2,2)):((32,1),(16,8))"},
      {16, 64, u4, s32, "((4,8),(8,2,2)):((128,1),(16,8,512))", "((4,8),(8,2)):((64,1),(8,256))",
       "((4,8),(2,2)):((32,1),(16,8))"},
  };
  for (const auto& c : cases) {
    const MmaAtom* atom = find_mma_atom(c.m, 8, c.k, c.a, c.a, c.c);
    ASSERT_NE(atom, nullptr) << name(c.a) << " k " << c.k;
    EXPECT_EQ(to_string(atom->a_tv), c.a_tv) << atom->name;
    EXPECT_EQ(to_string(atom->b_tv), c.b_tv) << atom->name;
    EXPECT_EQ(to_string(atom->c_tv), c.c_tv) << atom->name;
  }
  const MmaAtom& bit = *find_mma_atom(16, 8, 256, b1, b1, s32, MmaOp::and_popc);
  EXPECT_EQ(to_string(bit.a_tv), "((4,8),(32,2,2)):((512,1),(16,8,2048))");
  EXPECT_EQ(to_string(bit.b_tv), "((4,8),(32,2)):((256,1),(8,1024))");
}

// PTX ISA 9.7.14.5.1, "Matrix Fragments for mma.m8n8k4 with .f16": %laneid < 16 has the upper half.
TEST(QuadPairAtom, FragmentsAreThoseOfThePtxIsa) {
  for (const MmaAtom& atom : quad_pair_atoms()) {
    EXPECT_EQ(atom.min_target, Target{70});
    EXPECT_EQ(find_quad_pair_atom(atom.c, atom.a_is_k_major, atom.b_is_k_major), &atom) << atom.name;
    for (int thread = 0; thread < 8; ++thread) {
      const auto lane = static_cast<int>(atom.thread_ids(thread));
      const int half = lane < 16 ? 0 : 4;
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(atom.a_tv(thread, i), atom.a_is_k_major ? lane % 4 + half + 8 * i : i % 4 + half + 8 * (lane % 4));
        EXPECT_EQ(atom.b_tv(thread, i), atom.b_is_k_major ? lane % 4 + half + 8 * i : i + half + 8 * (lane % 4));
      }
      for (int i = 0; i < 8; ++i) {
        const int row = (atom.c == f16 ? lane % 4 : (lane & 1) + (i & 2)) + half;
        const int column = atom.c == f16 ? i : (i & 4) + (lane & 2) + (i & 1);
        EXPECT_EQ(atom.c_tv(thread, i), row + 8 * column) << atom.name << " lane " << lane << " element " << i;
      }
    }
  }
}

TEST(QuadPairAtom, Rows) {
  const MmaAtom& tn = *find_quad_pair_atom(f32, true, true);
  EXPECT_EQ(tn.name, "mma_m8n8k4_f32_f16_f16_row_col");
  EXPECT_EQ(tn.ptx, "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32");
  EXPECT_EQ(to_string(tn.thread_ids), "(4,2):(1,16)");
  EXPECT_EQ(to_string(tn.a_tv), "(8,4):(1,8)");
  EXPECT_EQ(to_string(tn.c_tv), "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))");
  EXPECT_EQ(tn.a_registers, 2);
  EXPECT_EQ(tn.c_registers, 8);
  const MmaAtom& nt = *find_quad_pair_atom(f16, false, false);
  EXPECT_EQ(nt.ptx, "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16");
  EXPECT_EQ(to_string(nt.b_tv), "((4,2),4):((8,4),1)");
  EXPECT_EQ(to_string(nt.c_tv), "(8,8):(1,8)");
  EXPECT_EQ(nt.c_registers, 4);
}

TEST(MmaAtom, LookupsFindRowsAndListAlternatives) {
  EXPECT_EQ(find_mma_atom(16, 8, 16, tf32, tf32, f32), nullptr);
  EXPECT_EQ(find_mma_atom(16, 8, 16, bf16, bf16, bf16), nullptr);
  EXPECT_EQ(known_instructions(f16, f16), "m16n8k8 f16, m16n8k8 f32, m16n8k16 f16, m16n8k16 f32");
  EXPECT_EQ(find_mma_atom(8, 8, 4, f16, f16, f16), nullptr) << "it is a quad-pair atom";
  EXPECT_EQ(find_mma_atom(16, 8, 256, b1, b1, s32), nullptr) << "single bits have no multiply_add";
  EXPECT_EQ(known_instructions(u8, s8), "m8n8k16 s32, m16n8k16 s32, m16n8k32 s32");
  EXPECT_EQ(known_instructions(e5m2, e4m3),
            "m16n8k16 f16 (sm_89), m16n8k16 f32 (sm_89), m16n8k32 f16 (sm_89), m16n8k32 f32 (sm_89)");
  EXPECT_EQ(known_instructions(b1, b1),
            "m8n8k128 s32 xor, m16n8k128 s32 xor, m16n8k256 s32 xor, m8n8k128 s32 and, m16n8k128 s32 and, "
            "m16n8k256 s32 and");
  EXPECT_EQ(known_instructions(f64, f64), "m8n8k4 f64, m16n8k4 f64 (sm_90), m16n8k8 f64 (sm_90), m16n8k16 f64 (sm_90)");
  EXPECT_EQ(known_instructions(f32, f32), "none");
}

TEST(Fragment, Refusals) {
  EXPECT_THROW(fragment(32, 16, 2), InvalidArgument);
  EXPECT_THROW(fragment(16, 12, 2), InvalidArgument);
  EXPECT_THROW(fragment(16, 0, 2), InvalidArgument);
  EXPECT_THROW(fragment(16, 16, 0), InvalidArgument);
}

TEST(SimtAtom, HasARowForEveryTensorType) {
  EXPECT_NE(find_simt_atom(f64, f64, f64), nullptr);
  EXPECT_NE(find_simt_atom(f32, f32, f32), nullptr);
  EXPECT_NE(find_simt_atom(bf16, bf16, f32), nullptr);
  EXPECT_EQ(find_simt_atom(f16, f16, f32)->ptx, "fma.rn.f32");
  EXPECT_EQ(find_simt_atom(u8, s8, s32)->ptx, "mad.lo.s32");
  EXPECT_EQ(find_simt_atom(f32, f16, f32), nullptr);
}

}  // namespace
}  // namespace tilewright::arch
