// The table of architecture limits.
#include "tilewright/arch/limits.hpp"

#include <gtest/gtest.h>

#include "tilewright/base/error.hpp"

namespace tilewright::arch {
namespace {

TEST(Limits, SharedMemoryOfABlock) {
  EXPECT_EQ(limits(kSm80).smem_per_block_bytes, 166912);
  EXPECT_EQ(limits({86}).smem_per_block_bytes, 101376);
  EXPECT_EQ(limits({87}).smem_per_block_bytes, 166912);
  EXPECT_EQ(limits({89}).smem_per_block_bytes, 101376);
  EXPECT_EQ(limits(kSm90a).smem_per_block_bytes, 232448);
  EXPECT_EQ(limits({100}).smem_per_block_bytes, 232448);
  EXPECT_EQ(limits({120}).smem_per_block_bytes, 101376);
}

TEST(Limits, RowsAreConsistentAndSorted) {
  int previous = 0;
  for (const ArchLimits& row : arch_limits()) {
    EXPECT_GT(row.sm, previous);
    previous = row.sm;
    EXPECT_EQ(row.smem_per_block_bytes, row.smem_per_sm_bytes - row.smem_reserved_per_block_bytes) << row.sm;
    EXPECT_GT(row.sm_count, 0) << row.sm;
    EXPECT_GT(row.clock_ghz, 0) << row.sm;
    EXPECT_GT(row.dram_bytes_per_s, 0) << row.sm;
    EXPECT_GT(row.l2_bytes_per_clock * row.clock_ghz * 1e9, row.dram_bytes_per_s) << row.sm;
    EXPECT_GT(row.launch_us, 0) << row.sm;
    EXPECT_GT(row.mma_sync.f16, row.simt.f32) << row.sm;
  }
}

TEST(Limits, TargetsBetweenRowsUseThePreviousRow) {
  EXPECT_EQ(limits({88}).sm, 87);
  EXPECT_EQ(limits({100}).sm, 90);
  EXPECT_EQ(limits({121}).sm, 120);
  EXPECT_THROW(limits({75}), InvalidArgument);
}

TEST(Limits, RatesGiveTheDatasheetPeaks) {
  const ArchLimits& a100 = limits(kSm80);
  const auto tflops = [&](DType type) {
    return 2e-3 * fma_per_clock(a100, MathUnit::mma_sync, type) * a100.sm_count * a100.clock_ghz;
  };
  EXPECT_NEAR(tflops(DType::f16), 312, 1);
  EXPECT_NEAR(tflops(DType::bf16), 312, 1);
  EXPECT_NEAR(tflops(DType::tf32), 156, 1);
  EXPECT_NEAR(tflops(DType::u8), 624, 1);
  EXPECT_NEAR(tflops(DType::f64), 19.5, 0.1);
  EXPECT_NEAR(2e-3 * fma_per_clock(a100, MathUnit::simt, DType::f32) * a100.sm_count * a100.clock_ghz, 19.5, 0.1);
  EXPECT_EQ(fma_per_clock(a100, MathUnit::mma_sync, DType::f32), 0);
  EXPECT_EQ(fma_per_clock(a100, MathUnit::wgmma, DType::f16), 0);
  const ArchLimits& h200 = limits(kSm90a);
  EXPECT_NEAR(2e-3 * fma_per_clock(h200, MathUnit::wgmma, DType::e5m2) * h200.sm_count * h200.clock_ghz, 1979, 85);
  EXPECT_EQ(fma_per_clock(h200, MathUnit::wgmma, DType::e4m3), 2 * fma_per_clock(h200, MathUnit::wgmma, DType::bf16));
  EXPECT_EQ(fma_per_clock(a100, MathUnit::mma_sync, DType::e4m3), 0);
  EXPECT_NEAR(fma_per_clock(h200, MathUnit::mma_sync, DType::f16) / fma_per_clock(h200, MathUnit::wgmma, DType::f16),
              0.5, 1e-9);
}

TEST(Limits, ResidentBlocks) {
  const ArchLimits& h200 = limits(kSm90a);
  EXPECT_EQ(resident_blocks(h200, 256, 128, 0), 2) << "registers";
  EXPECT_EQ(resident_blocks(h200, 256, 129, 0), 1) << "registers are rounded up to 136";
  EXPECT_EQ(resident_blocks(h200, 128, 32, 75 * 1024), 3) << "shared memory, with 1 KiB reserved per block";
  EXPECT_EQ(resident_blocks(h200, 128, 32, 75 * 1024 + 1), 2);
  EXPECT_EQ(resident_blocks(h200, 1024, 32, 0), 2) << "threads";
  EXPECT_EQ(resident_blocks(h200, 33, 16, 0), 32) << "blocks";
  EXPECT_EQ(resident_blocks(h200, 128, 32, 232448), 1);
  EXPECT_EQ(resident_blocks(h200, 128, 32, 232449), 0);
  EXPECT_EQ(resident_blocks(h200, 1025, 32, 0), 0);
  EXPECT_EQ(resident_blocks(h200, 128, 256, 0), 0);
  EXPECT_EQ(resident_blocks(h200, 1024, 255, 0), 0) << "registers of one block";
}

}  // namespace
}  // namespace tilewright::arch
