#include "tilewright/program/weight_gemm_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/packed_weights.hpp"

namespace tilewright::program {
namespace {

/// Registers of a thread for fragments of two groups of wgmma, packed weights, scales and addresses, and those for more
/// addresses of a stage with more than two chunks along k; from ptxas -v.
constexpr int kBesideAccumulators = 72, kForMoreChunks = 8;

void check_type(DType type, std::initializer_list<DType> types, std::string_view what) {
  if (std::find(types.begin(), types.end(), type) != types.end()) return;
  std::string names;
  for (const DType one : types) names += fmt::format("{}{}", names.empty() ? "" : ", ", tilewright::name(one));
  throw InvalidArgument(fmt::format("{} are one of {}, got {}", what, names, tilewright::name(type)));
}

/// The largest number from `most` down to 1 that `divides`.
int largest_part(int most, const std::function<bool(int)>& divides) {
  int part = std::max(most, 1);
  while (part > 1 && !divides(part)) --part;
  return part;
}

int registers_beside_accumulators(const WeightGemmDescription& description) {
  return kBesideAccumulators +
         (part_k(description) > 2 * kInstructionK * steps_of_chunk(description.weights) ? kForMoreChunks : 0);
}

int registers_at_launch(const WeightGemmDescription& description) {
  const arch::ArchLimits& limits = arch::limits(description.target);
  return std::min(limits.registers_per_sm /
                      (description.ctas_per_sm * kWarpgroupThreads * (1 + all_consumers(description))) / 8 * 8,
                  limits.max_registers_per_thread);
}

int producer_registers(const WeightGemmDescription& description) {
  constexpr std::array<int, kMaxConsumers> kProducer{56, 40, 32, 32};
  return description.ctas_per_sm > 1
             ? 24
             : kProducer.at(static_cast<std::size_t>(std::clamp(all_consumers(description), 1, kMaxConsumers)) - 1);
}

int consumer_registers(const WeightGemmDescription& description) {
  const int consumers = all_consumers(description);
  const int given = registers_at_launch(description) * (1 + consumers) - producer_registers(description);
  return std::min(given / consumers / 8 * 8, 240);
}

/// Number of consecutive k whose products are summed before a scale multiplies them, for ScaleUse::accumulators. If two
/// sets of accumulators take turns, a stage has an even number of spans.
int span_of(const WeightGemmDescription& description) {
  const int steps = part_k(description) / kInstructionK,
            segment = std::min(segment_of(description), part_k(description));
  if (!spans_take_turns(description)) return segment;
  return kInstructionK * largest_part(segment / kInstructionK, [&](int part) {
           return steps % (2 * part) == 0 && segment / kInstructionK % part == 0;
         });
}

void check_split_k(const WeightGemmDescription& description) {
  if (description.split_k != 1 && description.split_k != 2 && description.split_k != 4 && description.split_k != 8)
    throw InvalidArgument(fmt::format("split_k must be 1, 2, 4 or 8, got {}", description.split_k));
  if (description.cluster_m != 1 && (description.cluster_m != 2 || description.split_k != 1)) {
    throw InvalidArgument(fmt::format("cluster_m must be 1, or 2 without split-K, got {} and split_k {}",
                                      description.cluster_m, description.split_k));
  }
  if (description.streaming_ctas < 0)
    throw InvalidArgument(fmt::format("streaming_ctas is at least 0, got {}", description.streaming_ctas));
  const std::int64_t flags = std::int64_t{4} * description.consumers * description.streaming_ctas;
  if (flags > WorkspaceMemory::kFlags) {
    throw InvalidArgument(fmt::format("each warp of {} CTAs that stream has a flag, {} in all, of {}",
                                      description.streaming_ctas, flags, WorkspaceMemory::kFlags));
  }
  if (description.streaming_ctas > 0 && (description.cluster_m != 1 || parts_of_k(description) != 1)) {
    throw InvalidArgument(
        fmt::format("CTAs that take equal numbers of steps along k have no clusters and no other parts of k, got "
                    "cluster_m {} and {} parts of k",
                    description.cluster_m, parts_of_k(description)));
  }
  // Each part stores whole columns of four registers, or a part of those four.
  const int parts = parts_of_k(description), accumulators = description.tile_n / 2, share = accumulators / parts;
  if (parts == 1) return;
  if (accumulators % parts != 0 || (share % kRegistersOfColumns != 0 && kRegistersOfColumns % share != 0)) {
    throw InvalidArgument(
        fmt::format("split_k {} with {} warpgroups along k must divide the {} accumulators of a thread into multiples "
                    "of {}, 2 or 1",
                    description.split_k, description.consumers_k, accumulators, kRegistersOfColumns));
  }
}

}  // namespace

void check(const WeightGemmDescription& description) {
  check_type(description.activations, {DType::f16, DType::bf16}, "activations");
  check_type(description.scales, {DType::f16, DType::bf16, DType::f32}, "scales");
  check_type(description.d, {DType::f16, DType::bf16, DType::f32}, "elements of D");
  if (description.consumers < 1 || description.consumers_k < 1 || all_consumers(description) > kMaxConsumers) {
    throw InvalidArgument(fmt::format("1 to {} warpgroups multiply, got {} along m and {} along k", kMaxConsumers,
                                      description.consumers, description.consumers_k));
  }
  if (description.tile_k < 1 || description.tile_k % weight_packing(description.weights).chunk_k != 0) {
    throw InvalidArgument(fmt::format("tile_k must be a multiple of {}, the k of a chunk of packed {}, got {}",
                                      weight_packing(description.weights).chunk_k,
                                      tilewright::name(description.weights), description.tile_k));
  }
  if (description.consumers_k > 1 && description.tile_k % (description.consumers_k * kSwizzledK) != 0) {
    throw InvalidArgument(fmt::format("with {0} warpgroups along k, tile_k must be a multiple of {0} * {1}, got {2}",
                                      description.consumers_k, kSwizzledK, description.tile_k));
  }
  if (description.ctas_per_sm < 1)
    throw InvalidArgument(fmt::format("an SM has 1 CTA or more, got {}", description.ctas_per_sm));
  check_split_k(description);
  if (description.stores_by_tma && !can_store_by_tma(description)) {
    throw InvalidArgument(
        fmt::format("TMA stores 16-bit elements along m of tiles of 32 columns or more that are summed over one part "
                    "of k, got {} along {}, {} columns and {} parts of k",
                    tilewright::name(description.d), description.d_is_m_contiguous ? "m" : "n", description.tile_n,
                    parts_of_k(description)));
  }
  const WeightGemmRegisters registers = registers_of(description);
  if (registers.needed > registers.consumer) {
    throw InvalidArgument(fmt::format("a tile_n of {} needs about {} registers a thread, of {}", description.tile_n,
                                      registers.needed, registers.consumer));
  }
  if (registers.of_instruction > registers.at_launch) {
    throw InvalidArgument(
        fmt::format("an instruction of {} columns needs {} registers a thread, of {} with {} CTAs on an SM",
                    description.tile_n, registers.of_instruction, registers.at_launch, description.ctas_per_sm));
  }
  const std::optional<ScaleUse> use = scale_use(description);
  if (!use) return;
  if (!group_fits(description)) {
    throw InvalidArgument(
        fmt::format("the group must be a multiple of tile_k, {0}, or a multiple of {1} that divides it, got {2}",
                    description.tile_k, kInstructionK, description.group));
  }
  if (*use == ScaleUse::weights && description.scales != description.activations) {
    throw InvalidArgument(fmt::format("scales that multiply weights have the type of the activations, {}, got {}",
                                      tilewright::name(description.activations), tilewright::name(description.scales)));
  }
}

int all_consumers(const WeightGemmDescription& description) { return description.consumers * description.consumers_k; }

int parts_of_k(const WeightGemmDescription& description) { return description.split_k * description.consumers_k; }

int part_k(const WeightGemmDescription& description) { return description.tile_k / description.consumers_k; }

int segment_of(const WeightGemmDescription& description) {
  return description.group == 0 ? description.tile_k : std::min(description.group, description.tile_k);
}

bool spans_take_turns(const WeightGemmDescription& description) {
  return 3 * description.tile_n / 2 + registers_beside_accumulators(description) <= consumer_registers(description);
}

StagingUse staging_of(const WeightGemmDescription& description) {
  constexpr int kMaxColumns = 32;
  const int columns = std::min(kMaxColumns, description.tile_n / 2);
  return {.major = arch::Major::mn,
          .columns = columns,
          .panels_n = description.tile_n / columns,
          .warpgroups = description.consumers};
}

std::string_view name(ScaleUse use) { return use == ScaleUse::weights ? "weights" : "accumulators"; }

std::optional<ScaleUse> scale_use(const WeightGemmDescription& description) {
  if (description.group == 0) return std::nullopt;
  if (description.scale_use) return description.scale_use;
  if (description.scales != description.activations) return ScaleUse::accumulators;
  if (!spans_take_turns(description)) return ScaleUse::weights;
  const int for_weights = part_k(description) / kInstructionK * kFragmentRegisters;
  const int for_accumulators = part_k(description) / span_of(description) * (description.tile_n / 2);
  return for_weights <= for_accumulators ? ScaleUse::weights : ScaleUse::accumulators;
}

bool group_fits(const WeightGemmDescription& description) {
  const int group = description.group, part = part_k(description);
  const auto fits = [&](int k) { return group % k == 0 || k % group == 0; };
  return group == 0 || (group % kInstructionK == 0 && fits(description.tile_k) && fits(part));
}

bool can_store_by_tma(const WeightGemmDescription& description) {
  constexpr int kMinN = 32;
  return description.d_is_m_contiguous && bits(description.d) == 16 && description.tile_n >= kMinN &&
         description.tile_n % kMinN == 0 && parts_of_k(description) == 1;
}

int staging_bytes(const WeightGemmDescription& description) {
  if (!description.stores_by_tma) return 0;
  const StagingUse use = staging_of(description);
  return use.warpgroups * use.buffers * StagedOutput::kRows * use.columns * bits(description.d) / 8;
}

WeightGemmPipeline pipeline_of(const WeightGemmDescription& description) {
  // A stage has an even number of groups, because two sets of fragments take turns: with an odd number, a loop would
  // copy registers that wgmma reads, and ptxas would serialise wgmma (C7513).
  WeightGemmPipeline pipeline{.span = span_of(description)};
  const int steps = part_k(description) / kInstructionK, steps_of_span = pipeline.span / kInstructionK;
  const int chunk = steps_of_chunk(description.weights);
  pipeline.group = kInstructionK * largest_part(std::min(chunk, steps_of_span), [&](int part) {
                     return steps % (2 * part) == 0 && steps_of_span % part == 0 && chunk % part == 0;
                   });
  return pipeline;
}

WeightGemmRegisters registers_of(const WeightGemmDescription& description) {
  WeightGemmRegisters registers;
  registers.producer = producer_registers(description);
  registers.consumer = consumer_registers(description);
  int sets = 1;  // of accumulators
  if (scale_use(description) == ScaleUse::accumulators) sets = spans_take_turns(description) ? 3 : 2;
  registers.needed = sets * description.tile_n / 2 + registers_beside_accumulators(description);
  // ptxas requires that one wgmma fits in the registers that a thread has at launch (C7602).
  constexpr int kBesideInstruction = 30;
  registers.at_launch = registers_at_launch(description);
  registers.of_instruction = description.tile_n / 2 + kBesideInstruction;
  return registers;
}

}  // namespace tilewright::program
