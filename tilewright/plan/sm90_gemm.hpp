// Numbers of the sm90_gemm family: operands by TMA, of a copy where they must be repacked, or gathered
// into swizzled stages, wgmma, D by TMA or plain stores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_fragment.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sm90_cost.hpp"

namespace tilewright::plan {

/// The same share of a copy for each box, or for each CTA that takes part: how far to go in the tensor map's modes and
/// in shared memory from one to the next.
struct TmaStep {
  std::int64_t contiguous = 0, strided = 0;  // elements of the tensor
  std::int64_t smem_bytes = 0;
  bool operator==(const TmaStep&) const = default;
};

/// How an operand comes to shared memory: by TMA unless it is gathered.
struct OperandWay {
  arch::Major major = arch::Major::k;  // of the tile, and of the copy where there is one
  int gathered_bytes = 0;              // that a thread moves at once where TMA cannot reach the operand; else 0
  bool is_repacked = false;            // copied first: plan/sm90_repacking.hpp
  bool is_transposed = false;          // by that copy, from MN-major

  bool is_gathered() const { return gathered_bytes != 0; }
  bool operator==(const OperandWay&) const = default;
};

/// One operand's tile: in global memory as TMA boxes or as what threads gather; in shared memory as wgmma's descriptors
/// read it, or as threads load the fragments that they give to wgmma.
struct TmaOperandPlan : OperandWay {
  DType element = DType::f16;
  int mn = 0, k = 0;            // extents of the tile
  layout::ComposedLayout smem;  // (mn, k) -> elements
  arch::TensorMap map;          // contiguous, strided, batch; extents are the launch's
  int shares = 1;               // CTAs of a cluster that need the tile; each loads one slice of every box
  int boxes = 1;                // that one CTA loads
  TmaStep box, share;
  int alignment_bytes = 16;
  arch::WgmmaOperand wgmma;                      // unless there are
  std::optional<arch::FragmentLoads> fragments;  // of A, where wgmma does not read it as it lies

  /// What is contiguous in shared memory: the width of the swizzle.
  int row_bytes() const { return arch::width_bytes(*arch::swizzle_mode(smem.swizzle, bits(element))); }
  /// The lines, contiguous in global memory, that a pass of the producer's threads over a gathered tile reads from.
  int lines_of_pass() const { return lines_of_pass(gathered_bytes, row_bytes()); }
  static int lines_of_pass(int gathered_bytes, int row_bytes) { return kProducerThreads * gathered_bytes / row_bytes; }
  /// Passes over the tile.
  int passes() const { return is_gathered() ? tile_bytes() / (kProducerThreads * gathered_bytes) : 0; }
  int tile_bytes() const { return mn * k * bits(element) / 8; }
  bool operator==(const TmaOperandPlan&) const = default;

  static constexpr int kProducerThreads = 128;
};

/// The shared memory of a CTA: stages, and of each warpgroup that multiplies the chunks of D on their way out; then the
/// barriers of the stages. gemm/sm90_gemm.cuh.
struct Sm90SharedMemory {
  int stages = 2, stage_bytes = 0;
  int consumers = 1, output_bytes = 0;
  int output_barriers = 0;  // of each
  int repacking_bytes = 0;  // before there are stages, in their place

  int bytes() const;
  /// That `limit` leaves each warpgroup for D beside as many stages.
  int most_output_bytes(int limit) const;
};

/// Elements of what shares the buffers of a warpgroup: of D on its way out, and of C before.
struct OutputElements {
  int c_bytes = 2, d_bytes = 2;
  bool d_is_row_major = true;

  int widest() const { return std::max(c_bytes, d_bytes); }
  int narrowest() const { return std::min(c_bytes, d_bytes); }
};

/// D on its way out of a warpgroup, and C on its way in, 64 rows high: chunks, each boxes of TMA, and how many share a
/// buffer. A chunk's lines are a swizzle's width, of 16 bytes at least, and it has whole groups of 8 columns.
struct OutputChunks {
  int columns = 0;   // of a chunk; 0: none divides the tile's, or none is needed
  int together = 0;  // chunks of a buffer

  /// Shared memory of both buffers.
  int bytes(int element_bytes) const;
  /// Buffers that are filled for a tile of so many columns.
  int fills(int tile_columns) const;
  bool operator==(const OutputChunks&) const = default;
};
constexpr int kOutputBuffers = 2;

/// The widest chunks that divide a tile's columns, and as many of them as 8 KB and `most_bytes` of shared memory hold;
/// at least one.
OutputChunks output_chunks(const OutputElements& elements, int tile_columns, int most_bytes);

/// Shared memory of a warpgroup that sums slices of K: four words of each thread. epilogue/slice_sum.cuh
constexpr int kSliceSumBytes = 128 * 16;

/// Whether D's lines begin and end at the 16 bytes that TMA asks for.
bool stores_by_tma(const op::TensorDescription& d);

/// Registers that setmaxnreg leaves a thread of the producer and of a consumer, which needs about so many. The sum over
/// all threads stays within what the launch gives them. From ptxas -v of this family: what spilled has more.
struct RegisterSplit {
  int producer = 0, consumer = 0;
};
RegisterSplit split_registers(int consumers, bool gathers, int needed);

/// Bytes of an operand's tile that lie together in memory, as far as a swizzle is wide: a power of two, at most 128.
int row_bytes(arch::Major major, int element_bytes, int mn, int k);

/// How often a byte of an operand so aligned is read by a thread of the producer: 0 by TMA, 1, or 2 where an element
/// lies across words.
int gathered_reads(int alignment_bytes);

/// Words that a thread of a producer that gathers has on their way through registers.
int gathered_words(int consumers);

/// Whether each k tile is summed by itself, then added in f32: see op::MathOperation.
bool promotes_accumulators(const op::GemmDescription& description);

/// Refuses a k tile of more products than may be summed before promotion.
Support check_promotion(const TileShape& tile);

/// What consumers do beside multiplying from shared memory.
struct ConsumerExtras {
  bool promotes = false;         // sums of 8-bit floats
  bool loads_fragments = false;  // of A, from shared memory to registers
  int plain_bytes = 0;           // of an element of D that is not stored by TMA, but as it is summed
};

/// Clocks of a step in which nothing multiplies: none where other warpgroups of the team do. `element_bytes` of A.
double lone_clocks(const TileShape& tile, int team, const ConsumerExtras& extras, int element_bytes);

/// Registers of a thread of `team` warpgroups: for a tile's sums and what is kept beside them (the sums of one
/// instruction where they are promoted, fragments of A, addresses, what plain stores of D need), of those that each of
/// all `consumers` has; and for one instruction, of those that the launch gives all threads alike.
struct RegisterNeeds {
  int tile = 0, given = 0;
  int instruction = 0, alike = 0;

