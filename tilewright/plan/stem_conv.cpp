#include "tilewright/plan/stem_conv.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/epilogue_cost.hpp"
#include "tilewright/plan/image_lines.hpp"
#include "tilewright/plan/mma_conv_cost.hpp"
#include "tilewright/plan/signature_checks.hpp"

namespace tilewright::plan {
namespace {

using namespace mma_conv;
using namespace image_lines;

constexpr int kColumns = 32;  // columns of D of which each lane has one vector
constexpr int kMaxGroups = 64, kMaxWarpTiles = 4, kMaxFilters = 128;
// Constants of the estimate.
constexpr double kStartUs = 1.4;  // beyond the launch, with loading the first lines
// Clocks that a CTA waits for each block of pixels: for its copy and for all warps; and that a warp waits in each run
// of tiles for its first fragments, and for the stores of 8 columns of a tile. Fitted to 121 kernels for 24 stems
// (H200, 2026-11-28), whose times were estimated with an error of 17 %.
constexpr double kBlockClocks = 760, kRunClocks = 155, kStoreClocks = 10;
// The time in which each thread loads 16 elements of the filters. It does not depend on the number of threads: a CTA of
// 64 threads and 96 filters of 224 elements took 37 us longer than its blocks (H100, 2026-11-26).
constexpr double kFiltersUs = 1.8;
constexpr double kFiltersTogether = 16;

Support check_signature(const op::GemmSignature& signature) {
  const op::TensorSignature &a = signature.a, &b = signature.b;
  if (a.im2col != op::Im2colAccess::direct || b.im2col != op::Im2colAccess::none ||
      signature.groups != op::GroupedMode::none)
    return refuse("computes an im2col matrix without divisors times filters").as(RefusalCode::operation);
  if (const Support products = check_half_products(signature); !products) return products;
  if (b.layout != op::MatrixLayout::column_major || b.folded_modes != 0)
    return refuse("the taps and channels of each filter must follow each other").as(RefusalCode::strides).of("w");
  if (const Support output = check_row_major_output(signature); !output) return output;
  return check_no_reductions(signature.epilogue);
}

FlatDesign design_of(const Target& target, const TileShape& tile, const TileShape& instruction, int warps) {
  FlatDesign design;
  design.target = target;
  design.op_class = OpClass::tensor_op;
  design.tile = tile;
  design.instruction = instruction;
  design.warps_m = warps;
  design.warps_n = 1;
  return design;
}

std::int64_t lines_of(const StemConvPlan& plan, const op::Im2col& im2col) {
  return (plan.warps_m - 1) * im2col.h.step + plan.taps();
}
std::int64_t smem_bytes(const StemConvPlan& plan, const op::Im2col& im2col) {
  return plan.filter_bytes() + plan.stages * lines_of(plan, im2col) * plan.line() * kElementBytes;
}
std::int64_t blocks_of(const StemConvPlan& plan, const op::Im2col& im2col) {
  return im2col.images * ceil_div(im2col.h.positions, plan.warps_m) * ceil_div(im2col.w.positions, plan.positions());
}
int resident_ctas(const StemConvPlan& plan, const op::Im2col& im2col) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto bytes = static_cast<int>(smem_bytes(plan, im2col));
  return std::max(1, arch::resident_blocks(limits, plan.threads(), plan.registers(), bytes)) * limits.sm_count;
}

/// Clocks of shared memory for one load of a register of A's fragment by a warp. Lane 4*i + j reads pair j of position
/// i, by two loads if pairs are not aligned.
int fragment_load_clocks(int step) { return load_clocks(step, 2) * (step % 2 == 0 ? 1 : 2); }

}  // namespace

int StemConvPlan::line() const { return line_elements(positions(), step, row_k); }
int StemConvPlan::filter_line_bytes() const { return (steps() * kTile + kVector) * kElementBytes; }
int StemConvPlan::registers() const {
  constexpr int kOthers = 48;
  const int tiles_n = tile.n / kGroup;
  return kOthers + warp_tiles * tiles_n * 4 + 2 * (warp_tiles * 4 + tiles_n * 2);
}
int StemConvPlan::ctas_per_sm() const {
  return std::max(1, arch::resident_blocks(arch::limits(target), threads(), registers(), 0));
}

layout::Layout filter_layout(const StemConvPlan& plan) {
  using layout::IntTuple;
  const int line = plan.filter_line_bytes();
  // Column c of instruction j belongs to lane c / 2. Of 32 filters, lane t has filters 8t to 8t + 7: filter number
  // (e, j, t, v), the first fastest, is column 2t + e of instruction 4v + j.
  const layout::Layout lines(IntTuple{2, 4, 4, plan.tile.n / kColumns}, IntTuple{1, kGroup, 2, kColumns});
  return layout::concatenate({layout::composition(layout::Layout(plan.tile.n, line), lines),
                              layout::Layout(plan.steps() * kTile, kElementBytes)});
}

