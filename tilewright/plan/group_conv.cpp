#include "tilewright/plan/group_conv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
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
using image_lines::block_positions;

constexpr int kTile = 16;  // positions of one instruction, and its elements of K
constexpr int kOctet = 8;  // elements of a vector of 16 bytes
constexpr int kElementBytes = 2;
constexpr int kMaxChannels = 64;    // of a group
constexpr int kWideChannels = 32;   // of 64 bytes
constexpr int kChannelsOfCta = 64;  // lines of 128 bytes
constexpr int kWarps = 8, kMaxWarpTiles = 4, kMaxPositions = 64, kMaxRows = 16;
// Constants of the estimate.
constexpr double kFiltersUs = 3;  // of loading the filters and the first pixels

Support check_signature(const op::GemmSignature& signature) {
  const op::TensorSignature &a = signature.a, &b = signature.b;
  if (a.im2col != op::Im2colAccess::direct || signature.groups != op::GroupedMode::none)
    return refuse("computes an im2col matrix without divisors times filters").as(RefusalCode::operation);
  if (const Support products = check_half_products(signature); !products) return products;
  const bool is_filter = b.im2col == op::Im2colAccess::none && b.layout == op::MatrixLayout::column_major;
  const bool is_filter_of_dgrad = b.im2col == op::Im2colAccess::direct && b.layout == op::MatrixLayout::row_major;
  if ((!is_filter && !is_filter_of_dgrad) || b.folded_modes != 0 || b.is_pointer_array)
    return refuse("the filters must be contiguous along K, or be those of a gradient").as(RefusalCode::strides).of("w");
  if (std::min(a.alignment, b.alignment) < kOctet) {
    return refuse("vectors of {} channels are loaded, the operands are aligned to {} and {} elements", kOctet,
                  a.alignment, b.alignment)
        .as(RefusalCode::alignment);
  }
  if (const Support output = check_row_major_output(signature); !output) return output;
  return check_no_reductions(signature.epilogue);
}

FlatDesign design_of(const Target& target, const TileShape& tile, const TileShape& instruction, int rows) {
  FlatDesign design;
  design.target = target;
  design.op_class = OpClass::tensor_op;
  design.tile = tile;
  design.instruction = instruction;
  design.warps_m = kWarps;
  design.warps_n = 1;
  design.warps_k = rows;
  return design;
}

std::int64_t reach(const op::Im2colAxis& axis) { return (axis.taps - 1) * std::abs(axis.tap_step); }
std::int64_t pixels_of(const GroupConvPlan& plan, const op::Im2col& im2col) {
  return ((plan.rows - 1) * im2col.h.step + reach(im2col.h) + 1) *
         ((plan.positions() - 1) * im2col.w.step + reach(im2col.w) + 1);
}
std::int64_t smem_bytes(const GroupConvPlan& plan, const op::Im2col& im2col) {
  return plan.filter_bytes() + plan.stages * pixels_of(plan, im2col) * plan.pixel_bytes();
}
std::int64_t blocks_of(const GroupConvPlan& plan, const op::Im2col& im2col) {
  return im2col.images * ceil_div(im2col.h.positions, plan.rows) * ceil_div(im2col.w.positions, plan.positions());
}
std::int64_t slabs_of(const GroupConvPlan& plan, const op::GemmView& arguments) {
  const std::int64_t tiles_n = plan.groups_of_cta > 1 ? 1 : ceil_div(arguments.n(), plan.tile.n);
  return arguments.batch() / plan.groups_of_cta * tiles_n;
}
int resident_ctas(const GroupConvPlan& plan, const op::Im2col& im2col) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto bytes = static_cast<int>(smem_bytes(plan, im2col));
  return std::max(1, arch::resident_blocks(limits, plan.threads(), plan.registers(), bytes)) * limits.sm_count;
}
std::int64_t ctas_of_slab(const GroupConvPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.a.im2col;
  return std::clamp<std::int64_t>(resident_ctas(plan, im2col) / slabs_of(plan, arguments), 1, blocks_of(plan, im2col));
}

