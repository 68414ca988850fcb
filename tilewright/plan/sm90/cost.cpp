// The constants were fitted to the times of 5729 kernels on an H200, 2026-11-23 (410 random problems of seeds 4 to
// 6, bench/README.md, and bench/problems/hopper.txt), and from there, with those of the other families, to 16650
// kernels on 1094 problems of seeds 14 to 20 on an H100, 2026-11-25, except the rate of DRAM and kLaunchUs. On
// problems that the second fit left out, the candidate with the shortest predicted time took 5.0 % longer than the
// fastest of up to 20 measured ones, in the mean; before it was 6.0 %. kNarrowRows and kL2Share were corrected by
// 300 problems of seeds 36 and 37 (H200, 2026-11-26), among whose candidates were those with narrow rows that the
// former constants had left out. Clusters, the overlap with DRAM, the last steps and the latency of plain loads were
// chosen by their regret on 2787 problems of seeds 14 to 39. See docs/decisions/performance_history.md.
#include "tilewright/plan/sm90/cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/epilogue_cost.hpp"
#include "tilewright/plan/overlap.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

constexpr double kLaunchUs = 4.6;  // a kernel without work, timed between two events, and its first loads
// Extra time per launch of clusters, whatever their size. Kernels that differ from another one of the same problem in
// the cluster only took this much longer in the median, where they were shorter than 15 us: 0.5 us on an H100, 0.15 to
// 0.35 us on an H200 (seeds 14 to 39). The estimates rank best with more, as clusters that they prefer by less than
// their error are often slower.
constexpr double kClusterUs = 0.7;
constexpr double kPeakShare = 0.931;      // share of the tensor cores' nominal rate
constexpr double kDramShare = 1.01;       // share of DRAM's nominal rate
constexpr double kDramUs = 0.29;          // time until DRAM reaches this rate
constexpr double kL2Share = 1.2;          // factor on limits.l2_bytes_per_clock
constexpr double kSmBytesPerClock = 117;  // rate at which TMA of one SM loads from L2
constexpr double kLatencyClocks = 3110;   // latency of a TMA load under load
constexpr double kStepClocks = 51.1;      // barriers and the start of one mainloop step
constexpr double kTileClocks = 275;       // start of another tile of the same CTA
constexpr double kNarrowRows = 0.55;      // a row of b bytes takes (128 / b)^kNarrowRows as long per byte as 128
constexpr double kSubtileClocks = 338;    // overhead of an epilogue subtile: barriers and the issue of the store
constexpr double kStoreBytesPerClock = 74.7;
constexpr double kBoxClocks = 52.1;            // issue of one box of D by TMA, while the warpgroup waits
constexpr double kPartialSectorClocks = 6.47;  // per row of a tile and sector of L2 that a box covers only in part
// Issue slots of the functions and of the arithmetic around them, relative to function_instructions(). The epilogue of
// bias and a gelu_tanh by tanh of bf16 3990x11072x64 took 48 for each element at the measured clock of 1.98 GHz, which
// are 43 at limits.clock_ghz; 24 were counted (H100, 2026-11-26). The first choices for 52 problems with epilogues
// took 3.98 % longer than the best with a factor of 1, and 3.75 % with 1.6 and with 2.
constexpr double kFunctionSlots = 1.6;
constexpr double kPingPongClocks = 164;  // taking turns, if each tile has one mainloop step
// Plain stores of D instead of TMA: per vector of 16 bytes, and per line of a subtile, whose ends are stored in pieces.
constexpr double kPlainVectorClocks = 0.517;
constexpr double kPlainLineClocks = 14.3;
// Plain stores of lines of pixels, whose ends are whole vectors: per vector. 167 kernels whose taps share pixels were
// measured for 17 passes of layers (H200, 2026-11-26): with this value, the first choice took 4.5 % longer than the
// best.
constexpr double kPixelVectorClocks = 2;
// The powers of overlapped(): the limits of the loads of a mainloop step, and the work of the SMs beside that of DRAM.
constexpr double kLoadPower = 10;
constexpr double kBodyPower = 4;
// Mainloop steps, of one tap each, that a CTA still multiplies when its last loads have arrived, which nothing hides.
constexpr double kLastSteps = 2;
// Plain loads: the latency of those that straddle cache lines, under load; the addresses and predicates of one mainloop
// step, and of one tile.
constexpr double kGatherLatencyClocks = 3000;
constexpr double kGatherStepClocks = 419;
constexpr double kGatherTileClocks = 1400;
constexpr double kGatherStartClocks = 1520;  // once, before the first tile
// The single elements at the ends of lines, where no other mainloop step of the tile hides their latency: 65 kernels
// took 3100 clocks longer per tile than those whose lines end with a vector (H200, 2026-11-26).
constexpr double kGatherEndClocks = 3100;
constexpr double kOperandBytesPerClock = 111;  // rate at which wgmma reads shared memory, whose peak is 128
constexpr double kBarrierUs = 4.84;            // time of the grid-wide barrier after repacking
constexpr double kRepackedShare = 0.757;  // rate of repacking, reads plus writes, as a share of DRAM's nominal rate
constexpr double kPartUs = 0.0193;        // split-K: reading the partial sums of one more CTA
constexpr double kMergedSteps = 4000;     // after so many mainloop steps, SMs merge half of their reads
// Consecutive CTAs whose reads are merged, and the share of their repeated reads that are. Consecutive CTAs run on the
// SMs of one GPC (%smid of CTAs that are alone on their SM). Of 93 kernels without clusters, L2 read as many sectors
// for the SMs as these groups predict with a standard deviation of 14 %, and 18 % with the two SMs of a TPC as groups.
// With kL2Share and kMergedSteps, which were chosen with them, the first of 8 raster orders for 24 problems takes 0.8 %
// longer than the fastest (1.9 % with TPCs), and the first choice for 81 problems of seeds 75 and 76 3.2 % (3.8 %;
// H200, 2026-11-28).
constexpr int kMergingCtas = 8;
constexpr double kMergedReads = 0.65;
// The busiest slice of L2 exceeds the mean by this many standard deviations; see busiest_slice_us().
constexpr double kBusiestSlice = 3.29;
constexpr double kL2Slices = 96;
// hot_lines_us(): five kernels of f16 142659x128x80, of which each tile reads all 160 lines of B, took 20.5 to 35.1 us,
// and 19.6 to 21.6 us without the time that this factor predicts (H200, 2026-11-28).
constexpr double kHotLines = 4.7;
constexpr double kFewLines = 2048;
constexpr double kL2LineBytes = 128, kSliceBytesPerClock = 64;
// Extra time of DRAM for a byte that a CTA, or the CTAs of a cluster together, read or write in lines of 128 bytes: of
// an operand that is contiguous along M or N, of one that is contiguous along K, and of D. It falls with longer lines,
// whose bytes are more often in one row of a DRAM bank.
constexpr double kScatter = 0.209, kScatterK = 0.0382, kScatterD = 0.346;
constexpr double kScatterPower = 0.727;
// Bytes that DRAM could write in the time that a line of D takes longer if its ends split sectors. 41 kernels for f16
// 23168x25608x128 took 591 to 834 us: about 575 us, and 240 us for one such line per 128 columns (H200, 2026-11-27).
constexpr double kSplitLineBytes = 250;
// Factor on the estimate of exchanged operands, whose D is column-major, if D has more columns than one or two tiles:
// 217 problems took 2.7 % longer than estimated, relative to others (H200, 2026-11-26).
constexpr double kExchanged = 1.03;
constexpr int kFewColumns = 192;
// Factor on the mainloops of tiles with more rows, if they have several steps or those of an im2col matrix. 29 kernels
// with im2col matrices took 1.13 times as long as estimated in the mean, where 1700 with fewer rows took 0.85 to 0.88
// times, and 17 GEMMs with 16 to 48 columns 1.0 to 1.49 times, where others took 0.95 to 1.07 times (H200, 2026-11-28).
// With this factor the estimates choose the fastest more often than with 1.06.
constexpr int kTallRows = 256;
constexpr double kTall = 1.2;
constexpr double kTensorMapClocks = 550;  // latency of making tensor maps; see docs/decisions/pointer_arrays.md
constexpr int kProducerThreads = 128;
constexpr int kInstructionM = 64;
constexpr int kInstructionKBytes = 32;

