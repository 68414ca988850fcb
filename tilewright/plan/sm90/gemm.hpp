// Numbers of the sm90_gemm family: operands by TMA, of a copy where they must be repacked, or gathered
// into swizzled stages, wgmma, D by TMA or plain stores.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sm90/operand.hpp"
#include "tilewright/plan/sm90/subtile.hpp"

namespace tilewright::plan {

/// The shared memory of a CTA. In this order: the stages; for each consumer warpgroup the buffers that D leaves
/// through; for each the vectors and reductions of the epilogue; for each the barriers of its buffers; the barriers of
/// the stages. Repacking operands, which ends before the first stage is loaded, reuses what lies before the barriers.
struct Sm90SharedMemory {
  int stages = 2, stage_bytes = 0;
  int consumers = 1;
  int output_bytes = 0;     // of one consumer's buffers
  int staging_bytes = 0;    // of one consumer's vectors and reductions
  int output_barriers = 0;  // of one consumer
  int warps = 0;            // of the CTA
  int repacking_bytes = 0;  // of one warp

  // Offsets in bytes.
  int outputs_at() const { return stages * stage_bytes; }
  int staging_at() const { return outputs_at() + consumers * output_bytes; }
  int output_barriers_at() const { return std::max(staging_at() + consumers * staging_bytes, warps * repacking_bytes); }
  int ring_barriers_at() const { return output_barriers_at() + consumers * output_barrier_bytes(); }
  int output_barrier_bytes() const { return output_barriers * kMbarrierBytes; }
  int bytes() const { return ring_barriers_at() + 2 * stages * kMbarrierBytes; }
  /// Shared memory left for each consumer's output buffers once all else is allocated, given `limit` bytes for the CTA.
  int most_output_bytes(int limit) const;

  static constexpr int kMbarrierBytes = 8;
};

/// Shared memory of a warpgroup that sums slices of K: four words of each thread. epilogue/split_k_sum.cuh
constexpr int kSplitKSumBytes = 128 * 16;

/// What an epilogue keeps in shared memory, of the problem as computed: row and column vectors that it reads, and
/// reductions.
struct EpilogueStaging {
  int rows = 0, columns = 0;
  ReductionCounts reductions = {};

  /// Of a warpgroup of so many rows and columns of a tile: epilogue/staged_vectors.cuh, fragment_reductions.cuh; where
  /// slices are summed epilogue/band_reductions.cuh, of a CTA's share of 64 rows.
  int bytes(int tile_rows, int tile_columns, int split_k) const;
};
EpilogueStaging epilogue_staging(const op::Epilogue& epilogue);

/// Registers that setmaxnreg leaves a thread of the producer and of a consumer, which needs about so many. The sum over
/// all threads stays within what the launch gives them. From ptxas -v of this family: what spilled has more.
struct RegisterSplit {
  int producer = 0, consumer = 0;
};
RegisterSplit split_registers(int consumers, bool uses_plain_loads, bool promotes, int needed);

/// Words that a thread of a producer that gathers has on their way through registers.
int plain_load_words(int consumers);

/// Whether each k tile is summed by itself, then added in f32: see op::MathOperation.
bool promotes_accumulators(const op::GemmSignature& description);

/// Refuses a k tile of more products than may be summed before promotion.
Support check_promotion(const TileShape& tile);

/// What consumers do beside multiplying from shared memory.
struct ConsumerExtras {
  bool promotes = false;         // sums of 8-bit floats
  bool stores_bytes = false;     // elements of D
  bool loads_fragments = false;  // of A, from shared memory to registers
  int plain_bytes = 0;           // of an element of D that is not stored by TMA, but as it is summed
};

/// Clocks of a step in which nothing multiplies: none where other warpgroups of the team do. `element_bytes` of A.
double exposed_clocks(const TileShape& tile, int team, const ConsumerExtras& extras, int element_bytes);

/// Registers of a thread of `team` warpgroups: for a tile's sums and what is kept beside them (the sums of one
/// instruction where they are promoted, fragments of A, addresses, what plain stores of D need), of those that each of
/// all `consumers` has; and for one instruction, of those that the launch gives all threads alike.
struct RegisterNeeds {
  int tile = 0, given = 0;
  int instruction = 0, alike = 0;

