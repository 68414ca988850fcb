// The swizzle atoms and tiles of wgmma equal those of the PTX ISA and of CuTe.
#include "tilewright/arch/wgmma_smem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::Swizzle;
using enum Major;
using enum SwizzleMode;

constexpr std::array kModes{none, bytes_32, bytes_64, bytes_128};
constexpr std::array kMajors{k, mn};

ComposedLayout atom(Major major, SwizzleMode mode, int bits) { return smem_atom(major, mode, bits).value_or_throw(); }

// CuTe, mma_traits_sm90_gmma.hpp: Layout_{K,MN}_{INTER,SW32,SW64,SW128}_Atom<T> as it prints them.
TEST(SmemAtom, EqualsCute) {
  struct Row {
    int bits;
    std::array<const char*, 4> k_major;
    std::array<const char*, 4> mn_major;
  };
  const std::array rows{Row{16,
                            {"(8,8):(8,1)", "(8,16):(16,1)", "(8,32):(32,1)", "(8,64):(64,1)"},
                            {"(8,8):(1,8)", "(16,8):(1,16)", "(32,8):(1,32)", "(64,8):(1,64)"}},
                        Row{32,
                            {"(8,4):(4,1)", "(8,8):(8,1)", "(8,16):(16,1)", "(8,32):(32,1)"},
                            {"(4,8):(1,4)", "(8,8):(1,8)", "(16,8):(1,16)", "(32,8):(1,32)"}},
                        Row{8,
                            {"(8,16):(16,1)", "(8,32):(32,1)", "(8,64):(64,1)", "(8,128):(128,1)"},
                            {"(16,8):(1,16)", "(32,8):(1,32)", "(64,8):(1,64)", "(128,8):(1,128)"}}};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kModes.size(); ++i) {
      EXPECT_EQ(to_string(atom(k, kModes[i], row.bits).layout), row.k_major[i]);
      EXPECT_EQ(to_string(atom(mn, kModes[i], row.bits).layout), row.mn_major[i]);
    }
  }
}

TEST(SmemAtom, SwizzlesBytesForEveryElementWidth) {
  EXPECT_EQ(to_string(atom(k, bytes_128, 16)), "Sw<3,3,3> o 0 o (8,64):(64,1)");
  EXPECT_EQ(atom(k, bytes_128, 16)(1, 0), 72) << "CuTe's as_position_independent_swizzle_layout";
  EXPECT_EQ(atom(k, bytes_128, 16)(3, 17), 201);
  EXPECT_EQ(atom(k, bytes_128, 32).swizzle, Swizzle(3, 2, 3));
  EXPECT_EQ(atom(k, bytes_64, 8).swizzle, Swizzle(2, 4, 3));
  EXPECT_EQ(atom(mn, bytes_32, 64).swizzle, Swizzle(1, 1, 3));
  EXPECT_EQ(atom(k, bytes_128, 4).swizzle, Swizzle(3, 5, 3));
  EXPECT_EQ(to_string(atom(k, bytes_128, 4).layout), "(8,256):(256,1)");
  EXPECT_EQ(to_string(atom(mn, bytes_64, 64).layout), "(8,8):(1,8)");
}

// Rows of 128 bytes begin at 0x0, 0x90, 0x120, ...: row i begins in chunk i.
TEST(SmemAtom, FirstChunksOfThe128ByteSwizzle) {
  const std::array<std::int64_t, 8> starts{0x0, 0x90, 0x120, 0x1b0, 0x240, 0x2d0, 0x360, 0x3f0};
  for (std::int64_t row = 0; row < 8; ++row)
    EXPECT_EQ(2 * atom(k, bytes_128, 16)(row, 0), starts[static_cast<std::size_t>(row)]);
}

TEST(SmemAtom, WidthsAndAlignments) {
  EXPECT_EQ(width_bytes(none), 16);
  EXPECT_EQ(width_bytes(bytes_32), 32);
  EXPECT_EQ(width_bytes(bytes_64), 64);
  EXPECT_EQ(width_bytes(bytes_128), 128);
  EXPECT_EQ(base_alignment(none), 128);
  EXPECT_EQ(base_alignment(bytes_32), 256);
  EXPECT_EQ(base_alignment(bytes_64), 512);
  EXPECT_EQ(base_alignment(bytes_128), 1024);
  for (const SwizzleMode mode : kModes) {
    EXPECT_LE(size(byte_swizzle(mode)), base_alignment(mode)) << "the pattern repeats within the alignment";
    for (const Major major : kMajors) EXPECT_EQ(2 * size(atom(major, mode, 16)), base_alignment(mode));
  }
}

TEST(SmemAtom, Refusals) {
  EXPECT_EQ(smem_atom(k, none, 12).reason(), "elements in shared memory must have 1, 2, 4, ... or 128 bits, got 12");
  EXPECT_FALSE(smem_atom(k, none, 256));
  EXPECT_FALSE(smem_atom(k, none, 0));
}

TEST(SwizzleModeOf, InvertsTheAtoms) {
  for (const int bits : {4, 8, 16, 32, 64}) {
    for (const SwizzleMode mode : kModes) EXPECT_EQ(*swizzle_mode(atom(k, mode, bits).swizzle, bits), mode);
  }
  EXPECT_EQ(swizzle_mode(Swizzle(2, 5, 2), 8).reason(),
            "Sw<2,5,2> of 8-bit elements is not one of the modes Sw<0..3,4,3> of bytes");
  EXPECT_FALSE(swizzle_mode(Swizzle(3, 3, 3), 8)) << "as a swizzle of bytes it permutes half chunks";
}