/// Clocks of the wgmma instructions of one mainloop step. `math` is the time at the tensor cores' rate. `reads` is the
/// time to read A and B from shared memory, which limits narrow tiles.
struct Multiplying {
  double math, reads;
};
Multiplying multiply_clocks(const Sm90CostInput& input) {
  const double instruction_k = kInstructionKBytes / static_cast<double>(input.element_bytes);
  const double instructions = input.tile.m / static_cast<double>(kInstructionM) * input.tile.k / instruction_k;
  const int times_a = input.loads_fragments ? 2 : 1;  // threads load fragments at half the rate; see exposed_clocks()
  return {instructions * kInstructionM * input.tile.n * instruction_k / input.fma_per_clock,
          instructions * (times_a * kInstructionM + input.tile.n) * kInstructionKBytes / kOperandBytesPerClock};
}

/// Clocks of the plain loads of one mainloop step: the slower of two limits. The first is the bandwidth of L1 and
/// shared memory, which are one memory: plain loads read and store there, in addition to the `reads` of wgmma. The
/// second is the load latency, divided by the words in flight.
double gather_clocks(const arch::ArchLimits& limits, const Sm90CostInput& input, double reads) {
  const double line_bytes = static_cast<double>(input.tile.k) * input.element_bytes;
  double moved = 0, in_flight = 0;
  for (const auto& [lines, times] : {std::pair{input.tile.m, input.reads_a}, {input.tile.n, input.reads_b}}) {
    if (times == 0) continue;
    moved += lines * line_bytes * (times + 1);
    in_flight += lines * line_bytes * times;
  }
  if (moved == 0) return 0;
  constexpr double kWordBytes = 4;
  const double latency = in_flight / (kWordBytes * input.plain_load_words * kProducerThreads) * kGatherLatencyClocks;
  return std::max(reads + moved / limits.smem_bytes_per_clock_per_sm, latency) + kGatherStepClocks;
}

