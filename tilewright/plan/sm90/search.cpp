// The search estimates every tiling that sm90_gemm offers for a problem and keeps the best. This is affordable because
// one estimate takes some tens of nanoseconds.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/short_k.hpp"
#include "tilewright/plan/sm90/cost.hpp"
#include "tilewright/plan/sm90/gemm.hpp"
#include "tilewright/plan/sm90/repacking.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"

namespace tilewright::plan {
namespace {

constexpr std::size_t kKept = 12;
constexpr int kWarpgroup = 4;  // warps per warpgroup
constexpr int kMaxStages = 16;
constexpr int kMinStages = 3;
// Limit on the bytes that are loaded ahead if each tile has one mainloop step and lines of A or B do not begin at
// multiples of kLineAlignment. In such kernels, more stages are slower: bf16 120000x256x24 in tiles of 128x256x32
// took 29.1, 34.0 and 47.8 us with 2, 4 and 8 stages, while 100352x256x64 in tiles of 128x256x64 took 23.2, 22.1
// and 21.0 us with 2, 3 and 4. With lines at multiples of 64 bytes, more stages were not slower in 17 problems of six
// types (H200, 2026-11-28).
constexpr int kAheadBytes = 96 * 1024, kLineAlignment = 64;
constexpr int kInstructionN = 8;    // the n of a wgmma is a multiple of this
constexpr int kSwizzleBytes = 128;  // bytes along K in one mainloop step, unless K is shorter
constexpr int kInstructionKBytes = 32;
constexpr int kMostInstructionN = 256;  // columns of a wgmma
constexpr int kLargeGroup = 4;          // times the mean size of a group, up to which tiles are considered
/// Tile columns or tile rows that are walked together: this width keeps the operands of a wave of 8192^3 in L2.
constexpr int kRasterWidth = 8;
/// Up to this many tiles along M, consecutive CTAs, which run on one TPC, should share B (a gain of up to 25 %).
constexpr int kFewTiles = 2;
/// Up to this many mainloop steps, K is short even if D fits in L2.
constexpr int kShortSteps = 2;

/// The rows of a tile and the consumer warpgroups that compute them.
struct Rows {
  int m, consumers;
  Schedule schedule;

  int team() const { return schedule == Schedule::ping_pong ? 1 : consumers; }
};
constexpr std::array<Rows, 8> kRows{{
    {64, 1, Schedule::cooperative},
    {128, 2, Schedule::cooperative},
    {192, 3, Schedule::cooperative},
    {256, 2, Schedule::cooperative},
    {384, 3, Schedule::cooperative},
    {512, 2, Schedule::cooperative},
    {64, 2, Schedule::ping_pong},
    {128, 2, Schedule::ping_pong},
}};
/// Tiles with more rows than kMostRows have at most kFewTileColumns columns, and an SM has at least kTallTilesOfSm of
/// them: of narrow tiles, what each costs beside its loads and products takes most of the time. With fewer of them, too
/// few SMs load: e4m3 2x29312x11696 took 106 us in 77 tiles of 384x8, and 91 us in 229 of 128x8 (H200, 2026-11-26).
constexpr int kMostRows = 256, kFewTileColumns = 64, kTallTilesOfSm = 2;
constexpr std::array<int, 16> kColumns{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256};

/// The CTAs that work together: a cluster of m x n CTAs shares operands by multicast, and `split_k` CTAs share a tile.
struct Group {
  int m, n, split_k;
};
/// Clusters of four are considered only if the pair that comes before them is promising.
constexpr std::array<Group, 5> kClusters{{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 4, 1}}};

/// The problem as computed, and the properties that all its candidates share.
struct Search {
  std::int64_t m, n, k, batches;
  std::array<ClassExtents, kMaxRowClasses> classes;  // see Sm90CostInput
  const arch::ArchLimits& limits;
  int element_bytes;
  OutputElements output;
  EpilogueStaging staging;
  int columns_per_element;  // columns of A*B per column of D
  int beside_bytes;         // see Sm90CostInput
  int slow_source_bytes;
  double function_instructions;
  int plain_bytes;  // size of an element of D if it is stored with plain stores instead of TMA; else 0
  arch::Major major_a, major_b;
  int max_row_a, max_row_b;  // bytes; see OperandPath
  int reads_a, reads_b;      // see Sm90CostInput
  double sectors_a, sectors_b;
  double distinct_a, distinct_b;
  bool d_splits_sectors;
  bool has_aligned_lines;  // the leading dimensions of A and B are multiples of kLineAlignment bytes
  bool is_transposed, promotes, loads_fragments, accumulates_in_half;
  double fma_per_clock;
  double repacked_bytes;                 // 0 if no operand is repacked; see Sm90CostInput
  std::optional<std::int64_t> padded_k;  // the required length of the sum, which also rules out split-K
  int tensor_maps;                       // pointer arrays, for which CTAs make tensor maps unless TMA cannot load them
  bool has_row_classes;                  // see plan/sm90/row_classes.hpp
  bool stores_to_pointers;               // D is a pointer array
  bool loads_folded;                     // A or B is folded
  SharedPixels shared_pixels;            // see Sm90CostInput
  op::GroupedMode groups;                // of the problem as computed
  op::GroupSpread spread_m, spread_n;    // see Sm90CostInput
  bool copies_source;                    // see ConsumerExtras

