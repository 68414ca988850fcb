#include "tilewright/plan/group_wgrad.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/image_lines.hpp"
#include "tilewright/plan/mma_conv_cost.hpp"
#include "tilewright/plan/overlap.hpp"
#include "tilewright/plan/signature_checks.hpp"
#include "tilewright/plan/wgrad_parameters.hpp"

namespace tilewright::plan {
namespace {

using namespace mma_conv;
using image_lines::block_positions;

constexpr int kTile = 16;  // filters and positions of one instruction
constexpr int kOctet = 8;  // columns of one instruction
constexpr int kElementBytes = 2, kSumBytes = 4;
constexpr int kMaxChannels = 64;    // of a group
constexpr int kChannelsOfCta = 64;  // lines of 128 bytes
constexpr int kMaxWarps = 16, kMaxSums = 96, kMaxPositions = 64, kMaxRows = 16, kMaxTaps = 128;
constexpr int kMaxCtasPerSm = 4;  // with more, there are more partial sums than is worth it
constexpr std::int64_t kLimit = std::int64_t{1} << 30;
// Constants of the estimate. Those from kMeetUs on were fitted to 273 kernels for 16 layers (H200, 2026-11-28), whose
// first choice then takes 3.5 % longer than the fastest, and 29 % without the latency of a warp.
constexpr double kMeetUs = 4.6;          // of the barrier, and of the latency of the partial sums
constexpr double kL2BytesPerUs = 7.6e6;  // of partial sums
// Clocks of the SM, for a product of 16x8x16 and for the copy of 32 vectors.
constexpr double kMultiplyClocks = 3.1, kCopyClocks = 9.1;
// Clocks until a warp has done its part of a block: its barriers, 16 positions of a row, an octet of columns of these
// with 16 filters and with more, the copies of 32 vectors, and the lines that it copies.
constexpr double kBlockLatency = 1440, kStepLatency = 180, kOctetLatency = 3.2, kMoreFilters = 0.5, kCopyLatency = 11.9,
                 kLineLatency = 143;
constexpr double kLatencyPower = 4;  // of overlapped(), the time of the SM and the latency

FlatDesign design_of(const Target& target, const GroupWgradPlan& plan) {
  FlatDesign design;
  design.target = target;
  design.op_class = OpClass::tensor_op;
  design.tile = {plan.filters, plan.channels, plan.rows * plan.positions};
  design.instruction = {plan.rows, plan.groups, plan.taps};
  design.stages = 2;
  design.warps_m = plan.units;
  design.warps_n = 1;
  design.warps_k = plan.teams;
  return design;
}

int sums_of_warp(const GroupWgradPlan& plan) {
  return plan.filters / kTile * (plan.taps_of_warp() * plan.channels / kOctet) * 4;
}
std::int64_t reach(const op::Im2colAxis& axis) { return (axis.taps - 1) * std::abs(axis.tap_step); }
std::int64_t pixels_of(const GroupWgradPlan& plan, const op::Im2col& im2col) {
  return ((plan.rows - 1) * im2col.h.step + reach(im2col.h) + 1) *
         ((plan.positions - 1) * im2col.w.step + reach(im2col.w) + 1);
}
std::int64_t smem_bytes(const GroupWgradPlan& plan, const op::Im2col& im2col) {
  const std::int64_t buffer = plan.gradient_bytes() + pixels_of(plan, im2col) * plan.pixel_bytes();
  return std::max<std::int64_t>(2 * buffer, plan.threads() * 4 * kSumBytes);
}
std::int64_t blocks_of(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.b.im2col;
  if (!arguments.reads_product) return 0;
  return im2col.images * ceil_div(im2col.h.positions, plan.rows) * ceil_div(im2col.w.positions, plan.positions);
}
std::int64_t slabs_of(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  return arguments.batch() / plan.groups;
}
int ctas_of_sm(const GroupWgradPlan& plan, const op::Im2col& im2col) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto bytes = static_cast<int>(smem_bytes(plan, im2col));
  return std::min(plan.ctas_per_sm(), std::max(1, arch::resident_blocks(limits, plan.threads(), 0, bytes)));
}
/// CTAs that share the blocks of one slab.
std::int64_t parts_of(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  const std::int64_t resident = std::int64_t{ctas_of_sm(plan, arguments.b.im2col)} * arch::limits(plan.target).sm_count;
  return std::clamp<std::int64_t>(resident / slabs_of(plan, arguments), 1,
                                  std::max<std::int64_t>(blocks_of(plan, arguments), 1));
}
std::int64_t partial_bytes(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  return parts_of(plan, arguments) * plan.teams * slabs_of(plan, arguments) * plan.quads() * 4 * kSumBytes;
}
std::int64_t workspace_bytes(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  return static_cast<std::int64_t>(kWorkspaceCounterBytes) + partial_bytes(plan, arguments);
}

/// `arguments` may be null for a sink that asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const GroupWgradPlan& plan, const op::GemmView* arguments) {
  describe_wgrad_parameters(sink, plan.operands.epilogue, arguments, [&] {
    return WgradWork{.tiles = slabs_of(plan, *arguments),
                     .blocks = blocks_of(plan, *arguments),
                     .workspace_bytes = workspace_bytes(plan, *arguments)};
  });
}

}  // namespace

