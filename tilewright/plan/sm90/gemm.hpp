// The plan of the sm90_gemm family. The operands reach swizzled stages by TMA, by TMA from a repacked copy, or by plain
// loads; the mainloop uses wgmma; the epilogue stores D by TMA or with plain stores.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sm90/operand.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"
#include "tilewright/plan/sm90/subtile.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// The distance of two stages in shared memory: the bytes of a tile of A and one of B, rounded up, so that the stages
/// and what follows them begin where the pattern of the widest swizzle does. Shared pixels are stored once for all
/// taps.
inline int sm90_stage_bytes(const TileShape& tile, int element_bytes, const SharedPixels& shared = {},
                            bool b_has_pixels = false) {
  constexpr int kSwizzlePattern = 1024;  // bytes after which the 128-byte swizzle repeats
  const int pixels = shared.elements(b_has_pixels ? tile.n : tile.m, tile.k);
  const int others = (b_has_pixels ? tile.m : tile.n) * tile.k;
  return round_up((pixels + others) * element_bytes, kSwizzlePattern);
}

/// The shared memory of a CTA holds, in this order: the stages; the epilogue buffers of each consumer warpgroup; the
/// staged vectors and reductions of each; the mbarriers of each one's epilogue buffers; the mbarriers of the stages;
/// the table of groups; the tensor maps that the CTA changes. Repacking of operands ends before the first stage is
/// loaded, so it reuses the memory in front of the barriers.
struct Sm90SharedMemory {
  int stages = 2, stage_bytes = 0;
  int consumers = 1;
  int output_bytes = 0;     // epilogue buffers per consumer warpgroup
  int staging_bytes = 0;    // staged vectors and reductions per consumer warpgroup
  int output_barriers = 0;  // mbarriers per consumer warpgroup
  int warps = 0;            // warps per CTA
  int repacking_bytes = 0;  // repacking buffer per warp
  int group_bytes = 0;      // table of groups, a multiple of 8
  int tensor_maps = 0;      // tensor maps that the CTA changes

  // Offsets in bytes.
  int outputs_at() const { return stages * stage_bytes; }
  int staging_at() const { return outputs_at() + consumers * output_bytes; }
  int output_barriers_at() const { return std::max(staging_at() + consumers * staging_bytes, warps * repacking_bytes); }
  int ring_barriers_at() const { return output_barriers_at() + consumers * output_barrier_bytes(); }
  int output_barrier_bytes() const { return output_barriers * kMbarrierBytes; }
  int groups_at() const { return ring_barriers_end(); }
  int groups_end() const { return groups_at() + group_bytes; }
  int tensor_maps_at() const { return round_up(groups_end(), kTensorMap); }
  /// Includes the most bytes that the alignment of the tensor maps may cost, so that each stage adds as many bytes.
  int tensor_map_bytes() const { return tensor_maps == 0 ? 0 : (tensor_maps + 1) * kTensorMap - kMbarrierBytes; }
  int ring_barriers_end() const { return ring_barriers_at() + 2 * stages * kMbarrierBytes; }
  int bytes() const { return groups_end() + tensor_map_bytes(); }
  /// Shared memory left for each consumer warpgroup's epilogue buffers once all else is allocated, given a limit of
  /// `limit` bytes per CTA.
  int most_output_bytes(int limit) const;

  static constexpr int kMbarrierBytes = 8;
  static constexpr int kTensorMap = 128;  // size in bytes and alignment
};

/// Size of the table of groups (GroupTiles::kSharedBytes of device/tilewright/scheduler/group_tiles.cuh).
constexpr int kGroupTableBytes = (256 + 16) * 4;
inline int group_table_bytes(op::GroupedMode groups) {
  return op::differs_in_m(groups) || op::differs_in_n(groups) ? kGroupTableBytes : 0;
}

/// Shared memory that a consumer warpgroup needs for split-K reduction: four words per thread
/// (epilogue/split_k_sum.cuh).
constexpr int kSplitKSumBytes = 128 * 16;

/// Number of groups in which the partial sums of a quad are added where an instruction has `tile_n` columns
/// (SplitKSum::kParts).
int split_k_sum_groups(int tile_n, int split_k);

/// The data that an epilogue stages in shared memory: the row and column vectors it reads, and its reductions. Rows and
/// columns are those of the problem as computed.
struct EpilogueStaging {
  int rows = 0, columns = 0;
  ReductionCounts reductions = {};

  /// Shared memory of a warpgroup that computes `tile_rows` x `tile_columns` of a tile. Without split-K the sizes come
  /// from epilogue/staged_vectors.cuh and epilogue/fragment_reductions.cuh; with split-K they come from
  /// epilogue/band_reductions.cuh, for a CTA's share of 64 rows.
  int bytes(int tile_rows, int tile_columns, int split_k) const;
};
EpilogueStaging epilogue_staging(const op::Epilogue& epilogue);

