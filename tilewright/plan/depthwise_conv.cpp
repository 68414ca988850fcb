#include "tilewright/plan/depthwise_conv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/depthwise.hpp"
#include "tilewright/plan/im2col.hpp"
#include "tilewright/plan/signature_checks.hpp"

namespace tilewright::plan {
namespace {

using namespace depthwise;

constexpr int kMaxPixels = 8;
constexpr double kOverlap = 0.2;  // of the shorter of issuing instructions and loading, which adds to the longer

std::int64_t filter_bytes(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  return arguments.a.im2col.taps() * plan.channels * bytes(plan.accumulator);
}
std::int64_t groups_of_row(const DepthwiseConvPlan& plan, const op::Im2col& im2col) {
  return ceil_div(im2col.w.positions, plan.pixels);
}
std::int64_t channel_tiles(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  return ceil_div(arguments.batch(), plan.channels);
}

/// Registers of a thread whose window slides, which has sums, the filter and rows of pixels in registers, and others
/// for addresses and converted pixels (from ptxas -v). One row is copied before it is used.
int registers_of_window(const DepthwiseConvPlan& plan, int rows_ahead) {
  const int others = plan.taps > 3 ? 40 : 36;
  const int loads = (plan.pixels - 1) * plan.step + plan.taps, rows = std::max(rows_ahead, 2);
  const int pixel_registers = ceil_div(plan.vector * bytes(plan.operands.a.element), 4);
  const int sums_and_taps = plan.sums() * plan.pixels + plan.taps * plan.taps;
  return others + sums_and_taps * plan.vector * bytes(plan.accumulator) / 4 + rows * loads * pixel_registers;
}

/// Registers of a thread, from ptxas -v of this family.
int registers(const DepthwiseConvPlan& plan) {
  constexpr int kOthers = 32;
  const int words = bytes(plan.accumulator) / 4;
  if (plan.slides()) return registers_of_window(plan, plan.rows_ahead);
  return kOthers + words * plan.vector * (plan.pixels + std::max(plan.taps, 1) + 1);
}

/// Registers of a thread with which as many CTAs as the plan says are on an SM.
int most_registers(const Target& target, int threads, int ctas) {
  return arch::limits(target).registers_per_sm / (threads * ctas) / 8 * 8;
}

/// The most rows of pixels ahead for which registers are left; 1 if there are none. Each phase of a round has its row.
/// The code of several phases needs more registers, for elements of 8 bits many.
int rows_ahead_of(const DepthwiseConvPlan& plan) {
  const int for_phases = bytes(plan.operands.a.element) == 1 ? 24 : 8;
  DepthwiseConvPlan sliding = plan;
  sliding.rows_ahead = 1;
  const int phases = plan.sums() * plan.step, most = most_registers(plan.target, plan.threads, sliding.min_ctas());
  int rows = 1;
  for (int each = 2; each <= phases; ++each) {
    if (phases % each == 0 && registers_of_window(plan, each) + for_phases <= most) rows = each;
  }
  return rows;
}

int resident_ctas(const DepthwiseConvPlan& plan, std::int64_t smem_bytes) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  return std::max(1, arch::resident_blocks(limits, plan.threads, registers(plan), static_cast<int>(smem_bytes))) *
         limits.sm_count;
}

/// The rows of the output that a thread computes, and how many CTAs there are for each tile of channels, which take
/// bands of such segments in turn.
struct Segments {
  std::int64_t rows = 1, per_image = 1, ctas = 1;
  std::int64_t bands = 1;  // that the busiest CTA takes
};

/// `most_ctas`: how many are resident at once for a tile of channels.
Segments segments_of(const DepthwiseConvPlan& plan, const op::Im2col& im2col, std::int64_t most_ctas,
                     std::int64_t rows) {
  Segments segments{.rows = rows, .per_image = ceil_div(im2col.h.positions, rows)};
  const std::int64_t bands = ceil_div(im2col.images * segments.per_image * groups_of_row(plan, im2col), plan.band());
  segments.ctas = std::clamp<std::int64_t>(most_ctas, 1, std::max<std::int64_t>(bands, 1));
  segments.bands = ceil_div(bands, segments.ctas);
  return segments;
}

/// The longest segments that take the least time: a thread loads the rows of the window beside those of a segment.
Segments best_segments(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  const op::Im2col& im2col = arguments.a.im2col;
  const std::int64_t most_ctas =
      ceil_div(resident_ctas(plan, filter_bytes(plan, arguments)), channel_tiles(plan, arguments));
  if (!plan.slides()) return segments_of(plan, im2col, most_ctas, 1);
  constexpr std::int64_t kMostRows = 64;  // the rows beside more are a few percent
  Segments best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t rows = std::clamp<std::int64_t>(im2col.h.positions, 1, kMostRows); rows >= 1; --rows) {
    const Segments each = segments_of(plan, im2col, most_ctas, rows);
    const std::int64_t loaded = each.bands * ((rows - 1) * plan.step + plan.taps);
    if (loaded >= least) continue;
    least = loaded;
    best = each;
  }
  return best;
}

