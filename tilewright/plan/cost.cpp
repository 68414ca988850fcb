#include "tilewright/plan/cost.hpp"

#include <algorithm>
#include <cmath>

#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/epilogue_cost.hpp"
#include "tilewright/plan/overlap.hpp"

namespace tilewright::plan {
namespace {

// The constants were fitted to the times of kernels of simt_gemm and sm80_gemm on an H200, 2026-11-23 (470 random
// problems of seeds 8 to 11, bench/README.md), with those of all families together to 16650 kernels on 1094 problems of
// seeds 14 to 20 on an H100, 2026-11-25, and those of copies and of DRAM again to 43385 kernels on 1713 problems of
// seeds 22 to 39 on an H200, 2026-11-26. 90 of these problems have at most 16 rows or columns, and their candidates
// include the narrow tiles of sm80_gemm. On them, the candidate with the shortest predicted time took 3.9 % longer than
// the fastest of 30 measured ones, in the mean; before the last fit it was 7.4 %. On all of them it is 3.7 %. Those of
// mma.sync and the overlap of its phases were then chosen by their regret on 2787 problems of seeds 14 to 39: see
// docs/decisions/performance_history.md.

// Time of a kernel without work, between two events, beyond limits.launch_us.
constexpr double kCallUs = 2.63;
// Latency in clocks of a CTA's first loads from DRAM plus that of its last stores.
constexpr double kFillAndDrainClocks = 2700;
// Latency in clocks of a copy to shared memory under load, which the stages in flight hide.
constexpr double kLatencyClocks = 1420;
// Latency in clocks of a load to registers.
constexpr double kLoadLatencyClocks = 1210;
// Rate of the math units relative to limits.clock_ghz if enough independent work hides all latencies: an H200 that is
// below its power limit runs at 1.98 GHz. With b bytes of accumulators in the registers of an SM, it is 1 - exp(-b / n)
// of that, where n is UnitConstants::latency_accumulator_bytes.
constexpr double kPeakShare = 1.09;
// On CUDA cores, the share of the faster of two overlapping phases that is exposed. The phases are multiplying and
// reading shared memory, or the work of an SM and that of L2.
constexpr double kOverlapLoss = 0.122;
// The power of overlapped() for kernels of mma.sync, whose phases are multiplying, reading shared memory, issuing and
// copying, the latency of the stages, L2, and DRAM.
constexpr double kOverlapPower = 3;
// The phases of an SM with one warp per scheduler overlap less, because only independent instructions of the same warp
// hide each other; this is their power. With the power of 3, 128x128 tiles of four warps were the first choice for f16
// 120x13938x1296 and tf32 112x8769x3464. Both took 25 % longer than estimated, and 16 and 34 % longer than the best
// (H100, 2026-11-27).
constexpr double kOverlapPowerOfOneWarp = 2.2;
// Clocks for which one warp-wide copy occupies the load/store unit, whatever its width.
constexpr double kClocksPerCopy = 5.64;
// The rates that kernels of CUDA cores, and those of mma.sync, reach. They were fitted apart, as all types of mma.sync
// (f64, tf32, 16 bits, s8) agreed on them: a common fit had estimated f64 tiles that read much from shared memory or
// from L2 10 to 30 % too slow.
struct UnitConstants {
  double latency_accumulator_bytes;
  double smem_share;  // of the peak rate of shared memory
  double l2_share;    // factor on limits.l2_bytes_per_clock
};
constexpr UnitConstants kCudaCores{.latency_accumulator_bytes = 23700, .smem_share = 0.538, .l2_share = 0.798};
constexpr UnitConstants kMmaSync{.latency_accumulator_bytes = 12000, .smem_share = 1, .l2_share = 1.3};
// Rate at which one SM stores D in vectors of 16 bytes, the clocks of each end of a row, and the share of DRAM's
// nominal rate that kernels reach.
constexpr double kStoreBytesPerClock = 13.9;
constexpr double kRowEndClocks = 2.6;
constexpr double kDramShare = 0.94;
// Warp instructions that one SM issues per clock, one for each of its schedulers, and instructions per copy including
// its address and predicate.
constexpr double kIssuesPerClock = 4;
constexpr double kIssuesPerCopy = 22.1;
constexpr double kWarpThreads = 32;
// Bytes that L2 and DRAM move for an element whose neighbours in the kernel's order are not its neighbours in memory.
constexpr int kSectorBytes = 32;
// Time of the barrier among the CTAs of a tile, which goes through L2, and the rate of partial sums to and from L2.
// All families share them.
constexpr double kExchangeUs = 1.78;
constexpr double kPartialBytesPerClock = 13.2;
// Time of one CTA's arrival at that barrier: tiles of 32x32 and 64x64 of a 32x64x23232 f32 problem took 13 and 9 us
// longer with split-K 528 than with 132 and 264 (H200, 2026-11-23).
constexpr double kArrivalUs = 0.0389;
// Groups that take several tiles drift apart, so that some end late: the last SM ran for 12 % longer than the mean for
// f32 3297x5824x13696 with a split-K of 3. Relative to kernels without split-K, eight such kernels of four long f32
// problems took 5 % longer than estimated in the mean, and 18 % at most (H200, 2026-11-27). The least factor that ranks
// these four is taken.
constexpr double kDriftingGroups = 1.03;
// Rate at which an SM adds a part to the sum of the parts before it: the sum to and from L2. With 48 parts instead of
// 24 of f32 3000x3000x3000, tiles of 128x128 and of 64x64 took 2.6 and 0.63 us longer for each part of an SM; that of
// 128x128 is 28 bytes per clock, and that of 64x64 29 (H200, 2026-11-27).
constexpr double kTurnBytesPerClock = 29;
// The GPU starts a CTA every 0.60 ns: empty kernels of 16896 and 67584 CTAs take 12.4 and 43.0 us, with 32 to 512
// threads and up to 100 KB of shared memory each (H100, 2026-11-25).
constexpr double kCtaStartUs = 0.0006;
// A CTA of one warp multiplies this many times as long, because it has no other warp that hides its waits.
constexpr double kOneWarp = 1.54;
// Factor on the estimate of f64 on CUDA cores: 200 kernels took 20 % longer than estimated, relative to those on tensor
// cores of the same problems (H100 and H200, 2026-11-26). 1.1 to 1.25 rank these problems equally well.
constexpr double kF64OnCudaCores = 1.2;
// Time of the copy of a tile of zeros, for which L2 is not read, relative to the copy of a tile of an operand.
constexpr double kZeroCopies = 0.279;
// Extra time of DRAM for a byte of an operand that a CTA loads in lines of 128 bytes along M or N, or along K; it falls
// with longer lines.
constexpr double kScatter = 0.06, kScatterK = 0.056, kScatterPower = 0.746;
// Further extra time of DRAM, in kernels of CUDA cores, for a byte in a line along K of less than 128 bytes if K is
// longer: f32 6x3840x17280 read a column-major B in lines of 64 bytes at 1.5 TB/s. 0.6 to 1.5 rank 90 problems of f32
// equally well: the first choice takes 2.6 % longer than the best in the mean, and 4.3 % without this term (seeds 46
// and 47, H200, 2026-11-27).
constexpr double kShortLineK = 0.8;

/// The bytes that are moved for one element of an operand: a sector if it is folded and no first coordinate is
/// contiguous, so that single elements are moved.
int moved_bytes(const op::OperandView& operand, DType type) {
  const auto begins_with_one = [](const op::Mode& mode) { return mode.shape.rank() > 0 && mode.stride[0] == 1; };
  const bool is_scattered = operand.access == op::OperandAccess::folded && !begins_with_one(operand.rows) &&
                            !begins_with_one(operand.columns);
  return is_scattered ? kSectorBytes : bytes(type);
}

/// The numbers that several parts of the estimate use: the tiles of the launch, and how the SMs share its CTAs.
struct Work {
  std::int64_t tiles = 0;
  std::int64_t k_tiles = 0;  // steps along K of a tile
  double cta_tiles = 0;      // those of one CTA
  double ctas = 0;           // with split-K
  double k = 0;              // elements of K that a CTA multiplies
  double whole_k = 0;        // those of all CTAs of a tile
  double tile_area = 0;
  int resident = 0;     // CTAs that fit an SM
  double per_sm = 0;    // CTAs of the busiest SM
  double together = 0;  // of these, those that it holds at once
  double rounds = 0;    // in which it computes them
  bool is_mma = false;
  UnitConstants unit{};
  double warp_power = kOverlapPower;  // of overlapping phases of one SM