  bool uses_plain_loads() const { return reads_a > 0 || reads_b > 0; }
  bool may_keep_operands() const {
    return groups == op::GroupedMode::none && !has_row_classes && !uses_plain_loads() && tensor_maps == 0 &&
           batches == 1;
  }
  bool b_has_pixels() const { return shared_pixels.are_columns || (shared_pixels.are_shared() && is_transposed); }
  /// The columns of a tile that TMA loads for each tap of which a stage has elements.
  int columns_of_tap(int columns) const { return shared_pixels.are_columns ? columns / shared_pixels.taps : columns; }
};

struct Candidate {
  double us;
  const Rows* rows;
  TileShape tile;
  Raster raster;
  Group group;
  int stages;
  bool is_transposed, repacks, repacks_only_b;
};

/// Collects the candidates. It keeps those that were among the kKept best when they were offered.
class Candidates {
 public:
  void offer(const Candidate& candidate) {
    if (candidate.us >= worst_us()) return;
    all_.push_back(candidate);
    if (best_us_.size() == kKept) best_us_.pop();
    best_us_.push(candidate.us);
  }
  /// Estimate of the slowest of the kKept best candidates; infinite while there are fewer.
  double worst_us() const { return best_us_.size() < kKept ? INFINITY : best_us_.top(); }
  std::span<const Candidate> best() {
    const std::size_t kept = std::min(kKept, all_.size());
    std::ranges::partial_sort(all_, all_.begin() + static_cast<std::ptrdiff_t>(kept), {}, &Candidate::us);
    return std::span(all_).first(kept);
  }