// CUTLASS, ss_smem_selector: the widest mode whose row divides the contiguous extent.
TEST(WidestSwizzle, Divides) {
  EXPECT_EQ(*widest_swizzle(k, 16, 128, 64), bytes_128);
  EXPECT_EQ(*widest_swizzle(k, 16, 128, 96), bytes_64);
  EXPECT_EQ(*widest_swizzle(k, 16, 128, 16), bytes_32);
  EXPECT_EQ(*widest_swizzle(k, 16, 128, 8), none);
  EXPECT_EQ(*widest_swizzle(mn, 16, 128, 64), bytes_128);
  EXPECT_EQ(*widest_swizzle(mn, 16, 96, 64), bytes_64);
  EXPECT_EQ(*widest_swizzle(k, 32, 64, 32), bytes_128);
  EXPECT_EQ(*widest_swizzle(k, 8, 64, 64), bytes_64);
  EXPECT_EQ(
      widest_swizzle(k, 16, 128, 12).reason(),
      "the rows of a K-major tile of 16-bit elements must be a multiple of 8 elements (16 bytes), got 12 of 128x12");
  EXPECT_EQ(widest_swizzle(mn, 16, 128, 12).reason(),
            "a MN-major tile must have a multiple of 8 rows, got 12 of 128x12");
}

TEST(SmemTile, RepeatsTheAtom) {
  const auto text = [](const SmemTile& tile) { return to_string(smem_tile(tile).value_or_throw()); };
  EXPECT_EQ(text({.major = k, .mode = bytes_128, .element_bits = 16, .mn = 128, .k = 128}),
            "Sw<3,3,3> o 0 o ((8,16),(64,2)):((64,512),(1,8192))");
  EXPECT_EQ(text({.major = mn, .mode = bytes_128, .element_bits = 16, .mn = 128, .k = 64}),
            "Sw<3,3,3> o 0 o ((64,2),(8,8)):((1,4096),(64,512))");
  EXPECT_EQ(
      text({.major = mn, .mode = bytes_128, .element_bits = 16, .mn = 128, .k = 64, .order = AtomOrder::mn_first}),
      "Sw<3,3,3> o 0 o ((64,2),(8,8)):((1,512),(64,1024))");
}

TEST(SmemTile, IsTheProductOfAtoms) {
  for (const SwizzleMode mode : kModes) {
    for (const Major major : kMajors) {
      for (const AtomOrder order : {AtomOrder::mn_first, AtomOrder::k_first}) {
        const auto tile =
            smem_tile({.major = major, .mode = mode, .element_bits = 16, .mn = 128, .k = 64, .order = order});
        const layout::IntTuple ranks = order == AtomOrder::mn_first ? layout::IntTuple{0, 1} : layout::IntTuple{1, 0};
        const ComposedLayout expected = layout::tile_to_shape(atom(major, mode, 16), {128, 64}, ranks);
        EXPECT_EQ(tile->swizzle, expected.swizzle);
        EXPECT_EQ(layout::coalesce(tile->layout, {1, 1}), layout::coalesce(expected.layout, {1, 1}));
      }
    }
  }
}

// The smem_layout of each tile in nvcute's tiled_copy tests, after coalescing.
TEST(SmemTile, EqualsNvcute) {
  const auto by_mode = [](Major major, std::int64_t m, std::int64_t depth) {
    const auto tile = smem_tile({.major = major, .mode = bytes_128, .element_bits = 16, .mn = m, .k = depth});
    return to_string(layout::coalesce(tile->layout, {1, 1}));
  };
  EXPECT_EQ(by_mode(k, 64, 64), "(64,64):(64,1)");
  EXPECT_EQ(by_mode(mn, 64, 64), "(64,64):(1,64)");
  EXPECT_EQ(by_mode(k, 128, 64), "(128,64):(64,1)");
  EXPECT_EQ(by_mode(mn, 128, 64), "((64,2),64):((1,4096),64)");
}

TEST(SmemTile, IsABijection) {
  for (const int bits : {8, 16, 32, 64}) {
    for (const SwizzleMode mode : kModes) {
      for (const Major major : kMajors) {
        for (const AtomOrder order : {AtomOrder::mn_first, AtomOrder::k_first}) {
          const auto tile =
              smem_tile({.major = major, .mode = mode, .element_bits = bits, .mn = 128, .k = 256, .order = order});
          ASSERT_TRUE(tile) << tile.reason();
          std::vector<bool> image(128 * 256);
          for (std::int64_t i = 0; i < size(*tile); ++i) image.at(static_cast<std::size_t>((*tile)(i))) = true;
          ASSERT_EQ(std::count(image.begin(), image.end(), false), 0);
        }
      }
    }
  }
}

TEST(SmemTile, Refusals) {
  EXPECT_EQ(smem_tile({.major = k, .mode = bytes_128, .element_bits = 16, .mn = 128, .k = 96}).reason(),
            "a K-major tile with 128-byte swizzle of 16-bit elements consists of 8x64 atoms, got 128x96");
  EXPECT_FALSE(smem_tile({.major = mn, .mode = bytes_128, .element_bits = 16, .mn = 96, .k = 64}));
  EXPECT_FALSE(smem_tile({.major = k, .mode = bytes_128, .element_bits = 16, .mn = 0, .k = 64}));
}

TEST(SmemStages, AreConsecutiveTiles) {
  const ComposedLayout tile = *smem_tile({.major = k, .mode = bytes_128, .element_bits = 16, .mn = 128, .k = 128});
  EXPECT_EQ(to_string(smem_stages(tile, 4).layout), "((8,16),(64,2),4):((64,512),(1,8192),16384)");
  EXPECT_EQ(smem_stages(tile, 4)(5, 7, 3), 3 * 16384 + tile(5, 7));
  EXPECT_THROW(smem_stages(tile, 0), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::arch