/// Bytes that one CTA loads from L2 per mainloop step. Bytes of narrow rows are weighted by kNarrowRows.
struct StepBytes {
  double a, b;
  double from_l2;  // of both, without the reads that the SM shares with others
};
/// The share of a CTA's mainloop steps that load A, and B: those of the tiles that fill the stages, if they keep an
/// operand of which all tiles need the same part.
struct LoadedShare {
  double a = 1, b = 1;
};
LoadedShare loaded_share(const Sm90CostInput& input, double steps_of_tile, double tiles) {
  const auto share = [&](std::int64_t parts) {
    const double filling = input.stages * static_cast<double>(parts);
    return parts == 0 ? 1.0 : std::min(1.0, filling / std::max(steps_of_tile * tiles, 1.0));
  };
  return {share(input.parts_of_a), share(input.parts_of_b)};
}

/// `steps` is the number of mainloop steps of a CTA in all its tiles. SMs merge reads that they make at the same time;
/// in long kernels they drift apart.
StepBytes step_bytes(const Sm90CostInput& input, double steps, const LoadedShare& loaded) {
  const auto weighted = [&](int lines, int sharers, int row_bytes, double sectors, int taps) {
    constexpr int kWidestRow = 128;
    const int elements = taps > 1 ? input.shared_pixels.elements(lines, input.tile.k) : lines * input.tile.k;
    const double bytes = static_cast<double>(elements) / sharers * input.element_bytes * sectors;
    return row_bytes == kWidestRow ? bytes : bytes * std::pow(kWidestRow / row_bytes, kNarrowRows);
  };
  const double a =
      loaded.a * weighted(input.tile.m, input.cluster_n, input.row_bytes_a, input.sectors_a, input.sharing_taps_a());
  const double b =
      loaded.b * weighted(input.tile.n, input.cluster_m, input.row_bytes_b, input.sectors_b, input.sharing_taps_b());
  // CTAs of a cluster share operands by multicast already, and consecutive clusters run on different GPCs. The split-K
  // CTAs of a tile share nothing. Reads that straddle sectors did not seem to be merged.
  const double sectors = input.raster.walks_along_m() ? input.sectors_b : input.sectors_a;
  if (input.cluster_m * input.cluster_n * input.split_k > 1 || sectors != 1) return {a, b, a + b};
  const ReadShare share = read_share(input.raster, ceil_div(input.m, input.tile.m), ceil_div(input.n, input.tile.n));
  const double in_step = 1 / (1 + steps / kMergedSteps);
  return {a, b, a * (1 - in_step * (1 - share.a)) + b * (1 - in_step * (1 - share.b))};
}

