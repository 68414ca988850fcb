#include "tilewright/plan/reductions.hpp"

#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::plan {
namespace {

constexpr int kAlignment = 16;  // alignment in bytes of each part of shared memory

/// Bytes that ReductionParts of device/tilewright/epilogue/reduction_parts.cuh uses: 8 for the CTA and 8 for each warp.
int reduction_parts_bytes(int threads) { return round_up((1 + threads / 32) * 8, kAlignment); }

}  // namespace

ReductionCounts reduction_counts(const op::Epilogue& epilogue) {
  ReductionCounts counts;
  for (const op::EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction == op::Reduction::none) continue;
    ++(output.broadcast == op::kRowVector      ? counts.columns
       : output.broadcast == op::kColumnVector ? counts.rows
                                               : counts.singles);
  }
  return counts;
}

int band_reduction_bytes(const ReductionCounts& counts, int rows, int columns, int threads, int element_bytes) {
  if (counts.all() == 0) return 0;
  const int elements = counts.all() * rows * (columns + 1) + counts.columns * columns + counts.singles * rows;
  return round_up(elements * element_bytes, kAlignment) + reduction_parts_bytes(threads);
}

int fragment_reduction_bytes(const ReductionCounts& counts, int columns) {
  constexpr int kWarps = 4, kElementBytes = 4;
  if (counts.all() == 0) return 0;
  return round_up(kWarps * kElementBytes * (counts.columns * columns + counts.singles), kAlignment) +
         reduction_parts_bytes(kWarps * 32);
}

ReductionBlocks reduction_blocks(op::GroupedMode mode, std::int64_t m, std::int64_t n, std::int64_t rows,
                                 std::int64_t columns, std::int64_t batches) {
  const auto blocks = [&](std::int64_t extent, std::int64_t block, bool is_stacked) {
    return is_stacked ? extent / block + batches : ceil_div(extent, block);
  };
  const bool stacks_m = mode == op::GroupedMode::ragged_m, stacks_n = mode == op::GroupedMode::ragged_n;
  return {.along_m = blocks(m, rows, stacks_m),
          .along_n = blocks(n, columns, stacks_n),
          .batches = batches,
          .stacks_m = stacks_m,
          .stacks_n = stacks_n};
}

std::int64_t reduction_part_bytes(const ReductionCounts& counts, const ReductionBlocks& blocks, std::int64_t m,
                                  std::int64_t n, int element_bytes) {
  const std::int64_t elements_per_matrix = counts.columns * blocks.along_m * n + counts.rows * blocks.along_n * m +
                                           counts.singles * blocks.along_m * blocks.along_n;
  const std::int64_t matrices = blocks.stacks_m || blocks.stacks_n ? 1 : blocks.batches;
  return elements_per_matrix * blocks.shares * matrices * element_bytes;
}

Support check_reductions(const ReductionCounts& counts, const ReductionBlocks& blocks) {
  constexpr auto kCounters = static_cast<std::int64_t>(kReductionCounterBytes / sizeof(std::uint32_t));
  // Divided, because the product may overflow.
  const auto per_matrix = [&](std::int64_t along, bool is_stacked) {
    return is_stacked ? ceil_div(along, blocks.batches) : along;
  };
  const std::int64_t lines = (counts.columns > 0 ? per_matrix(blocks.along_n, blocks.stacks_n) : 0) +
                             (counts.rows > 0 ? per_matrix(blocks.along_m, blocks.stacks_m) : 0) +
                             (counts.singles > 0 ? 1 : 0);
  if (lines > 0 && lines > kCounters / blocks.batches) {
    return refuse("reductions need {} arrival counters for each of {} matrices, a workspace has {}", lines,
                  blocks.batches, kCounters)
        .as(RefusalCode::resources);
  }
  return {};
}

}  // namespace tilewright::plan
