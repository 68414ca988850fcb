// The table of architectures and its sources.
//
// Resources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Multiply-adds per clock:
// SIMT from the same guide's throughput table of arithmetic instructions, tensor cores from the dense peak rates of the
// architecture whitepapers, divided by SMs and clock. On sm_90, mma.sync reaches half of the wgmma rate (measured on an
// H200: 3xTF32 at 518 of 1024 tf32 multiply-adds per clock), except f64, which has no wgmma form. L2 bytes per clock:
// sm_80 as published, sm_90 from published microbenchmarks (3942 to 4472), the others L2 slices x 64 bytes. Clusters:
// measured on an H200 by timing grids of clusters. The row of sm_120 takes the tensor-core rates per SM of sm_89, its
// predecessor among the parts without data-center tensor cores; nothing of it was measured.
#include "tilewright/arch/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::arch {
namespace {

constexpr int kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * 1024;
constexpr double kMmaSyncShareOfWgmma = 0.5;
constexpr int kRegisterUnit = 256;  // allocation granularity of a warp's registers
constexpr int kWarp = 32;

std::vector<ArchLimits> build_limits() {
  constexpr MathRates kHopperWgmma{.tf32 = 1024, .f16 = 2048, .e4m3 = 4096, .s8 = 4096};
  return {
      {.sm = 80,
       .part = "A100 SXM 40 GB",
       .smem_per_block_bytes = 163 * kKiB,
       .smem_per_sm_bytes = 164 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 2048,
       .max_blocks_per_sm = 32,
       .sm_count = 108,
       .clock_ghz = 1.41,
       .dram_bytes_per_s = 1.555e12,
       .l2_bytes = 40 * kMiB,
       .l2_bytes_per_clock = 5120,
       .launch_us = 2.5,
       .simt = {.f64 = 32, .f32 = 64, .f16 = 256, .s8 = 64},
       .mma_sync = {.f64 = 64, .tf32 = 512, .f16 = 1024, .s8 = 2048},
       .wgmma = {}},
      {.sm = 86,
       .part = "A10",
       .smem_per_block_bytes = 99 * kKiB,
       .smem_per_sm_bytes = 100 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 16,
       .sm_count = 72,
       .clock_ghz = 1.695,
       .dram_bytes_per_s = 600e9,
       .l2_bytes = 6 * kMiB,
       .l2_bytes_per_clock = 1536,
       .launch_us = 2.5,
       .simt = {.f64 = 2, .f32 = 128, .f16 = 128, .s8 = 64},
       .mma_sync = {.f64 = 2, .tf32 = 256, .f16 = 512, .s8 = 1024},
       .wgmma = {}},
      {.sm = 87,
       .part = "Jetson AGX Orin",
       .smem_per_block_bytes = 163 * kKiB,
       .smem_per_sm_bytes = 164 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 16,
       .sm_count = 16,
       .clock_ghz = 1.3,
       .dram_bytes_per_s = 204.8e9,
       .l2_bytes = 4 * kMiB,
       .l2_bytes_per_clock = 512,
       .launch_us = 5,
       .simt = {.f64 = 2, .f32 = 128, .f16 = 256, .s8 = 64},
       .mma_sync = {.f64 = 2, .tf32 = 512, .f16 = 1024, .s8 = 2048},
       .wgmma = {}},
      {.sm = 89,
       .part = "L40S",
       .smem_per_block_bytes = 99 * kKiB,
       .smem_per_sm_bytes = 100 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 24,
       .sm_count = 142,
       .clock_ghz = 2.52,
       .dram_bytes_per_s = 864e9,
       .l2_bytes = 96 * kMiB,
       .l2_bytes_per_clock = 2048,
       .launch_us = 2.5,
       .simt = {.f64 = 2, .f32 = 128, .f16 = 128, .s8 = 64},
       .mma_sync = {.f64 = 2, .tf32 = 256, .f16 = 512, .e4m3 = 1024, .s8 = 1024},
       .wgmma = {}},
      {.sm = 90,
       .part = "H200 SXM",
       .smem_per_block_bytes = 227 * kKiB,
       .smem_per_sm_bytes = 228 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 2048,
       .max_blocks_per_sm = 32,
       .sm_count = 132,
       .clusters = {132, 66, 30, 14},
       .clock_ghz = 1.755,
       .dram_bytes_per_s = 4.8e12,
       .l2_bytes = 50 * kMiB,
       .l2_bytes_per_clock = 4200,
       .launch_us = 2.0,
       .simt = {.f64 = 64, .f32 = 128, .f16 = 256, .s8 = 64},
       .mma_sync = {.f64 = 128,
                    .tf32 = kHopperWgmma.tf32 * kMmaSyncShareOfWgmma,
                    .f16 = kHopperWgmma.f16 * kMmaSyncShareOfWgmma,
                    .e4m3 = kHopperWgmma.e4m3 * kMmaSyncShareOfWgmma,
                    .s8 = kHopperWgmma.s8 * kMmaSyncShareOfWgmma},
       .wgmma = kHopperWgmma},
      {.sm = 120,
       .part = "RTX PRO 6000 Blackwell",
       .smem_per_block_bytes = 99 * kKiB,
       .smem_per_sm_bytes = 100 * kKiB,
       .smem_reserved_per_block_bytes = kKiB,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 24,
       .sm_count = 188,
       .clock_ghz = 2.4,
       .dram_bytes_per_s = 1.792e12,
       .l2_bytes = 128 * kMiB,
       .l2_bytes_per_clock = 4096,
       .launch_us = 2.5,
       .simt = {.f64 = 2, .f32 = 128, .f16 = 128, .s8 = 64},
       .mma_sync = {.f64 = 2, .tf32 = 256, .f16 = 512, .e4m3 = 1024, .s8 = 1024},
       .wgmma = {}},
  };
}

double rate(const MathRates& rates, DType operand) {
  switch (operand) {
    case DType::f64:
      return rates.f64;
    case DType::f32:
      return rates.f32;
    case DType::tf32:
      return rates.tf32;
    case DType::f16:
    case DType::bf16:
      return rates.f16;
    case DType::e4m3:
    case DType::e5m2:
      return rates.e4m3;
    case DType::s32:
    case DType::s8:
    case DType::u8:
      return rates.s8;
    default:  // types that no plan uses
      return 0;
  }
}

}  // namespace