/// Extra time of the first mainloop step, in which all CTAs read at the same time. A line that many CTAs read makes its
/// slice of L2 busier than others. Lines are spread over the slices at random, so that the standard deviation of the
/// reads of a slice is the root of the sum of the squares of the readers of its lines.
double busiest_slice_us(const arch::ArchLimits& limits, const Sm90CostInput& input, std::int64_t tiles_m,
                        std::int64_t tiles_n) {
  const auto readers = [&](std::int64_t tiles) {
    return static_cast<double>(std::min<std::int64_t>(tiles, limits.sm_count));
  };
  const double line = kL2LineBytes / (static_cast<double>(input.tile.k) * input.element_bytes);
  const double lines_a = input.tile.m * input.cluster_m * readers(tiles_m) / line / input.sharing_taps_a();
  const double lines_b = input.tile.n * input.cluster_n * readers(tiles_n) / line / input.sharing_taps_b();
  const double variance =
      (lines_a * readers(tiles_n) * readers(tiles_n) + lines_b * readers(tiles_m) * readers(tiles_m)) / kL2Slices;
  return kBusiestSlice * std::sqrt(variance) * kL2LineBytes / kSliceBytesPerClock / (limits.clock_ghz * 1e3);
}

/// Extra time of the tiles after the first of each SM if an operand has so few lines that some slices of L2 hold
/// several and others none: all tiles along the other mode read the same lines.
double hot_lines_us(const arch::ArchLimits& limits, const Sm90CostInput& input, const LoadedShare& loaded,
                    std::int64_t tiles_m, std::int64_t tiles_n) {
  const auto clocks = [&](std::int64_t extent, std::int64_t readers) {
    const double lines =
        static_cast<double>(extent) * static_cast<double>(input.k) * input.element_bytes / kL2LineBytes;
    const auto again = static_cast<double>(std::max<std::int64_t>(readers - limits.sm_count, 0));
    return again * std::sqrt(lines / kL2Slices) / (1 + lines / kFewLines) * kL2LineBytes / kSliceBytesPerClock;
  };
  if (input.batches > 1) return 0;
  return kHotLines * std::max(loaded.a * clocks(input.m, tiles_n), loaded.b * clocks(input.n, tiles_m)) /
         (limits.clock_ghz * 1e3);
}

/// Clocks of the plain stores of one tile of D; 0 if TMA stores it.
double plain_store_clocks(const Sm90CostInput& input, double tile_area) {
  if (input.plain_line_bytes == 0) return 0;
  constexpr int kVectorBytes = 16;
  const double bytes = tile_area * input.d_bytes;
  if (input.shared_pixels.are_shared()) return bytes / kVectorBytes * kPixelVectorClocks;
  return bytes / kVectorBytes * kPlainVectorClocks + bytes / input.plain_line_bytes * kPlainLineClocks;
}

/// Clocks of the epilogue of one tile: the split-K reduction, the special functions, and the stores of D.
double epilogue_clocks(const arch::ArchLimits& limits, const Sm90CostInput& input) {
  const double tile_area = static_cast<double>(input.tile.m) * input.tile.n;
  constexpr double kLanes = 128;
  const double functions = tile_area / input.split_k * input.function_instructions * kFunctionSlots / kLanes;
  const double stores = input.subtiles * kSubtileClocks + input.tile_stores.boxes * kBoxClocks +
                        input.tile_stores.partial_sectors * input.tile.m * kPartialSectorClocks + functions +
                        tile_area * (input.d_bytes + input.beside_bytes) / input.split_k / kStoreBytesPerClock;
  const double source = tile_area * input.slow_source_bytes / kSlowSourceBytesPerClock;
  if (input.split_k == 1) return stores + plain_store_clocks(input, tile_area) + source;
  constexpr int kAccumulatorBytes = 4;
  const double exchange = exchange_us(limits, tile_area, kAccumulatorBytes) + input.split_k * kPartUs;
  return stores + exchange * limits.clock_ghz * 1e3;
}

