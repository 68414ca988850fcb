#include "tilewright/plan/stem_wgrad.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/image_lines.hpp"
#include "tilewright/plan/mma_conv_cost.hpp"
#include "tilewright/plan/signature_checks.hpp"
#include "tilewright/plan/wgrad_parameters.hpp"

namespace tilewright::plan {
namespace {

using namespace mma_conv;
using namespace image_lines;

constexpr int kMaxTaps = 16, kMaxWarps = 16, kMaxFilters = 128;
constexpr int kMaxDesignsOfFilters = 3;
constexpr int kMaxCtasPerSm = 4;  // with more, there are more partial sums than is worth it
constexpr int kSumBytes = 4;
constexpr std::int64_t kLimit = std::int64_t{1} << 30;
// Constants of the estimate.
constexpr double kMeetUs = 2.9;  // of the barrier, and of the partial sums
// Clocks that a CTA waits for each block of pixels: for its copy and for all warps; and for each row, for its first
// fragments. Fitted to 284 kernels for 31 stems (H200, 2026-11-28), whose times were estimated with an error of 13 %.
constexpr double kBlockClocks = 1800, kRowClocks = 40;

FlatDesign design_of(const Target& target, const StemWgradPlan& plan) {
  FlatDesign design;
  design.target = target;
  design.op_class = OpClass::tensor_op;
  design.tile = {plan.filters, plan.taps * plan.row_k, plan.rows * plan.positions};
  design.instruction = {plan.rows, plan.step, plan.row_k};
  design.stages = 2;
  design.warps_m = plan.taps;
  design.warps_n = plan.groups;
  return design;
}

std::int64_t lines_of(const StemWgradPlan& plan, const op::Im2col& im2col) {
  return (plan.rows - 1) * im2col.h.step + plan.taps;
}
std::int64_t smem_bytes(const StemWgradPlan& plan, const op::Im2col& im2col) {
  const std::int64_t buffer = plan.gradient_bytes() + lines_of(plan, im2col) * plan.line() * kElementBytes;
  return std::max<std::int64_t>(2 * buffer, plan.threads() * 4 * kSumBytes);
}
std::int64_t blocks_of(const StemWgradPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.b.im2col;
  if (!arguments.reads_product) return 0;
  return im2col.images * ceil_div(im2col.h.positions, plan.rows) * ceil_div(im2col.w.positions, plan.positions);
}
std::int64_t tiles_of(const StemWgradPlan& plan, const op::GemmView& arguments) {
  return ceil_div(arguments.m(), plan.filters);
}
int ctas_of_sm(const StemWgradPlan& plan, const op::Im2col& im2col) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto bytes = static_cast<int>(smem_bytes(plan, im2col));
  return std::min(plan.ctas_per_sm(), std::max(1, arch::resident_blocks(limits, plan.threads(), 0, bytes)));
}
/// CTAs that share the blocks of one tile of filters.
std::int64_t parts_of(const StemWgradPlan& plan, const op::GemmView& arguments) {
  const std::int64_t resident = std::int64_t{ctas_of_sm(plan, arguments.b.im2col)} * arch::limits(plan.target).sm_count;
  return std::clamp<std::int64_t>(resident / tiles_of(plan, arguments), 1,
                                  std::max<std::int64_t>(blocks_of(plan, arguments), 1));
}
std::int64_t workspace_bytes(const StemWgradPlan& plan, const op::GemmView& arguments) {
  return static_cast<std::int64_t>(kWorkspaceCounterBytes) +
         parts_of(plan, arguments) * plan.groups * tiles_of(plan, arguments) * plan.quads() * 4 * kSumBytes;
}

/// `arguments` may be null for a sink that asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const StemWgradPlan& plan, const op::GemmView* arguments) {
  describe_wgrad_parameters(sink, plan.operands.epilogue, arguments, [&] {
    return WgradWork{.tiles = tiles_of(plan, *arguments),
                     .blocks = blocks_of(plan, *arguments),
                     .workspace_bytes = workspace_bytes(plan, *arguments)};
  });
}

}  // namespace

int StemWgradPlan::line() const { return line_elements(positions, step, row_k); }
int StemWgradPlan::gradient_line() const { return (filters + kVector) * kElementBytes; }
int StemWgradPlan::registers() const {
  constexpr int kOthers = 48;
  const int tiles_m = filters / kTile, tiles_n = row_k / kGroup;
  return kOthers + tiles_m * tiles_n * 4 + 2 * (tiles_m * 4 + tiles_n * 2);
}
int StemWgradPlan::ctas_per_sm() const {
  return std::clamp(arch::resident_blocks(arch::limits(target), threads(), registers(), 0), 1, kMaxCtasPerSm);
}