/// Describes DepthwiseConvParameters. `arguments` may be null for a sink that asks for no values; `segments` are
/// theirs.
template <class Sink>
void describe_parameters(Sink& sink, const DepthwiseConvPlan& plan, const op::GemmView* arguments,
                         const Segments& segments) {
  const auto im2col = [&]() -> const op::Im2col& { return arguments->a.im2col; };
  describe_im2col_matrix(sink, "matrix", im2col);
  sink.field("images", [&] { return arguments->a.tensor.address; });
  sink.field("filter", [&] { return arguments->b.tensor.address; });
  sink.field("c", [&] { return arguments->reads_source ? arguments->c.tensor.address : std::uint64_t{0}; });
  sink.field("d", [&] { return arguments->d.tensor.address; });
  sink.field("filter_stride", [&] { return arguments->b.tensor.batch_stride(); });
  sink.field("tap_stride", [&] { return arguments->b.tensor.row_stride(); });
  sink.field("ldc", [&] { return arguments->reads_source ? arguments->c.tensor.row_stride() : std::int64_t{0}; });
  sink.field("ldd", [&] { return arguments->d.tensor.row_stride(); });
  sink.int32("channels", [&] { return arguments->batch(); });
  sink.int32("channel_tiles", [&] { return channel_tiles(plan, *arguments); });
  sink.int32("pixels", [&] { return arguments->m(); });
  sink.int32("segments", [&] { return im2col().images * segments.per_image; });
  sink.int32("segments_per_image", [&] { return segments.per_image; });
  sink.int32("rows_per_segment", [&] { return segments.rows; });
  describe_divisor_by(sink, "by_segments_per_image", [&] { return segments.per_image; });
  sink.int32("groups_per_row", [&] { return groups_of_row(plan, im2col()); });
  describe_divisor_by(sink, "by_groups_per_row", [&] { return groups_of_row(plan, im2col()); });
  describe_epilogue(sink, plan.operands.epilogue, arguments, false);
  sink.finish();
}

Support check_vectors(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  const std::int64_t vector = plan.vector;
  if (arguments.batch() % vector != 0) {
    return refuse("the {} channels must be a multiple of {}, the channels of a thread", arguments.batch(), vector)
        .as(RefusalCode::shape);
  }
  const op::Im2col& im2col = arguments.a.im2col;
  const auto check = [&](const op::Tensor& tensor, std::string_view role,
                         std::initializer_list<std::int64_t> strides) -> Support {
    const int aligned = op::shared_alignment(tensor, strides);
    const std::int64_t needed = std::min<std::int64_t>(vector, kVectorBytes / bytes(tensor.dtype));
    if (aligned >= needed) return {};
    return refuse("{} is aligned to {} elements, the kernel needs {}", role, aligned, needed)
        .as(RefusalCode::alignment)
        .of(role);
  };
  for (const Support& fits :
       {check(arguments.a.tensor, "A", {im2col.image_stride, im2col.h.stride, im2col.w.stride}),
        check(arguments.d.tensor, "D", {arguments.d.tensor.row_stride()}),
        arguments.reads_source ? check(arguments.c.tensor, "C", {arguments.c.tensor.row_stride()}) : Support()}) {
    if (!fits) return fits;
  }
  return {};
}

}  // namespace

