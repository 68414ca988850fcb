// GEMM kernels with narrow weights (W8A16, W4A16) as programs:
// D[m, n] = sum over k of weights[m, k] * scales[k / group, m] * activations[n, k].
// The weights are operand A of wgmma, because only A may be in registers, where they are converted. A layer
// y = x * W^T therefore has its outputs along m and its tokens along n.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/program/program.hpp"

namespace tilewright::program {

/// What the scales of groups multiply.
enum class ScaleUse : std::uint8_t {
  weights,       // the converted weights, whose products are rounded to the type of the activations
  accumulators,  // the sum of each group, in f32
};
/// "weights", "accumulators"
std::string_view name(ScaleUse use);

struct WeightGemmDescription {
  Target target = kSm90a;
  DType weights = DType::s4;        // s4, s8, e4m3, packed as packed_layout() says
  DType activations = DType::bf16;  // f16, bf16
  DType scales = DType::bf16;       // f16, bf16, f32
  DType d = DType::bf16;            // f16, bf16, f32
  /// Number of consecutive k with one scale; 0: each row has one scale. It is a multiple of tile_k or divides it.
  int group = 128;
  /// nullopt: what needs fewer instructions, see scale_use().
  std::optional<ScaleUse> scale_use = std::nullopt;
  /// Whether the elements of D along m are contiguous, as y[token, output] has them; else those along n.
  bool d_is_m_contiguous = true;
  /// Whether TMA stores D through shared memory: of 16-bit elements that are contiguous along m, with lines that begin
  /// at multiples of 16 bytes, tile_n of at least 32, and one part of k: no split-K, one warpgroup along k.
  bool stores_by_tma = false;
  int tile_n = 16, tile_k = 128;
  int stages = 6;
  int consumers = 2;  // warpgroups that multiply along m, 64 rows each
  /// Warpgroups that multiply along k: each has its part of the k of every stage, a multiple of 64. They add their sums
  /// in shared memory, as the CTAs of split_k do. All warpgroups together are at most 4.
  int consumers_k = 1;
  int raster = 8;
  /// Number of CTAs of a cluster that compute one tile together, each over a part of k: 1, 2, 4, 8. They exchange
  /// their sums through distributed shared memory; each stores its share of the tile.
  int split_k = 1;
  int ctas_per_sm = 1;  // for which shared memory and registers are left
  /// Number of CTAs of a cluster whose tiles follow each other along m: 1 or 2, without split-K. Each loads its part of
  /// the activations for both.
  int cluster_m = 1;
  /// Stream-K: the largest number of CTAs that each compute an equal number of steps along k of the tiles in their
  /// order, see StreamedTiles; without split-K, clusters and warpgroups along k. The CTA with the first steps of a tile
  /// adds the sums that the others write to the workspace, and stores the tile. 0: each CTA computes whole tiles.
  int streaming_ctas = 0;
};

/// How the kernel applies scales of groups; nullopt: they are scales of rows, which multiply D. A thread multiplies 4
/// registers of weights in each step of 16 k, or tile_n / 2 accumulators at the end of each span, of which a stage has
/// an even number: two sets of accumulators take turns. The weights are scaled at equal counts, because the
/// accumulators need a wait for all of wgmma in each stage, and where the registers have no room for two sets.
std::optional<ScaleUse> scale_use(const WeightGemmDescription& description);

/// Whether the group is a multiple of tile_k, or a multiple of 16 that divides it, and the same for the part of tile_k
/// that a warpgroup multiplies; or there are no groups.
bool group_fits(const WeightGemmDescription& description);

/// Whether stores_by_tma is possible for the other choices of a description; the bytes of shared memory that it takes.
bool can_store_by_tma(const WeightGemmDescription& description);
int staging_bytes(const WeightGemmDescription& description);

/// How a warpgroup cuts its part of a stage along k.
struct WeightGemmPipeline {
  int group = 0;  // k that one group of wgmma multiplies
  int span = 0;   // k whose products are summed before scales multiply accumulators
};
WeightGemmPipeline pipeline_of(const WeightGemmDescription& description);

/// Registers of each thread: of a role, those that a thread that multiplies needs about, those of all threads at
/// launch, and those that one wgmma needs of them.
struct WeightGemmRegisters {
  int producer = 0, consumer = 0;
  int needed = 0;
  int at_launch = 0, of_instruction = 0;
  bool fit() const { return needed <= consumer && of_instruction <= at_launch; }
};
WeightGemmRegisters registers_of(const WeightGemmDescription& description);

/// The kernel: persistent and warp-specialised. Its launch arguments are the integers m, n, k, ld_activations,
/// ld_scales and ldd (leading dimensions in elements), and the addresses weights, activations (n x k, row-major),
/// scales (groups x m, row-major; or m) and d. With split-K, partial sums are added in the order of k, so that results
/// are the same in each run. Refused, with the number: what the atoms and the builders refuse; a group that neither is
/// a multiple of tile_k nor divides it; scales of weights in another type than the activations'; a tile_n whose
/// accumulators do not fit in the registers; a split_k that does not divide the accumulators of a thread, or whose
/// partial sums do not fit in the stages. A launch needs at least split_k tiles along k, and fewer than 2^31 steps
/// along k of all tiles if CTAs stream, for which it has a workspace.
Result<Program> weight_gemm(std::string symbol, const WeightGemmDescription& description);

}  // namespace tilewright::program