int GroupWgradPlan::registers() const {
  constexpr int kOthers = 56;
  const int pairs = (taps_of_warp() * channels / kOctet + 1) / 2;
  return kOthers + sums_of_warp(*this) + filters / kTile * 4 + pairs * 5;
}
int GroupWgradPlan::ctas_per_sm() const {
  return std::clamp(arch::resident_blocks(arch::limits(target), threads(), registers(), 0), 1, kMaxCtasPerSm);
}

layout::Layout gradient_fragments(const GroupWgradPlan& plan) {
  using layout::IntTuple;
  const int pixel = plan.gradient_pixel_bytes();
  // A lane addresses row lane % 8 of matrix lane / 8; a row has 8 filters of one position. The matrices are both halves
  // of the filters, then the same of the last 8 positions.
  const layout::Layout lanes(IntTuple{8, 2, 2}, IntTuple{pixel, 8 * kElementBytes, 8 * pixel});
  return layout::concatenate({lanes, layout::Layout(plan.filters / kTile, kTile * kElementBytes),
                              layout::Layout(plan.positions / kTile, kTile * pixel)});
}

std::vector<FlatDesign> group_wgrad_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                            const Target& target) {
  if (!image_lines::check_wgrad_signature(signature) || view.b.access != op::OperandAccess::im2col || view.batch() < 2)
    return {};
  const op::Im2col& im2col = view.b.im2col;
  if (im2col.channels % kOctet != 0 || im2col.channels > kMaxChannels || view.m() % kTile != 0 ||
      view.m() > kMaxChannels || view.m() == 0 || im2col.taps() > kMaxTaps || im2col.taps() == 0)
    return {};
  GroupWgradPlan plan{.operands = signature,
                      .target = target,
                      .channels = static_cast<int>(im2col.channels),
                      .filters = static_cast<int>(view.m()),
                      .taps = static_cast<int>(im2col.taps())};
  while (plan.units < plan.taps && sums_of_warp(plan) > kMaxSums) ++plan.units;
  if (sums_of_warp(plan) > kMaxSums) return {};
  while (2 * plan.groups * std::max(plan.channels, plan.filters) <= kChannelsOfCta &&
         view.batch() % (2 * plan.groups) == 0 && 2 * plan.groups * plan.units <= kMaxWarps)
    plan.groups *= 2;
  std::vector<FlatDesign> designs;
  for (const int most : {16, 32, kMaxPositions}) {
    plan.positions = block_positions(im2col.w.positions, most);
    if (most > 16 && plan.positions <= most / 2) continue;
    for (const int rows : {2, 4, 7, 8, 14}) {
      for (const int teams : {1, 2, 4}) {
        plan.rows = rows;
        plan.teams = teams;
        if (teams <= rows && plan.threads() <= 32 * kMaxWarps) designs.push_back(design_of(target, plan));
      }
    }
  }
  return designs;
}