/// Cluster tiles of the whole problem, and those that the busiest cluster computes, with the mean number of mainloop
/// steps of each.
struct TileCount {
  double all, of_busiest, steps;
};
/// Only a number of tiles that is known is rounded up to whole rounds of `resident` clusters. Of unequal groups it may
/// be any near the mean, where half a round is lost in the mean. Of groups that may be either, the mean of both is
/// taken: rounding the mean number of tiles up would take 4 rounds of equal groups, and 4.4 of others, for 5.
TileCount count_tiles(const Sm90CostInput& input, std::int64_t resident, double steps) {
  const auto count = [&](bool is_equal) {
    const auto along = [&](std::int64_t extent, std::int64_t tile, op::GroupSpread spread) {
      const bool differs = spread != op::GroupSpread::equal && !is_equal;
      return tiles_along(extent, tile, differs ? op::GroupSpread::unequal : op::GroupSpread::equal);
    };
    const double all = along(input.m, std::int64_t{input.tile.m} * input.cluster_m, input.spread_m) *
                       along(input.n, std::int64_t{input.tile.n} * input.cluster_n, input.spread_n) *
                       static_cast<double>(input.batches);
    const double rounds = all / static_cast<double>(resident);
    return TileCount{std::ceil(all), is_equal || rounds <= 1 ? std::ceil(rounds) : rounds + 0.5, steps};
  };
  const bool may_be_equal = input.spread_m != op::GroupSpread::unequal && input.spread_n != op::GroupSpread::unequal;
  const bool is_equal = input.spread_m == op::GroupSpread::equal && input.spread_n == op::GroupSpread::equal;
  if (is_equal) return count(true);
  const TileCount unequal = count(false);
  if (!may_be_equal) return unequal;
  const TileCount equal = count(true);
  return {std::ceil((equal.all + unequal.all) / 2), (equal.of_busiest + unequal.of_busiest) / 2, steps};
}

/// The mainloop steps of the tile with this number, if the cluster tiles of class i end at ends[i].
double steps_of_tile(const Sm90CostInput& input, const std::array<std::int64_t, kMaxRowClasses>& ends,
                     std::int64_t tile) {
  const auto number = static_cast<std::size_t>(std::ranges::upper_bound(ends, tile) - ends.begin());
  return static_cast<double>(std::max<std::int64_t>(ceil_div(input.classes[number].k, input.tile.k), 1));
}

/// Counts the tiles of a problem with classes of rows, which the clusters take in the order that
/// device/tilewright/scheduler/class_tiles.cuh describes.
TileCount count_class_tiles(const Sm90CostInput& input, std::int64_t resident) {
  const std::int64_t tiles_n = ceil_div(input.n, std::int64_t{input.tile.n} * input.cluster_n);
  std::array<std::int64_t, kMaxRowClasses> ends{};
  std::int64_t all = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    all += ceil_div(input.classes[i].m, std::int64_t{input.tile.m} * input.cluster_m) * tiles_n;
    ends[i] = all;
  }
  double all_steps = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::int64_t first = i == 0 ? 0 : ends[i - 1];
    if (ends[i] > first) all_steps += static_cast<double>(ends[i] - first) * steps_of_tile(input, ends, first);
  }
  const std::int64_t rounds = ceil_div(all, resident);
  constexpr std::int64_t kManyRounds = 16;  // which leave no cluster much busier than others
  if (rounds > kManyRounds)
    return {static_cast<double>(all), static_cast<double>(rounds), all_steps / static_cast<double>(all)};
  TileCount busiest{static_cast<double>(all), 1, 0};
  // A cluster is busier than its neighbour only where a class, or the last round, ends between their tiles.
  const auto consider = [&](std::int64_t place) {
    double tiles = 0, steps = 0;
    for (std::int64_t round = 0; round + place < all; round += resident, place = resident - 1 - place) {
      ++tiles;
      steps += steps_of_tile(input, ends, round + place);
    }
    if (steps > busiest.steps * busiest.of_busiest) busiest = {busiest.all, tiles, steps / tiles};
  };
  for (const std::int64_t end : ends) {
    for (const std::int64_t tile : {end - 1, end}) {
      const std::int64_t place = std::max<std::int64_t>(tile, 0) % resident;
      consider(place);
      consider(resident - 1 - place);
    }
  }
  return busiest;
}

/// The time that DRAM takes for a byte that is read or written in lines of `bytes`, relative to one of a long line.
double scatter(double bytes, double excess) { return 1 + excess * std::pow(128 / bytes, kScatterPower); }

