#include "tilewright/plan/search.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/short_k.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"

namespace tilewright::plan {
namespace {

struct TileRow {
  TileShape shape;
  int stages;
  int warps_m, warps_n;
  int instruction_k = 0;  // f64 only: k of the mma.sync m16n8k? that was fastest for the tile
};

// Tile columns of the problem as computed that are walked together; keeps the operands of a wave of 8192^3 in L2.
constexpr int kRasterWidth = 8;

// The k of tensor-core tiles is in bytes, so that one table serves all element widths: 128 bytes are k = 64 of f16, and
// one line of the shared-memory banks.
constexpr std::array<TileRow, 18> kTensorTiles{{
    {{128, 256, 128}, 3, 2, 4},
    {{256, 128, 128}, 3, 4, 2},
    {{128, 128, 128}, 3, 2, 2},
    {{128, 128, 64}, 4, 2, 2},
    {{128, 64, 128}, 3, 2, 2},
    {{64, 128, 128}, 3, 2, 2},
    {{64, 64, 128}, 4, 2, 2},
    {{64, 64, 64}, 6, 2, 2},
    {{32, 32, 128}, 4, 2, 2},
    // For at most 16 rows or columns; see is_too_narrow().
    {{16, 128, 128}, 3, 1, 4},
    {{16, 128, 64}, 4, 1, 4},
    {{16, 64, 128}, 4, 1, 4},
    {{128, 16, 128}, 3, 4, 1},
    {{128, 16, 64}, 4, 4, 1},
    {{64, 16, 128}, 4, 4, 1},
    // With fewer stages an SM has room for more CTAs, which matters where K is short.
    {{64, 64, 64}, 3, 2, 2},
    {{32, 32, 64}, 3, 2, 2},
    {{16, 16, 64}, 3, 1, 1},
}};

// 3xTF32 holds each operand in two parts and two sets of accumulators, so its warp tiles are smaller.
constexpr std::array<TileRow, 5> kSplitTiles{{
    {{128, 128, 128}, 3, 2, 4},
    {{128, 64, 128}, 3, 2, 2},
    {{64, 128, 128}, 3, 2, 2},
    {{64, 64, 128}, 3, 2, 2},
    {{32, 32, 128}, 4, 2, 2},
}};

constexpr std::array<TileRow, 12> kDoubleTiles{{
    {{128, 128, 128}, 3, 4, 2, 4},
    {{128, 64, 128}, 4, 4, 2, 8},
    {{64, 128, 128}, 4, 2, 4, 8},
    {{128, 32, 128}, 4, 4, 1, 8},
    {{32, 128, 128}, 4, 1, 4, 8},
    {{128, 16, 128}, 4, 4, 1, 8},
    {{16, 128, 128}, 4, 1, 4, 8},
    {{64, 64, 128}, 4, 2, 2, 8},
    {{64, 64, 64}, 4, 2, 2, 8},  // for short K
    {{64, 32, 128}, 4, 2, 2, 8},
    {{32, 64, 128}, 4, 2, 2, 8},
    {{32, 32, 128}, 4, 2, 2, 8},
}};

constexpr std::array<TileRow, 5> kSimtTiles{{
    {{128, 128, 16}, 3, 2, 4},
    {{128, 128, 8}, 4, 2, 4},
    {{128, 64, 8}, 4, 2, 2},
    {{64, 64, 8}, 4, 2, 1},
    {{32, 32, 16}, 3, 1, 1},
}};

// Interleaved operands are loaded in whole blocks of K.
constexpr std::array<TileRow, 3> kSimtInterleavedTiles{{
    {{128, 64, 32}, 2, 2, 2},
    {{64, 64, 32}, 2, 2, 1},
    {{32, 32, 32}, 3, 1, 1},
}};

// Folded operands take registers for each pass of their copies.
constexpr std::array<TileRow, 4> kSimtFoldedTiles{{
    {{128, 64, 8}, 4, 2, 2},
    {{64, 64, 8}, 4, 2, 2},
    {{32, 32, 16}, 3, 2, 2},
    {{32, 32, 16}, 3, 1, 1},
}};

// Tiles for types that only CUDA cores multiply: with few rows or columns, a tile of their number wastes none. With
// tiles of 64x64, four warps hide more latency than two.
constexpr std::array<TileRow, 16> kSimtOnlyTiles{{
    {{128, 128, 16}, 3, 2, 4},
    {{256, 64, 16}, 3, 4, 2},
    {{64, 256, 16}, 3, 2, 4},
    {{128, 64, 16}, 3, 2, 2},
    {{64, 128, 16}, 3, 2, 2},
    {{128, 32, 16}, 3, 4, 1},
    {{32, 128, 16}, 3, 1, 4},
    {{128, 16, 16}, 4, 4, 1},
    {{16, 128, 16}, 4, 1, 4},
    {{64, 64, 16}, 3, 2, 2},
    {{64, 32, 16}, 3, 2, 2},
    {{32, 64, 16}, 3, 2, 2},
    {{32, 32, 16}, 3, 2, 2},
    {{128, 8, 16}, 4, 4, 1},
    {{8, 128, 16}, 4, 1, 4},
    {{32, 32, 16}, 3, 1, 1},
}};

// The mma.sync shape for the problem's types; f64 has larger shapes from sm_90 on.
TileShape tensor_instruction(const op::GemmSignature& signature, const Target& target, const TileRow& row) {
  const DType element = signature.a.element;
  if (element == DType::f64) {
    const arch::MmaAtom* large = arch::find_mma_atom(16, 8, row.instruction_k, DType::f64, DType::f64, DType::f64);
    if (target.has_features_of(large->min_target)) return {large->m, large->n, large->k};
    return {8, 8, 4};
  }
  if (bytes(element) == 1) return {16, 8, 32};
  // fast_f16 and fast_bf16 could use k = 16, but would then load two steps of f32 at once and run out of registers.
  if (element == DType::f32) return {16, 8, 8};
  return {16, 8, 16};
}

std::span<const TileRow> tensor_rows(const op::GemmSignature& signature) {
  if (signature.a.element == DType::f64) return kDoubleTiles;
  if (signature.math == op::MathOperation::multiply_add_fast_f32) return kSplitTiles;
  return kTensorTiles;
}

std::span<const TileRow> simt_rows(const op::GemmSignature& signature) {
  if (op::is_interleaved(signature.a.layout) || op::is_interleaved(signature.b.layout)) return kSimtInterleavedTiles;
  const bool is_alone = signature.a.element == DType::f32 && signature.math == op::MathOperation::multiply_add;
  if (is_alone) return kSimtOnlyTiles;
  const bool is_folded = signature.a.folded_modes != 0 || signature.b.folded_modes != 0;
  return is_folded ? std::span<const TileRow>(kSimtFoldedTiles) : kSimtTiles;
}

/// With groups, bands of the stack are walked across; see raster_of() of sm90/search.cpp.
Raster raster_of(const op::GemmSignature& signature) {
  const bool has_stack = op::differs_in_m(signature.groups) || op::differs_in_n(signature.groups);
  return {.width = kRasterWidth,
          .along_n = has_stack ? op::differs_in_m(signature.groups) : computes_transposed(signature)};
}

/// @param bytes_per_k bytes per element if the k of the row is in bytes, else 1
GemmTiling tiling_of(const TileRow& row, const op::GemmSignature& signature, const Target& target, int bytes_per_k) {
  return {target,      {row.shape.m, row.shape.n, row.shape.k / bytes_per_k},
          row.stages,  row.warps_m,
          row.warps_n, raster_of(signature)};
}

Result<SimtGemmPlan> plan_of(const op::GemmSignature& signature, const SimtGemmDesign& design) {
  return plan_simt_gemm(signature, design);
}
Result<Sm80GemmPlan> plan_of(const op::GemmSignature& signature, const Sm80GemmDesign& design) {
  return plan_sm80_gemm(signature, design);
}

/// Whether the tile is for few rows or columns, of which the problem has more.
bool is_too_narrow(const op::GemmView& view, const op::GemmSignature& signature, const TileShape& tile) {
  constexpr int kNarrow = 16;
  if (tile.m == tile.n) return false;
  const bool is_transposed = computes_transposed(signature);
  const std::int64_t m = is_transposed ? view.n() : view.m();
  const std::int64_t n = is_transposed ? view.m() : view.n();
  return (tile.m == kNarrow && m > kNarrow) || (tile.n == kNarrow && n > kNarrow);
}

/// The values of split_k to try for a plan without split-K: those that give each SM one, two, ... CTAs, up to as many
/// as it can hold. There are none if the tiles alone do that.
template <class Plan>
std::vector<int> split_k_to_fill_sms(const Plan& plan, std::int64_t tiles, std::int64_t k_tiles) {
  std::vector<int> values;
  if (tiles == 0) return values;
  for (int per_sm = 1; per_sm <= residence_of(plan).ctas_per_sm; per_sm *= 2) {
    const std::int64_t split_k = std::min(per_sm * arch::limits(plan.target).sm_count / tiles, k_tiles);
    if (split_k > 1 && std::ranges::count(values, split_k) == 0) values.push_back(static_cast<int>(split_k));
  }
  return values;
}

/// The values of split_k that shorten the last wave. With a value, the busiest CTA computes busiest(split_k) tiles. The
/// values are in ascending order: those whose busiest CTA computes less than with every smaller value, and some that
/// are nearly as good, because the estimate also counts the exchanges, which are fewer with a small split_k.
template <class Busiest>
std::vector<int> split_k_to_even_waves(std::int64_t most, const Busiest& busiest) {
  constexpr int kMaxSplitK = 33;  // with 66, 5 of 99 problems of f32 had shorter estimates, by 6 % at most
  constexpr double kLess = 0.97, kNearlyAsGood = 1.03;
  constexpr int kMostNearlyAsGood = 4;  // each value takes a plan and an estimate
  std::vector<int> values;
  const double whole = busiest(1);
  double least = whole;
  int nearly_as_good = 0;
  const auto last = static_cast<int>(std::min<std::int64_t>(kMaxSplitK, most));
  for (int split_k = 2; split_k <= last; ++split_k) {
    const double tiles = busiest(split_k);
    const bool is_less = tiles < kLess * least;
    const bool is_near = tiles < kLess * whole && tiles <= kNearlyAsGood * least;
    if (!is_less && (!is_near || nearly_as_good == kMostNearlyAsGood)) continue;
    nearly_as_good += is_less ? 0 : 1;
    least = std::min(least, tiles);
    values.push_back(split_k);
  }
  return values;
}

/// The values of split_k to try for a plan without split-K.
template <class Plan>
std::vector<int> split_k_worth_trying(const Plan& plan, const op::GemmView& view, bool in_turn) {
  constexpr std::int64_t kMinTilesOfPart = 8;  // the exchange of shorter parts takes longer than it saves
  const std::int64_t m = plan.is_transposed ? view.n() : view.m();
  const std::int64_t n = plan.is_transposed ? view.m() : view.n();
  const std::int64_t tiles = ceil_div(m, plan.tile.m) * ceil_div(n, plan.tile.n) * view.batch();
  const std::int64_t k_tiles = view.reads_product ? ceil_div(view.k(), plan.tile.k) : 0;
  if (tiles == 0) return {};
  const Residence residence = residence_of(plan);
  const auto most_of = [](std::int64_t work, std::int64_t workers) {
    return static_cast<double>(ceil_div(work, workers));
  };
  // CTAs that do not wait for each other share the time of an SM.
  const double whole = most_of(tiles, residence.sms) / residence.ctas_per_sm;
  const auto in_parts = [&](int split_k) {
    return split_k == 1 ? whole : parts_of_busiest_sm(residence, tiles * split_k) / split_k / residence.ctas_per_sm;
  };
  // Groups of split_k CTAs take the tiles in turn. 132 SMs of two CTAs each compute 34 tiles with 238 CTAs if split_k
  // is 7, and with 255 if it is 15, where each of 17 groups takes two tiles.
  const auto in_groups = [&](int split_k) {
    return split_k == 1 ? whole : most_of(tiles, residence.groups(split_k)) / split_k;
  };
  const std::int64_t most = std::min<std::int64_t>(k_tiles / kMinTilesOfPart, residence.ctas());
  if (in_turn) {
    // With fewer tiles, most CTAs wait for the earlier parts of their tile: f32 928x576x29820, 256x4608x26549 and
    // 1408x880x49984 took 29, 12 and 7 % longer than with groups. Of 11 problems with more tiles, 8 took 4 to 9 % less
    // time, and 3 took 1 to 5 % more (H200, 2026-11-27).
    return 2 * tiles >= residence.ctas() ? split_k_to_even_waves(most, in_parts) : std::vector<int>{};
  }
  std::vector<int> values = split_k_to_fill_sms(plan, tiles, k_tiles);
  for (const int split_k : split_k_to_even_waves(most, in_groups)) {
    if (std::ranges::count(values, split_k) == 0) values.push_back(split_k);
  }
  return values;
}

/// The design with the split_k that has the shortest predicted time; none if no value is worth trying.
template <class Design>
std::optional<Design> best_split_k(const op::GemmView& view, const op::GemmSignature& signature, Design design,
                                   bool in_turn) {
  const auto whole = plan_of(signature, design);
  if (!whole) return std::nullopt;
  std::optional<Design> best;
  double best_us = 0;
  design.splits_in_turn = in_turn;
  for (const int split_k : split_k_worth_trying(*whole, view, in_turn)) {
    design.split_k = split_k;
    const auto plan = plan_of(signature, design);
    if (!plan) continue;
    const double us = estimate_us(arch::limits(design.target), cost_input(*plan, view));
    if (best && us >= best_us) continue;
    best = design;
    best_us = us;
  }
  return best;
}

template <class Design>
std::vector<Design> with_split_k(const op::GemmView& view, const op::GemmSignature& signature,
                                 std::vector<Design> designs) {
  if (signature.accumulator == DType::f16) return designs;  // no family splits K there
  if (signature.groups != op::GroupedMode::none) return designs;
  const std::size_t whole = designs.size();
  for (std::size_t i = 0; i < whole; ++i) {
    if (const std::optional<Design> split = best_split_k(view, signature, designs[i], false)) designs.push_back(*split);
    // Kernels of mma.sync have fewer CTAs on an SM, which hide less of an exchange: f64 2208x256x2560 and
    // 2048x2560x2048 took 10 and 5 % longer with parts in turn (H200, 2026-11-27).
    if constexpr (!std::is_same_v<Design, SimtGemmDesign>) continue;
    if (const std::optional<Design> split = best_split_k(view, signature, designs[i], true)) designs.push_back(*split);
  }
  return designs;
}

/// The designs with the raster order of a short K, if the problem has one.
template <class Design>
std::vector<Design> with_short_k_order(const op::GemmView& view, const op::GemmSignature& signature,
                                       const Target& target, std::vector<Design> designs) {
  if (signature.groups != op::GroupedMode::none) return designs;
  const arch::ArchLimits& limits = arch::limits(target);
  for (Design& design : designs) {
    const ProductShape product{.m = view.m(),
                               .n = view.n(),
                               .k = view.k(),
                               .tile = design.tile,
                               .element_bytes = bytes(signature.a.element),
                               .d_is_row_major = !computes_transposed(signature),
                               .bytes_of_d = view.m() * view.n() * view.batch() * bytes(signature.d.element)};
    if (has_short_k(limits, product)) design.raster = raster_of_short_k(limits, product);
  }
  return designs;
}

}  // namespace

std::vector<SimtGemmDesign> simt_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target) {
  return with_split_k(view, signature,
                      with_short_k_order(view, signature, target, simt_gemm_designs(signature, target)));
}