/// Whether the im2col matrix is a filter whose rows are (r, s, channel).
bool is_filter(const op::Im2col& im2col, std::int64_t rows, std::int64_t columns, int channels) {
  return im2col.h.is_identity() && im2col.w.is_identity() && im2col.images == rows && im2col.h.positions == columns &&
         im2col.w.positions == channels && im2col.blocks == 1;
}

}  // namespace

int GroupConvPlan::filter_bytes() const {
  return round_up(groups_of_cta * tile.n * filter_line_bytes() + steps() * 8, 16);
}
int GroupConvPlan::registers() const {
  constexpr int kOthers = 56;
  const int tiles_n = tile.n / 8;
  return kOthers + warp_tiles * tiles_n * 4 + 2 * (warp_tiles * 4 + tiles_n * 2);
}
int GroupConvPlan::ctas_per_sm() const {
  return std::max(1, arch::resident_blocks(arch::limits(target), threads(), registers(), 0));
}

layout::Layout filter_lines(const GroupConvPlan& plan) {
  using layout::IntTuple;
  const int pairs = plan.lane_columns() / 2;
  // Column c of instruction j belongs to lane c / 2: filter number (e, j, t, v), the first fastest, is column 2t + e of
  // instruction number pairs * v + j.
  const layout::Layout lines(IntTuple{2, pairs, 4, plan.tile.n / (8 * pairs)}, IntTuple{1, 8, 2, 8 * pairs});
  return layout::composition(layout::Layout(plan.tile.n, plan.filter_line_bytes()), lines);
}

layout::Layout filter_fragments(const GroupConvPlan& plan) {
  using layout::IntTuple;
  const int line = plan.filter_line_bytes();
  // A lane addresses row lane % 8 of matrix lane / 8. The matrices are both halves along K of one instruction, then
  // those of the next.
  const layout::Layout lanes(IntTuple{8, 2, 2}, IntTuple{line, kOctet * kElementBytes, 8 * line});
  return layout::concatenate({lanes, layout::Layout(plan.tile.n / kTile, kTile * line)});
}

std::vector<FlatDesign> group_conv_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                           const Target& target) {
  if (!check_signature(signature) || view.a.access != op::OperandAccess::im2col) return {};
  const op::Im2col& im2col = view.a.im2col;
  if (im2col.channels % kOctet != 0 || im2col.channels > kMaxChannels || view.n() % kOctet != 0 || view.n() == 0 ||
      view.k() > std::numeric_limits<std::int16_t>::max())
    return {};
  // Without groups, TMA loads boxes of 64 bytes and more as well.
  if (view.batch() == 1 && im2col.channels % kWideChannels == 0 && view.n() % kWideChannels == 0) return {};
  const auto channels = static_cast<int>(im2col.channels);
  int groups = 1;
  while (2 * groups * channels <= kChannelsOfCta && view.batch() % (2 * groups) == 0) groups *= 2;
  if (groups > 1 && view.n() > kMaxChannels) return {};
  const std::int64_t tiles_n = ceil_div(view.n(), kMaxChannels);
  const int filters = round_up(static_cast<int>(ceil_div(view.n(), tiles_n)), kTile);
  std::vector<FlatDesign> designs;
  for (const int most : {16, 32, kMaxPositions}) {
    const int positions = block_positions(im2col.w.positions, most);
    if (most > 16 && positions <= most / 2) continue;
    for (const int rows : {2, 4, 7, 8, 14, 16}) {
      for (const int warp_tiles : {1, 2, 4}) {
        designs.push_back(design_of(target, {rows * positions, filters, channels},
                                    {warp_tiles * kTile, groups, static_cast<int>(im2col.taps())}, rows));
      }
    }
  }
  return designs;
}