Result<GroupWgradPlan> plan_group_wgrad(const op::GemmSignature& signature, const FlatDesign& design) {
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has.refusal();
  if (const Support computes = image_lines::check_wgrad_signature(signature); !computes) return computes.refusal();
  for (const Support& fits : {check_multiple("the output rows of a block", design.instruction.m, 1, kMaxRows),
                              check_multiple("the groups of a CTA", design.instruction.n, 1, kMaxWarps),
                              check_multiple("the taps", design.instruction.k, 1, kMaxTaps),
                              check_multiple("the filters of a group", design.tile.m, kTile, kMaxChannels),
                              check_multiple("the channels of a group", design.tile.n, kOctet, kMaxChannels),
                              check_multiple("the units", design.warps_m, 1, kMaxWarps),
                              check_multiple("the teams", design.warps_k, 1, kMaxWarps)}) {
    if (!fits) return fits.refusal();
  }
  GroupWgradPlan plan{.operands = signature,
                      .target = design.target,
                      .rows = design.instruction.m,
                      .positions = design.tile.k / design.instruction.m,
                      .groups = design.instruction.n,
                      .channels = design.tile.n,
                      .filters = design.tile.m,
                      .taps = design.instruction.k,
                      .units = design.warps_m,
                      .teams = design.warps_k};
  if (design != design_of(design.target, plan)) {
    return refuse("group_wgrad offers a tile, warps and an instruction shape on tensor cores, got {}",
                  to_string(design))
        .as(RefusalCode::design);
  }
  for (const Support& fits : {check_multiple("the positions of a block's row", plan.positions, kTile, kMaxPositions),
                              check_multiple("the warps", plan.threads() / 32, 1, kMaxWarps),
                              check_multiple("the sums of a thread", sums_of_warp(plan), 4, kMaxSums)}) {
    if (!fits) return fits.refusal();
  }
  const arch::ArchLimits& limits = arch::limits(design.target);
  constexpr int kSchedulers = 4;  // whose registers are a quarter of an SM's
  const int warps_of_scheduler = static_cast<int>(ceil_div(plan.threads(), 32 * kSchedulers));
  if (const int available =
          std::min(limits.max_registers_per_thread, limits.registers_per_sm / (warps_of_scheduler * 32 * kSchedulers));
      plan.registers() > available) {
    return refuse("{} sums of a thread need about {} registers, of {}", sums_of_warp(plan), plan.registers(), available)
        .as(RefusalCode::resources);
  }
  return plan;
}

Support check_arguments(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  if (arguments.a.access != op::OperandAccess::strided || arguments.b.access != op::OperandAccess::im2col ||
      arguments.batch() < 2) {
    return refuse("computes filter gradients of convolutions with groups").as(RefusalCode::operation);
  }
  const op::Im2col& im2col = arguments.b.im2col;
  if (im2col.channels != plan.channels || arguments.m() != plan.filters || im2col.taps() != plan.taps ||
      arguments.batch() % plan.groups != 0) {
    return refuse("the code has {} groups of {} channels and {} filters of {} taps, got {} of {}, {} and {}",
                  plan.groups, plan.channels, plan.filters, plan.taps, arguments.batch(), im2col.channels,
                  arguments.m(), im2col.taps())
        .as(RefusalCode::shape);
  }
  if (arguments.b.tensor.batch_stride() != plan.channels || arguments.a.tensor.batch_stride() != plan.filters)
    return refuse("the channels of a group must follow those of the group before").as(RefusalCode::strides);
  for (const auto& [role, aligned] :
       {std::pair{"y", op::shared_alignment(arguments.a.tensor, {arguments.a.tensor.column_stride()})},
        {"x", op::shared_alignment(arguments.b.tensor, {im2col.image_stride, im2col.h.stride, im2col.w.stride})}}) {
    if (aligned < kOctet)
      return refuse("{} is aligned to {} elements, the kernel needs {}", role, aligned, kOctet)
          .as(RefusalCode::alignment)
          .of(role);
  }
  for (const op::Im2colAxis* axis : {&im2col.h, &im2col.w}) {
    if (reach(*axis) + kMaxPositions * axis->step > kLimit / kMaxPositions)
      return refuse("taps {} pixels apart need too many lines", reach(*axis)).as(RefusalCode::shape);
  }
  const std::int64_t needed = smem_bytes(plan, im2col);
  if (needed > std::numeric_limits<int>::max())
    return refuse("needs {} bytes of shared memory", needed).as(RefusalCode::resources);
  if (const Support fits = check_smem(static_cast<int>(needed), plan.target); !fits) return fits;
  for (const auto& [what, count] :
       {std::pair{"pixels", arguments.k()}, {"blocks of pixels", blocks_of(plan, arguments)}}) {
    if (count > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, count).as(RefusalCode::shape);
  }
  const std::int64_t resident = std::int64_t{ctas_of_sm(plan, im2col)} * arch::limits(plan.target).sm_count;
  if (const std::int64_t slabs = slabs_of(plan, arguments); slabs > resident) {
    return refuse("{} slabs of {} groups need a resident CTA each, of {}", slabs, plan.groups, resident)
        .as(RefusalCode::resources);
  }
  return check_workspace(workspace_bytes(plan, arguments));
}

