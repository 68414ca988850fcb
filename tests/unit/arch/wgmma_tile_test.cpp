// wgmma over a CTA tile: results of nvcute's tiled_mma, and tiles that need more than one stride along k.
#include "tilewright/arch/wgmma_tile.hpp"

#include <gtest/gtest.h>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using enum Major;

WgmmaOperandTile tile(Major major, DType type, std::int64_t mn, std::int64_t k, std::int64_t stages = 1) {
  const SwizzleMode mode = widest_swizzle(major, bits(type), mn, k).value_or_throw();
  const auto smem = smem_tile({.major = major, .mode = mode, .element_bits = bits(type), .mn = mn, .k = k});
  return {major, stages == 1 ? *smem : smem_stages(*smem, stages)};
}

const WgmmaAtom& atom(DType a, DType c = DType::f32, OperandSource source = OperandSource::shared_memory) {
  return *find_wgmma_atom(a, a, c, source);
}

/// The results of nvcute: values of the offset layouts under nvcute's names.
struct Nvcute {
  std::int64_t m, n, k;                   // mma_count
  std::int64_t advance_k_a, advance_k_b;  // bytes
  std::int64_t advance_m_a, advance_n_b;  // bytes, 0 for one atom
  bool operator==(const Nvcute&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Nvcute& x) {
  return out << "count " << x.m << "," << x.n << "," << x.k << " kA " << x.advance_k_a << " kB " << x.advance_k_b
             << " mA " << x.advance_m_a << " nB " << x.advance_n_b;
}

Nvcute nvcute(const WgmmaTile& t) {
  return {t.m_count,
          t.n_count,
          t.k_count,
          16 * t.a.offset(0, 1),
          16 * t.b.offset(0, 1),
          16 * t.a.offset(1, 0),
          16 * t.b.offset(1, 0)};
}

WgmmaTile f16_tile(Major a, Major b, std::int64_t m, std::int64_t n, std::int64_t depth, int instruction_n = 128) {
  return wgmma_tile(atom(DType::f16), instruction_n, tile(a, DType::f16, m, depth), tile(b, DType::f16, n, depth))
      .value_or_throw();
}

// Both cases of tiled_mma.py: A K-major and B MN-major, atom 64x128x16.
TEST(WgmmaTile, EqualsNvcute) {
  EXPECT_EQ(nvcute(f16_tile(k, mn, 64, 128, 64)), (Nvcute{1, 1, 4, 32, 2048, 0, 0}));
  EXPECT_EQ(nvcute(f16_tile(k, mn, 128, 128, 64)), (Nvcute{2, 1, 4, 32, 2048, 8192, 0}));
}

// More tiles, computed with nvcute.
TEST(WgmmaTile, EqualsNvcuteForMoreTiles) {
  const WgmmaTile both_k = f16_tile(k, k, 128, 128, 64);
  EXPECT_EQ(nvcute(both_k), (Nvcute{2, 1, 4, 32, 32, 8192, 0}));
  EXPECT_EQ(encode(both_k.a.descriptor), 0x4000004000010000u);
  EXPECT_EQ(encode(both_k.b.descriptor), 0x4000004000010000u);

  const WgmmaTile a_mn = f16_tile(mn, k, 128, 128, 64);
  EXPECT_EQ(16 * a_mn.a.offset(0, 1), 2048);
  EXPECT_EQ(16 * a_mn.a.offset(1, 0), 8192);

  const WgmmaTile both_mn = f16_tile(mn, mn, 128, 256, 64);
  EXPECT_EQ(nvcute(both_mn), (Nvcute{2, 2, 4, 2048, 2048, 8192, 16384}));
  EXPECT_EQ(encode(both_mn.b.descriptor), 0x4000004002000000u);
}

// k spans several swizzle atoms: nvcute's scalar step becomes a tuple, which Python repeats.
TEST(WgmmaTile, KOfSeveralSwizzleWidths) {
  const WgmmaTile f16 = f16_tile(k, k, 128, 128, 128);
  EXPECT_EQ(to_string(f16.a.offset), "(2,(4,2)):(512,(2,1024))");
  EXPECT_EQ(f16.k_count, 8);
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(f16.a.offset(1, i), 512 + i % 4 * 2 + i / 4 * 1024) << "128 rows of 128 bytes to a column of atoms";

  const WgmmaTile tf32 =
      wgmma_tile(atom(DType::tf32), 128, tile(k, DType::tf32, 128, 64), tile(k, DType::tf32, 128, 64)).value_or_throw();
  EXPECT_EQ(to_string(tf32.a.offset), "(2,(4,2)):(512,(2,1024))");
  EXPECT_EQ(to_string(tf32.b.offset), "(1,(4,2)):(0,(2,1024))");
}

// The stage of a pipeline is another mode of the layout.
TEST(WgmmaTile, Stages) {
  const WgmmaTile t =
      wgmma_tile(atom(DType::f16), 256, tile(k, DType::f16, 128, 64, 4), tile(mn, DType::f16, 256, 64, 4))
          .value_or_throw();
  EXPECT_EQ(to_string(t.a.offset), "(2,4,4):(512,2,1024)");
  EXPECT_EQ(to_string(t.b.offset), "(1,4,4):(0,128,2048)");
  EXPECT_EQ(descriptor_bits(t.a, 1, 3, 2, 1024), 0x4000004000010000u + 64 + 512 + 3 * 2 + 2 * 1024);
  EXPECT_THROW(descriptor_bits(t.a, 0, 0, 0, 512), InvalidArgument) << "must be aligned to 1024 bytes";
  EXPECT_THROW(descriptor_bits(t.a, 0, 0, 15, 0x3c000), InvalidArgument) << "past 2^18 bytes";
}

TEST(WgmmaTile, Refusals) {
  const auto reason = [](const WgmmaAtom& row, int n, const WgmmaOperandTile& a, const WgmmaOperandTile& b) {
    return wgmma_tile(row, n, a, b).reason();
  };
  const WgmmaOperandTile f16_64 = tile(k, DType::f16, 64, 64);
  EXPECT_EQ(reason(atom(DType::f16), 128, f16_64, f16_64),
            "B: an instruction takes 128 rows, which do not divide the tile's 64");
  EXPECT_EQ(reason(atom(DType::f16), 64, tile(k, DType::f16, 96, 64), f16_64),
            "A: an instruction takes 64 rows, which do not divide the tile's 96");
  EXPECT_EQ(reason(atom(DType::f16), 64, tile(k, DType::f16, 64, 128), f16_64),
            "A has 8 instructions along k, but B has 4");
  EXPECT_FALSE(wgmma_tile(atom(DType::f16), 12, f16_64, f16_64)) << "n must be a multiple of 8";
  EXPECT_EQ(reason(atom(DType::tf32), 64, tile(mn, DType::tf32, 64, 32), tile(k, DType::tf32, 64, 32)),
            "wgmma_k8_f32_tf32_tf32_ss reads A K-major only: MN-major operands must have 16-bit types, got tf32");
  EXPECT_EQ(reason(atom(DType::s8, DType::s32), 64, tile(k, DType::s8, 64, 32), tile(mn, DType::s8, 64, 32)),
            "wgmma_k32_s32_s8_s8_ss reads B K-major only: MN-major operands must have 16-bit types, got s8");
  EXPECT_EQ(reason(atom(DType::f16, DType::f32, OperandSource::registers), 64, f16_64, f16_64),
            "wgmma_k16_f32_f16_f16_rs has A in registers: tile only B, by wgmma_operand");
  EXPECT_FALSE(wgmma_tile(atom(DType::f16), 64, {k, tile(mn, DType::f16, 64, 64).smem}, f16_64)) << "the other major";
}

// An MN-major B with the 128-byte swizzle has atoms of 64 along n, which an instruction with n = 96 would split.
TEST(WgmmaTile, InstructionsThatSplitAnAtom) {
  EXPECT_FALSE(wgmma_operand(mn, tile(mn, DType::f16, 192, 64).smem, 16, 96));
  EXPECT_TRUE(wgmma_operand(mn, tile(mn, DType::f16, 192, 64).smem, 16, 64));
  EXPECT_TRUE(wgmma_operand(mn, tile(mn, DType::f16, 96, 64).smem, 16, 96)) << "64-byte swizzle: atoms of 32";
}

}  // namespace
}  // namespace tilewright::arch
