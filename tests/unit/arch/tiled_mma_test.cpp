// Tiled MMAs equal CuTe's TiledMMA, and hold each element of C once.
#include "tilewright/arch/tiled_mma.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::_;
using layout::Layout;
using layout::Tiler;

MmaAtom wgmma_f16(int n) {
  const WgmmaAtom* row = find_wgmma_atom(DType::f16, DType::f16, DType::f32, OperandSource::shared_memory);
  return instruction(*row, n).value_or_throw();
}
const MmaAtom& mma_f16() { return *find_mma_atom(16, 8, 16, DType::f16, DType::f16, DType::f32); }

TiledMma tiled(const MmaAtom& atom, const Layout& atoms, const Tiler& permutation = _) {
  return make_tiled_mma(atom, atoms, permutation).value_or_throw();
}

// Two warpgroups along m: printed by CuTe.
TEST(TiledMma, TwoWarpgroups) {
  const TiledMma mma = tiled(wgmma_f16(128), Layout({2, 1, 1}, {1, 0, 0}));
  EXPECT_EQ(to_string(mma.threads), "(128,2,1,1):(1,128,0,0)");
  EXPECT_EQ(threads(mma), 256);
  EXPECT_EQ(tile_extent(mma, 0), 128);
  EXPECT_EQ(tile_extent(mma, 1), 128);
  EXPECT_EQ(tile_extent(mma, 2), 16);
  EXPECT_EQ(to_string(layout_c_tv(mma)), "((4,8,8),((2,2,16),(1,1))):((256,1,16),((128,8,1024),(0,0)))");
}

// Four warps of m16n8k16, permuted to 32x32x16: printed by CuTe.
TEST(TiledMma, FourWarpsOfMmaSync) {
  const TiledMma mma = tiled(mma_f16(), Layout({2, 2, 1}, {1, 2, 0}), {Layout(32, 1), Layout(32, 1), Layout(16, 1)});
  EXPECT_EQ(to_string(layout_a_tv(mma)), "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))");
  EXPECT_EQ(to_string(layout_b_tv(mma)), "((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))");
  EXPECT_EQ(to_string(layout_c_tv(mma)), "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))");
}

/// How often each offset of a tile is held by all threads and values.
std::vector<int> holders(const Layout& tv, std::int64_t tile) {
  std::vector<int> count(static_cast<std::size_t>(tile), 0);
  for (std::int64_t i = 0; i < layout::size(tv); ++i) ++count.at(static_cast<std::size_t>(tv(i)));
  return count;
}

TEST(TiledMma, HoldsEachElementOfCOnceAndSharesAAndB) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 2, 1}, {4, 1, 1}, {1, 4, 2}}) {
    const TiledMma mma = tiled(mma_f16(), layout::make_layout({m, n, k}), {Layout(m * 32, 1), _, Layout(k * 32, 1)});
    const std::int64_t tm = tile_extent(mma, 0);
    const std::int64_t tn = tile_extent(mma, 1);
    const std::int64_t tk = tile_extent(mma, 2);
    const auto all_are = [](const std::vector<int>& counts, std::int64_t n_holders) {
      return std::all_of(counts.begin(), counts.end(), [&](int c) { return c == n_holders; });
    };
    EXPECT_TRUE(all_are(holders(layout_c_tv(mma), tm * tn), k)) << "each group of threads along k has partial sums";
    EXPECT_TRUE(all_are(holders(layout_a_tv(mma), tm * tk), n));
    EXPECT_TRUE(all_are(holders(layout_b_tv(mma), tn * tk), m));
  }
}

// A permutation of n gives each thread 4 adjacent columns, as CuTe's Tile<_, (2,4,2):(1,4,2)>.
TEST(TiledMma, PermutedN) {
  const TiledMma mma = tiled(mma_f16(), layout::make_layout({1, 1, 1}), {_, Layout({2, 4, 2}, {1, 4, 2}), _});
  const Layout c = layout_c_tv(mma);
  std::vector<std::int64_t> columns;  // those of row 0 that thread 0 holds
  for (std::int64_t value = 0; value < 8; ++value) {
    if (c(0, value) % 16 == 0) columns.push_back(c(0, value) / 16);
  }
  std::sort(columns.begin(), columns.end());
  EXPECT_EQ(columns, (std::vector<std::int64_t>{0, 1, 2, 3}));
  const std::vector<int> counts = holders(c, 16 * 16);
  EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
}

TEST(TiledMma, PartitionsFollowTheTile) {
  const TiledMma mma = tiled(mma_f16(), layout::make_layout({2, 2, 1}));
  const Layout tensor = layout::make_row_major({64, 48});
  const Layout c = layout_c_tv(mma);
  for (const std::int64_t thread : {0, 1, 5, 31, 32, 77, 127}) {
    const Partition part = partition_c(mma, tensor, thread);
    ASSERT_EQ(layout::size(part.layout), 64 * 48 / 128);
    for (std::int64_t value = 0; value < 4; ++value) {
      const std::int64_t m = c(thread, value) % 32;
      const std::int64_t n = c(thread, value) / 32;
      EXPECT_EQ(part.offset + part.layout(layout::IntTuple{value, {1, 2}}), tensor(m + 32, n + 2 * 16));
    }
  }
  EXPECT_EQ(partition_a(mma, layout::make_layout({64, 32}), 32).offset, 16) << "warp 1 is next along m";
  EXPECT_EQ(partition_a(mma, layout::make_layout({64, 32}), 64).offset, 0) << "warp 2 is next along n";
  EXPECT_EQ(partition_b(mma, layout::make_layout({48, 32}), 64).offset, 8);
  EXPECT_THROW(partition_c(mma, tensor, 128), InvalidArgument);
}

// A is in shared memory: every thread has the whole operand.
TEST(TiledMma, OperandsInSharedMemory) {
  const TiledMma mma = tiled(wgmma_f16(64), Layout({2, 1, 1}, {1, 0, 0}));
  const Layout a = layout_a_tv(mma);
  EXPECT_EQ(a(0, 5), a(127, 5));
  EXPECT_EQ(a(128, 0), 64) << "the second warpgroup's rows";
  EXPECT_EQ(layout_b_tv(mma)(128, 7), layout_b_tv(mma)(0, 7));
}

// A quad pair is lanes 0-3 and 16-19, which are not contiguous.
TEST(TiledMma, QuadPairs) {
  const MmaAtom* atom = find_quad_pair_atom(DType::f32, true, true);
  ASSERT_NE(atom, nullptr);
  const TiledMma mma = tiled(*atom, layout::make_layout({2, 2, 1}));
  EXPECT_EQ(threads(mma), 32);
  const std::vector<int> counts = holders(layout_c_tv(mma), 16 * 16);
  EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int c) { return c == 1; }));
}

TEST(TiledMma, Refusals) {
  EXPECT_EQ(make_tiled_mma(mma_f16(), layout::make_layout({2, 2})).reason(),
            "the layout of atoms must have modes (m,n,k), got (2,2):(1,2)");
  EXPECT_EQ(make_tiled_mma(mma_f16(), layout::make_layout({2, 2, 1}), {Layout(48, 1), _, _}).reason(),
            "mma_m16n8k16_f32_f16_f16 of 128 threads cover 32 of mode 0, which does not divide the permutation 48:1");
  EXPECT_FALSE(make_tiled_mma(mma_f16(), layout::make_layout({1, 1, 1}), Layout(16, 1)));
}

}  // namespace
}  // namespace tilewright::arch
