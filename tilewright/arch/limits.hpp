// What one architecture offers: resources that a kernel must fit in, and rates that a cost model ranks by.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::arch {

enum class MathUnit : std::uint8_t { simt, mma_sync, wgmma };

/// Multiply-adds a clock a SM, by operand type. 0: the unit has no such instruction.
struct MathRates {
  double f64 = 0;
  double f32 = 0;
  double tf32 = 0;
  double f16 = 0;   // and bf16
  double e4m3 = 0;  // and e5m2
  double s8 = 0;    // and u8
  bool operator==(const MathRates&) const = default;
};

/// Hard limits are those of the CUDA C++ Programming Guide (compute capabilities table). Rates are of one typical part.
struct ArchLimits {
  int sm = 0;
  std::string_view part;  // the part that the rates describe

  int smem_per_block_bytes = 0;  // largest dynamic shared memory of a block, after opting in
  int smem_per_sm_bytes = 0;
  int smem_reserved_per_block_bytes = 0;  // the system's share for every resident block
  int max_threads_per_block = 1024;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;

  int sm_count = 0;
  std::array<int, 4> clusters{};  // of 1, 2, 4 and 8 CTAs that fit at once where one CTA fills a SM; 0: no clusters
  double clock_ghz = 0;
  double dram_bytes_per_s = 0;
  std::int64_t l2_bytes = 0;
  double l2_bytes_per_clock = 0;  // of the whole part, reads that hit
  double smem_bytes_per_clock_per_sm = 128;
  double launch_us = 0;  // from one small kernel's start to the next one's in a stream

  MathRates simt;
  MathRates mma_sync;
  MathRates wgmma;

  bool operator==(const ArchLimits&) const = default;
};

/// Rows for sm_80, 86, 87, 89, 90.
const std::vector<ArchLimits>& arch_limits();
/// The row of the target, else of the newest one below it. @throws InvalidArgument below sm_80.
const ArchLimits& limits(const Target& target);

/// Multiply-adds a clock a SM. SIMT works in the accumulator's type: pass that.
double fma_per_clock(const ArchLimits& limits, MathUnit unit, DType operand);

/// Clusters of `ctas` CTAs, each filling a SM, that fit at once: fewer than SMs / ctas, because a cluster lies within
/// one GPC and GPCs have odd rests. @pre 1 <= ctas <= 8
int resident_clusters(const ArchLimits& limits, int ctas);

/// Blocks that fit on one SM at once; 0 when not even one does.
/// `smem_bytes` static and dynamic of a block. Registers are allocated to warps in units of 256.
int resident_blocks(const ArchLimits& limits, int threads, int registers_per_thread, int smem_bytes);

}  // namespace tilewright::arch