/// The register counts per thread that setmaxnreg sets for the producer and the consumer warpgroups. `needed` is the
/// estimated need of a consumer thread. The sum over all threads stays within the registers allocated at launch. The
/// values come from the output of `ptxas -v` for this family: kernels that spilled were given more.
struct RegisterSplit {
  int producer = 0, consumer = 0;
};
struct ConsumerExtras;
RegisterSplit split_registers(int consumers, bool uses_plain_loads, const ConsumerExtras& extras, int needed);

/// Number of 32-bit words each producer thread keeps in flight when it loads an operand with plain loads instead of
/// TMA.
int plain_load_words(int consumers);

/// Whether plain loads copy C to the epilogue buffers because groups differ in m or n.
bool copies_source(const op::GemmSignature& signature);

/// Whether the accumulators of each k tile are promoted, that is, added to a second set of f32 sums outside the tensor
/// cores; see op::MathOperation.
bool promotes_accumulators(const op::GemmSignature& signature);

/// Refuses a k tile that is longer than the promotion interval.
Support check_promotion(const TileShape& tile);

/// Work of the consumer warpgroups beyond issuing wgmma with both operands in shared memory.
struct ConsumerExtras {
  bool promotes = false;         // accumulators of FP8 products are promoted to a second set of f32 sums
  bool stores_bytes = false;     // the elements of D are 1 byte wide
  bool loads_fragments = false;  // A's fragments are loaded from shared memory to registers
  /// Size in bytes of an element of D when the epilogue stores it with plain stores instead of TMA; else 0.
  int plain_bytes = 0;
  bool reads_mn_major = false;  // wgmma reads both operands MN-major
  bool copies_source = false;   // plain loads copy C for tiles of groups, whose ends TMA does not know
  /// Groups or classes differ in k, so that each tile has a number of mainloop steps of its own.
  bool differs_in_k = false;
  bool finds_output = false;    // D is a pointer array, so that each tile has an address of its own
  int reduction_registers = 0;  // see plan::reduction_registers()
};

/// Registers for the reductions of an epilogue, whose accumulators are still in registers: partial results, and the
/// places of results, which differ between groups.
int reduction_registers(const ReductionCounts& counts, op::GroupedMode groups);

/// Exposed clocks per mainloop step, in which the tensor cores are idle. If several warpgroups share the tile, one
/// multiplies while another does its extra work, most of which then costs nothing. `element_bytes` is the size of an
/// element of A.
double exposed_clocks(const TileShape& tile, int team, const ConsumerExtras& extras, int element_bytes);

/// Registers per consumer thread, where `team` warpgroups share a tile and the CTA has `consumers` of them.
struct RegisterNeeds {
  /// `tile` is the need for a tile: accumulators, the second set of one instruction if they are promoted, A's
  /// fragments, addresses, and plain stores of D. `given` is what setmaxnreg gives each consumer thread.
  int tile = 0, given = 0;
  /// `instruction` is the need of one wgmma. `alike` is what every thread of the CTA has at launch, before setmaxnreg.
  int instruction = 0, alike = 0;

  bool fit() const { return tile <= given && instruction <= alike; }
};
RegisterNeeds register_needs(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                             const ConsumerExtras& extras);

/// Refuses a tile whose register_needs() do not fit.
Support check_registers(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                        const ConsumerExtras& extras);

/// A plan without the layouts of its operands. It holds everything that the cost model and the checks need, and avoids
/// the layout algebra, which takes most of the planning time.
struct Sm90GemmSketch : GemmTile {
  Target target;
  const arch::WgmmaAtom* atom = nullptr;  // entry of the atom table; the instruction's n is tile.n
  int cluster_m = 1, cluster_n = 1;       // CTAs per cluster, which share operands by multicast
  Schedule schedule = Schedule::cooperative;
  OperandPath path_a = {}, path_b = {};
  /// D is stored with plain stores if its lines do not begin and end at multiples of 16 bytes, or with split-K.
  bool stores_by_tma = true;
  int store_bytes = 16;  // alignment of the lines of D in bytes, at most 16
  bool loads_source_by_tma = true;
  int source_bytes = 16;         // alignment of the lines of C in bytes, at most 16
  EpilogueSubtile subtile = {};  // empty with split-K
  TmaOutputs others = {};        // outputs other than D that TMA stores
  int producer_registers = 0, consumer_registers = 0;
  bool promotes_accumulators = false;
  int plain_load_words = 0;      // see plan::plain_load_words()
  bool has_tap_columns = false;  // D is stored tap by tap; see op/tap_columns.hpp

