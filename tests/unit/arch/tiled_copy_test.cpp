// Tiled copies equal CuTe's TiledCopy.
#include "tilewright/arch/tiled_copy.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;

const CopyAtom& atom(CopyKind kind, int bytes) { return *find_copy_atom(kind, bytes); }

TiledMma two_warpgroups(int n) {
  const WgmmaAtom* row = find_wgmma_atom(DType::f16, DType::f16, DType::f32, OperandSource::shared_memory);
  return make_tiled_mma(instruction(*row, n).value_or_throw(), Layout({2, 1, 1}, {1, 0, 0})).value_or_throw();
}

// cp.async of 16 bytes by 128 threads, 8 of them along a row: printed by CuTe's make_tiled_copy.
TEST(TiledCopy, CpAsync) {
  const TiledCopy copy =
      make_tiled_copy(atom(CopyKind::cp_async_cg, 16), 16, Layout({16, 8}, {8, 1}), Layout({1, 8}, {0, 1}))
          .value_or_throw();
  EXPECT_EQ(to_string(copy.tv), "((8,16),8):((128,1),16)");
  EXPECT_EQ(to_string(copy.tile), "(16,64)");
  EXPECT_EQ(copy.s_tv, copy.d_tv);
}

// stmatrix.x4 of a 128x128 accumulator of two warpgroups: printed by CuTe.
TEST(TiledCopy, StmatrixOfAccumulators) {
  const TiledCopy copy = make_tiled_copy_c(atom(CopyKind::stmatrix, 16), 16, two_warpgroups(128)).value_or_throw();
  EXPECT_EQ(to_string(copy.s_tv), "((4,8,8),((2,2,2),8)):((256,1,16),((128,8,1024),2048))");
  EXPECT_EQ(to_string(copy.d_tv), "((16,2,8),(8,8)):((1,1024,16),(128,2048))");
}

// ldmatrix delivers the fragments of an m16n8k16 tile, for any layout of its rows.
TEST(TiledCopy, LdmatrixDeliversFragmentsOfMmaSync) {
  const MmaAtom& mma_atom = *find_mma_atom(16, 8, 16, DType::f16, DType::f16, DType::f32);
  const TiledMma mma =
      make_tiled_mma(mma_atom, layout::make_layout({2, 2, 1}), {Layout(32, 1), Layout(32, 1), Layout(16, 1)})
          .value_or_throw();
  for (const TiledCopy& copy : {make_tiled_copy_a(atom(CopyKind::ldmatrix, 16), 16, mma).value_or_throw(),
                                make_tiled_copy_b(atom(CopyKind::ldmatrix, 16), 16, mma).value_or_throw()}) {
    EXPECT_EQ(size(copy.tv), size(copy.d_tv));
    for (std::int64_t thread = 0; thread < 128; ++thread) {
      for (std::int64_t value = 0; value < 8; ++value)
        ASSERT_EQ(copy.d_tv(thread, value), copy.tv(thread, value)) << "received in register order";
      // Lane 8j + r provides the address of row r of matrix j, which lanes 4r to 4r+3 receive in register j.
      const std::int64_t warp = thread / 32 * 32;
      const std::int64_t row = thread % 8;
      const std::int64_t matrix = thread % 32 / 8;
      for (std::int64_t element = 0; element < 8; ++element)
        ASSERT_EQ(copy.s_tv(thread, element), copy.tv(warp + 4 * row + element / 2, 2 * matrix + element % 2));
    }
  }
}

TEST(TiledCopy, PartitionsFollowTheTile) {
  const TiledCopy copy =
      make_tiled_copy(atom(CopyKind::cp_async_cg, 16), 16, Layout({16, 8}, {8, 1}), Layout({1, 8}, {0, 1}))
          .value_or_throw();
  const Layout tensor = layout::make_row_major({64, 128});
  const Partition part = partition_s(copy, tensor, 19);
  EXPECT_EQ(part.offset, tensor(2, 3 * 8)) << "thread 19 is row 2, chunk 3";
  EXPECT_EQ(layout::size(part.layout), 64 * 128 / 128);
  EXPECT_EQ(part.offset + part.layout(layout::IntTuple{{5, 0}, {3, 1}}), tensor(2 + 3 * 16, 3 * 8 + 5 + 64));
  EXPECT_THROW(partition_d(copy, tensor, 128), InvalidArgument);
}

TEST(TiledCopy, Refusals) {
  const CopyAtom& wide = atom(CopyKind::cp_async_cg, 16);
  EXPECT_EQ(make_tiled_copy(wide, 16, Layout({16, 8}, {8, 1}), Layout({1, 4}, {0, 1})).reason(),
            "cp_async_cg_16 has 8 values of 16-bit elements, which do not divide 4");
  EXPECT_EQ(make_tiled_copy(atom(CopyKind::ldmatrix, 16), 16, Layout({4, 4}, {4, 1}), Layout({1, 8}, {0, 1})).reason(),
            "ldmatrix_x4 has 32 threads of 16-bit elements, which do not divide 16");
  EXPECT_EQ(make_tiled_copy(wide, 16, Layout({16, 8}, {16, 1}), Layout({1, 8}, {0, 1})).reason(),
            "threads must be a bijection onto [0, 128), got (16,8):(16,1)");
  EXPECT_FALSE(make_tiled_copy_c(atom(CopyKind::stmatrix, 16), 16, two_warpgroups(24)))
      << "x4 stores two groups of 8 columns; 24 columns are three";
  EXPECT_TRUE(make_tiled_copy_c(atom(CopyKind::stmatrix, 8), 16, two_warpgroups(24)));
}

}  // namespace
}  // namespace tilewright::arch
