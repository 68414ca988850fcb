// The table of copy atoms is consistent, and ldmatrix delivers the fragments of mma.sync.
#include "tilewright/arch/copy_atom.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

TEST(CopyAtom, EveryRowIsConsistent) {
  std::set<std::string_view> names;
  for (const CopyAtom& atom : copy_atoms()) {
    EXPECT_TRUE(check(atom)) << check(atom).reason();
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    EXPECT_EQ(find_copy_atom(atom.kind, atom.bytes), &atom) << atom.name;
  }
}

TEST(CopyAtom, CheckRefusesInconsistentRows) {
  const CopyAtom good = *find_copy_atom(CopyKind::ldmatrix, 16);
  CopyAtom bytes = good;
  bytes.bytes = 8;
  EXPECT_EQ(check(bytes).reason(), "ldmatrix_x4: a thread holds 128 bits, but `bytes` is 8");
  CopyAtom twice = good;
  twice.dst = layout::Layout({32, {32, 4}}, {32, {1, 512}});
  EXPECT_EQ(check(twice).reason(), "ldmatrix_x4: the registers of all threads do not hold each of 4096 bits once");
  CopyAtom missing = good;
  missing.src = layout::Layout({{16, 2}, 128}, {{128, 0}, 1});
  EXPECT_EQ(check(missing).reason(), "ldmatrix_x4: the addresses of all threads do not cover 4096 bits");
}

TEST(CopyAtom, LayoutsOfLdmatrix) {
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix, 4)->src), "((8,4),128):((128,0),1)");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix, 4)->dst), "(32,32):(32,1)");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix, 8)->src), "((16,2),128):((128,0),1)");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix, 16)->src), "(32,128):(128,1)");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix, 16)->dst), "(32,(32,4)):(32,(1,1024))");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix_trans, 4)->dst), "((4,8),(16,2)):((256,16),(1,128))");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix_trans, 16)->dst), "((4,8),(16,2,4)):((256,16),(1,128,1024))");
  EXPECT_EQ(to_string(find_copy_atom(CopyKind::ldmatrix_trans, 8)->dst), "((4,8),(16,2,2)):((256,16),(1,128,1024))");
}

TEST(CopyAtom, StmatrixIsTheInverseOfLdmatrix) {
  using enum CopyKind;
  for (const auto& [store, load] : {std::pair{stmatrix, ldmatrix}, {stmatrix_trans, ldmatrix_trans}}) {
    for (const int bytes : {4, 8, 16}) {
      EXPECT_EQ(find_copy_atom(store, bytes)->src, find_copy_atom(load, bytes)->dst) << bytes;
      EXPECT_EQ(find_copy_atom(store, bytes)->dst, find_copy_atom(load, bytes)->src) << bytes;
      EXPECT_EQ(find_copy_atom(store, bytes)->min_target, Target{90});
      EXPECT_EQ(find_copy_atom(load, bytes)->min_target, Target{75});
    }
  }
}

TEST(CopyAtom, LdmatrixDeliversTheFragmentsOfMma) {
  const MmaAtom& mma = *find_mma_atom(16, 8, 16, DType::f16, DType::f16, DType::f32);
  const layout::Layout& plain = find_copy_atom(CopyKind::ldmatrix, 16)->dst;
  const layout::Layout& transposed = find_copy_atom(CopyKind::ldmatrix_trans, 16)->dst;
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    for (std::int64_t value = 0; value < 8; ++value) {
      const std::int64_t offset = mma.a_tv(lane, value);
      const std::int64_t m = offset % 16;
      const std::int64_t k = offset / 16;
      const std::int64_t matrix = m / 8 + 2 * (k / 8);
      EXPECT_EQ(plain(lane, 16 * value), matrix * 1024 + (m % 8) * 128 + (k % 8) * 16) << "rows of m";
      EXPECT_EQ(transposed(lane, 16 * value), matrix * 1024 + (k % 8) * 128 + (m % 8) * 16) << "rows of k";
    }
  }
}

TEST(CopyAtom, WidthsOfCpAsync) {
  EXPECT_NE(find_copy_atom(CopyKind::cp_async_ca, 4), nullptr);
  EXPECT_EQ(find_copy_atom(CopyKind::cp_async_ca, 2), nullptr);
  EXPECT_EQ(find_copy_atom(CopyKind::cp_async_cg, 8), nullptr);
  EXPECT_EQ(find_copy_atom(CopyKind::cp_async_cg, 16)->alignment, 16);
  EXPECT_EQ(threads(*find_copy_atom(CopyKind::cp_async_cg, 16)), 1);
  EXPECT_EQ(threads(*find_copy_atom(CopyKind::ldmatrix, 16)), 32);
}

}  // namespace
}  // namespace tilewright::arch