const std::vector<ArchLimits>& arch_limits() {
  static const std::vector<ArchLimits> rows = build_limits();
  return rows;
}

const ArchLimits& limits(const Target& target) {
  const std::vector<ArchLimits>& rows = arch_limits();
  const auto above = std::find_if(rows.begin(), rows.end(), [&](const ArchLimits& row) { return row.sm > target.sm; });
  if (above == rows.begin())
    throw InvalidArgument(fmt::format("no limits for {}: the oldest target is sm_{}", target.name(), rows.front().sm));
  return *(above - 1);
}

double fma_per_clock(const ArchLimits& limits, MathUnit unit, DType operand) {
  switch (unit) {
    case MathUnit::simt:
      return rate(limits.simt, operand);
    case MathUnit::mma_sync:
      return rate(limits.mma_sync, operand);
    case MathUnit::wgmma:
      return rate(limits.wgmma, operand);
  }
  return 0;
}

int resident_clusters(const ArchLimits& limits, int ctas) {
  const auto row = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ctas - 1)));
  return limits.clusters[row];
}

int resident_blocks(const ArchLimits& limits, int threads, int registers_per_thread, int smem_bytes) {
  if (threads < 1 || threads > limits.max_threads_per_block || registers_per_thread > limits.max_registers_per_thread ||
      smem_bytes > limits.smem_per_block_bytes)
    return 0;
  const int warps = ceil_div(threads, kWarp);
  const int registers = warps * round_up(registers_per_thread * kWarp, kRegisterUnit);
  const int by_registers = registers > 0 ? limits.registers_per_sm / registers : limits.max_blocks_per_sm;
  const int by_threads = limits.max_threads_per_sm / (warps * kWarp);
  const int by_smem = limits.smem_per_sm_bytes / (smem_bytes + limits.smem_reserved_per_block_bytes);
  return std::min({limits.max_blocks_per_sm, by_registers, by_threads, by_smem});
}

}  // namespace tilewright::arch