 private:
  std::vector<Candidate> all_;
  std::priority_queue<double> best_us_;
};

/// Whether a smaller choice covers the extent as well.
template <std::size_t kCount>
bool is_wasteful(const std::array<int, kCount>& ascending, int choice, std::int64_t extent) {
  return std::ranges::any_of(ascending, [&](int smaller) { return smaller < choice && smaller >= extent; });
}

/// Sets the stages of `memory` to as many as fit with the rest of it. Returns false if fewer than kMinStages fit.
bool fit_stages(const Search& search, Sm90SharedMemory& memory) {
  memory.stages = 0;
  const int rest = memory.bytes();
  memory.stages = 1;
  const int stages = (search.limits.smem_per_block_bytes - rest) / (memory.bytes() - rest);
  memory.stages = std::min(stages, kMaxStages);
  return stages >= kMinStages;
}

/// Chooses the raster order in which L2 reads least for adjacent tiles. With groups, bands of the stack are walked
/// across: tiles of one group share its matrix of the operand that is not stacked, and the band of the stacked operand
/// stays in L2.
Raster raster_of(const Search& search, const TileShape& tile) {
  if (search.groups != op::GroupedMode::none && search.groups != op::GroupedMode::independent)
    return {kRasterWidth, op::differs_in_m(search.groups)};
  if (search.m <= std::int64_t{kFewTiles} * tile.m) return {1};
  const ProductShape product{.m = search.m,
                             .n = search.n,
                             .k = search.k,
                             .tile = tile,
                             .element_bytes = search.element_bytes,
                             .d_is_row_major = search.output.d_is_row_major,
                             .bytes_of_d = search.m * search.n * search.batches * search.output.d_bytes};
  if (has_short_k(search.limits, product)) return raster_of_short_k(search.limits, product);
  if (search.k <= std::int64_t{kShortSteps} * tile.k) return {kRasterWidth, search.output.d_is_row_major};
  // With equal reads, adjacent tiles share the larger operand.
  const auto read = [&](bool along_n) {
    const ReadShare share = read_share({kRasterWidth, along_n}, ceil_div(search.m, tile.m), ceil_div(search.n, tile.n));
    return share.a * tile.m + share.b * tile.n;
  };
  const double along_m = read(false), along_n = read(true);
  return {kRasterWidth, along_n < along_m || (along_n == along_m && search.n > search.m)};
}

/// A tile shape with the warpgroups that compute it, and the cost input that its candidates share.
struct Tile {
  const Rows& rows;
  Sm90CostInput input;
  ConsumerExtras extras;
  bool is_possible;
};

Tile make_tile(const Search& search, const Rows& rows, int columns, int k_bytes) {
  const TileShape shape{rows.m, columns, k_bytes / search.element_bytes};
  const int tap_k = search.shared_pixels.tap_k(shape.k), columns_of_tap = search.columns_of_tap(columns);
  const ConsumerExtras extras{.promotes = search.promotes,
                              .stores_bytes = search.output.d_bytes == 1,
                              .loads_fragments = search.loads_fragments,
                              .plain_bytes = search.plain_bytes,
                              .reads_mn_major = search.major_a == arch::Major::mn && search.major_b == arch::Major::mn,
                              .copies_source = search.copies_source,
                              .differs_in_k = op::differs_in_k(search.groups) || search.has_row_classes,
                              .finds_output = search.stores_to_pointers,
                              .reduction_registers = reduction_registers(search.staging.reductions, search.groups)};
  Tile tile{
      .rows = rows,
      .input = {.m = search.m,
                .n = search.n,
                .k = search.k,
                .batches = search.batches,
                .classes = search.classes,
                .spread_m = search.spread_m,
                .spread_n = search.spread_n,
                .tile = shape,
                .schedule = rows.schedule,
                .row_bytes_a = row_bytes(search.major_a, search.element_bytes, shape.m, tap_k, search.max_row_a),
                .row_bytes_b = row_bytes(search.major_b, search.element_bytes, columns_of_tap, tap_k, search.max_row_b),
                .is_mn_major_a = search.major_a == arch::Major::mn,
                .is_mn_major_b = search.major_b == arch::Major::mn,
                .is_d_column_major = !search.output.d_is_row_major,
                .d_splits_sectors = search.d_splits_sectors,
                .sectors_a = search.sectors_a,
                .sectors_b = search.sectors_b,
                .distinct_a = search.distinct_a,
                .distinct_b = search.distinct_b,
                .raster = raster_of(search, shape),
                .reads_a = search.reads_a,
                .reads_b = search.reads_b,
                .plain_load_words = search.uses_plain_loads() ? plain_load_words(rows.consumers) : 0,
                .plain_line_bytes = search.plain_bytes * columns,  // at most
                .element_bytes = search.element_bytes,
                .d_bytes = search.output.d_bytes,
                .beside_bytes = search.beside_bytes,
                .slow_source_bytes = search.slow_source_bytes,
                .function_instructions = search.function_instructions,
                .fma_per_clock = search.fma_per_clock,
                .tensor_maps = search.tensor_maps,
                .repacked_bytes = search.repacked_bytes,
                .exposed_clocks = exposed_clocks(shape, rows.team(), extras, search.element_bytes),
                .shared_pixels = search.shared_pixels,
                .b_has_pixels = search.b_has_pixels(),
                .loads_fragments = search.loads_fragments},
      .extras = extras,
      .is_possible = false};
  // A box must divide the first mode of a folded operand, which the longer step does less often.
  if (k_bytes > kSwizzleBytes && search.loads_folded) return tile;
  // A mainloop step of two swizzle widths halves the number of barriers, which pays only for small tiles.
  if (!search.shared_pixels.are_shared() && k_bytes > kSwizzleBytes && rows.m + columns > 128) return tile;
  if (search.promotes && !check_promotion(shape)) return tile;
  if (search.padded_k && round_up(search.k, shape.k) != *search.padded_k) return tile;
  const Sm90CostInput& input = tile.input;
  if (!check_boxes(search.major_a, input.row_bytes_a, search.element_bytes, shape.m, tap_k)) return tile;
  if (!check_boxes(search.major_b, input.row_bytes_b, search.element_bytes, columns_of_tap, tap_k)) return tile;
  if (!register_needs(shape, rows.team(), rows.consumers, search.uses_plain_loads(), extras).fit()) return tile;
  tile.is_possible = true;
  return tile;
}

/// Offers the candidate if the kernel is possible. @pre tile.is_possible
void consider(const Search& search, const Tile& tile, const Group& group, Candidates& candidates) {
  const auto [cluster_m, cluster_n, split_k] = group;
  const Rows& rows = tile.rows;
  const TileShape& shape = tile.input.tile;
  if (search.uses_plain_loads() && cluster_m * cluster_n > 1) return;
  if (op::differs_in_m(search.groups) && cluster_m > 1) return;
  if (op::differs_in_n(search.groups) && cluster_n > 1) return;
  if (split_k > 1 && (search.accumulates_in_half || search.k <= std::int64_t{shape.k} * (split_k - 1))) return;
  // Multicast with parts that are not a multiple of 16 rows was 6 % slower than no multicast (128x112, H200, tf32).
  if (cluster_m > 1 && shape.n % (16 * cluster_m) != 0) return;
  Sm90CostInput input = tile.input;
  const int tap_k = search.shared_pixels.tap_k(shape.k);
  if (!check_slices(search.major_a, input.row_bytes_a, shape.m, tap_k, cluster_n)) return;
  if (!check_slices(search.major_b, input.row_bytes_b, search.columns_of_tap(shape.n), tap_k, cluster_m)) return;
  if (search.shared_pixels.are_shared()) {
    if (split_k > 1 && !search.shared_pixels.are_columns) return;
    if ((search.b_has_pixels() ? cluster_m : cluster_n) > 1) return;  // shared pixels are not multicast
  }
  input.cluster_m = cluster_m;
  input.cluster_n = cluster_n;
  input.split_k = split_k;
  // Most candidates are too slow even with the most stages and the fewest subtiles, so reject them early.
  const bool may_keep_operands = search.may_keep_operands() && split_k == 1;
  const std::int64_t steps = ceil_div(search.k, shape.k);
  input.stages = kMaxStages;
  // At best, a CTA loads one part of each operand.
  input.parts_of_a = input.parts_of_b = may_keep_operands && steps <= kMaxStages ? 1 : 0;
  input.subtiles = split_k > 1 ? 0 : 1;
  if (split_k > 1) input.plain_line_bytes = 0;
  if (estimate_us(search.limits, input) >= candidates.worst_us()) return;

  ConsumerExtras extras = tile.extras;
  if (split_k > 1) extras.plain_bytes = extras.reduction_registers = 0;
  if (!register_needs(shape, rows.team(), rows.consumers, search.uses_plain_loads(), extras).fit()) return;
  Sm90SharedMemory memory{
      .stage_bytes = sm90_stage_bytes(shape, search.element_bytes, input.shared_pixels, input.b_has_pixels),
      .consumers = rows.consumers,
      .output_bytes = kSplitKSumBytes,
      .staging_bytes = search.staging.bytes(shape.m / rows.team(), shape.n, split_k),
      .group_bytes = group_table_bytes(search.groups),
      .tensor_maps = search.tensor_maps};
  const int d_columns = shape.n / search.columns_per_element;
  if (split_k == 1) {
    memory.output_barriers = kOutputBuffers;
    memory.output_bytes = wanted_output_bytes(search.output, d_columns);
    if (memory.output_bytes == 0) return;
  }
  if (!fit_stages(search, memory)) return;
  if (search.k <= shape.k) {
    const int teams = rows.consumers / rows.team();  // each team needs a current stage and the next one
    if (!search.has_aligned_lines) memory.stages = std::min(memory.stages, kAheadBytes / memory.stage_bytes);
    if (memory.stages < 2 * teams) return;
  }
  if (split_k == 1) {
    const EpilogueSubtile subtile =
        epilogue_subtile(search.output, d_columns, memory.most_output_bytes(search.limits.smem_per_block_bytes));
    const int atoms = shape.m / kWgmmaM / rows.team();
    input.subtiles = atoms * subtile.count(d_columns);
    if (search.plain_bytes == 0) input.tile_stores = tile_stores(subtile, search.output, atoms, d_columns);
    if (search.plain_bytes > 0) input.plain_line_bytes = line_bytes(search.output, subtile, d_columns);
  }
  const auto offer = [&](int stages, const Raster& raster) {
    input.stages = stages;
    input.parts_of_a = input.parts_of_b = 0;
    input.raster = raster;
    if (may_keep_operands) set_kept_parts(search.limits, input);
    candidates.offer({estimate_us(search.limits, input), &rows, shape, raster, group, stages, search.is_transposed,
                      search.repacked_bytes > 0, search.repacked_bytes > 0 && search.loads_fragments});
    return input.parts_of_a == 1 || input.parts_of_b == 1;
  };
  if (offer(memory.stages, tile.input.raster) || !may_keep_operands || steps == 0) return;
  // Whole tiles in the stages, and an order in which the tiles of a CTA have the same rows or columns, so that an
  // operand stays in the stages.
  const int stages = memory.stages - static_cast<int>(memory.stages % steps);
  if (stages < kMinStages && stages != memory.stages) return;
  for (const bool along_n : {false, true}) {
    const Raster raster{kRasterWidth, along_n};
    input.stages = stages;
    input.raster = raster;
    set_kept_parts(search.limits, input);
    if (along_n ? input.parts_of_a == 1 : input.parts_of_b == 1) offer(stages, raster);
  }
}

/// The values of split_k to try: as many as leave no SM idle, and half as many. There are none if the tiles fill more
/// than one wave.
std::array<int, 3> split_k_worth_trying(const Search& search, int rows, int columns, const Group& cluster) {
  const std::int64_t tiles =
      ceil_div(search.m, rows * cluster.m) * ceil_div(search.n, columns * cluster.n) * search.batches;
  const std::int64_t resident = arch::resident_clusters(search.limits, cluster.m * cluster.n);
  if (tiles == 0 || tiles > resident) return {};
  const std::int64_t filling = resident / tiles;
  return filling > 4 ? std::array{static_cast<int>(filling), static_cast<int>(filling / 2), 0} : std::array{2, 3, 4};
}

/// Tile widths that kColumns lacks and with which the tiles fill all SMs exactly once or twice; 0 if there is none.
std::array<int, 2> filling_columns(const Search& search, int rows) {
  std::array<int, 2> filling{};
  const std::int64_t tiles_m = ceil_div(search.m, rows) * search.batches;
  for (int waves = 1; waves <= 2; ++waves) {
    const std::int64_t tiles_n = std::int64_t{search.limits.sm_count} * waves / std::max<std::int64_t>(tiles_m, 1);
    if (tiles_n == 0) continue;
    const int step = search.element_bytes == 1 ? 2 * kInstructionN : kInstructionN;
    const std::int64_t columns = round_up(ceil_div(search.n, tiles_n), step);
    if (columns < kColumns.back() && std::ranges::count(kColumns, columns) == 0) {
      filling[static_cast<std::size_t>(waves - 1)] = static_cast<int>(columns);
    }
  }
  return filling;
}

/// Bytes along K in one mainloop step: a swizzle width, or less if all of K is shorter, so that stages have no room for
/// zeros behind it.
int step_bytes(const Search& search) {
  if (search.shared_pixels.are_columns) return kSwizzleBytes;
  if (search.shared_pixels.are_shared()) return kSwizzleBytes * search.shared_pixels.taps;
  const bool has_one_k = search.groups == op::GroupedMode::none && !search.has_row_classes;
  if (!has_one_k || search.padded_k || search.uses_plain_loads()) return kSwizzleBytes;
  const int shortest = (search.loads_fragments ? 2 : 1) * kInstructionKBytes;  // fragments are double buffered
  int bytes = kSwizzleBytes;
  while (bytes > shortest && search.k * search.element_bytes <= bytes / 2) bytes /= 2;
  return bytes;
}

void consider_columns(const Search& search, const Rows& rows, int columns, Candidates& candidates) {
  const std::array tiles{make_tile(search, rows, columns, step_bytes(search)),
                         make_tile(search, rows, columns, 2 * kSwizzleBytes)};
  const bool has_taps_along_k = search.shared_pixels.are_shared() && !search.shared_pixels.are_columns;
  const std::size_t steps = has_taps_along_k ? 1 : tiles.size();  // the length of a stage's taps is fixed
  for (Group group : kClusters) {
    for (const Tile& tile : std::span(tiles).first(steps)) {
      if (!tile.is_possible) continue;
      group.split_k = 1;
      consider(search, tile, group, candidates);
      // With ping_pong, one warpgroup would multiply a whole tile, and the CTA would reduce two tiles.
      if (rows.schedule == Schedule::ping_pong || search.padded_k || search.groups != op::GroupedMode::none ||
          search.has_row_classes) {
        continue;
      }
      for (const int split_k : split_k_worth_trying(search, rows.m, columns, group)) {
        group.split_k = split_k;
        if (split_k > 1) consider(search, tile, group, candidates);
      }
    }
  }
}

bool is_too_tall(const Search& search, const Rows& rows, int columns) {
  if (rows.m <= kMostRows) return false;
  const std::int64_t tiles = ceil_div(search.m, rows.m) * ceil_div(search.n, columns) * search.batches;
  return columns > kFewTileColumns || tiles < std::int64_t{kTallTilesOfSm} * search.limits.sm_count;
}

/// Considers tiles whose columns are as many channels of each of the taps that share pixels as a row of a swizzle has.
void consider_shared_columns(const Search& search, const Rows& rows, Candidates& candidates) {
  for (int row_bytes = search.max_row_b; row_bytes >= kInstructionKBytes; row_bytes /= 2) {
    const int columns = search.shared_pixels.taps * row_bytes / search.element_bytes;
    if (columns <= kMostInstructionN && !is_too_tall(search, rows, columns))
      consider_columns(search, rows, columns, candidates);
  }
}

void consider_all(const Search& search, Candidates& candidates) {
  constexpr std::array<int, 6> kHeights{64, 128, 192, 256, 384, 512};
  // A narrow tile may be impossible for the required orientation of operands, and then only wider ones remain.
  const bool keeps_wasteful = search.padded_k.has_value();
  // Some groups are much larger than the mean.
  const std::int64_t most_m = search.m * (search.spread_m != op::GroupSpread::equal ? kLargeGroup : 1);
  const std::int64_t most_n = search.n * (search.spread_n != op::GroupSpread::equal ? kLargeGroup : 1);
  for (const Rows& rows : kRows) {
    if (!keeps_wasteful && is_wasteful(kHeights, rows.m, most_m)) continue;
    if (search.shared_pixels.are_columns) {
      consider_shared_columns(search, rows, candidates);
      continue;
    }
    for (const int columns : kColumns) {
      if (!keeps_wasteful && is_wasteful(kColumns, columns, most_n)) break;
      if (!is_too_tall(search, rows, columns)) consider_columns(search, rows, columns, candidates);
    }
    if (rows.m > kMostRows) continue;
    for (const int columns : filling_columns(search, rows.m)) {
      if (columns != 0) consider_columns(search, rows, columns, candidates);
    }
  }
}

Sm90GemmDesign design_of(const Candidate& candidate, const op::GemmSignature& signature, const Target& target) {
  Sm90GemmDesign design;
  design.target = target;
  design.tile = candidate.tile;
  design.stages = candidate.stages;
  design.warps_m = kWarpgroup * candidate.rows->consumers;
  design.warps_n = 1;
  design.cluster_m = candidate.group.m;
  design.cluster_n = candidate.group.n;
  design.schedule = candidate.rows->schedule;
  design.swaps_operands = candidate.is_transposed != computes_transposed(signature);
  design.raster = candidate.raster;
  if (candidate.is_transposed) {  // the shapes of a design refer to the caller's problem
    std::swap(design.tile.m, design.tile.n);
    std::swap(design.warps_m, design.warps_n);
    std::swap(design.cluster_m, design.cluster_n);
    design.raster = design.raster.transposed();
  }
  design.split_k = candidate.group.split_k;
  design.repacks_operands = candidate.repacks;
  design.repacks_only_b = candidate.repacks_only_b;
  return design;
}

/// Whether A of the problem as computed is K-major. If `is_transposed`, that A is the caller's B'.
bool is_a_along_k(const op::GemmSignature& signature, bool is_transposed) {
  return is_transposed ? signature.b.layout == op::MatrixLayout::column_major
                       : signature.a.layout == op::MatrixLayout::row_major;
}
arch::Major major(bool is_along_k) { return is_along_k ? arch::Major::k : arch::Major::mn; }
/// Whether wgmma can read B of the problem as computed. It reads types that are not 16 bits wide K-major only, and
/// only A may go through registers.
bool reads_b(const op::GemmSignature& signature, bool is_transposed) {
  return bytes(signature.a.element) == 2 || is_a_along_k(signature, !is_transposed);
}

/// Whether TMA can load an A, of the problem as computed, that wgmma takes from registers as it is contiguous along M.
bool loads_a_as_it_is(const op::GemmSignature& signature, bool is_transposed) {
  const op::TensorSignature& a = is_transposed ? signature.b : signature.a;
  constexpr bool kAlongK = true;  // asks for the alignment alone
  return bytes(a.element) != 2 && !is_a_along_k(signature, is_transposed) && !must_be_repacked(a, kAlongK) &&
         a.im2col == op::Im2colAccess::none;
}

/// Whether the target has wgmma and it multiplies elements of this width: of 32-bit ones only tf32.
bool is_multiplied_by_wgmma(const op::GemmSignature& signature, const Target& target) {
  if (!has_feature(target, TargetFeature::wgmma)) return false;
  const DType element = signature.a.element;
  return bytes(element) <= 2 || (element == DType::f32 && signature.math == op::MathOperation::multiply_add_tf32);
}

/// Whether an operand is an im2col matrix that wgmma does not read as it is.
bool must_repack_im2col(const op::GemmSignature& signature) {
  return (signature.a.im2col != op::Im2colAccess::none &&
          must_be_repacked(signature.a, is_a_along_k(signature, false))) ||
         (signature.b.im2col != op::Im2colAccess::none && must_be_repacked(signature.b, is_a_along_k(signature, true)));
}

enum class Operands { both, only_a, only_b };  // of the caller's problem

/// Bytes of these operands that would be repacked. The result is 0 if none needs repacking, if one cannot be, or if the
/// copies would not fit in the workspace together with the partial sums of split-K.
double bytes_to_repack(const op::GemmView& view, const op::GemmSignature& signature, Operands operands) {
  double moved = 0;
  std::int64_t written = 0;
  bool is_possible = true;
  const auto add = [&](const op::TensorSignature& operand, const op::OperandView& of, bool is_along_k,
                       std::int64_t mn) {
    if (!must_be_repacked(operand, is_along_k)) return;
    is_possible &= of.access != op::OperandAccess::im2col || repacked_pieces(of).has_value();
    const bool is_transposed = !is_along_k && bytes(operand.element) != 2;
    const RepackedCopy copy = repacked_copy(of.tensor, major(is_along_k || is_transposed), mn, view.k());
    written += copy.bytes();
    moved += moved_bytes(of.tensor, copy, is_transposed);
  };
  if (operands != Operands::only_b) add(signature.a, view.a, is_a_along_k(signature, false), view.m());
  if (operands != Operands::only_a) add(signature.b, view.b, is_a_along_k(signature, true), view.n());
  if (!is_possible) return 0;
  constexpr std::int64_t kPartialSums = std::int64_t{64} << 20;
  return written > kMaxWorkspaceBytes - kPartialSums ? 0 : moved;
}

/// The problem whose designs are searched, and the order of sums that they must have, if one is required.
struct Query {
  const op::GemmView& view;
  const op::GemmSignature& signature;
  const Target& target;
  const std::optional<SumOrder>& order;
  ReadAmplification amplification = im2col_amplification(view);

