// The table of cp.async.bulk: mnemonics, ranks and refusals. ptxas_test assembles every row.
#include "tilewright/arch/bulk_copy_atom.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using enum DType;

TEST(BulkCopyAtom, EveryInstructionIsConsistent) {
  std::set<std::string> names;
  for (const BulkCopyAtom& atom : bulk_copy_atoms()) {
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    EXPECT_EQ(find_bulk_copy_atom(atom.name), &atom);
    EXPECT_EQ(atom.min_target, Target{90});
    for (int rank = atom.min_rank; rank <= atom.max_rank; ++rank) {
      const auto type = atom.types.empty() ? std::nullopt : std::optional(atom.types.front());
      const Result<CopyAtom> copy = instruction(atom, rank, 256, type);
      ASSERT_TRUE(copy) << copy.reason();
      EXPECT_TRUE(check(*copy)) << check(*copy).reason();
      EXPECT_EQ(threads(*copy), 1);
      EXPECT_EQ(to_string(copy->dst), "(1,2048):(0,1)");
    }
  }
}

// Source: PTX ISA, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk, cp.reduce.async.bulk.
TEST(BulkCopyAtom, Mnemonics) {
  const auto mnemonic = [](std::string_view name, int rank, std::optional<DType> type = std::nullopt) {
    return *ptx(*find_bulk_copy_atom(name), rank, type);
  };
  EXPECT_EQ(mnemonic("tma_load", 2),
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
  EXPECT_EQ(mnemonic("tma_load_multicast", 5),
            "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster");
  EXPECT_EQ(mnemonic("tma_load_im2col", 4),
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes");
  EXPECT_EQ(mnemonic("tma_store", 3), "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group");
  EXPECT_EQ(mnemonic("tma_store_im2col", 3), "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group");
  EXPECT_EQ(mnemonic("tma_reduce_max", 1), "cp.reduce.async.bulk.tensor.1d.global.shared::cta.max.tile.bulk_group");
  EXPECT_EQ(mnemonic("tma_prefetch", 2), "cp.async.bulk.prefetch.tensor.2d.L2.global.tile");
  EXPECT_EQ(mnemonic("bulk_load", 0), "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");
  EXPECT_EQ(mnemonic("bulk_store", 0), "cp.async.bulk.global.shared::cta.bulk_group");
  EXPECT_EQ(mnemonic("bulk_copy_to_cluster", 0),
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes");
  EXPECT_EQ(mnemonic("bulk_reduce_add", 0, f32), "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32");
  EXPECT_EQ(mnemonic("bulk_reduce_add", 0, bf16), "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16");
  EXPECT_EQ(mnemonic("bulk_reduce_min", 0, f16), "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16");
}

TEST(BulkCopyAtom, NamesAndAlignments) {
  const CopyAtom load = *instruction(*find_bulk_copy_atom("tma_load"), 2, 16384);
  EXPECT_EQ(load.name, "tma_load_2d");
  EXPECT_EQ(load.kind, CopyKind::bulk);
  EXPECT_EQ(load.alignment, 128);
  const CopyAtom add = *instruction(*find_bulk_copy_atom("bulk_reduce_add"), 0, 16, f32);
  EXPECT_EQ(add.name, "bulk_reduce_add_f32");
  EXPECT_EQ(add.alignment, 16);
}

TEST(BulkCopyAtom, Refusals) {
  const BulkCopyAtom& load = *find_bulk_copy_atom("tma_load");
  EXPECT_EQ(ptx(load, 6).reason(), "tma_load: the rank must be from 1 to 5, got 6");
  EXPECT_EQ(ptx(*find_bulk_copy_atom("tma_load_im2col"), 2).reason(),
            "tma_load_im2col: the rank must be from 3 to 5, got 2");
  EXPECT_EQ(ptx(*find_bulk_copy_atom("bulk_load"), 1).reason(), "bulk_load: the rank must be from 0 to 0, got 1");
  EXPECT_EQ(ptx(load, 2, f16).reason(), "tma_load takes no element type, got f16");
  const BulkCopyAtom& add = *find_bulk_copy_atom("bulk_reduce_add");
  EXPECT_EQ(ptx(add, 0).reason(), "bulk_reduce_add needs an element type");
  EXPECT_EQ(ptx(add, 0, s8).reason(), "bulk_reduce_add has no form for s8");
  EXPECT_EQ(instruction(load, 2, 24).reason(), "tma_load: bytes must be a positive multiple of 16, got 24");
  EXPECT_FALSE(instruction(load, 2, 0));
  EXPECT_EQ(find_bulk_copy_atom("tma_reduce_mul"), nullptr);
}

}  // namespace
}  // namespace tilewright::arch
