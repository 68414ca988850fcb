#include "tilewright/plan/depthwise_wgrad.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/depthwise.hpp"
#include "tilewright/plan/im2col.hpp"
#include "tilewright/plan/signature_checks.hpp"

namespace tilewright::plan {
namespace {

using namespace depthwise;

constexpr int kAnyTaps = 4;  // of a thread, without windows
constexpr int kAheadWithoutWindow = 2, kMaxAheadOfPairs = 4;
constexpr int kThreadVectors = 4;    // threads along the channels: 64 bytes of a pixel in vectors of 16
constexpr int kShortestSegment = 8;  // positions
constexpr int kMaxCtasPerSm = 8;     // at once or one after another
// Fitted to 284 times of 12 layers on an H200 (2026-11-28), which they estimate with an error of 12 %.
constexpr double kLatency = 640;       // clocks of a load that misses L1
constexpr double kIssued = 0.78;       // of the four instructions that an SM issues at most per clock
constexpr double kPartRate = 34;       // bytes that the last CTA of a tile reads from L2 per clock
constexpr double kMeetClocks = 1800;   // of the sums of the lanes
constexpr double kPartsClocks = 3000;  // of the arrival at the counter, and of the sums of the lanes after it

bool has_window(const DepthwiseWgradPlan& plan) { return plan.step != 0; }
/// Pixels that a thread loads for each position.
int new_pixels(const DepthwiseWgradPlan& plan) { return has_window(plan) ? plan.step : plan.taps; }
int positions_ahead(const DepthwiseWgradPlan& plan) {
  if (!has_window(plan)) return kAheadWithoutWindow;
  return plan.step == 1 ? plan.taps : std::min(plan.taps, kMaxAheadOfPairs);
}

/// Registers of a thread, from ptxas -v: the sums, a window, what is loaded ahead, and others.
int registers(const DepthwiseWgradPlan& plan) {
  const int element = std::max(bytes(plan.operands.a.element), bytes(plan.operands.b.element));
  const int others = element < 4 ? 36 : 70;
  const int sums = plan.taps * plan.vector * bytes(plan.accumulator) / 4;
  const int ahead = positions_ahead(plan) * (1 + new_pixels(plan)) * ((plan.vector * element + 3) / 4);
  return std::min(others + sums * (has_window(plan) ? 2 : 1) + ahead, 255);
}

/// Instructions of a thread for one position.
double instructions(const DepthwiseWgradPlan& plan) {
  constexpr double kOfLoop = 4;  // in SASS
  const double loads = 1 + new_pixels(plan);
  const bool converts = plan.operands.a.element != plan.accumulator || plan.operands.b.element != plan.accumulator;
  return plan.taps * plan.vector + loads * (kAddressInstructions + (converts ? plan.vector : 0)) + kOfLoop;
}

std::int64_t part_bytes(const DepthwiseWgradPlan& plan, const DepthwiseWgradDivision& division) {
  return division.units_of_tile * plan.taps * division.vectors * plan.vector * bytes(plan.accumulator);
}

/// Clocks of an SM for its share of the CTAs: its instructions and the latency of what the threads load ahead, which
/// overlap in part; and then the sum of the parts, which one CTA of each tile reads.
double clocks_of(const DepthwiseWgradPlan& plan, const DepthwiseWgradDivision& division) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const std::int64_t per_sm = ceil_div(division.parts * division.tiles(), limits.sm_count);
  const int resident = std::max(1, arch::resident_blocks(limits, plan.threads, registers(plan), plan.smem_bytes()));
  const std::int64_t warps = per_sm * (plan.threads / kWarpThreads);
  const auto steps = static_cast<double>(division.positions_of_segment + positions_ahead(plan));
  const double segments =  // of a thread
      static_cast<double>(division.segments_of_part) / static_cast<double>(division.lanes);
  const double issued = static_cast<double>(warps) * segments * steps * instructions(plan) / (4 * kIssued);
  const double waited =
      static_cast<double>(ceil_div(per_sm, resident) * ceil_div(division.segments_of_part, division.lanes)) *
      (steps / positions_ahead(plan)) * kLatency;
  const double added = kMeetClocks * static_cast<double>(ceil_div(per_sm, resident));
  if (division.parts == 1) return std::hypot(issued, waited) + added;
  const double read = static_cast<double>(division.parts * part_bytes(plan, division)) / kPartRate;
  return std::hypot(issued, waited) + added + kPartsClocks + read;
}

/// The division with the number of parts that takes the least time.
DepthwiseWgradDivision best_parts(const DepthwiseWgradPlan& plan, DepthwiseWgradDivision division) {
  const std::int64_t most = std::max<std::int64_t>(ceil_div(division.segments, division.lanes), 1);
  DepthwiseWgradDivision best = division;
  best.clocks = std::numeric_limits<double>::infinity();
  for (std::int64_t per_sm = 1; per_sm <= kMaxCtasPerSm; ++per_sm) {
    const std::int64_t ctas = per_sm * arch::limits(plan.target).sm_count;
    const std::int64_t parts = std::clamp<std::int64_t>(ctas / division.tiles(), 1, most);
    division.segments_of_part = ceil_div(division.segments, parts);
    division.parts = division.segments == 0 ? 1 : ceil_div(division.segments, division.segments_of_part);
    division.clocks = clocks_of(plan, division);
    if (division.clocks < best.clocks) best = division;
    if (parts == most) break;
  }
  return best;
}

std::int64_t workspace_bytes(const DepthwiseWgradPlan& plan, const DepthwiseWgradDivision& division) {
  if (division.parts == 1) return 0;
  return static_cast<std::int64_t>(kWorkspaceCounterBytes) +
         division.tiles() * division.parts * part_bytes(plan, division);
}

/// Describes DepthwiseWgradParameters. `arguments` may be null for a sink that asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const DepthwiseWgradPlan& plan, const op::GemmView* arguments,
                         const DepthwiseWgradDivision& division) {
  const auto im2col = [&]() -> const op::Im2col& { return arguments->b.im2col; };
  describe_im2col_matrix(sink, "matrix", im2col);
  sink.field("gradient", [&] { return arguments->a.tensor.address; });
  sink.field("images", [&] { return arguments->b.tensor.address; });
  sink.field("c", [&] { return arguments->reads_source ? arguments->c.tensor.address : std::uint64_t{0}; });
  sink.field("d", [&] { return arguments->d.tensor.address; });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(workspace_bytes(plan, division)); });
  sink.field("ldc", [&] { return arguments->reads_source ? arguments->c.tensor.batch_stride() : std::int64_t{0}; });
  sink.field("ldd", [&] { return arguments->d.tensor.batch_stride(); });
  sink.int32("gradient_pitch", [&] { return arguments->a.tensor.column_stride() * bytes(arguments->a.tensor.dtype); });
  sink.int32("pitch", [&] { return im2col().w.stride * bytes(arguments->b.tensor.dtype); });
  sink.int32("channels", [&] { return arguments->batch(); });
  sink.int32("channel_tiles", [&] { return division.channel_tiles; });
  sink.int32("vectors", [&] { return division.vectors; });
  sink.int32("channels_of_tile", [&] { return division.vectors * plan.vector; });
  sink.int32("units", [&] { return division.units; });
  sink.int32("units_of_tile", [&] { return division.units_of_tile; });
  sink.int32("unit_tiles", [&] { return division.unit_tiles; });
  sink.int32("tap_groups", [&] { return division.tap_groups; });
  sink.int32("lanes", [&] { return division.lanes; });
  sink.int32("segments", [&] { return division.segments; });
  sink.int32("segments_of_row", [&] { return division.segments_of_row; });
  sink.int32("positions_of_segment", [&] { return division.positions_of_segment; });
  sink.int32("segments_of_part", [&] { return division.segments_of_part; });
  sink.int32("parts", [&] { return division.parts; });
  describe_divisor_by(sink, "by_segments_of_row", [&] { return division.segments_of_row; });
  describe_epilogue(sink, plan.operands.epilogue, arguments, false);
  sink.finish();
}