  /// Whether the order of sums restricts the search.
  bool is_restricted() const { return order && !order->is_exact; }
  bool is_tf32() const { return signature.a.element == DType::f32; }
  /// wgmma reads types of 1 and 4 bytes K-major only.
  bool is_word_or_byte() const { return bytes(signature.a.element) != 2; }
  bool ends_along_k() const { return op::ends_along_k(signature.groups); }
  bool has_row_classes() const { return signature.a.im2col == op::Im2colAccess::divided; }

  /// Sectors of L2 per 32 bytes of one of the caller's operands; plain loads and copies do not read more than they
  /// need.
  double sectors(Operands operand, bool repacks) const {
    const bool is_a = operand == Operands::only_a;
    const op::TensorSignature& tensor = is_a ? signature.a : signature.b;
    const bool is_copied = repacks && must_be_repacked(tensor, is_a_along_k(signature, !is_a));
    const bool by_tma = !is_copied && plain_load_reads(alignment_bytes(tensor)) == 0;
    const double read = by_tma ? sector_read_amplification((is_a ? view.a : view.b).tensor) : 1;
    return read * (is_a ? amplification.a : amplification.b);
  }
};

/// Whether the problem can be computed in this orientation.
bool offers_orientation(const Query& query, bool is_transposed) {
  const bool natural = computes_transposed(query.signature);
  if (is_transposed != natural && query.signature.epilogue.is_gated()) return false;
  if (query.is_restricted() && is_transposed != query.order->exchanges_operands) return false;
  return !is_transposed || !(query.has_row_classes() || has_tap_columns(query.signature));
}

/// The search among designs that repack all operands that wgmma or TMA does not read.
Search search_with_repacking(const Query& query, bool is_transposed) {
  const auto& [view, signature, target, order, amplification] = query;
  const DType element = signature.a.element;
  const bool is_word_or_byte = query.is_word_or_byte(), is_tf32 = query.is_tf32(), ends_along_k = query.ends_along_k();
  const bool d_is_row_major = signature.d.layout == op::MatrixLayout::row_major;
  const TmaOutputs others = tma_outputs(signature, 1);  // the transposed problem has the same
  const MeanExtents mean = mean_extents(view);
  const arch::ArchLimits& limits = arch::limits(target);
  return {
      .m = is_transposed ? mean.n : mean.m,
      .n = is_transposed ? mean.m : mean.n,
      .k = mean.k,
      .batches = mean.batches,
      .classes = class_extents(view),
      .limits = limits,
      .element_bytes = bytes(element),
      .output = {bytes(signature.c.element), bytes(signature.d.element), is_transposed != d_is_row_major, others,
                 stores_by_tma(signature.d)},
      .staging = epilogue_staging(is_transposed ? op::transposed(signature.epilogue) : signature.epilogue),
      .columns_per_element = signature.epilogue.columns_per_element(),
      .beside_bytes = beside_bytes(signature),
      .slow_source_bytes = slow_source_bytes(signature),
      .function_instructions = function_instructions(signature.epilogue),
      .plain_bytes = stores_by_tma(signature.d) ? 0 : bytes(signature.d.element),
      .major_a = major(is_word_or_byte || is_a_along_k(signature, is_transposed)),
      .major_b = major(is_word_or_byte || is_a_along_k(signature, !is_transposed)),
      .max_row_a = max_row_bytes(is_transposed ? signature.b : signature.a),
      .max_row_b = max_row_bytes(is_transposed ? signature.a : signature.b),
      .reads_a = 0,
      .reads_b = 0,
      .sectors_a = query.sectors(is_transposed ? Operands::only_b : Operands::only_a, true),
      .sectors_b = query.sectors(is_transposed ? Operands::only_a : Operands::only_b, true),
      .distinct_a = distinct_share(is_transposed ? view.b : view.a),
      .distinct_b = distinct_share(is_transposed ? view.a : view.b),
      .d_splits_sectors = lines_split_sectors(view.d.tensor),
      .has_aligned_lines =
          lines_are_aligned(view.a.tensor, kLineAlignment) && lines_are_aligned(view.b.tensor, kLineAlignment),
      .is_transposed = is_transposed,
      .promotes = promotes_accumulators(signature),
      .loads_fragments = false,
      .accumulates_in_half = signature.accumulator == DType::f16,
      .fma_per_clock = arch::fma_per_clock(limits, arch::MathUnit::wgmma, is_tf32 ? DType::tf32 : element),
      .repacked_bytes = ends_along_k ? 0 : bytes_to_repack(view, signature, Operands::both),
      .padded_k = query.is_restricted() ? std::optional(query.order->padded_k) : std::nullopt,
      .tensor_maps = ends_along_k ? 2 : (signature.a.is_pointer_array ? 1 : 0) + (signature.b.is_pointer_array ? 1 : 0),
      .has_row_classes = query.has_row_classes(),
      .stores_to_pointers = signature.d.is_pointer_array,
      .loads_folded = signature.a.folded_modes != 0 || signature.b.folded_modes != 0,
      .shared_pixels = shared_pixels_of(signature),
      .groups = is_transposed ? op::transposed(signature.groups) : signature.groups,
      .spread_m = is_transposed ? view.spread_n() : view.spread_m(),
      .spread_n = is_transposed ? view.spread_m() : view.spread_n(),
      .copies_source = copies_source(signature),
  };
}

/// The search among designs that repack only the B of the problem as computed, whose A goes through registers.
Search search_with_repacked_b(const Query& query, Search search) {
  const bool is_transposed = search.is_transposed;
  search.repacked_bytes =
      bytes_to_repack(query.view, query.signature, is_transposed ? Operands::only_a : Operands::only_b);
  search.sectors_a = query.sectors(is_transposed ? Operands::only_b : Operands::only_a, false);
  search.major_a = arch::Major::mn;
  search.loads_fragments = true;
  return search;
}

/// The search among designs that load the operands as they are, by TMA or by plain loads.
Search search_without_repacking(const Query& query, Search search) {
  const op::GemmSignature& signature = query.signature;
  const bool is_transposed = search.is_transposed;
  const int times_a = plain_load_reads(signature.a.alignment * bytes(signature.a.element));
  const int times_b = plain_load_reads(signature.b.alignment * bytes(signature.b.element));
  search.reads_a = is_transposed ? times_b : times_a;
  search.reads_b = is_transposed ? times_a : times_b;
  search.sectors_a = query.sectors(is_transposed ? Operands::only_b : Operands::only_a, false);
  search.sectors_b = query.sectors(is_transposed ? Operands::only_a : Operands::only_b, false);
  search.major_a = major(is_a_along_k(signature, is_transposed));
  search.major_b = major(is_a_along_k(signature, !is_transposed));
  search.loads_fragments = query.is_word_or_byte() && !is_a_along_k(signature, is_transposed);
  search.repacked_bytes = 0;
  return search;
}

void consider_orientation(const Query& query, bool is_transposed, Candidates& candidates) {
  const op::GemmSignature& signature = query.signature;
  const Search repacking = search_with_repacking(query, is_transposed);
  if (repacking.repacked_bytes > 0) consider_all(repacking, candidates);
  if (!query.ends_along_k() && loads_a_as_it_is(signature, is_transposed)) {
    const Search only_b = search_with_repacked_b(query, repacking);
    if (only_b.repacked_bytes > 0) consider_all(only_b, candidates);
  }
  const bool natural = computes_transposed(signature);
  const bool must_swap = !reads_b(signature, natural) && reads_b(signature, !natural);
  const bool is_worth_it = is_transposed != natural || !must_swap;
  if (!(query.is_restricted() || is_worth_it) || !reads_b(signature, is_transposed)) return;
  if (must_repack_im2col(signature)) return;
  const Search direct = search_without_repacking(query, repacking);
  // Plain loads round to tf32 in another way than TMA.
  if (query.is_restricted() && query.is_tf32() && direct.uses_plain_loads()) return;
  consider_all(direct, candidates);
}

}  // namespace