std::vector<Sm80GemmDesign> sm80_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target) {
  std::vector<Sm80GemmDesign> designs = sm80_gemm_designs(signature, target);
  if (signature.a.element != DType::f64) {  // whose estimate was fitted with all tiles
    std::erase_if(designs, [&](const Sm80GemmDesign& design) { return is_too_narrow(view, signature, design.tile); });
  }
  return with_split_k(view, signature, with_short_k_order(view, signature, target, std::move(designs)));
}

std::vector<SimtGemmDesign> simt_gemm_designs(const op::GemmSignature& signature, const Target& target) {
  const std::span<const TileRow> rows = simt_rows(signature);
  std::vector<SimtGemmDesign> designs;
  designs.reserve(rows.size());
  for (const TileRow& row : rows) designs.push_back({tiling_of(row, signature, target, 1)});
  return designs;
}

std::vector<Sm80GemmDesign> sm80_gemm_designs(const op::GemmSignature& signature, const Target& target) {
  const DType element = signature.a.element;
  if (element == DType::f32 && signature.math == op::MathOperation::multiply_add) return {};
  if (is_fp8(element)) return {};
  const std::span<const TileRow> rows = tensor_rows(signature);
  std::vector<Sm80GemmDesign> designs;
  designs.reserve(rows.size());
  for (const TileRow& row : rows) {
    designs.push_back({tiling_of(row, signature, target, bytes(element)), tensor_instruction(signature, target, row)});
  }
  return designs;
}

// The narrow tiles, which suit few rows or columns, are the longest along K. Where K is a multiple of that, all others
// have the same order.
std::optional<SimtGemmDesign> invariant_simt_gemm_design(const op::GemmSignature& signature, const Target& target) {
  const std::vector<SimtGemmDesign> designs = simt_gemm_designs(signature, target);
  return *std::ranges::max_element(designs, {}, [](const SimtGemmDesign& design) { return design.tile.k; });
}

// The instruction and the k of this tile are those of most tiles of its table.
std::optional<Sm80GemmDesign> invariant_sm80_gemm_design(const op::GemmSignature& signature, const Target& target) {
  const std::vector<Sm80GemmDesign> designs = sm80_gemm_designs(signature, target);
  const auto found = std::ranges::find_if(designs, [&](const Sm80GemmDesign& design) {
    return design.tile == TileShape{64, 64, 128 / bytes(signature.a.element)};
  });
  return found == designs.end() ? std::nullopt : std::optional(*found);
}

}  // namespace tilewright::plan