Support check_vectors(const DepthwiseWgradPlan& plan, const op::GemmView& arguments) {
  if (arguments.batch() % plan.vector != 0) {
    return refuse("the {} channels must be a multiple of {}, the channels of a thread", arguments.batch(), plan.vector)
        .as(RefusalCode::shape);
  }
  const op::Im2col& im2col = arguments.b.im2col;
  const auto check = [&](const op::Tensor& tensor, std::string_view role,
                         std::initializer_list<std::int64_t> strides) -> Support {
    if (const int aligned = op::shared_alignment(tensor, strides); aligned < plan.vector)
      return refuse("{} is aligned to {} elements, the kernel needs {}", role, aligned, plan.vector)
          .as(RefusalCode::alignment)
          .of(role);
    return {};
  };
  if (const Support fits = check(arguments.a.tensor, "A", {arguments.a.tensor.column_stride()}); !fits) return fits;
  return check(arguments.b.tensor, "B", {im2col.image_stride, im2col.h.stride, im2col.w.stride});
}

/// Refuses what the kernel's integers of 32 bits do not hold.
Support check_extents(const op::GemmView& arguments, const DepthwiseWgradDivision& division) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() / 4;  // room to round up
  const std::int64_t gradient_pitch = arguments.a.tensor.column_stride() * bytes(arguments.a.tensor.dtype);
  const std::int64_t pitch = arguments.b.im2col.w.stride * bytes(arguments.b.tensor.dtype);
  for (const auto& [what, count] : {std::pair{"channels", arguments.batch()},
                                    {"taps", arguments.n()},
                                    {"segments of rows of the output", division.segments},
                                    {"the bytes from a pixel of y to the next", gradient_pitch},
                                    {"the bytes from a pixel of x to the next", pitch}}) {
    if (count > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, count).as(RefusalCode::shape);
  }
  constexpr auto kCounters = static_cast<std::int64_t>(kReductionCounterBytes / sizeof(std::uint32_t));
  if (division.tiles() > kCounters) {
    return refuse("{} tiles of channels and taps need an arrival counter each, a workspace has {}", division.tiles(),
                  kCounters)
        .as(RefusalCode::resources);
  }
  return {};
}

}  // namespace