layout::Layout gradient_fragments(const StemWgradPlan& plan) {
  using layout::IntTuple;
  const int line = plan.gradient_line();
  // A lane addresses row lane % 8 of matrix lane / 8; a row has 8 filters of one position. The matrices are both halves
  // of the filters, then the same of the last 8 positions.
  const layout::Layout lanes(IntTuple{kGroup, 2, 2}, IntTuple{line, kGroup * kElementBytes, kGroup * line});
  return layout::concatenate({lanes, layout::Layout(plan.filters / kTile, kTile * kElementBytes),
                              layout::Layout(plan.positions / kTile, kTile * line)});
}

std::vector<FlatDesign> stem_wgrad_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                           const Target& target) {
  if (!check_wgrad_signature(signature) || view.b.access != op::OperandAccess::im2col) return {};
  const op::Im2col& im2col = view.b.im2col;
  if (!has_code(im2col, kMaxTaps)) return {};
  StemWgradPlan plan{.operands = signature,
                     .target = target,
                     .positions = block_positions(im2col.w.positions, kMaxPositions),
                     .taps = static_cast<int>(im2col.h.taps),
                     .row_k = static_cast<int>(row_k_of(im2col)),
                     .step = static_cast<int>(step_of(im2col))};
  const int filters = round_up(static_cast<int>(std::min<std::int64_t>(view.m(), kMaxFilters)), kTile);
  std::vector<FlatDesign> designs;
  int kinds = 0;
  for (const int most : {128, 96, 64, 48, 32, 16}) {
    if (most > filters || kinds == kMaxDesignsOfFilters) continue;
    plan.filters = most;
    bool has_registers = false;
    for (const auto& [rows, groups] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}, {8, 2}, {8, 4}}) {
      plan.rows = rows;
      plan.groups = groups;
      if (plan.taps * groups > kMaxWarps || !plan_stem_wgrad(signature, design_of(target, plan))) continue;
      has_registers = true;
      designs.push_back(design_of(target, plan));
    }
    if (has_registers) ++kinds;
  }
  return designs;
}

Result<StemWgradPlan> plan_stem_wgrad(const op::GemmSignature& signature, const FlatDesign& design) {
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has.refusal();
  if (const Support computes = check_wgrad_signature(signature); !computes) return computes.refusal();
  for (const Support& fits : {check_multiple("the output rows of a block", design.instruction.m, 1, kMaxPositions),
                              check_multiple("the step", design.instruction.n, 1, kMaxStep),
                              check_multiple("the row of a window", design.instruction.k, kGroup, kMaxRowK),
                              check_multiple("the filters of a CTA", design.tile.m, kTile, kMaxFilters),
                              check_multiple("the rows of a window", design.warps_m, 1, kMaxTaps),
                              check_multiple("the groups of warps", design.warps_n, 1, kMaxWarps / design.warps_m)}) {
    if (!fits) return fits.refusal();
  }
  StemWgradPlan plan{.operands = signature,
                     .target = design.target,
                     .filters = design.tile.m,
                     .rows = design.instruction.m,
                     .positions = design.tile.k / design.instruction.m,
                     .taps = design.warps_m,
                     .row_k = design.instruction.k,
                     .step = design.instruction.n,
                     .groups = design.warps_n};
  if (design != design_of(design.target, plan)) {
    return refuse("stem_wgrad offers a tile, warps and an instruction shape on tensor cores, got {}", to_string(design))
        .as(RefusalCode::design);
  }
  if (const Support fits = check_multiple("the positions of a block's row", plan.positions, kTile, kMaxPositions);
      !fits)
    return fits.refusal();
  const std::string what = fmt::format("{} filters and {} elements of a row of the window", plan.filters, plan.row_k);
  const Support fits = check_registers(what, plan.registers(), plan.threads(), arch::limits(design.target));
  if (!fits) return fits.refusal();
  return plan;
}

