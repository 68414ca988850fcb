// A cost model that estimates the run time of an sm90_gemm kernel without measuring it. The estimate serves to rank
// candidates; it is not accurate enough to be quoted.
#pragma once

#include <array>
#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/epilogue_cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sm90/operand.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"
#include "tilewright/plan/sm90/subtile.hpp"

namespace tilewright::plan {

/// The extents of a class of rows; see plan/sm90/row_classes.hpp.
struct ClassExtents {
  std::int64_t m = 0, k = 0;
};

/// The input of the cost model: one design on one problem. The extents are those of the problem as computed, which may
/// be the transposed problem.
struct Sm90CostInput {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  /// The classes of rows, whose means m and k then are, those with the longest K first. Classes without rows come last.
  std::array<ClassExtents, kMaxRowClasses> classes = {};
  /// Whether groups, whose mean extents m and n are, have the same ones.
  op::GroupSpread spread_m = op::GroupSpread::equal, spread_n = op::GroupSpread::equal;
  TileShape tile;
  int stages = 2;
  int cluster_m = 1, cluster_n = 1;  // CTAs per cluster, which share operands by multicast
  int split_k = 1;                   // CTAs that compute one output tile together
  Schedule schedule = Schedule::cooperative;
  /// Swizzle width in bytes, which is the number of contiguous bytes in one row of a TMA box.
  int row_bytes_a = 128, row_bytes_b = 128;
  /// Whether A is contiguous along M, and B along N.
  bool is_mn_major_a = false, is_mn_major_b = false;
  bool is_d_column_major = false;
  bool d_splits_sectors = false;  // lines_split_sectors() of D
  /// Sectors of L2 that TMA reads per 32 bytes of an operand; see sector_read_amplification().
  double sectors_a = 1, sectors_b = 1;
  /// Share of the elements of A and of B that DRAM is read for: see distinct_share().
  double distinct_a = 1, distinct_b = 1;
  Raster raster = {};
  /// How often the producer reads each byte of an operand with plain loads; 0 if TMA loads the operand.
  int reads_a = 0, reads_b = 0;
  /// Number of 32-bit words each producer thread keeps in flight when it uses plain loads.
  int plain_load_words = 0;
  int subtiles = 1;             // epilogue subtiles that one warpgroup stores per tile; 0 with split-K
  TileStores tile_stores = {};  // zeros unless TMA stores D
  /// Bytes of D that are adjacent in a subtile, which plain stores store as one line; 0 if TMA stores D.
  int plain_line_bytes = 0;
  int element_bytes = 2, d_bytes = 2;
  /// Bytes of m x n tensors other than D that the epilogue reads and writes per element of A*B.
  int beside_bytes = 0;
  int slow_source_bytes = 0;         // see slow_source_bytes()
  double function_instructions = 0;  // per element of A*B; see function_instructions()
  double fma_per_clock = 0;          // rate of one SM's tensor cores
  int tensor_maps = 0;               // operands for whose matrices CTAs make tensor maps
  double repacked_bytes = 0;         // read and written where operands are repacked before the mainloop
  /// Clocks per mainloop step in which the tensor cores are idle because of promotion or loads of A's fragments.
  double exposed_clocks = 0;
  /// Taps whose pixels a mainloop step loads once. `b_has_pixels` says whether B of the problem as computed has the
  /// pixels; else A has them.
  SharedPixels shared_pixels = {};
  bool b_has_pixels = false;
  bool loads_fragments = false;  // wgmma takes A from registers, which the consumers load from shared memory
  /// The number of parts of A and of B that a CTA needs one after another, if the kernel keeps the operand in its
  /// stages; 0 if it loads the operand for each tile, or if the number is unknown. set_kept_parts() sets both.
  std::int64_t parts_of_a = 0, parts_of_b = 0;

  /// Number of taps that read the same elements of a stage of A, or of B.
  int sharing_taps_a() const { return b_has_pixels ? 1 : shared_pixels.taps; }
  int sharing_taps_b() const { return b_has_pixels ? shared_pixels.taps : 1; }
  /// Number of taps that follow each other along K in a mainloop step.
  int taps_of_step() const { return shared_pixels.are_columns ? 1 : shared_pixels.taps; }
};

/// Whether the leading dimension is a multiple of `alignment` bytes. True for tensors that are no matrix, or have only
/// one row or column that is contiguous.
bool lines_are_aligned(const op::Tensor& operand, int alignment);

/// Whether some rows, or columns if they are contiguous, begin in the middle of a 32-byte sector of L2, because the
/// leading dimension is no multiple of 32 bytes.
bool lines_split_sectors(const op::Tensor& operand);

/// The mean number of 32-byte sectors of L2 that TMA reads for 32 bytes of a row of `operand`. It is 1 if rows begin at
/// multiples of 32 bytes. If their distance is an odd multiple of 16 bytes, every other row begins in the middle of a
/// sector; if only the address is one, every row does.
double sector_read_amplification(const op::Tensor& operand);

/// The time of the loads of A and B of a convolution, relative to that of matrices whose rows in TMA boxes are as long.
/// 1 for operands that are no im2col matrix.
struct ReadAmplification {
  double a, b;
};
ReadAmplification im2col_amplification(const op::GemmView& view);

/// Sets parts_of_a and parts_of_b of a kernel that walks the tiles of one matrix, and has no groups, split-K, plain
/// loads and tensor maps that CTAs make. Operands stay in the stages if `steps`, those of a tile, divide these, as
/// device/tilewright/pipeline/kept_operand.cuh describes. CTAs take tiles round-robin: the tiles of a CTA have the same
/// columns if the raster order has all columns in one group, whose number divides that of the CTAs.
void set_kept_parts(const arch::ArchLimits& limits, Sm90CostInput& input);

/// The share of the reads of A and of B that reach L2. CTAs on neighbouring SMs that read the same tile row of A, or
/// tile column of B, at the same time share one read of L2. `raster` decides which tiles such CTAs compute.
struct ReadShare {
  double a = 1, b = 1;
};
ReadShare read_share(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n);

/// The share of an operand's elements that are not read in another row of an im2col matrix, too. Each class of rows has
/// a share of the columns.
double distinct_share(const op::OperandView& operand);

/// Estimated microseconds, including the launch and the repacking of operands. A persistent CTA computes its tiles one
/// after another. Each mainloop step takes as long as the slowest of the multiplication, the transfer from L2, the load
/// latency divided by the stages, and the plain loads. The kernel takes at least as long as its DRAM traffic, and the
/// epilogue of the last tile is exposed.
double estimate_us(const arch::ArchLimits& limits, const Sm90CostInput& input);

/// The classes of rows of a gradient with a stride; none of a view without.
std::array<ClassExtents, kMaxRowClasses> class_extents(const op::GemmView& view);

}  // namespace tilewright::plan