bool is_depthwise_wgrad(const op::GemmView& view) {
  const auto has_rows_of_taps = [&](const op::OperandView& operand) {
    return operand.access == op::OperandAccess::strided && operand.tensor.batch() == view.batch() &&
           (view.n() == 1 || operand.tensor.column_stride() == 1);
  };
  return view.groups == op::GroupedMode::none && view.batch() > 1 && view.m() == 1 &&
         view.b.access == op::OperandAccess::im2col && view.b.im2col.channels == 1 && view.b.im2col.blocks == 1 &&
         !view.b.im2col.divides() && view.b.tensor.batch_stride() == 1 && view.a.access == op::OperandAccess::strided &&
         view.a.tensor.batch() == view.batch() && view.a.tensor.batch_stride() == 1 && has_rows_of_taps(view.d) &&
         (!view.reads_source || has_rows_of_taps(view.c));
}

std::vector<FlatDesign> depthwise_wgrad_designs(const op::GemmSignature& signature, const Target& target) {
  constexpr int kWarps = 8;
  const int widest =
      std::min({kMaxVector, kVectorBytes / bytes(signature.a.element), kVectorBytes / bytes(signature.b.element)});
  std::vector<FlatDesign> designs;
  const auto add = [&](int vector, int taps, int step) {
    FlatDesign design = flat_design(target);
    const int channels = vector == 1 ? kWarpThreads : kThreadVectors * vector;
    design.warps_m = kWarps;
    design.instruction = {1, vector, step};
    design.tile = {kWarps * kWarpThreads * vector / channels, channels, taps};
    designs.push_back(design);
  };
  for (int vector = widest; vector > 1 && vector >= widest / 2; vector /= 2) {
    for (const int taps : {3, 5, 7}) {
      for (int step = 1; step <= kMaxStep; ++step) add(vector, taps, step);
    }
    add(vector, 1, 1);
  }
  add(1, 1, 1);
  return designs;
}