std::vector<Sm90GemmDesign> sm90_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target, const std::optional<SumOrder>& order) {
  if (!is_multiplied_by_wgmma(signature, target) || !check_row_classes(signature) || !check_shared_pixels(signature) ||
      !check_tap_columns(signature)) {
    return {};
  }
  const Query query{view, signature, target, order};
  Candidates candidates;
  // Both orientations are considered: the n of a tile has more values than its m, and fits other extents.
  const bool natural = computes_transposed(signature);
  for (const bool is_transposed : {natural, !natural}) {
    if (offers_orientation(query, is_transposed)) consider_orientation(query, is_transposed, candidates);
  }
  std::vector<Sm90GemmDesign> designs;
  designs.reserve(kKept);
  for (const Candidate& candidate : candidates.best()) designs.push_back(design_of(candidate, signature, target));
  return designs;
}

// wgmma reads a B of 1- and 4-byte elements K-major only. An N-major B becomes the instruction's A, which may go
// through registers, because repacking it takes longer. All other problems are computed as they are, so that a D of one
// row has the same order in either layout.
std::optional<Sm90GemmDesign> invariant_sm90_gemm_design(const op::GemmSignature& signature, const Target& target) {
  if (!is_multiplied_by_wgmma(signature, target)) return std::nullopt;
  const int element_bytes = bytes(signature.a.element);
  const bool is_b_along_k = is_a_along_k(signature, true);
  const bool is_transposed = element_bytes != 2 && !is_b_along_k && !signature.epilogue.is_gated();
  Sm90GemmDesign design;
  design.target = target;
  design.tile = {64, 64, kSwizzleBytes / element_bytes};
  design.stages = kMinStages;
  design.warps_m = is_transposed ? 1 : kWarpgroup;
  design.warps_n = is_transposed ? kWarpgroup : 1;
  design.swaps_operands = is_transposed != computes_transposed(signature);
  design.repacks_operands =
      must_be_repacked(signature.a, is_a_along_k(signature, false)) || must_be_repacked(signature.b, is_b_along_k);
  return design;
}

}  // namespace tilewright::plan