/// The time that DRAM takes to write D, relative to a D whose lines begin at multiples of a sector. Otherwise the
/// sectors at both ends of the line that a cluster writes are written in two parts, unless the line is a whole line of
/// D. If L2 cannot hold D, some of them reach DRAM before the second part.
double split_sectors_of_d(const arch::ArchLimits& limits, const Sm90CostInput& input) {
  const int line = input.is_d_column_major ? input.tile.m * input.cluster_m : input.tile.n * input.cluster_n;
  if (!input.d_splits_sectors || line >= (input.is_d_column_major ? input.m : input.n)) return 1;
  const double bytes_of_d =
      static_cast<double>(input.m) * static_cast<double>(input.n) * static_cast<double>(input.batches) * input.d_bytes;
  const double beyond_l2 = std::max(0.0, 1 - static_cast<double>(limits.l2_bytes) / bytes_of_d);
  return 1 + beyond_l2 * kSplitLineBytes / (line * input.d_bytes);
}

double repack_us(const arch::ArchLimits& limits, const Sm90CostInput& input) {
  if (input.repacked_bytes == 0) return 0;
  return kBarrierUs + input.repacked_bytes / (limits.dram_bytes_per_s * kRepackedShare) * 1e6;
}

}  // namespace

bool lines_are_aligned(const op::Tensor& operand, int alignment) {
  const Result<op::MatrixView> view = op::view_matrix(operand, "operand");
  return !view || view->lines(operand) <= 1 || view->ld * bytes(operand.dtype) % alignment == 0;
}

bool lines_split_sectors(const op::Tensor& operand) {
  constexpr int kSectorBytes = 32;
  return !lines_are_aligned(operand, kSectorBytes);
}

double sector_read_amplification(const op::Tensor& operand) {
  // In a row that begins in the middle of a sector, each 32 bytes lie in two sectors, which alone would give 2 for the
  // row, and 1.5 if every other row is such a row. This also ranks 120 problems with such rows best (seeds 44 and 45,
  // H200, 2026-11-27). Single problems differ: for bf16 4176x5408x2488, 404 TFLOP/s without multicast, 490 with the
  // best of our tiles of 2026-11-22 and 662 with cuBLASLt's 192x192 in pairs each correspond to about 3600 bytes per
  // clock from L2, where aligned rows reach 6050, which is a factor of 1.7; with rows of 4992 instead of 4976 bytes,
  // the same problem ran at 651 TFLOP/s.
  constexpr double kHalfOfTheRows = 1.5, kAllRows = 2 * (kHalfOfTheRows - 1) + 1;
  if (lines_split_sectors(operand)) return kHalfOfTheRows;
  return op::splits_sectors(operand) ? kAllRows : 1;
}

namespace {

/// The amplification of a filter with padded taps, which is an im2col matrix whose rows are images.
double filter_amplification(const op::OperandView& filter) {
  // 32x35x35x48 with 64 filters of 5x5 took 38.0, 37.9 and 38.0 us where 28.7, 29.8 and 30.2 were estimated, and with
  // the filter multicast to four CTAs 29.8 and 32.8 where 28.8 and 30.2 were (H100, 2026-11-26). Wide tiles took less
  // than estimated in other layers (H200), so that the factor is the least that ranks these.
  constexpr double kPaddedFilter = 1.02;
  return filter.access == op::OperandAccess::im2col && filter.im2col.zeros > 0 ? kPaddedFilter : 1;
}

/// Bytes of a row of a TMA box of images.
std::int64_t row_bytes_of(const op::OperandView& images) {
  constexpr int kWidestRow = 128;
  return std::gcd(images.im2col.columns_of_tap() * bytes(images.tensor.dtype), kWidestRow);
}

}  // namespace