Result<DepthwiseWgradPlan> plan_depthwise_wgrad(const op::GemmSignature& signature, const FlatDesign& design) {
  if (signature.a.im2col != op::Im2colAccess::none || signature.b.im2col != op::Im2colAccess::direct ||
      signature.groups != op::GroupedMode::none) {
    return refuse("computes one row times an im2col matrix for each channel").as(RefusalCode::operation);
  }
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has.refusal();
  FlatDesign own = flat_design(design.target);
  own.tile = design.tile;
  own.instruction = {1, design.instruction.n, design.instruction.k};
  own.warps_m = design.warps_m;
  if (own != design) {
    return refuse(
               "depthwise_conv offers a tile, warps along m and, for filter gradients, an instruction shape with an m "
               "of 1 on CUDA cores, got {}",
               to_string(design))
        .as(RefusalCode::design);
  }
  const bool has_window = design.tile.k != 1;
  DepthwiseWgradPlan plan{.operands = signature,
                          .target = design.target,
                          .accumulator = accumulator_of(signature),
                          .vector = design.instruction.n,
                          .channels = design.tile.n,
                          .threads = design.warps_m * kWarpThreads,
                          .taps = has_window ? design.tile.k : kAnyTaps,
                          .step = has_window ? design.instruction.k : 0};
  const int widest = std::min(kVectorBytes / bytes(signature.a.element), kVectorBytes / bytes(signature.b.element));
  for (const Support& fits : {check_between("the channels of a thread", plan.vector, 1, std::min(kMaxVector, widest)),
                              check_between("the taps of the code", design.tile.k, 1, kMaxTaps),
                              check_between("the step", design.instruction.k, 1, std::min(kMaxStep, design.tile.k)),
                              check_between("the number of warps", design.warps_m, 1,
                                            arch::limits(design.target).max_threads_per_block / 32)}) {
    if (!fits) return fits.refusal();
  }
  const bool divides = is_power_of_two(plan.vector) && plan.channels >= plan.vector &&
                       plan.channels % plan.vector == 0 && plan.threads % (plan.channels / plan.vector) == 0;
  if (!divides || plan.slots() < 2 || design.tile.m != plan.slots()) {
    return refuse("a CTA of {} threads with {} of {} channels each does not have {} threads for the same channels",
                  plan.threads, plan.vector, plan.channels, design.tile.m)
        .as(RefusalCode::design);
  }
  if (plan.smem_bytes() > kSmemBytes) {
    return refuse("the sums of half of the threads need {} bytes of shared memory, of {}", plan.smem_bytes(),
                  kSmemBytes)
        .as(RefusalCode::resources);
  }
  if (!can_multiply_in_full(signature.math))
    return refuse("multiplies on CUDA cores, got {}", op::name(signature.math)).as(RefusalCode::math);
  if (signature.epilogue.is_gated() || signature.epilogue.columns_per_element() != 1)
    return refuse("a tap has no other that an epilogue could pair it with").as(RefusalCode::epilogue);
  if (const Support fits = check_no_other_outputs(signature.epilogue); !fits) return fits.refusal();
  return plan;
}

