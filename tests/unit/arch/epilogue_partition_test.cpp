// Epilogue partitions: every accumulator reaches its element of D, without bank conflicts. The model of wgmma fragments
// and stmatrix is written from the PTX ISA, independently of the layouts under test.
#include "tilewright/arch/epilogue_partition.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/unit/arch/hopper_model.hpp"
#include "tilewright/arch/tiled_copy.hpp"
#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;
using enum OutputOrder;

EpiloguePartition partition(const EpilogueRequest& r) { return epilogue_partition(r).value_or_throw(); }

/// The place in D of accumulator i of a thread: "Register Fragments for wgmma.mma_async.m64nNk16", D.
struct Place {
  std::int64_t row, column;
};
Place accumulator_place(const EpilogueRequest& r, std::int64_t thread, std::int64_t accumulator) {
  const std::int64_t instruction = accumulator / (r.n / 2);
  const std::int64_t i = accumulator % (r.n / 2);
  const std::int64_t lane = thread % 32;
  const std::int64_t first_row = 64 * (thread / 128 + instruction * r.warpgroups);
  return {first_row + 16 * (thread % 128 / 32) + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2};
}

constexpr std::int64_t kPitch = 1024;
std::int64_t value_of(const Place& place) { return place.row * kPitch + place.column; }

std::int64_t value_of(const EpilogueRequest& r, const EpiloguePartition& p, std::int64_t thread, std::int64_t value,
                      std::int64_t store, std::int64_t pass) {
  return value_of(accumulator_place(r, thread, p.accumulator(value, store, pass)));
}

/// One stmatrix of a warp: lane 8j + row provides the address of a row of matrix j. Register j of a lane has two
/// elements of row lane / 4 of matrix j, or of its transpose.
void stmatrix(const EpilogueRequest& r, const EpiloguePartition& p, std::int64_t warp, std::int64_t store,
              std::int64_t pass, model::SharedMemory& smem) {
  for (std::int64_t matrix = 0; matrix < p.registers; ++matrix) {
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      for (std::int64_t half = 0; half < 2; ++half) {
        const bool transposed = p.store == SmemStore::stmatrix_trans;
        const std::int64_t row = transposed ? lane % 4 * 2 + half : lane / 4;
        const std::int64_t column = transposed ? lane / 4 : lane % 4 * 2 + half;
        smem.at(store_address(p, warp * 32 + 8 * matrix + row, store) + 2 * column) =
            value_of(r, p, warp * 32 + lane, 2 * matrix + half, store, pass);
      }
    }
  }
}

void st_shared(const EpilogueRequest& r, const EpiloguePartition& p, std::int64_t warp, std::int64_t store,
               std::int64_t pass, model::SharedMemory& smem) {
  for (std::int64_t thread = warp * 32; thread < warp * 32 + 32; ++thread) {
    for (std::int64_t word = 0; word < p.registers; ++word)
      smem.at(store_address(p, thread, store) + 4 * word) = value_of(r, p, thread, word, store, pass);
  }
}

/// Accumulators -> stores -> shared memory -> TMA -> D, where D is slightly smaller than the tiles.
void expect_stores_d(const EpilogueRequest& r) {
  const Result<EpiloguePartition> p = epilogue_partition(r);
  ASSERT_TRUE(p) << p.reason();
  EXPECT_EQ(bank_conflicts(*p), 0) << to_string(p->smem);

  const std::int64_t columns = size(p->smem.layout.mode(1));
  const std::int64_t d_rows = r.m - 8;
  const std::int64_t d_columns = r.n >= 16 ? r.n - 8 : r.n;
  TmaRequest tma;
  tma.global = r.order == row_major ? Layout({d_rows, d_columns}, {512, 1}) : Layout({d_rows, d_columns}, {1, 512});
  tma.element_bits = r.element_bits;
  tma.smem = p->smem;
  tma.tile = {r.m, columns};
  const Result<TmaCopy> copy = make_tma_copy(tma);
  ASSERT_TRUE(copy) << copy.reason();
  const model::TensorMap map{copy->map.global_dim, copy->map.global_strides, copy->map.box_dim,
                             width_bytes(copy->map.swizzle)};

  const int bytes = r.element_bits / 8;
  std::map<std::int64_t, std::int64_t> d;
  for (std::int64_t pass = 0; pass < r.n / columns; ++pass) {
    model::SharedMemory smem(r.m * columns * bytes, bytes);
    for (std::int64_t warp = 0; warp < 4 * r.warpgroups; ++warp) {
      for (std::int64_t store = 0; store < size(p->address.mode(1)); ++store)
        (p->store == SmemStore::st_shared ? st_shared : stmatrix)(r, *p, warp, store, pass, smem);
    }
    for (std::int64_t box = 0; box < box_count(*copy); ++box)
      model::tma_store(map, tma_coordinate(*copy, {0, pass * columns}, box), tma_smem_bytes(*copy, box), smem,
                       [&](std::int64_t address, std::int64_t value) { d[address / bytes] = value; });
  }
  ASSERT_EQ(static_cast<std::int64_t>(d.size()), d_rows * d_columns) << "nothing is written out of bounds";
  for (std::int64_t row = 0; row < d_rows; ++row) {
    for (std::int64_t column = 0; column < d_columns; ++column)
      ASSERT_EQ(d.at(tma.global(row, column)), value_of({row, column}))
          << "row " << row << " column " << column << " in " << to_string(p->smem);
  }
}