  /// The time of two overlapping phases that take `a` and `b`.
  double overlapping(double a, double b, double power = kOverlapPower) const {
    return is_mma ? overlapped(a, b, power) : std::max(a, b) + kOverlapLoss * std::min(a, b);
  }
};

Work work_of(const arch::ArchLimits& limits, const CostInput& input) {
  Work work;
  work.tiles = static_cast<std::int64_t>(std::ceil(tiles_along(input.m, input.tile.m, input.spread_m) *
                                                   tiles_along(input.n, input.tile.n, input.spread_n) *
                                                   static_cast<double>(input.batch)));
  work.ctas = static_cast<double>(work.tiles * input.split_k);
  work.k_tiles = ceil_div(input.k, input.tile.k);
  work.cta_tiles = static_cast<double>(ceil_div(work.k_tiles, input.split_k));
  work.k = static_cast<double>(ceil_div(work.k_tiles, input.split_k) * input.tile.k);
  work.whole_k = static_cast<double>(work.k_tiles * input.tile.k);
  work.tile_area = static_cast<double>(input.tile.m) * input.tile.n;
  work.resident = arch::resident_blocks(limits, input.threads, input.registers, input.smem_bytes);
  if (work.resident == 0) return work;
  work.per_sm = input.splits_in_turn ? parts_of_busiest_sm({work.resident, limits.sm_count}, work.tiles * input.split_k)
                                     : std::ceil(work.ctas / limits.sm_count);
  work.together = std::min<double>(work.resident, work.per_sm);
  work.rounds = std::ceil(work.per_sm / work.together);
  // Multiplying at the peak rate leaves tensor cores most of the SM's issue slots.
  work.is_mma = input.multiply_issue_share < 0.5;
  work.unit = work.is_mma ? kMmaSync : kCudaCores;
  const bool has_one_warp = work.together * input.threads <= kIssuesPerClock * kWarpThreads;
  work.warp_power = has_one_warp ? kOverlapPowerOfOneWarp : kOverlapPower;
  return work;
}

/// Clocks that the busiest SM takes for the mainloops of its CTAs.
double mainloop_clocks(const arch::ArchLimits& limits, const CostInput& input, const Work& work) {
  const double accumulator_bytes = work.together * work.tile_area * input.accumulator_bytes;
  const double peak_share = kPeakShare * (1 - std::exp(-accumulator_bytes / work.unit.latency_accumulator_bytes));
  const double multiply = work.tile_area * work.k * input.instructions_per_fma / (input.fma_per_clock * peak_share);
  const double smem = input.smem_bytes_per_k * work.k / (limits.smem_bytes_per_clock_per_sm * work.unit.smem_share);
  const double warp_copies = input.copies_per_k / kWarpThreads;
  // The mainloop copies as many tiles of zeros behind the end of K as the prologue has copied tiles.
  const double copied_k =
      (work.cta_tiles + kZeroCopies * std::clamp<double>(input.stages - 1, 0, work.cta_tiles + 1)) * input.tile.k;
  const double issue = multiply * input.multiply_issue_share +
                       (warp_copies * kIssuesPerCopy * copied_k + input.smem_loads_per_k * work.k) / kIssuesPerClock;
  const double copy = warp_copies * kClocksPerCopy * copied_k;
  const double waiting = input.threads == static_cast<int>(kWarpThreads) ? kOneWarp : 1;
  const double cta = work.is_mma
                         ? waiting * work.overlapping(work.overlapping(multiply, smem, work.warp_power),
                                                      work.overlapping(issue, copy, work.warp_power), work.warp_power)
                         : waiting * std::max({multiply, smem, issue, copy}) + kOverlapLoss * std::min(multiply, smem);
  const double step_latency =
      input.copy_phases > 0 ? input.copy_phases * kLoadLatencyClocks : kLatencyClocks / std::max(1, input.stages - 1);
  const double latency = work.k / input.tile.k * step_latency;
  return work.is_mma ? work.overlapping(work.per_sm * cta, work.rounds * latency, work.warp_power)
                     : std::max(work.per_sm * cta, work.rounds * latency);
}

/// Clocks that one CTA takes for its epilogue: for functions, and for stores of D and of the other outputs.
double store_clocks(const CostInput& input, const Work& work) {
  constexpr double kFunctionLanes = 128;
  const double stored_bytes = work.tile_area * (input.element_bytes_d + input.beside_bytes);
  const double functions = work.tile_area * input.function_instructions / kFunctionLanes;
  return (stored_bytes / kStoreBytesPerClock + input.more_stores * input.more_store_clocks +
          input.row_ends * kRowEndClocks + functions +
          work.tile_area * input.slow_source_bytes / kSlowSourceBytesPerClock) /
         input.split_k;
}

/// Clocks that the busiest SM takes for its CTAs.
double sm_clocks(const arch::ArchLimits& limits, const CostInput& input, const Work& work) {
  // While one CTA of an SM stores D, the others multiply.
  const double mainloops = mainloop_clocks(limits, input, work);
  const double stores = work.per_sm * store_clocks(input, work);
  const double turn = input.splits_in_turn ? 2 * work.tile_area * input.accumulator_bytes / kTurnBytesPerClock : 0;
  return std::max(mainloops, stores) + std::min(mainloops, stores) / work.together + work.rounds * kFillAndDrainClocks +
         work.per_sm * turn;
}

/// Clocks that L2 takes for what all CTAs read of A and B.
double l2_clocks(const arch::ArchLimits& limits, const CostInput& input, const Work& work) {
  const double tile_bytes = (input.tile.m * input.element_bytes_a / input.multicast_a +
                             input.tile.n * input.element_bytes_b / input.multicast_b) *
                            work.k;
  return work.ctas * tile_bytes / (limits.l2_bytes_per_clock * work.unit.l2_share);
}

/// Bytes that DRAM moves: A, B, D and the tensors of the epilogue once each, and more of A and B where CTAs load them
/// in short lines.
double dram_bytes(const CostInput& input, const Work& work) {
  const auto scatter = [&](bool is_mn_major, int tile, std::int64_t extent, int element_bytes) {
    if (is_mn_major && tile >= extent) return 1.0;  // the CTA's lines follow each other in memory
    const int line = (is_mn_major ? tile : input.tile.k) * element_bytes;
    const bool is_short = !work.is_mma && !is_mn_major && line < 128 && input.k > input.tile.k;
    return 1 + (is_mn_major ? kScatter : kScatterK) * std::pow(128.0 / line, kScatterPower) +
           (is_short ? kShortLineK : 0);
  };
  const double m = static_cast<double>(input.m);
  const double n = static_cast<double>(input.n);
  const double scatter_a = scatter(input.is_mn_major_a, input.tile.m, input.m, input.element_bytes_a);
  const double scatter_b = scatter(input.is_mn_major_b, input.tile.n, input.n, input.element_bytes_b);
  return static_cast<double>(input.batch_a) * m * work.whole_k * input.element_bytes_a * input.distinct_a * scatter_a +
         static_cast<double>(input.batch_b) * n * work.whole_k * input.element_bytes_b * input.distinct_b * scatter_b +
         static_cast<double>(input.batch) * m * n * (input.element_bytes_d + input.beside_bytes);
}

/// The cost of the exchange of partial sums among the CTAs of a tile.
struct Exchange {
  double us = 0;        // time of the exchanges
  double drifting = 1;  // factor on the time of the CTAs' own work
};

Exchange exchange_of(const arch::ArchLimits& limits, const CostInput& input, const Work& work) {
  if (input.splits_in_turn) return {.us = kExchangeUs};
  if (input.split_k <= 1) return {};
  // The groups of CTAs that share the sums of tiles take their tiles one after another, so each exchange is exposed.
  const double rounds_of_groups = std::ceil(
      static_cast<double>(work.tiles) / std::max(1, Residence{work.resident, limits.sm_count}.groups(input.split_k)));
  // In the first round the CTAs of an SM finish one after another; later, all of them wait for each other's partial
  // sums.
  const double first = exchange_us(limits, work.tile_area, input.accumulator_bytes) + kArrivalUs * input.split_k;
  return {.us = first * (1 + (rounds_of_groups - 1) * work.together),
          .drifting = rounds_of_groups > 1 ? kDriftingGroups : 1};
}

}  // namespace

CostInput tile_cost(const GemmTile& tile, const op::GemmView& arguments) {
  CostInput input;
  input.m = tile.is_transposed ? arguments.mean_n() : arguments.mean_m();
  input.n = tile.is_transposed ? arguments.mean_m() : arguments.mean_n();
  input.k = arguments.mean_k();
  input.spread_m = tile.is_transposed ? arguments.spread_n() : arguments.spread_m();
  input.spread_n = tile.is_transposed ? arguments.spread_m() : arguments.spread_n();
  input.batch = arguments.working_batch();
  const auto matrices = [&](const op::OperandView& operand) {
    const bool is_stacked =
        operand.access == op::OperandAccess::ragged_rows || operand.access == op::OperandAccess::ragged_columns;
    return is_stacked ? input.batch : std::min(input.batch, operand.tensor.distinct_matrices());
  };
  input.batch_a = matrices(tile.is_transposed ? arguments.b : arguments.a);
  input.batch_b = matrices(tile.is_transposed ? arguments.a : arguments.b);
  input.distinct_a = (tile.is_transposed ? arguments.b : arguments.a).distinct_share();
  input.distinct_b = (tile.is_transposed ? arguments.a : arguments.b).distinct_share();
  input.tile = tile.tile;
  input.stages = tile.stages;
  input.split_k = tile.split_k;
  input.splits_in_turn = tile.splits_in_turn;
  input.accumulator_bytes = bytes(tile.operands.accumulator);
  input.threads = tile.threads();
  input.element_bytes_a = moved_bytes(tile.is_transposed ? arguments.b : arguments.a, tile.operands.a.element);
  input.element_bytes_b = moved_bytes(tile.is_transposed ? arguments.a : arguments.b, tile.operands.b.element);
  input.element_bytes_d = moved_bytes(arguments.d, tile.operands.d.element);
  input.is_mn_major_a = !op::has_contiguous_rows(tile.operands.a.layout);
  input.is_mn_major_b = op::has_contiguous_rows(tile.operands.b.layout);
  input.beside_bytes = beside_bytes(tile.operands);
  input.slow_source_bytes = slow_source_bytes(tile.operands);
  input.function_instructions = function_instructions(tile.operands.epilogue);
  return input;
}

double parts_of_busiest_sm(const Residence& residence, std::int64_t parts) {
  const auto rounds = [&](int workers) { return static_cast<double>(ceil_div(parts, workers)); };
  return (rounds(residence.sms) + rounds(residence.ctas()) * residence.ctas_per_sm) / 2;
}

void count_stores(const GemmTile& tile, bool realigns_rows, int adjacent_columns, CostInput& input) {
  constexpr int kVectorBytes = 16;
  const int element_bytes = bytes(tile.operands.d.element);
  const int vector = std::min(kVectorBytes, tile.operands.d.alignment * element_bytes);
  if (vector == kVectorBytes) return;
  const double tile_area = static_cast<double>(tile.tile.m) * tile.tile.n;
  const double vectors = tile_area * element_bytes / kVectorBytes;
  input.more_stores = realigns_rows ? vectors : tile_area * element_bytes / vector - vectors;
  input.row_ends = 2 * tile_area / (realigns_rows ? tile.tile.n : adjacent_columns);
}

double exchange_us(const arch::ArchLimits& limits, double tile_area, int accumulator_bytes) {
  return kExchangeUs + 2 * tile_area * accumulator_bytes / kPartialBytesPerClock / (limits.clock_ghz * 1e3);
}

double estimate_us(const arch::ArchLimits& limits, const CostInput& input) {
  if (input.fma_per_clock <= 0) return INFINITY;
  const Work work = work_of(limits, input);
  if (work.resident == 0) return INFINITY;
  const double clocks_per_us = limits.clock_ghz * 1e3;
  const double chip_us =
      work.overlapping(sm_clocks(limits, input, work), l2_clocks(limits, input, work)) / clocks_per_us;
  const double dram_us = dram_bytes(input, work) / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  const double start_us = work.ctas * kCtaStartUs;
  const Exchange exchange = exchange_of(limits, input, work);
  const bool is_f64_on_cuda_cores = input.accumulator_bytes == 8 && !work.is_mma;
  return (is_f64_on_cuda_cores ? kF64OnCudaCores : 1) *
         (limits.launch_us + kCallUs + exchange.drifting * std::max(work.overlapping(chip_us, dram_us), start_us) +
          exchange.us);
}

}  // namespace tilewright::plan