  int consumers() const { return warps_m * warps_n / 4; }  // number of consumer warpgroups
  /// Number of consumer warpgroups that share a tile.
  int team() const { return schedule == Schedule::ping_pong ? 1 : consumers(); }
  bool loads_fragments() const { return atom->a_source == arch::OperandSource::registers; }
  ConsumerExtras extras() const {
    return {.promotes = promotes_accumulators,
            .stores_bytes = bytes(operands.d.element) == 1,
            .loads_fragments = loads_fragments(),
            .plain_bytes = stores_by_tma || split_k > 1 ? 0 : bytes(operands.d.element),
            .reads_mn_major = path_a.major == arch::Major::mn && path_b.major == arch::Major::mn,
            .copies_source = copies_source(operands),
            .differs_in_k = op::differs_in_k(groups()) || has_row_classes(),
            .finds_output = operands.d.is_pointer_array,
            .reduction_registers =
                split_k > 1 ? 0 : plan::reduction_registers(reduction_counts(operands.epilogue), groups())};
  }
  int cluster_size() const { return cluster_m * cluster_n; }
  /// Number of CTAs that work together: one cluster for each part of K.
  int group_size() const { return cluster_size() * split_k; }
  bool c_is_row_major() const { return operands.c.layout == op::MatrixLayout::row_major; }
  bool d_is_row_major() const { return operands.d.layout == op::MatrixLayout::row_major; }
  OutputElements output_elements() const {
    return {bytes(operands.c.element), bytes(operands.d.element), d_is_row_major(), others, stores_by_tma};
  }
  /// The element types of the tensors whose epilogue subtiles pass through shared memory in panels.
  std::vector<DType> panel_elements() const;
  bool uses_plain_loads() const { return path_a.uses_plain_loads() || path_b.uses_plain_loads(); }
  bool has_row_classes() const { return path_a.has_row_classes; }
  /// The taps that share pixels, and whether B of the problem as computed has these.
  const SharedPixels& shared_pixels() const { return path_a.shared_pixels; }
  bool b_has_pixels() const { return path_b.is_pixels; }
  /// The adjacent columns of a tile that are channels of one tap. @pre has_tap_columns
  int tap_column_block() const {
    const int element_bytes = bytes(operands.b.element);
    return row_bytes(path_b.major, element_bytes, path_b.tap_mn(tile.n), tile.k, path_b.max_row_bytes) / element_bytes;
  }
  /// Number of classes of rows that the kernel has parameters for.
  int row_classes() const { return operands.a.has_many_classes ? kMaxRowClasses : op::kFewRowClasses; }
  bool repacks() const { return path_a.is_repacked || path_b.is_repacked; }
  /// Number of operands for whose matrices CTAs make tensor maps.
  int made_tensor_maps() const { return (path_a.makes_tensor_maps ? 1 : 0) + (path_b.makes_tensor_maps ? 1 : 0); }
  /// Number of tensor maps that a CTA has of such an operand; see device/tilewright/operand/tensor_map_ring.cuh.
  int tensor_map_slots() const { return stages + 1; }
  int threads() const { return GemmTile::threads() + TmaOperandPlan::kProducerThreads; }
  int stage_bytes() const { return sm90_stage_bytes(tile, bytes(operands.a.element), shared_pixels(), b_has_pixels()); }
  int output_bytes() const;        // epilogue buffers per consumer warpgroup
  int staging_bytes() const;       // staged vectors and reductions per consumer warpgroup
  int subtiles() const;            // epilogue subtiles that one warpgroup stores per tile
  TileStores tile_stores() const;  // zeros unless TMA stores D
  Sm90SharedMemory shared_memory() const;
  int smem_bytes() const { return shared_memory().bytes(); }
  bool operator==(const Sm90GemmSketch&) const = default;
};

struct Sm90GemmPlan : Sm90GemmSketch {
  TmaOperandPlan a, b;

  /// Arrival count per consumer warpgroup on a stage's empty barrier: each of its four warps arrives if they load A's
  /// fragments themselves; otherwise one thread arrives for the whole warpgroup.
  int consumer_arrivals() const { return a.fragments ? 4 : 1; }
  bool operator==(const Sm90GemmPlan&) const = default;
};

/// The accumulators that one instruction leaves in a warpgroup. If A's fragments come from an MN-major tile of 1-byte
/// elements, the two rows of a thread are adjacent; see arch/wgmma_fragment.
AccumulatorTile accumulator_tile(const Sm90GemmPlan& plan);

/// Refuses interleaved layouts, which the family's tensor maps do not describe, and im2col matrices that TMA cannot
/// load.
Support check_layouts(const op::GemmSignature& signature);

/// Refuses a divided im2col A whose classes of rows the kernel cannot compute; see plan/sm90/row_classes.hpp.
Support check_row_classes(const op::GemmSignature& signature);

/// Refuses signatures with shared pixels that no design computes: B and D must be aligned to 16 bytes, and the
/// epilogue may read nothing that differs between pixels, and store nothing but D. Others are accepted.
Support check_shared_pixels(const op::GemmSignature& signature);

/// Refuses signatures whose taps are columns that are padded or share pixels, unless the elements have 16 bits, the
/// channels of D are multiples of 16 bytes, C is not read, and the epilogue stores nothing but D and reads no tensor of
/// several channels. Others are accepted.
Support check_tap_columns(const op::GemmSignature& signature);

/// Whether the stages of a tile walk along the taps of the images of a call: see plan/sm90/im2col.hpp.
bool walks_taps(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// Computes the plan without the operands' layouts, or refuses with the first number that makes it impossible.
Result<Sm90GemmSketch> sketch_sm90_gemm(const op::GemmSignature& signature, const Sm90GemmDesign& design);

/// Computes the whole plan, or refuses with the first number that makes it impossible.
Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmSignature& signature, const Sm90GemmDesign& design);

}  // namespace tilewright::plan