Result<GroupConvPlan> plan_group_conv(const op::GemmSignature& signature, const FlatDesign& design) {
  if (const Support computes = check_signature(signature); !computes) return computes.refusal();
  if (design != design_of(design.target, design.tile, design.instruction, design.warps_k)) {
    return refuse("group_conv offers a tile, rows as warps along k and an instruction shape on tensor cores, got {}",
                  to_string(design))
        .as(RefusalCode::design);
  }
  for (const Support& fits :
       {check_multiple("the output rows of a block", design.warps_k, 1, kMaxRows),
        check_multiple("the positions of a warp", design.instruction.m, kTile, kMaxWarpTiles * kTile),
        check_multiple("the channels of a group", design.tile.k, kOctet, kMaxChannels),
        check_multiple("the groups of a CTA", design.instruction.n, 1, kWarps),
        check_multiple("the filters of a group", design.tile.n, kTile, kMaxChannels),
        check_multiple("the pixels of a block", design.tile.m, kTile * design.warps_k, kMaxPositions * design.warps_k),
        check_multiple("the taps of a filter", design.instruction.k, 1, std::numeric_limits<std::int16_t>::max())}) {
    if (!fits) return fits.refusal();
  }
  if (kWarps % design.instruction.n != 0)
    return refuse("{} groups do not divide {} warps", design.instruction.n, kWarps).as(RefusalCode::design);
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  GroupConvPlan plan{*std::move(tile), design.target};
  plan.rows = design.warps_k;
  plan.groups_of_cta = design.instruction.n;
  plan.taps = design.instruction.k;
  plan.warp_tiles = design.instruction.m / kTile;
  const std::string what = fmt::format("{} positions and {} filters of a warp", design.instruction.m, plan.tile.n);
  const Support fits = check_registers(what, plan.registers(), plan.threads(), arch::limits(design.target));
  if (!fits) return fits.refusal();
  return plan;
}

Support check_arguments(const GroupConvPlan& plan, const op::GemmView& arguments) {
  if (arguments.a.access != op::OperandAccess::im2col)
    return refuse("computes an im2col matrix times filters").as(RefusalCode::operation);
  const op::Im2col& im2col = arguments.a.im2col;
  if (im2col.channels != plan.channels() ||
      (arguments.batch() > 1 && arguments.a.tensor.batch_stride() != plan.channels()) ||
      arguments.batch() % plan.groups_of_cta != 0) {
    return refuse("the code has {} groups of {} channels each, got {} groups of {}", plan.groups_of_cta,
                  plan.channels(), arguments.batch(), im2col.channels)
        .as(RefusalCode::shape);
  }
  const bool has_all_filters = plan.groups_of_cta == 1 || arguments.n() <= plan.tile.n;
  if (arguments.n() % kOctet != 0 || !has_all_filters || im2col.taps() != plan.taps) {
    return refuse("the code has filters of {} taps for up to {} columns, got {} for {}", plan.taps, plan.tile.n,
                  im2col.taps(), arguments.n())
        .as(RefusalCode::shape);
  }
  for (const auto& [operand, role] : {std::pair{&arguments.a, "x"}, {&arguments.b, "w"}}) {
    const op::Im2col& matrix = operand->im2col;
    const int aligned =
        operand->access == op::OperandAccess::im2col
            ? op::shared_alignment(operand->tensor, {matrix.image_stride, matrix.h.stride, matrix.w.stride,
                                                     operand->tensor.batch_stride()})
            : op::shared_alignment(operand->tensor, {operand->tensor.column_stride(), operand->tensor.batch_stride()});
    if (aligned < kOctet)
      return refuse("{} is aligned to {} elements, the kernel needs {}", role, aligned, kOctet)
          .as(RefusalCode::alignment)
          .of(role);
  }
  if (arguments.b.access == op::OperandAccess::im2col &&
      !is_filter(arguments.b.im2col, im2col.h.taps, im2col.w.taps, plan.channels())) {
    return refuse("the second operand is an im2col matrix, but not that of a filter").as(RefusalCode::strides);
  }
  constexpr std::int64_t kLimit = std::int64_t{1} << 30;
  for (const op::Im2colAxis* axis : {&im2col.h, &im2col.w}) {
    if (reach(*axis) + kMaxPositions * axis->step > kLimit / kMaxPositions)
      return refuse("taps {} pixels apart need too many lines", reach(*axis)).as(RefusalCode::shape);
  }
  const std::int64_t needed = smem_bytes(plan, im2col);
  if (needed > std::numeric_limits<int>::max())
    return refuse("needs {} bytes of shared memory", needed).as(RefusalCode::resources);
  if (const Support fits = check_smem(static_cast<int>(needed), plan.target); !fits) return fits;
  if (const std::int64_t ctas = blocks_of(plan, im2col) * slabs_of(plan, arguments); ctas > kLimit)
    return refuse("needs {} blocks, more than {}", ctas, kLimit).as(RefusalCode::shape);
  return check_launch(plan, {}, arguments);
}