ReadAmplification im2col_amplification(const op::GemmView& view) {
  if (view.a.access == op::OperandAccess::im2col && !view.b.im2col.shares_pixels) {
    if (view.a.im2col.zeros == 0) return {1, filter_amplification(view.b)};
    // Kernels whose boxes have zeros behind the channels of each pixel took 1.1 to 1.8 times as long as estimated with
    // rows of 32 bytes, 1.2 to 1.35 with 64, and 0.8 to 1.2 with 128; those without zeros took 0.75 to 0.95 (1770
    // kernels for 540 passes of convolutions, H200, 2026-11-28).
    const std::int64_t row = row_bytes_of(view.a);
    return {row <= 32 ? 1.7 : row <= 64 ? 1.45 : 1.15, filter_amplification(view.b)};
  }
  if (view.b.access != op::OperandAccess::im2col) return {1, 1};
  // Filter gradients in tiles of 128 and more columns took 1.1 to 1.5 times as long as estimated with rows of 16 bytes,
  // 0.95 to 1.1 with 32, 0.8 to 0.9 with 64, and 0.75 to 0.8 with 128 (540 kernels, H200, 2026-11-28).
  const std::int64_t row = row_bytes_of(view.b);
  // 28 kernels of 12 to 50 us whose boxes have zeros behind the channels took 0.97 times as long as estimated without
  // this factor, where 172 others took 0.79 times. Those whose taps share pixels took 0.74 times (H200, 2026-11-28).
  constexpr double kZeros = 1.3;
  const bool has_zeros = view.b.im2col.zeros > 0 && !view.b.im2col.shares_pixels;
  return {1, (row <= 16 ? 1.5 : row <= 32 ? 1.2 : 1) * (has_zeros ? kZeros : 1)};
}

ReadShare read_share(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n) {
  const auto count = static_cast<double>(std::min<std::int64_t>(kMergingCtas, tiles_m * tiles_n));
  if (count == 0) return {};
  const TileSpan span = span_of_first(raster, tiles_m, tiles_n, kMergingCtas);
  const auto share = [&](std::int64_t different) {
    return 1 - kMergedReads * (1 - static_cast<double>(different) / count);
  };
  return {share(span.rows), share(span.columns)};
}

void set_kept_parts(const arch::ArchLimits& limits, Sm90CostInput& input) {
  input.parts_of_a = input.parts_of_b = 0;
  const std::int64_t steps = ceil_div(input.k, input.tile.k);
  if (steps == 0 || input.stages % steps != 0) return;
  const std::int64_t ctas = arch::resident_clusters(limits, input.cluster_m * input.cluster_n);
  const std::int64_t tiles_m = ceil_div(input.m, std::int64_t{input.tile.m} * input.cluster_m);
  const std::int64_t tiles_n = ceil_div(input.n, std::int64_t{input.tile.n} * input.cluster_n);
  const auto parts = [&](std::int64_t tiles, bool are_grouped) -> std::int64_t {
    if (tiles <= 1) return tiles;
    if (!are_grouped) return 0;
    if (input.raster.width == 1) return tiles;  // all tiles of a part come before those of the next
    return tiles <= group_width(input.raster, tiles_m, tiles_n) && ctas % tiles == 0 ? 1 : 0;
  };
  input.parts_of_a = parts(tiles_m, input.raster.along_n);
  input.parts_of_b = parts(tiles_n, !input.raster.along_n);
}

double distinct_share(const op::OperandView& operand) {
  return std::min(1.0, operand.distinct_share() * static_cast<double>(row_class_count(operand)));
}