bool is_depthwise_conv(const op::GemmView& view) {
  const auto has_adjacent_channels = [](const op::OperandView& operand) {
    return operand.access == op::OperandAccess::strided && operand.tensor.batch_stride() == 1;
  };
  return view.groups == op::GroupedMode::none && view.batch() > 1 && view.n() == 1 && view.d_columns() == 1 &&
         view.a.access == op::OperandAccess::im2col && view.a.im2col.channels == 1 && view.a.im2col.blocks == 1 &&
         view.a.tensor.batch_stride() == 1 && view.b.access == op::OperandAccess::strided &&
         view.b.tensor.batch() == view.batch() && has_adjacent_channels(view.d) &&
         (!view.reads_source || has_adjacent_channels(view.c));
}

std::vector<FlatDesign> depthwise_conv_designs(const op::GemmSignature& signature, const Target& target) {
  constexpr int kWarps = 4, kPixels = 4, kChannels = 64, kFewChannels = 32, kFewestChannels = 16;
  const int widest =
      std::min({kMaxVector, kVectorBytes / bytes(signature.a.element), kVectorBytes / bytes(signature.d.element)});
  std::vector<FlatDesign> designs;
  const auto add = [&](int pixels, int vector, int taps, int step, int of_cta) {
    FlatDesign design = flat_design(target);
    design.warps_m = kWarps;
    design.instruction = {pixels, vector, step};
    design.tile = {kWarps * kWarpThreads * vector / of_cta * pixels, of_cta, taps};
    designs.push_back(design);
  };
  const bool divides = signature.a.im2col == op::Im2colAccess::divided;
  for (const int taps : {3, 5, 7}) {
    for (int step = 1; step <= kMaxStep && !divides; ++step) {
      add(kPixels, widest, taps, step, kChannels);
      // Filters in vectors of 16 bytes, which lanes load from shared memory without bank conflicts.
      if (widest == 1) continue;
      for (const int of_cta : {kChannels, kFewChannels}) add(2 * kPixels, widest / 2, taps, step, of_cta);
    }
  }
  add(kPixels, widest, 1, 1, kChannels);
  add(kPixels, 1, 1, 1, kChannels);
  if (divides) return designs;
  // Windows that slide have sums and taps in registers, and therefore few channels. Two positions have room for more
  // rows of pixels: with f32, and with a step of 2, some layers are up to 10 % faster with them (H200, 2026-11-28).
  const bool is_wide = bytes(signature.a.element) >= 4;
  for (int step = 1; step <= kMaxStep; ++step) {
    for (const int of_cta : {kChannels, kFewChannels, kFewestChannels}) {
      const auto add_sliding = [&](int pixels, int most_channels, int taps) {
        add(pixels, std::min(widest, most_channels), taps, step, of_cta);
        designs.back().stages = 2;
      };
      add_sliding(kPixels, 4, 3);
      if (is_wide || step == 2) add_sliding(kPixels / 2, 4, 3);
      add_sliding(kPixels, 2, 5);
    }
  }
  return designs;
}