Support check_arguments(const StemWgradPlan& plan, const op::GemmView& arguments) {
  if (arguments.a.access != op::OperandAccess::strided || arguments.b.access != op::OperandAccess::im2col ||
      arguments.batch() != 1) {
    return refuse("multiplies one gradient by one im2col matrix").as(RefusalCode::operation);
  }
  const op::Im2col& im2col = arguments.b.im2col;
  if (const Support fits = check_window(im2col, plan.step, plan.taps, plan.row_k); !fits) return fits;
  if (arguments.m() % kVector != 0)
    return refuse("the {} filters must be a multiple of {}", arguments.m(), kVector).as(RefusalCode::shape);
  if (const int aligned = op::shared_alignment(arguments.a.tensor, {arguments.a.tensor.column_stride()});
      aligned < kVector) {
    return refuse("y is aligned to {} elements, the kernel needs {}", aligned, kVector)
        .as(RefusalCode::alignment)
        .of("y");
  }
  if (const std::int64_t rows = lines_of(plan, im2col); rows > kLimit / plan.line() / kElementBytes)
    return refuse("a block needs {} lines of x", rows).as(RefusalCode::resources);
  const std::int64_t needed = smem_bytes(plan, im2col);
  if (needed > std::numeric_limits<int>::max())
    return refuse("needs {} bytes of shared memory", needed).as(RefusalCode::resources);
  if (const Support fits = check_smem(static_cast<int>(needed), plan.target); !fits) return fits;
  for (const auto& [what, count] : {std::pair{"filters", arguments.m()},
                                    {"pixels", arguments.k()},
                                    {"blocks of pixels", blocks_of(plan, arguments)}}) {
    if (count > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, count).as(RefusalCode::shape);
  }
  const std::int64_t resident = std::int64_t{ctas_of_sm(plan, im2col)} * arch::limits(plan.target).sm_count;
  if (const std::int64_t tiles = tiles_of(plan, arguments); tiles > resident) {
    return refuse("{} tiles of {} filters need a resident CTA each, of {}", tiles, plan.filters, resident)
        .as(RefusalCode::resources);
  }
  return check_workspace(workspace_bytes(plan, arguments));
}

ParameterLayout parameter_layout(const StemWgradPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const StemWgradPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.b.im2col;
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(parts_of(plan, arguments) * tiles_of(plan, arguments)), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(plan, im2col));
  launch.cooperative = true;
  launch.ctas_per_sm = ctas_of_sm(plan, im2col);
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &arguments);
  return launch;
}

double estimate_us(const StemWgradPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.b.im2col;
  const auto tiles = static_cast<double>(tiles_of(plan, arguments));
  const double pixels = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent * im2col.channels);
  const double outputs = static_cast<double>(arguments.k()) * static_cast<double>(arguments.m());
  const double dram_us = (pixels + outputs) * kElementBytes / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  // Clocks of an SM for 16 positions of one output row: all rows of the window and all filters of a CTA.
  const double taps = plan.taps, tiles_m = static_cast<double>(plan.filters) / kTile;
  const double tiles_n = static_cast<double>(plan.row_k) / kGroup;
  const bool has_pairs = plan.step % 2 == 0;
  const double single = has_pairs ? static_cast<double>(plan.row_k / kGroup % 2) : tiles_n;
  const double loads = 2 * (tiles_n - single) + 4 * single;  // of words, or of single elements
  const double fma_per_clock = arch::fma_per_clock(limits, arch::MathUnit::mma_sync, plan.operands.a.element);
  const double multiply = taps * tiles_m * tiles_n * kTile * kGroup * kTile / (fma_per_clock * kMultiplyShare);
  const double smem = taps * (4 * tiles_m + loads * load_clocks(2, 2 * plan.step)) / kSmemShare;
  const double issue = taps * (tiles_m * tiles_n + tiles_m + loads * 1.5 + 8) / kIssuesPerClock;
  const auto parts = static_cast<double>(parts_of(plan, arguments));
  const auto blocks = static_cast<double>(blocks_of(plan, arguments));
  const double rounds = std::ceil(blocks / parts);
  const double ctas_of_sm = std::ceil(parts * tiles / limits.sm_count);
  const double steps_of_block = plan.rows * static_cast<double>(plan.positions) / kTile;
  const double steps = rounds * steps_of_block * ctas_of_sm;
  const double lines = static_cast<double>(lines_of(plan, im2col)) * plan.line();
  const double copy = plan.filters * kElementBytes * kTile / 512.0 * 14 / kIssuesPerClock +
                      line_copy_clocks(arguments.b, lines, plan.threads(), ctas_of_sm) / steps_of_block;
  const double rows_of_group = std::ceil(static_cast<double>(plan.rows) / plan.groups);
  const double idle_groups = rows_of_group * plan.groups / plan.rows;
  const double waited = rounds * (kBlockClocks + kRowClocks * rows_of_group);
  const double clocks = steps * (std::max({multiply, smem, issue}) * idle_groups + copy) + waited;
  const double sm_us = clocks / (limits.clock_ghz * 1e3);
  return limits.launch_us + kCallUs + kMeetUs + std::max(sm_us, dram_us) + kOverlapLoss * std::min(sm_us, dram_us);
}

}  // namespace tilewright::plan