double estimate_us(const arch::ArchLimits& limits, const Sm90CostInput& input) {
  const int sharers = input.cluster_m * input.cluster_n;
  const auto tiles_m = static_cast<std::int64_t>(
                 std::ceil(tiles_along(input.m, std::int64_t{input.tile.m} * input.cluster_m, input.spread_m))),
             tiles_n = static_cast<std::int64_t>(
                 std::ceil(tiles_along(input.n, std::int64_t{input.tile.n} * input.cluster_n, input.spread_n)));
  const std::int64_t resident = arch::resident_clusters(limits, sharers) / input.split_k;
  if (resident == 0 || input.fma_per_clock <= 0) return INFINITY;
  const auto steps_along_k = static_cast<double>(ceil_div(ceil_div(input.k, input.tile.k), input.split_k));
  const bool has_classes = input.classes[0].m > 0;
  const auto [cluster_tiles, tiles, steps] =
      has_classes ? count_class_tiles(input, resident) : count_tiles(input, resident, steps_along_k);
  const double ctas = std::min(cluster_tiles, static_cast<double>(resident)) * sharers * input.split_k;

  const LoadedShare loaded = loaded_share(input, steps, tiles);
  const StepBytes bytes = step_bytes(input, steps * tiles, loaded);
  const double bandwidth = overlapped((bytes.a + bytes.b) / kSmBytesPerClock,
                                      bytes.from_l2 * ctas / (limits.l2_bytes_per_clock * kL2Share), kLoadPower);
  const double load = overlapped(bandwidth, kLatencyClocks / input.stages, kLoadPower);
  const Multiplying instructions = multiply_clocks(input);
  const double multiply = std::max(instructions.math, instructions.reads) / kPeakShare + input.exposed_clocks;
  const double gather = gather_clocks(limits, input, instructions.reads);
  const double main = steps * (std::max({multiply, load, gather}) + kStepClocks);

  const double clocks_per_us = limits.clock_ghz * 1e3;
  const double epilogue = epilogue_clocks(limits, input);
  const double turns = steps == 1 ? kPingPongClocks : 0;
  const double consuming =
      input.schedule == Schedule::ping_pong ? std::max(main, (main + epilogue) / 2) + turns : main + epilogue;
  // The producer makes tensor maps when a CTA's next tile is in another matrix, and runs ahead of the consumers.
  const double tiles_of_matrix = cluster_tiles / static_cast<double>(std::max<std::int64_t>(input.batches, 1));
  const double changes = std::min(1.0, static_cast<double>(resident) / std::max(1.0, tiles_of_matrix));
  const double making = input.tensor_maps > 0 ? kTensorMapClocks : 0;  // both operands' at once
  const double tile_clocks =
      making > 0 ? std::max(consuming, steps * (load + kStepClocks) + changes * making) : consuming;
  const bool gathers = input.reads_a + input.reads_b > 0;
  constexpr int kVectorBytes = 16;
  const bool has_ends = input.k * input.element_bytes % kVectorBytes != 0;
  const double gathering = gathers ? kGatherTileClocks + (steps == 1 && has_ends ? kGatherEndClocks : 0) : 0;
  const double start = making + (gathers ? kGatherStartClocks : 0);
  const bool is_tall = input.tile.m > kTallRows && (steps > 1 || input.distinct_a < 1);
  const double body_us = (is_tall ? kTall : 1) *
                         ((tiles - 1) * (tile_clocks + kTileClocks + gathering) + main + gathering + start +
                          kLastSteps / input.taps_of_step() * multiply) /
                         clocks_per_us;

  const auto m = static_cast<double>(input.m);
  const auto n = static_cast<double>(input.n);
  // Lines that a CTA has as a whole follow each other in memory.
  const auto scatter_of_lines = [&](bool is_along_m, int element_bytes, double excess) {
    const int line = is_along_m ? input.tile.m * input.cluster_m : input.tile.n * input.cluster_n;
    return line >= (is_along_m ? input.m : input.n) ? 1 : scatter(line * element_bytes, excess);
  };
  const double along_k = scatter(input.tile.k * input.element_bytes, kScatterK);
  const double read_a = input.is_mn_major_a ? scatter_of_lines(true, input.element_bytes, kScatter) : along_k;
  const double read_b = input.is_mn_major_b ? scatter_of_lines(false, input.element_bytes, kScatter) : along_k;
  const double written =
      scatter_of_lines(input.is_d_column_major, input.d_bytes, kScatterD) * split_sectors_of_d(limits, input);
  const double dram_bytes = ((m * input.distinct_a * read_a + n * input.distinct_b * read_b) *
                                 static_cast<double>(input.k) * input.element_bytes +
                             m * n * (input.d_bytes + input.beside_bytes) * written) *
                            static_cast<double>(input.batches);
  const double dram_us = kDramUs + dram_bytes / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  const double cluster_us = sharers > 1 ? kClusterUs : 0;
  const double busiest_us =
      busiest_slice_us(limits, input, tiles_m, tiles_n) + hot_lines_us(limits, input, loaded, tiles_m, tiles_n);
  const double exchanged = input.is_d_column_major && input.n > kFewColumns ? kExchanged : 1;
  return exchanged * (kLaunchUs + cluster_us + repack_us(limits, input) + busiest_us +
                      overlapped(body_us, dram_us, kBodyPower) + epilogue / clocks_per_us);
}

std::array<ClassExtents, kMaxRowClasses> class_extents(const op::GemmView& view) {
  std::array<ClassExtents, kMaxRowClasses> extents{};
  const std::int64_t count = row_class_count(view.a);
  if (count == 1 || count > kMaxRowClasses || view.batch() != 1) return extents;
  std::ranges::transform(row_classes(view), extents.begin(), [](const RowClass& each) {
    return ClassExtents{each.m(), each.k()};
  });
  return extents;
}

}  // namespace tilewright::plan