Launch launch(const GroupConvPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.a.im2col;
  Launch launch = launch_gemm(plan, {}, static_cast<int>(smem_bytes(plan, im2col)), arguments);
  launch.grid = {static_cast<std::uint32_t>(ctas_of_slab(plan, arguments) * slabs_of(plan, arguments)), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  return launch;
}

double estimate_us(const GroupConvPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.a.im2col;
  const auto m = static_cast<double>(arguments.m()), n = static_cast<double>(arguments.n());
  const auto groups = static_cast<double>(arguments.batch());
  const double pixels = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent) * plan.channels();
  const double moved =
      groups * (pixels * kElementBytes + m * n * (bytes(plan.operands.d.element) + beside_bytes(plan.operands)));
  // Clocks of an SM for one tile of 16 positions and the filters of one group.
  const double steps = plan.steps(), tiles_n = plan.tile.n / 8.0;
  const double fma_per_clock = arch::fma_per_clock(limits, arch::MathUnit::mma_sync, plan.operands.a.element);
  const double multiply = steps * tiles_n * kTile * 8 * kTile / (fma_per_clock * kMultiplyShare);
  const double conflicts = im2col.w.step % 2 == 0 ? 2 : 1;
  const double loads = 4 * conflicts + (2 * tiles_n + 1) / plan.warp_tiles;
  const double smem = steps * loads / kSmemShare;
  const double stores = tiles_n * (12.0 + function_instructions(plan.operands.epilogue) * 2);
  const double issue = (steps * (tiles_n + 2 + (tiles_n / 2 + 2) / plan.warp_tiles) + stores) / kIssuesPerClock;
  constexpr double kInstructionsOfCopy = 12;
  const double copied = static_cast<double>(pixels_of(plan, im2col)) * plan.groups_of_cta * plan.channels() / kOctet;
  const double copy = copied / 32 * kInstructionsOfCopy / kIssuesPerClock;
  // Each warp takes whole sets of tiles; groups share a CTA's warps.
  const double teams = static_cast<double>(kWarps) / plan.groups_of_cta;
  const double tiles = plan.rows * (plan.positions() / static_cast<double>(kTile));
  const double rounds_of_warps = std::ceil(tiles / (teams * plan.warp_tiles)) * teams * plan.warp_tiles;
  const double block = rounds_of_warps * plan.groups_of_cta * std::max({multiply, smem, issue}) + copy;
  const auto slabs = static_cast<double>(slabs_of(plan, arguments));
  const auto ctas = static_cast<double>(ctas_of_slab(plan, arguments)) * slabs;
  const double rounds = std::ceil(static_cast<double>(blocks_of(plan, im2col)) * slabs / ctas);
  const double clocks = rounds * block * std::ceil(ctas / limits.sm_count);
  const double sm_us = clocks / (limits.clock_ghz * 1e3);
  const double dram_us = moved / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  return limits.launch_us + kCallUs + kFiltersUs + std::max(sm_us, dram_us) + kOverlapLoss * std::min(sm_us, dram_us);
}

SumOrder sum_order(const GroupConvPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  return {.unit = arch::MathUnit::mma_sync, .instruction = {kTile, 8, kTile}, .padded_k = plan.steps() * kTile};
}

}  // namespace tilewright::plan
