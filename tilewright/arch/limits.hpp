// Limits of an architecture: resources per CTA and per SM, and the rates that the cost model uses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::arch {

enum class MathUnit : std::uint8_t { simt, mma_sync, wgmma };

/// Multiply-adds per clock and SM, by operand type; 0: the unit has no such instruction.
struct MathRates {
  double f64 = 0;
  double f32 = 0;
  double tf32 = 0;
  double f16 = 0;   // and bf16
  double e4m3 = 0;  // and e5m2
  double s8 = 0;    // and u8
  bool operator==(const MathRates&) const = default;
};

/// Resources are those of the CUDA C++ Programming Guide ("Technical Specifications per Compute Capability"). Rates are
/// those of one GPU of the architecture, `part`.
struct ArchLimits {
  int sm = 0;
  std::string_view part;  // the GPU whose rates these are

  int smem_per_block_bytes = 0;  // largest dynamic shared memory of a block (opt-in)
  int smem_per_sm_bytes = 0;
  int smem_reserved_per_block_bytes = 0;  // reserved by the system for each resident block
  int max_threads_per_block = 1024;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;

  int sm_count = 0;
  /// Resident clusters of 1, 2, 4 and 8 CTAs, if each CTA fills an SM; 0: no cluster launch.
  std::array<int, 4> clusters{};
  double clock_ghz = 0;
  double dram_bytes_per_s = 0;
  std::int64_t l2_bytes = 0;
  double l2_bytes_per_clock = 0;  // of the whole GPU, for reads that hit
  double smem_bytes_per_clock_per_sm = 128;
  double launch_us = 0;  // time between the starts of two small kernels in one stream

  MathRates simt;
  MathRates mma_sync;
  MathRates wgmma;

  bool operator==(const ArchLimits&) const = default;
};

/// Each architecture has one row; the rows ascend.
const std::vector<ArchLimits>& arch_limits();
/// The row of the target, or else of the newest architecture before it. @throws InvalidArgument before sm_80
const ArchLimits& limits(const Target& target);

/// Multiply-adds per clock and SM. For simt, `operand` is the accumulator type, in which it computes.
double fma_per_clock(const ArchLimits& limits, MathUnit unit, DType operand);

/// Resident clusters of `ctas` CTAs, if each CTA fills an SM. Fewer than sm_count / ctas, because the CTAs of a cluster
/// are in one GPC, and the number of SMs of a GPC may not be a multiple of ctas. @pre 1 <= ctas <= 8
int resident_clusters(const ArchLimits& limits, int ctas);

/// Resident blocks per SM; 0 if a block exceeds a limit. `smem_bytes` is the static and dynamic shared memory of a
/// block. Registers are allocated per warp in units of 256.
int resident_blocks(const ArchLimits& limits, int threads, int registers_per_thread, int smem_bytes);

}  // namespace tilewright::arch