Result<DepthwiseConvPlan> plan_depthwise_conv(const op::GemmSignature& signature, const FlatDesign& design) {
  if (signature.a.im2col == op::Im2colAccess::none || signature.a.im2col == op::Im2colAccess::blocks ||
      signature.b.im2col != op::Im2colAccess::none || signature.groups != op::GroupedMode::none) {
    return refuse("computes an im2col matrix times the filter of each channel").as(RefusalCode::operation);
  }
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has.refusal();
  FlatDesign own = flat_design(design.target);
  own.tile = design.tile;
  own.instruction = design.instruction;
  own.warps_m = design.warps_m;
  own.stages = design.stages;
  if (own != design) {
    return refuse("depthwise_conv offers a tile, warps along m, stages and an instruction shape on CUDA cores, got {}",
                  to_string(design))
        .as(RefusalCode::design);
  }
  if (design.stages < 1 || design.stages > 2 || (design.stages == 2 && design.tile.k == 1)) {
    return refuse("stages are 1, or 2 for windows of several taps that slide, got {} and {} taps", design.stages,
                  design.tile.k)
        .as(RefusalCode::design);
  }
  DepthwiseConvPlan plan{.operands = signature,
                         .target = design.target,
                         .accumulator = accumulator_of(signature),
                         .vector = design.instruction.n,
                         .pixels = design.instruction.m,
                         .channels = design.tile.n,
                         .threads = design.warps_m * kWarpThreads,
                         .taps = design.tile.k == 1 ? 0 : design.tile.k,
                         .step = design.instruction.k};
  if (design.stages == 2) {
    plan.rows_ahead = rows_ahead_of(plan);
    const int needed = registers(plan), most = most_registers(plan.target, plan.threads, plan.min_ctas());
    if (needed > most) {
      return refuse("a window of {} taps that slides over {} positions of {} channels needs about {} registers, of {}",
                    plan.taps, plan.pixels, plan.vector, needed, most)
          .as(RefusalCode::design);
    }
  }
  const int widest = std::min(kVectorBytes / bytes(signature.a.element), kVectorBytes / bytes(signature.d.element));
  for (const Support& fits : {check_between("the channels of a thread", plan.vector, 1, std::min(kMaxVector, widest)),
                              check_between("the positions of a thread", plan.pixels, 1, kMaxPixels),
                              check_between("the taps of the code", design.tile.k, 1, kMaxTaps),
                              check_between("the step", plan.step, 1, kMaxStep),
                              check_between("the number of warps", design.warps_m, 1,
                                            arch::limits(design.target).max_threads_per_block / 32)}) {
    if (!fits) return fits.refusal();
  }
  if (kMaxVector % plan.vector != 0 || plan.channels % plan.vector != 0 || plan.channels < plan.vector ||
      plan.threads % (plan.channels / plan.vector) != 0 || design.tile.m != plan.band() * plan.pixels) {
    return refuse("{} threads with {} channels and {} positions each do not compute {} positions of {} channels",
                  plan.threads, plan.vector, plan.pixels, design.tile.m, plan.channels)
        .as(RefusalCode::design);
  }
  if (!can_multiply_in_full(signature.math))
    return refuse("multiplies on CUDA cores, got {}", op::name(signature.math)).as(RefusalCode::math);
  if (signature.epilogue.is_gated() || signature.epilogue.columns_per_element() != 1)
    return refuse("a channel has no other that an epilogue could pair it with").as(RefusalCode::epilogue);
  if (const Support fits = check_no_other_outputs(signature.epilogue); !fits) return fits.refusal();
  return plan;
}

Support check_arguments(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  if (!is_depthwise_conv(arguments))
    return refuse("computes convolutions with one filter for each channel, and the gradients of their inputs")
        .as(RefusalCode::shape);
  const op::Im2colAxis &w = arguments.a.im2col.w, &h = arguments.a.im2col.h;
  const auto is_adjacent = [](const op::Im2colAxis& axis) { return std::abs(axis.tap_step) == 1 && axis.divisor == 1; };
  if (plan.slides() && (h.taps != plan.taps || h.step != plan.step || !is_adjacent(h))) {
    return refuse("the code has {} adjacent taps along the height and a step of {}, got {} taps and a step of {}",
                  plan.taps, plan.step, h.taps, h.step)
        .as(RefusalCode::shape);
  }
  if (plan.taps != 0 && (w.taps != plan.taps || w.step != plan.step || !is_adjacent(w))) {
    return refuse("the code has {} adjacent taps along the width and a step of {}, got {} taps and a step of {}",
                  plan.taps, plan.step, w.taps, w.step)
        .as(RefusalCode::shape);
  }
  if (const Support fits = check_vectors(plan, arguments); !fits) return fits;
  if (const std::int64_t needed = filter_bytes(plan, arguments); needed > kSmemBytes)
    return refuse("the filters of a CTA need {} bytes of shared memory, of {}", needed, kSmemBytes)
        .as(RefusalCode::resources);
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() / 4;  // room to round up
  const op::Im2col& im2col = arguments.a.im2col;
  const std::int64_t groups = im2col.images * im2col.h.positions * groups_of_row(plan, im2col);
  for (const auto& [what, count] : {std::pair{"pixels", arguments.m()}, {"channels", arguments.batch()}}) {
    if (count > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, count).as(RefusalCode::shape);
  }
  TILEWRIGHT_CHECK(groups <= kLimit, "{} groups of pixels, but fewer pixels", groups);
  return {};
}