layout::Layout filter_fragments(const StemConvPlan& plan) {
  using layout::IntTuple;
  const int line = plan.filter_line_bytes();
  // A lane addresses row lane % 8 of matrix lane / 8. The matrices are both halves along K of one instruction, then
  // those of the next.
  const layout::Layout lanes(IntTuple{kGroup, 2, 2}, IntTuple{line, kGroup * kElementBytes, kGroup * line});
  return layout::concatenate({lanes, layout::Layout(plan.tile.n / (2 * kGroup), 2 * kGroup * line),
                              layout::Layout(plan.steps(), kTile * kElementBytes)});
}

std::vector<FlatDesign> stem_conv_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                          const Target& target) {
  if (!check_signature(signature) || view.a.access != op::OperandAccess::im2col) return {};
  const op::Im2col& im2col = view.a.im2col;
  const std::int64_t row_k = row_k_of(im2col), step = step_of(im2col);
  if (row_k == 0 || !has_code(im2col, kMaxGroups * kGroup / row_k)) return {};
  const int filters = round_up(static_cast<int>(std::min<std::int64_t>(view.n(), kMaxFilters)), kColumns);
  std::vector<FlatDesign> designs;
  const auto add = [&](int positions, int warps) {
    for (const auto& [n, warp_tiles] : {std::pair{32, 4}, {32, 2}, {64, 2}, {64, 4}, {96, 2}, {128, 2}}) {
      if (n > filters || (n == kColumns && filters >= 2 * kColumns)) continue;
      designs.push_back(design_of(target, {warps * positions, n, static_cast<int>(im2col.h.taps * row_k)},
                                  {warp_tiles * kTile, static_cast<int>(step), static_cast<int>(row_k)}, warps));
    }
  };
  const int positions = block_positions(im2col.w.positions, kMaxPositions);
  for (const int warps : {4, 8}) add(positions, warps);
  // A few images have fewer blocks than the GPU has places for CTAs.
  constexpr int kFewCtasOfSm = 2, kFewPositions = 32;
  const std::int64_t blocks = im2col.images * ceil_div(im2col.h.positions, 4) * ceil_div(im2col.w.positions, positions);
  if (blocks < std::int64_t{kFewCtasOfSm} * arch::limits(target).sm_count) {
    add(positions, 2);
    if (const int fewer = block_positions(im2col.w.positions, kFewPositions); fewer < positions) add(fewer, 4);
  }
  return designs;
}

Result<StemConvPlan> plan_stem_conv(const op::GemmSignature& signature, const FlatDesign& design) {
  if (const Support computes = check_signature(signature); !computes) return computes.refusal();
  if (design != design_of(design.target, design.tile, design.instruction, design.warps_m)) {
    return refuse("stem_conv offers a tile, warps along m and an instruction shape on tensor cores, got {}",
                  to_string(design))
        .as(RefusalCode::design);
  }
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  StemConvPlan plan{*std::move(tile), design.target};
  for (const Support& fits :
       {check_multiple("the positions of a warp", design.instruction.m, kTile, kMaxWarpTiles * kTile),
        check_multiple("the step", design.instruction.n, 1, kMaxStep),
        check_multiple("the row of a window", design.instruction.k, kGroup, kMaxRowK),
        check_multiple("the positions of a block's row", plan.positions(), kTile, kMaxPositions),
        check_multiple("the filters of a CTA", plan.tile.n, kColumns, kMaxFilters)}) {
    if (!fits) return fits.refusal();
  }
  plan.warp_tiles = design.instruction.m / kTile;
  plan.step = design.instruction.n;
  plan.row_k = design.instruction.k;
  if (const Support fits = check_multiple("the elements of a window", plan.tile.k, plan.row_k, kMaxGroups * kGroup);
      !fits)
    return fits.refusal();
  const std::string what = fmt::format("{} positions and {} filters of a warp", design.instruction.m, plan.tile.n);
  const Support fits = check_registers(what, plan.registers(), plan.threads(), arch::limits(design.target));
  if (!fits) return fits.refusal();
  return plan;
}