  bool fit() const { return tile <= given && instruction <= alike; }
};
RegisterNeeds register_needs(const TileShape& tile, int team, int consumers, bool gathers,
                             const ConsumerExtras& extras);

/// Whether they fit.
Support check_registers(const TileShape& tile, int team, int consumers, bool gathers, const ConsumerExtras& extras);

/// All of the plan but how its operands lie: what estimates and checks need, without the layout algebra that most of a
/// plan's time goes to.
struct Sm90GemmOutline : GemmTile {
  Target target;
  const arch::WgmmaAtom* atom = nullptr;  // row of the table; its n is the tile's
  int cluster_m = 1, cluster_n = 1;       // CTAs that share operands
  int slices = 1;                         // CTAs that share a tile, each a part of K, and store a share of it each
  Schedule schedule = Schedule::cooperative;
  OperandWay way_a = {}, way_b = {};
  bool stores_by_tma = true;  // else by threads: lines that do not begin and end at 16 bytes, sums over slices
  int store_bytes = 16;       // that the lines of D are multiples of
  bool loads_source_by_tma = true;
  int source_bytes = 16;     // that the lines of C are multiples of
  OutputChunks chunks = {};  // none of sums over slices
  int producer_registers = 0, consumer_registers = 0;
  bool promotes_accumulators = false;
  int gathered_words = 0;  // that a thread of the producer has on their way through registers

  int consumers() const { return warps_m * warps_n / 4; }                         // warpgroups that multiply
  int team() const { return schedule == Schedule::ping_pong ? 1 : consumers(); }  // those that share a tile
  bool loads_fragments() const { return atom->a_source == arch::OperandSource::registers; }
  ConsumerExtras extras() const {
    return {promotes_accumulators, loads_fragments(), stores_by_tma || slices > 1 ? 0 : bytes(operands.d.element)};
  }
  int cluster_size() const { return cluster_m * cluster_n; }
  int group_size() const { return cluster_size() * slices; }  // CTAs that work together
  bool c_is_row_major() const { return operands.c.layout == op::MatrixLayout::row_major; }
  bool d_is_row_major() const { return operands.d.layout == op::MatrixLayout::row_major; }
  OutputElements output_elements() const {
    return {bytes(operands.c.element), bytes(operands.d.element), d_is_row_major()};
  }
  bool gathers() const { return way_a.is_gathered() || way_b.is_gathered(); }
  bool repacks() const { return way_a.is_repacked || way_b.is_repacked; }
  int threads() const { return GemmTile::threads() + TmaOperandPlan::kProducerThreads; }
  int stage_bytes() const { return (tile.m + tile.n) * tile.k * bytes(operands.a.element); }
  int output_bytes() const;  // shared memory of a warpgroup for D on its way out
  int fills() const;         // of a warpgroup's buffers, for a tile
  int smem_bytes() const;
  bool operator==(const Sm90GemmOutline&) const = default;
};

struct Sm90GemmPlan : Sm90GemmOutline {
  TmaOperandPlan a, b;

  /// In each warpgroup: its four warps where they load fragments, or all of it through wgmma.
  int stage_readers() const { return a.fragments ? 4 : 1; }
  bool operator==(const Sm90GemmPlan&) const = default;
};

/// The plan as the cost model sees it, on extents of the caller's problem.
Sm90CostInput cost_input(const Sm90GemmOutline& plan, const op::Gemm& arguments);

/// Refuses arguments that kernels of the plan cannot take: no k to sum over, extents beyond 32-bit indices, tensors
/// that the plan's TMA cannot reach, a workspace beyond 4 GiB.
Support check_arguments(const Sm90GemmOutline& plan, const op::Gemm& arguments);

/// A persistent grid of clusters, with the parameters of device/tilewright/gemm/sm90_parameters.cuh.
/// @pre op::validate(arguments) and check_arguments accepted them
Launch launch(const Sm90GemmPlan& plan, const op::Gemm& arguments);

/// Every number but those of the operands' layouts, or the one that makes it impossible.
Result<Sm90GemmOutline> outline_sm90_gemm(const op::GemmDescription& description, const Design& design);

/// Every number of the kernel, or the one that makes it impossible.
Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmDescription& description, const Design& design);

}  // namespace tilewright::plan