ParameterLayout parameter_layout(const GroupWgradPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.b.im2col;
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(parts_of(plan, arguments) * slabs_of(plan, arguments)), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(plan, im2col));
  launch.cooperative = true;
  launch.ctas_per_sm = ctas_of_sm(plan, im2col);
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &arguments);
  return launch;
}

double estimate_us(const GroupWgradPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.b.im2col;
  const auto batch = static_cast<double>(arguments.batch());
  const double pixels = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent) * plan.channels;
  const double outputs = static_cast<double>(arguments.k()) * plan.filters;
  const double dram_us = batch * (pixels + outputs) * kElementBytes / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  const std::int64_t lines = (plan.rows - 1) * im2col.h.step + reach(im2col.h) + 1;
  const std::int64_t pixels_of_line = (plan.positions - 1) * im2col.w.step + reach(im2col.w) + 1;
  const auto copies_of_line = [&](std::int64_t line, int elements) {
    return ceil_div(line * plan.groups * elements / kOctet, 32);
  };
  const auto copies = static_cast<double>(lines * copies_of_line(pixels_of_line, plan.channels) +
                                          plan.rows * copies_of_line(plan.positions, plan.filters));
  const double warps = plan.threads() / 32.0;
  const double octets = plan.taps_of_warp() * plan.channels / static_cast<double>(kOctet);
  const double tiles_m = static_cast<double>(plan.filters) / kTile;
  const double conflicts = im2col.w.step % 2 == 0 ? std::numbers::sqrt2 : 1;
  const double steps_of_warp = static_cast<double>(ceil_div(plan.rows, plan.teams) * (plan.positions / kTile));
  const double latency =
      kBlockLatency + copies / warps * kCopyLatency + static_cast<double>(lines + plan.rows) / warps * kLineLatency +
      steps_of_warp * (kStepLatency + octets * kOctetLatency * (1 + kMoreFilters * (tiles_m - 1)) * conflicts);
  const double block = steps_of_warp * warps * octets * tiles_m * kMultiplyClocks * conflicts + copies * kCopyClocks;
  const auto parts = static_cast<double>(parts_of(plan, arguments));
  const auto slabs = static_cast<double>(slabs_of(plan, arguments));
  const double rounds = std::ceil(static_cast<double>(blocks_of(plan, arguments)) / parts);
  const double clocks = rounds * overlapped(std::ceil(parts * slabs / limits.sm_count) * block, latency, kLatencyPower);
  const double sm_us = clocks / (limits.clock_ghz * 1e3);
  return limits.launch_us + kCallUs + kMeetUs +
         2 * static_cast<double>(partial_bytes(plan, arguments)) / kL2BytesPerUs + std::max(sm_us, dram_us) +
         kOverlapLoss * std::min(sm_us, dram_us);
}

}  // namespace tilewright::plan