Support check_arguments(const StemConvPlan& plan, const op::GemmView& arguments) {
  if (arguments.a.access != op::OperandAccess::im2col || arguments.b.access != op::OperandAccess::strided ||
      arguments.batch() != 1) {
    return refuse("computes one im2col matrix times filters").as(RefusalCode::operation);
  }
  const op::Im2col& im2col = arguments.a.im2col;
  if (const Support fits = check_window(im2col, plan.step, plan.taps(), plan.row_k); !fits) return fits;
  constexpr std::int64_t kLimit = std::int64_t{1} << 30;
  if (const std::int64_t rows = lines_of(plan, im2col); rows > kLimit / plan.line() / kElementBytes)
    return refuse("a block needs {} lines of x", rows).as(RefusalCode::resources);
  const std::int64_t needed = smem_bytes(plan, im2col);
  if (needed > std::numeric_limits<int>::max())
    return refuse("needs {} bytes of shared memory", needed).as(RefusalCode::resources);
  if (const Support fits = check_smem(static_cast<int>(needed), plan.target); !fits) return fits;
  if (const std::int64_t blocks = blocks_of(plan, im2col); blocks > kLimit)
    return refuse("needs {} blocks, more than {}", blocks, kLimit).as(RefusalCode::shape);
  return check_launch(plan, {}, arguments);
}

Launch launch(const StemConvPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.a.im2col;
  Launch launch = launch_gemm(plan, {}, static_cast<int>(smem_bytes(plan, im2col)), arguments);
  const std::int64_t tiles = ceil_div(arguments.n(), plan.tile.n);
  const std::int64_t tile_ctas =
      std::clamp<std::int64_t>(resident_ctas(plan, im2col) / tiles, 1, blocks_of(plan, im2col));
  launch.grid = {static_cast<std::uint32_t>(tile_ctas * tiles), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  return launch;
}

double estimate_us(const StemConvPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.a.im2col;
  const auto m = static_cast<double>(arguments.m()), n = static_cast<double>(arguments.n());
  const auto tiles_n = static_cast<double>(ceil_div(arguments.n(), plan.tile.n));
  const double pixels = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent * im2col.channels);
  const double moved = pixels * kElementBytes + m * n * (bytes(plan.operands.d.element) + beside_bytes(plan.operands));
  // Clocks of an SM for one tile of 16 positions and all filters of a CTA.
  const double steps = plan.steps(), instructions = static_cast<double>(plan.tile.n) / kGroup;
  const double fma_per_clock = arch::fma_per_clock(limits, arch::MathUnit::mma_sync, plan.operands.a.element);
  const double multiply = steps * instructions * kTile * kGroup * kTile / (fma_per_clock * kMultiplyShare);
  const double filter_loads = instructions / 2 / plan.warp_tiles;  // ldmatrix.x4, four clocks each
  const double smem = steps * (4 * fragment_load_clocks(plan.step) + 4 * filter_loads) / kSmemShare;
  const double loads = 4 * (plan.step % 2 == 0 ? 1.5 : 4);  // with their masks
  const double stores = instructions * (12.0 + function_instructions(plan.operands.epilogue) * kGroup / 4);
  const double issue = (steps * (instructions + loads + filter_loads) + stores) / kIssuesPerClock;
  const double rows = static_cast<double>(round_up(im2col.h.positions, plan.warps_m));
  const double tiles =
      static_cast<double>(im2col.images) * rows * static_cast<double>(ceil_div(im2col.w.positions, kTile)) * tiles_n;
  const auto blocks = static_cast<double>(blocks_of(plan, im2col)) * tiles_n;
  const double lines = static_cast<double>(lines_of(plan, im2col)) * plan.line();
  const double ctas = std::min<double>(blocks, resident_ctas(plan, im2col));
  const double ctas_of_sm = std::max(1.0, ctas / limits.sm_count);
  const double copies = blocks * line_copy_clocks(arguments.a, lines, plan.threads(), ctas_of_sm);
  const std::int64_t tiles_of_row = ceil_div(std::min<std::int64_t>(plan.positions(), im2col.w.positions), kTile);
  const auto runs = static_cast<double>(tiles_of_row / plan.warp_tiles + tiles_of_row % plan.warp_tiles);
  const double waited = kBlockClocks + runs * (kRunClocks + kStoreClocks * instructions * plan.warp_tiles);
  const double rounds = blocks / ctas;
  const double unused = std::ceil(rounds) / rounds * limits.sm_count / std::min<double>(limits.sm_count, ctas);
  const double clocks =
      (tiles * std::max({multiply, smem, issue}) + copies + blocks * waited / ctas_of_sm) * unused / limits.sm_count;
  const double sm_us = clocks / (limits.clock_ghz * 1e3);
  const double dram_us = moved / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  const double filter_us = kFiltersUs * plan.tile.n * plan.steps() * kTile / (plan.threads() * kFiltersTogether);
  return limits.launch_us + kStartUs + filter_us + std::max(sm_us, dram_us) + kOverlapLoss * std::min(sm_us, dram_us);
}

SumOrder sum_order(const StemConvPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  return {.unit = arch::MathUnit::mma_sync,
          .instruction = {kTile, kGroup, kTile},
          .padded_k = plan.steps() * kTile,
          .row_k = plan.row_k,
          .row_lead = lead_of(arguments.a.im2col)};
}

}  // namespace tilewright::plan