Support check_arguments(const DepthwiseWgradPlan& plan, const op::GemmView& arguments) {
  if (arguments.m() != 1 || arguments.b.im2col.channels != 1) {
    return refuse("computes the gradients of one filter of one channel in each group, got {} filters and {} channels",
                  arguments.m(), arguments.b.im2col.channels)
        .as(RefusalCode::shape);
  }
  if (!is_depthwise_wgrad(arguments)) {
    return refuse("computes gradients of filters whose taps are adjacent, and whose windows are an im2col matrix")
        .as(RefusalCode::strides);
  }
  const op::Im2colAxis& w = arguments.b.im2col.w;
  if (plan.step != 0 && (w.step != plan.step || (w.taps > 1 && std::abs(w.tap_step) != 1))) {
    return refuse("the code has adjacent taps along the width and a step of {}, got taps {} apart and a step of {}",
                  plan.step, std::abs(w.tap_step), w.step)
        .as(RefusalCode::shape);
  }
  if (const Support fits = check_vectors(plan, arguments); !fits) return fits;
  return check_extents(arguments, divide(plan, arguments));
}

DepthwiseWgradDivision divide(const DepthwiseWgradPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.b.im2col;
  DepthwiseWgradDivision division;
  const std::int64_t vectors = std::max<std::int64_t>(ceil_div(arguments.batch(), plan.vector), 1);
  division.channel_tiles = ceil_div(vectors, plan.channels / plan.vector);
  division.vectors = ceil_div(vectors, division.channel_tiles);
  division.tap_groups = std::max<std::int64_t>(ceil_div(im2col.w.taps, plan.taps), 1);  // also for empty filters
  division.units = std::max<std::int64_t>(im2col.h.taps * division.tap_groups, 1);
  // At most half of the slots have different taps, so that shared memory for half of the threads holds their sums.
  const std::int64_t slots = plan.threads / division.vectors;
  division.units_of_tile = ceil_div(division.units, ceil_div(division.units, slots / 2));
  division.unit_tiles = ceil_div(division.units, division.units_of_tile);
  division.lanes = slots / division.units_of_tile;
  const std::int64_t rows = arguments.reads_product ? im2col.images * im2col.h.positions : 0;
  const std::int64_t positions = im2col.w.positions;
  DepthwiseWgradDivision best = division;
  best.clocks = std::numeric_limits<double>::infinity();
  for (std::int64_t row_segments = 1; row_segments == 1 || positions / row_segments >= kShortestSegment;) {
    division.positions_of_segment = ceil_div(positions, row_segments);
    division.segments_of_row =
        std::max<std::int64_t>(ceil_div(positions, std::max<std::int64_t>(division.positions_of_segment, 1)), 1);
    division.segments = rows * division.segments_of_row;
    if (const DepthwiseWgradDivision divided = best_parts(plan, division); divided.clocks < best.clocks) best = divided;
    if (division.positions_of_segment <= 1) break;
    row_segments = ceil_div(positions, division.positions_of_segment - 1);  // the next that has shorter segments
  }
  return best;
}

ParameterLayout parameter_layout(const DepthwiseWgradPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr, {});
  return std::move(recorder).take();
}

Launch launch(const DepthwiseWgradPlan& plan, const op::GemmView& arguments) {
  const DepthwiseWgradDivision division = divide(plan, arguments);
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(division.parts * division.tiles()), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(plan.smem_bytes());
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &arguments, division);
  return launch;
}

double estimate_us(const DepthwiseWgradPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.b.im2col;
  const auto channels = static_cast<double>(arguments.batch());
  const double pixels = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent);
  const double outputs = static_cast<double>(arguments.k());
  const double moved = channels * (pixels * bytes(plan.operands.b.element) + outputs * bytes(plan.operands.a.element));
  const double dram_us = moved / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  return limits.launch_us + dram_us + divide(plan, arguments).clocks / (limits.clock_ghz * 1e3);
}

}  // namespace tilewright::plan