  bool fit() const { return tile <= given && instruction <= alike; }
};
RegisterNeeds register_needs(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                             const ConsumerExtras& extras);

/// Whether they fit.
Support check_registers(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                        const ConsumerExtras& extras);

/// All of the plan but how its operands lie: what estimates and checks need, without the layout algebra that most of a
/// plan's time goes to.
struct Sm90GemmSketch : GemmTile {
  Target target;
  const arch::WgmmaAtom* atom = nullptr;  // row of the table; its n is the tile's
  int cluster_m = 1, cluster_n = 1;       // CTAs that share operands
  int split_k = 1;                        // CTAs that share a tile, each a part of K, and store a share of it each
  Schedule schedule = Schedule::cooperative;
  OperandPath path_a = {}, path_b = {};
  bool stores_by_tma = true;  // else by threads: lines that do not begin and end at 16 bytes, sums over slices
  int store_bytes = 16;       // that the lines of D are multiples of
  bool loads_source_by_tma = true;
  int source_bytes = 16;         // that the lines of C are multiples of
  EpilogueSubtile subtile = {};  // none of sums over slices
  TmaOutputs others = {};        // beside D
  int producer_registers = 0, consumer_registers = 0;
  bool promotes_accumulators = false;
  int plain_load_words = 0;  // that a thread of the producer has on their way through registers

  int consumers() const { return warps_m * warps_n / 4; }                         // warpgroups that multiply
  int team() const { return schedule == Schedule::ping_pong ? 1 : consumers(); }  // those that share a tile
  bool loads_fragments() const { return atom->a_source == arch::OperandSource::registers; }
  ConsumerExtras extras() const {
    return {promotes_accumulators, bytes(operands.d.element) == 1, loads_fragments(),
            stores_by_tma || split_k > 1 ? 0 : bytes(operands.d.element)};
  }
  int cluster_size() const { return cluster_m * cluster_n; }
  int group_size() const { return cluster_size() * split_k; }  // CTAs that work together
  bool c_is_row_major() const { return operands.c.layout == op::MatrixLayout::row_major; }
  bool d_is_row_major() const { return operands.d.layout == op::MatrixLayout::row_major; }
  OutputElements output_elements() const {
    return {bytes(operands.c.element), bytes(operands.d.element), d_is_row_major(), others};
  }
  /// The types of what lies in panels of a subtile.
  std::vector<DType> panel_elements() const;
  bool uses_plain_loads() const { return path_a.uses_plain_loads() || path_b.uses_plain_loads(); }
  bool repacks() const { return path_a.is_repacked || path_b.is_repacked; }
  int threads() const { return GemmTile::threads() + TmaOperandPlan::kProducerThreads; }
  int stage_bytes() const { return (tile.m + tile.n) * tile.k * bytes(operands.a.element); }
  int output_bytes() const;   // shared memory of a warpgroup for D on its way out
  int staging_bytes() const;  // and for the epilogue's vectors and reductions
  int subtiles() const;       // of a warpgroup's buffers, for a tile
  Sm90SharedMemory shared_memory() const;
  int smem_bytes() const { return shared_memory().bytes(); }
  bool operator==(const Sm90GemmSketch&) const = default;
};

struct Sm90GemmPlan : Sm90GemmSketch {
  TmaOperandPlan a, b;

  /// In each warpgroup: its four warps where they load fragments, or all of it through wgmma.
  int consumer_arrivals() const { return a.fragments ? 4 : 1; }
  bool operator==(const Sm90GemmPlan&) const = default;
};

/// A warpgroup's accumulators of one instruction. Where A's fragments come from an MN-major tile of bytes, a thread's
/// two rows are neighbours: arch/wgmma_fragment.
AccumulatorTile accumulator_tile(const Sm90GemmPlan& plan);

/// Every number but those of the operands' layouts, or the one that makes it impossible.
Result<Sm90GemmSketch> sketch_sm90_gemm(const op::GemmSignature& description, const Design& design);

/// Every number of the kernel, or the one that makes it impossible.
Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmSignature& description, const Design& design);

}  // namespace tilewright::plan
