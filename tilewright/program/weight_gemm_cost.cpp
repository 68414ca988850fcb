#include "tilewright/program/weight_gemm_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/dtype.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/overlap.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/weight_gemm_choices.hpp"

namespace tilewright::program {
namespace {

// Instructions that a warp issues beside conversions, scales and sums, from the listings of ptxas 13.0: for one wgmma,
// whose descriptor is put into registers, and for a stage.
constexpr double kIssuedForWgmma = 4, kIssuedForStage = 50;
/// Cycles from the wait for a group of wgmma until the next group is issued, beyond those of issuing instructions: the
/// latencies of the load of packed words, of three dependent instructions, and of the wait. And those of a wait for all
/// groups, which sums of spans need once for each stage.
constexpr double kGroupCycles = 157, kDrainCycles = 28;
// The constants below were fitted to 668 times of kernels for 12 layers with s4 weights, among them those with several
// warpgroups along k and with four along m (two runs of up to 34 designs of each layer, H200, 2026-11-27;
// docs/decisions/narrow_weights.md). With them, the first of the measured kernels of a layer takes 2.8 % longer than
// the fastest in the mean, and 9 % at most; with those of the day before, which knew neither kind, it was 6.6 and 34 %.
/// From the release of a stage until TMA has filled it again, while all SMs load.
constexpr double kLoadUs = 1.5;
/// The time of each stage that wgmma and the instructions of other warpgroups do not hide.
constexpr double kExposedUs = 0.063;
/// The power of plan::overlapped() for wgmma and the instructions of all warpgroups of an SM. wgmma with A in registers
/// reads the register file, so that other warps issue fewer instructions beside it: 28672x8192 with 64 tokens and four
/// warpgroups left the tensor cores of busy SMs idle for 37 % of the time, and the schedulers for half of it.
constexpr double kOverlapPower = 1.3;
/// The exchange of sums among warpgroups along k: two of them, and twice that among four.
constexpr double kWarpgroupsUs = 0.72;
/// The share of the time of loads that other work does not hide. It makes designs that share activations come first
/// among equals: they were up to 5 % faster.
constexpr double kLoadLoss = 0.103;
/// Two barriers of a cluster of two, what each CTA more adds to them, and the bytes that a CTA sends to others in a
/// clock cycle.
constexpr double kExchangeUs = 1.21, kExchangeUsPerCta = 0.69, kSentBytesPerClock = 17;
/// Each CTA of an SM begins later than the one before it.
constexpr double kCtaUs = 0.9;
/// What CTAs that stream take longer, beside the transfer of sums at kSentBytesPerClock. With values from 1 to 5, the
/// first of up to 26 measured designs took 0.9 % longer than the fastest in the mean, and 4 % at most (18 layers of
/// 11008x4096 to 57344x8192 with 64 to 256 tokens, H100, 2026-11-28).
constexpr double kStreamUs = 2;
/// With split-K a cluster computes one tile: the start of the next cluster, until its first stage has been loaded. From
/// the differences between designs of 28672x8192 with 64 tokens (H200, 2026-11-26).
constexpr double kRestartUs = 0.97;
/// The share of DRAM's nominal rate, and the factor on limits.l2_bytes_per_clock, that kernels reach.
constexpr double kShareOfDram = 0.9, kShareOfL2 = 1.3;
constexpr int kMaxStages = 8, kMaxStageBytes = 200 * 1024, kBarrierBytes = 1024;
constexpr int kMaxCtasPerSm = 4;
/// From this tile_n on, two CTAs may share activations, and CTAs may stream.
constexpr int kMinSharedN = 64, kMinStreamedN = 64;

/// Instructions of a thread that convert one fragment: those that take two issue cycles, because logic, shifts and
/// selections have half the rate of others, and those that take one.
struct Conversion {
  int half_rate, full_rate;
};
Conversion conversion_of(DType from, DType to) {
  const bool to_bf16 = to == DType::bf16;
  if (from == DType::s4) return {to_bf16 ? 7 : 5, 4};
  if (from == DType::s8) return {to_bf16 ? 10 : 6, 4};
  return to_bf16 ? Conversion{14, 4} : Conversion{6, 0};
}

std::int64_t tiles_of(const WeightGemmDescription& description, const WeightGemmExtents& extents) {
  const std::int64_t rows = std::int64_t{WeightPacking::kRows} * description.consumers * description.cluster_m;
  return ceil_div(extents.m, rows) * description.cluster_m * ceil_div(extents.n, description.tile_n);
}

/// Tiles that the GPU computes at once.
std::int64_t resident_tiles(const WeightGemmDescription& description) {
  return std::int64_t{description.ctas_per_sm} * description.cluster_m *
         arch::resident_clusters(arch::limits(description.target), description.cluster_m * description.split_k);
}

/// Stages that a CTA computes, of all its tiles.
std::int64_t stages_of_cta(const WeightGemmDescription& description, const WeightGemmExtents& extents) {
  const std::int64_t tiles = tiles_of(description, extents), of_tile = ceil_div(extents.k, description.tile_k);
  if (description.streaming_ctas > 0) return ceil_div(tiles * of_tile, description.streaming_ctas);
  return ceil_div(tiles, resident_tiles(description)) * ceil_div(of_tile, description.split_k);
}

int bytes_of_activations(const WeightGemmDescription& description) {
  return description.tile_n * description.tile_k * bits(description.activations) / 8;
}

int stage_bytes(const WeightGemmDescription& description) {
  const int weights = WeightPacking::kRows * description.consumers * description.tile_k * bits(description.weights) / 8;
  const int activations = bytes_of_activations(description);
  const int groups = description.group == 0 ? 0 : std::max(1, description.tile_k / description.group);
  const int scales = WeightPacking::kRows * description.consumers * groups * bits(description.scales) / 8;
  return (weights + activations + scales + 1023) / 1024 * 1024;
}

/// Sets the number of stages to what fits; false if not even two fit, or not the sums that split-K exchanges.
bool choose_stages(WeightGemmDescription& description) {
  const arch::ArchLimits& limits = arch::limits(description.target);
  const int memory =
      std::min(kMaxStageBytes, limits.smem_per_sm_bytes / description.ctas_per_sm -
                                   limits.smem_reserved_per_block_bytes - kBarrierBytes - staging_bytes(description));
  description.stages = std::min(memory / stage_bytes(description), kMaxStages);
  const int sums = WeightPacking::kRows * all_consumers(description) * description.tile_n * 4;
  return description.stages >= 2 &&
         (parts_of_k(description) == 1 || sums <= description.stages * stage_bytes(description));
}

/// Cycles of one stage of a warpgroup, beside wgmma: those in which each scheduler issues instructions for its warp,
/// and those that it takes if it is alone on its SM.
struct StageCycles {
  double issue = 0, alone = 0;
};
StageCycles cycles_of_stage(const WeightGemmDescription& description) {
  const WeightGemmPipeline pipeline = pipeline_of(description);
  const Conversion conversion = conversion_of(description.weights, description.activations);
  const int steps = part_k(description) / kInstructionK;
  const int scaling = scale_use(description) == ScaleUse::weights ? 4 : 0;
  const int converting = std::max(2 * conversion.half_rate, conversion.half_rate + conversion.full_rate + scaling);
  StageCycles cycles;
  cycles.issue = steps * (converting + kIssuedForWgmma) + kIssuedForStage;
  const bool sums_spans = scale_use(description) == ScaleUse::accumulators;
  const int spans = part_k(description) / pipeline.span;
  if (sums_spans) cycles.issue += spans * (description.tile_n / 2.0);
  cycles.alone = cycles.issue + kGroupCycles * part_k(description) / pipeline.group + (sums_spans ? kDrainCycles : 0);
  return cycles;
}

/// The exchanges of sums of a CTA that has `rounds` tiles, with the starts of further clusters.
double exchanges_us(const WeightGemmDescription& description, std::int64_t rounds) {
  const double clocks_per_us = arch::limits(description.target).clock_ghz * 1000;
  const double bytes = static_cast<double>(WeightPacking::kRows * description.consumers) * description.tile_n * 4;
  const double sent_us = bytes / kSentBytesPerClock / clocks_per_us;
  if (description.streaming_ctas > 0) return kStreamUs + sent_us;
  if (parts_of_k(description) == 1) return 0;
  double exchange_us = kWarpgroupsUs * std::log2(description.consumers_k);
  if (description.split_k > 1) exchange_us += kExchangeUs + kExchangeUsPerCta * (description.split_k - 2) + sent_us;
  return static_cast<double>(rounds) * exchange_us + static_cast<double>(rounds - 1) * kRestartUs;
}

}  // namespace

double predicted_us(const WeightGemmDescription& description, const WeightGemmExtents& extents) {
  const arch::ArchLimits& limits = arch::limits(description.target);
  const std::int64_t tiles = tiles_of(description, extents), ctas = tiles * description.split_k;
  const std::int64_t rounds = ceil_div(tiles, resident_tiles(description));
  const auto ctas_of_sm =
      static_cast<double>(std::clamp<std::int64_t>(ceil_div(ctas, limits.sm_count), 1, description.ctas_per_sm));
  const double warpgroups = all_consumers(description) * ctas_of_sm;
  const double clocks_per_us = limits.clock_ghz * 1000;
  const double fma = static_cast<double>(WeightPacking::kRows) * description.tile_n * part_k(description);
  const double multiply_us =
      fma / arch::fma_per_clock(limits, arch::MathUnit::wgmma, description.activations) / clocks_per_us;
  const double loaded_bytes =
      stage_bytes(description) -
      bytes_of_activations(description) * (1 - 1.0 / description.cluster_m);  // by a CTA, for a stage
  const auto active = static_cast<double>(description.streaming_ctas > 0
                                              ? description.streaming_ctas
                                              : std::min(ctas, resident_tiles(description) * description.split_k));
  const double load_us = active * loaded_bytes / (kShareOfL2 * limits.l2_bytes_per_clock) / clocks_per_us;
  const StageCycles cycles = cycles_of_stage(description);
  // A stage is released when the first group of the next one is all that still runs.
  const double stages_ahead = description.stages - 1 - 1.0 * pipeline_of(description).group / part_k(description);
  const double stage_us =
      kLoadLoss * load_us +
      std::max({plan::overlapped(warpgroups * multiply_us, warpgroups * cycles.issue / clocks_per_us, kOverlapPower) +
                    kExposedUs,
                load_us, std::max(cycles.alone / clocks_per_us, multiply_us), kLoadUs / stages_ahead});
  const std::int64_t stages = stages_of_cta(description, extents);
  const double dram_bytes =
      static_cast<double>(extents.m) * static_cast<double>(extents.k) * bits(description.weights) / 8;
  const double dram_us = dram_bytes / (kShareOfDram * limits.dram_bytes_per_s) * 1e6;
  return limits.launch_us + kCtaUs * (ctas_of_sm - 1) + std::max(static_cast<double>(stages) * stage_us, dram_us) +
         exchanges_us(description, rounds);
}

namespace {

/// Whether the k of a warpgroup's part of a stage is within limits. A warpgroup without others along k should take
/// longer for a group of wgmma than for the conversion of the next one.
bool is_stage(const WeightGemmDescription& description) {
  const int few = description.tile_n < 128 ? 128 : 64, part = part_k(description);
  return part <= 2 * few && (description.consumers_k == 1 ? part >= few : part >= kSwizzledK && part % kSwizzledK == 0);
}

/// Appends the designs with the tile_n and tile_k of `each` that fit.
void add_designs(WeightGemmDescription each, const WeightGemmExtents& extents,
                 std::vector<WeightGemmDescription>& designs) {
  const auto add = [&](WeightGemmDescription design) {
    design.stores_by_tma = each.stores_by_tma && can_store_by_tma(design);
    if (registers_of(design).fit() && choose_stages(design)) designs.push_back(design);
  };
  // CTAs that stream gain where the last tiles would leave many of them without work. With few tokens DRAM is the
  // bound, and they lose: 28672x8192 with 1 and 16 tokens took 10 and 7 % longer (H200, 2026-11-28).
  const auto add_streaming = [&](WeightGemmDescription design) {
    const std::int64_t tiles = tiles_of(design, extents), ctas = resident_tiles(design);
    if (design.tile_n < kMinStreamedN || parts_of_k(design) > 1 || tiles < ctas || tiles % ctas == 0) return;
    design.streaming_ctas = static_cast<int>(ctas);
    add(design);
  };
  constexpr std::array<std::pair<int, int>, 7> kConsumers{
      {{4, 1}, {3, 1}, {2, 1}, {1, 1}, {2, 2}, {1, 2}, {1, 4}}};  // along m and k
  for (const auto& [along_m, along_k] : kConsumers) {
    each.consumers = along_m;
    each.consumers_k = along_k;
    if (!is_stage(each)) continue;
    for (each.split_k = 1; each.split_k <= 8; each.split_k *= 2) {
      if (parts_of_k(each) > each.tile_n / 2 || ceil_div(extents.k, each.tile_k) < each.split_k) continue;
      for (each.ctas_per_sm = 1; each.ctas_per_sm <= kMaxCtasPerSm; ++each.ctas_per_sm) {
        add(each);
        if (tiles_of(each, extents) <= resident_tiles(each)) break;  // more would be empty
      }
      each.ctas_per_sm = 1;
      add_streaming(each);
      if (each.split_k == 1 && each.tile_n >= kMinSharedN) {
        each.cluster_m = 2;
        add(each);
        each.cluster_m = 1;
      }
    }
  }
}

}  // namespace

std::vector<WeightGemmDescription> weight_gemm_designs(const WeightGemmDescription& description,
                                                       const WeightGemmExtents& extents, std::size_t count) {
  int most_n = 8;
  while (most_n < 256 && most_n < extents.n) most_n *= 2;
  std::vector<WeightGemmDescription> all;
  WeightGemmDescription each = description;
  for (const int tile_n : {most_n, most_n / 2, most_n / 4}) {
    if (tile_n < 8) continue;
    each.tile_n = tile_n;
    for (const int tile_k : {64, 128, 256, 512}) {
      each.tile_k = tile_k;
      add_designs(each, extents, all);
    }
  }
  std::vector<std::pair<double, WeightGemmDescription>> predicted;
  // Designs whose stages the groups do not fit come last: if there are no others, their refusals tell why.
  for (const WeightGemmDescription& one : all)
    predicted.emplace_back(group_fits(one) ? predicted_us(one, extents) : INFINITY, one);
  std::ranges::stable_sort(predicted, {}, [](const auto& one) { return one.first; });
  if (predicted.size() > count) predicted.resize(count);
  std::vector<WeightGemmDescription> best;
  for (const auto& [us, one] : predicted) best.push_back(one);
  return best;
}

}  // namespace tilewright::program