ParameterLayout parameter_layout(const DepthwiseConvPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr, {});
  return std::move(recorder).take();
}

Launch launch(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  const std::int64_t smem_bytes = filter_bytes(plan, arguments), tiles = channel_tiles(plan, arguments);
  const Segments segments = best_segments(plan, arguments);
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(segments.ctas * tiles), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes);
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &arguments, segments);
  return launch;
}

double estimate_us(const DepthwiseConvPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const op::Im2col& im2col = arguments.a.im2col;
  const auto channels = static_cast<double>(arguments.batch());
  const double outputs = static_cast<double>(arguments.m()) * channels;
  const double inputs = static_cast<double>(im2col.images * im2col.h.extent * im2col.w.extent) * channels;
  const double source_bytes = arguments.reads_source ? bytes(arguments.c.tensor.dtype) : 0;
  const double moved =
      inputs * bytes(plan.operands.a.element) + outputs * (bytes(plan.operands.d.element) + source_bytes);
  // Instructions for one row of pixels and all positions of a thread: a load with its address and conversions for
  // each pixel, a multiply-add for each product, and the loads of the filter.
  const double taps = static_cast<double>(im2col.w.taps);
  const double loads = plan.taps != 0 ? (plan.pixels - 1) * plan.step + taps : taps * plan.pixels;
  const Segments segments = best_segments(plan, arguments);
  const auto rows = static_cast<double>(segments.rows);  // of the output, and of pixels that a thread loads for them
  const auto loaded_rows =
      static_cast<double>(plan.slides() ? (segments.rows - 1) * plan.step + plan.taps : im2col.h.taps);
  const double products =
      taps * plan.vector * (plan.slides() ? 1.0 * plan.taps * plan.pixels / plan.step : plan.pixels + 0.25);
  const double row = loads * (kAddressInstructions + plan.vector) + products;
  const double thread = row * loaded_rows + 12.0 * plan.vector * plan.pixels * rows;
  // Clocks of shared memory and L1 for the same: the filter, whose vectors of more than 16 bytes have bank conflicts,
  // and the pixels.
  constexpr double kLineBytes = 128, kWordBytes = 16;
  const double filter_bytes = plan.vector * bytes(plan.accumulator);
  const double filter_loads = std::ceil(filter_bytes / kWordBytes);
  const double conflicts = filter_bytes > kWordBytes ? 2 : 1;
  const double pixel_clocks = std::max(plan.vector * bytes(plan.operands.a.element) * kWarpThreads / kLineBytes, 1.0);
  const double row_loads =
      plan.slides() ? 0
                    : taps * filter_loads * conflicts * std::min(filter_bytes, kWordBytes) * kWarpThreads / kLineBytes;
  const double loaded = (row_loads + loads * pixel_clocks) * loaded_rows;
  const double groups = static_cast<double>(im2col.images * segments.per_image * groups_of_row(plan, im2col));
  const auto tiled_channels = static_cast<double>(channel_tiles(plan, arguments) * plan.channels);
  const double warps = groups * tiled_channels / plan.vector / kWarpThreads;
  const double issued = thread / (4 * kIssueShare);
  const double warp_clocks = std::max(issued, loaded) + kOverlap * std::min(issued, loaded);
  const double clocks = warps * warp_clocks / limits.sm_count;
  const double dram_us = moved / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  // A window that slides over 16 channels of 16 bits loads 32 adjacent bytes: f16 56x56x24x424 took 74 us, where 32
  // channels took 55 (H200, 2026-11-28). With this factor, the first of the kernels of 34 layers takes 5 % longer than
  // the fastest in the mean.
  constexpr int kNarrowBytes = 64;
  constexpr double kNarrow = 1.4;
  const bool is_narrow = plan.slides() && plan.channels * bytes(plan.operands.a.element) < kNarrowBytes;
  return limits.launch_us + (is_narrow ? kNarrow : 1) * std::max(dram_us, clocks / (limits.clock_ghz * 1e3));
}

}  // namespace tilewright::plan