TEST(EpiloguePartition, StoresD) {
  for (const int bits : {16, 32}) {
    for (const OutputOrder order : {row_major, column_major}) {
      for (const std::int64_t n : {8, 16, 24, 64, 72, 96, 128, 256})
        expect_stores_d({.element_bits = bits, .order = order, .m = 64, .n = n, .warpgroups = 1, .columns = 0});
      for (const std::int64_t columns : {8, 32, 64})
        expect_stores_d(
            {.element_bits = bits, .order = order, .m = 128, .n = 192, .warpgroups = 2, .columns = columns});
      expect_stores_d({.element_bits = bits, .order = order, .m = 256, .n = 128, .warpgroups = 2, .columns = 64});
      expect_stores_d({.element_bits = bits, .order = order, .m = 192, .n = 64, .warpgroups = 1, .columns = 0});
    }
  }
}

// stmatrix.x4 of a 128x128 tile of two warpgroups. As in CuTe's make_tiled_copy_C, the lanes address rows 0-15 of two
// groups of 8 columns, and a store has 16 columns.
TEST(EpiloguePartition, LayoutsOfStmatrix) {
  const EpiloguePartition p = partition({.element_bits = 16, .order = row_major, .m = 128, .n = 128, .warpgroups = 2});
  EXPECT_EQ(p.store, SmemStore::stmatrix);
  EXPECT_EQ(p.registers, 4);
  EXPECT_EQ(p.mode, SwizzleMode::bytes_128);
  EXPECT_EQ(to_string(p.smem), "Sw<3,3,3> o 0 o ((8,16),(64,2)):((64,512),(1,8192))");
  EXPECT_EQ(to_string(layout::coalesce(p.accumulator)), "64:1");
  EXPECT_EQ(p.address(17, 0), 64 + 8) << "row 1, columns 8 to 15";
  EXPECT_EQ(p.address(128, 0), 64 * 64) << "the second warpgroup starts at row 64";
  EXPECT_EQ(p.address(0, 4), 8192) << "column 64";
  EXPECT_EQ(store_address(p, 1, 1), 128 + (32 ^ 16)) << "row 1, chunk 2, swizzled by the row";
}

// The same addresses by CuTe's construction: stmatrix tiled as the accumulators, composed with the layout in shared
// memory.
TEST(EpiloguePartition, IsATiledCopyOfC) {
  const WgmmaAtom* row = find_wgmma_atom(DType::f16, DType::f16, DType::f32, OperandSource::shared_memory);
  const TiledMma mma =
      make_tiled_mma(instruction(*row, 64).value_or_throw(), Layout({2, 1, 1}, {1, 0, 0})).value_or_throw();
  for (const OutputOrder order : {row_major, column_major}) {
    const EpiloguePartition p = partition({.order = order, .m = 128, .n = 64, .warpgroups = 2});
    const CopyKind kind = order == row_major ? CopyKind::stmatrix : CopyKind::stmatrix_trans;
    const TiledCopy copy = make_tiled_copy_c(*find_copy_atom(kind, 16), 16, mma).value_or_throw();
    for (std::int64_t thread = 0; thread < 256; ++thread) {
      for (std::int64_t store = 0; store < 4; ++store)
        ASSERT_EQ(p.address(thread, store), p.smem.layout(copy.d_tv(layout::IntTuple{thread, {0, store}})));
    }
  }
}

TEST(EpiloguePartition, ChoosesTheStore) {
  EXPECT_EQ(partition({.m = 64, .n = 24}).registers, 2) << "three groups of 8 columns";
  EXPECT_EQ(partition({.order = column_major, .m = 64, .n = 64}).store, SmemStore::stmatrix_trans);
  EXPECT_EQ(partition({.m = 64, .n = 64, .columns = 32}).mode, SwizzleMode::bytes_64);
  const EpiloguePartition words = partition({.element_bits = 32, .m = 64, .n = 64});
  EXPECT_EQ(words.store, SmemStore::st_shared);
  EXPECT_EQ(words.registers, 2);
  EXPECT_EQ(words.mode, SwizzleMode::bytes_32);
  const EpiloguePartition down = partition({.element_bits = 32, .order = column_major, .m = 64, .n = 64});
  EXPECT_EQ(down.registers, 1);
  EXPECT_EQ(down.mode, SwizzleMode::bytes_128);
}

// Without a swizzle, the bank model counts conflicts.
TEST(EpiloguePartition, ConflictsWithoutSwizzle) {
  EpiloguePartition p = partition({.m = 64, .n = 64});
  p.smem.swizzle = layout::Swizzle();
  EXPECT_EQ(bank_conflicts(p), 4 * 4 * (4 * 7)) << "4 warps, 4 stores, 4 matrices of 8 rows in the same banks";
}

TEST(EpiloguePartition, Refusals) {
  const auto reason = [](const EpilogueRequest& r) { return epilogue_partition(r).reason(); };
  EXPECT_EQ(reason({.element_bits = 8, .m = 64, .n = 64}), "accumulators must be stored as 16 or 32 bits, got 8");
  EXPECT_EQ(reason({.m = 64, .n = 64, .warpgroups = 2}), "2 warpgroups need a multiple of 128 rows, got 64");
  EXPECT_EQ(reason({.m = 64, .n = 260}), "n must be a multiple of 8 up to 256, got 260");
  EXPECT_EQ(reason({.m = 64, .n = 64, .columns = 24}),
            "the columns of a pass must be a multiple of 8 that divides n = 64, got 24");
}

}  // namespace
}  // namespace tilewright::arch
