#include "tilewright/plan/conv_copy.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/permute.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

using Kind = ConvCopyPlan::Kind;

constexpr int kVectorBytes = 16;
constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max() / 2;
// Instructions of a thread for one store and what it loads for it, counted in the PTX.
constexpr double kInstructionsPerRowVector = 120, kInstructionsPerPixelUnit = 30, kInstructionsPerTap = 16;
constexpr double kIssuesPerClock = 4;  // warp instructions of an SM
// Assumed latency of the loads and stores of a thread, which a small copy does not hide. It was not measured.
constexpr double kLatencyUs = 1;

/// Blocks of pixels whose rows are contiguous in the output, too, are one pixel with more channels.
op::PixelBlocks merged(op::PixelBlocks blocks) {
  const bool is_contiguous =
      blocks.groups == 1 && blocks.to_bytes == blocks.row_bytes && blocks.w % blocks.block_w == 0;
  if (!is_contiguous) return blocks;
  blocks.row_bytes *= blocks.block_w;
  blocks.to_bytes = blocks.row_bytes;
  blocks.w /= blocks.block_w;
  blocks.block_w = 1;
  return blocks;
}

int widest_unit(const op::PixelBlocks& blocks) {
  const op::PixelBlocks copied = merged(blocks);
  std::uint64_t all = copied.to | copied.from | kVectorBytes;
  for (const std::int64_t step :
       {copied.row_bytes, copied.from_bytes, copied.group_bytes, copied.image_bytes, copied.to_bytes})
    all |= static_cast<std::uint64_t>(step);
  return 1 << std::countr_zero(all);
}

Kind kind_of(const op::ConvCopy& copy) { return static_cast<Kind>(copy.copy.index()); }

/// Units that the threads of all CTAs copy, or the tiles of filter_blocks.
std::int64_t work_of(const ConvCopyPlan& plan, const op::ConvCopy& copy) {
  if (const auto* const rows = std::get_if<op::RowCopy>(&copy.copy)) return rows->copied_bytes() / kVectorBytes;
  if (const auto* const pixels = std::get_if<op::PixelBlocks>(&copy.copy))
    return pixels->copied_bytes() / plan.unit_bytes;
  const auto& filter = std::get<op::FilterBlocks>(copy.copy);
  return filter.groups * ceil_div(filter.copied_rows, filter.outputs) *
         ceil_div(filter.h.copied_taps * filter.w.copied_taps, ConvCopyPlan::kFilterTaps) *
         ceil_div(filter.outputs, ConvCopyPlan::kFilterTile) *
         ceil_div(filter.copied_inputs, ConvCopyPlan::kFilterTile);
}

/// RowCopyParameters of device/tilewright/permute/row_copy.cuh.
template <class Sink>
void describe(Sink& sink, const op::RowCopy& rows) {
  sink.field("from", [&] { return rows.from; });
  sink.field("to", [&] { return rows.to; });
  sink.field("line_pitch", [&] { return rows.line_pitch; });
  sink.field("span", [&] { return (rows.lines - 1) * rows.line_pitch + rows.line_bytes; });
  sink.int32("line_bytes", [&] { return rows.line_bytes; });
  sink.int32("lines", [&] { return rows.lines; });
  sink.int32("rows", [&] { return rows.rows; });
  sink.int32("step", [&] { return rows.step; });
  sink.int32("offset", [&] { return rows.offset; });
  sink.int32("row_bytes", [&] { return rows.row_bytes; });
  sink.int32("vectors", [&] { return rows.copied_bytes() / kVectorBytes; });
  sink.int32("vectors_of_row", [&] { return rows.to_bytes / kVectorBytes; });
  describe_divisor_by(sink, "by_vectors_of_row", [&] { return rows.to_bytes / kVectorBytes; });
  describe_divisor_by(sink, "by_rows", [&] { return rows.rows; });
  sink.int32("parts", [&] { return rows.parts; });
  describe_divisor_by(sink, "by_lines_of_part", [&] { return rows.lines_of_part; });
  describe_divisor_by(sink, "by_parts", [&] { return rows.parts; });
}

/// FilterBlocksParameters of device/tilewright/permute/filter_blocks.cuh.
template <class Sink>
void describe(Sink& sink, const op::FilterBlocks& filter) {
  sink.field("from", [&] { return filter.from; });
  sink.field("to", [&] { return filter.to; });
  sink.field("output_stride", [&] { return filter.output_stride; });
  sink.field("input_stride", [&] { return filter.input_stride; });
  sink.field("group_stride", [&] { return filter.group_stride; });
  for (const auto& [name, axis] : {std::pair{"h", &filter.h}, {"w", &filter.w}}) {
    sink.begin(name);
    sink.field("tap_stride", [&, along = axis] { return along->tap_stride; });
    sink.int32("block", [&, along = axis] { return along->block; });
    sink.int32("pixel_step", [&, along = axis] { return along->pixel_step; });
    sink.int32("tap_step", [&, along = axis] { return along->tap_step; });
    sink.int32("offset", [&, along = axis] { return along->offset; });
    sink.int32("dilation", [&, along = axis] { return along->dilation; });
    sink.int32("taps", [&, along = axis] { return along->taps; });
    sink.int32("copied_taps", [&, along = axis] { return along->copied_taps; });
    sink.int32("is_reversed", [&, along = axis] { return along->is_reversed ? 1 : 0; });
    sink.end(sizeof(std::int64_t));
  }
  sink.int32("outputs", [&] { return filter.outputs; });
  sink.int32("inputs", [&] { return filter.inputs; });
  sink.int32("copied_rows", [&] { return filter.copied_rows; });
  sink.int32("copied_inputs", [&] { return filter.copied_inputs; });
  sink.int32("merged", [&] { return filter.merged; });
}

/// PixelBlocksParameters of device/tilewright/permute/pixel_blocks.cuh. Sizes along a row are in units.
template <class Sink>
void describe(Sink& sink, const op::PixelBlocks& given, int unit) {
  const op::PixelBlocks blocks = merged(given);
  sink.field("from", [&] { return blocks.from; });
  sink.field("to", [&] { return blocks.to; });
  sink.field("from_step", [&] { return blocks.from_bytes / unit; });
  sink.field("image_step", [&] { return blocks.image_bytes / unit; });
  sink.field("pixel_step", [&] { return blocks.to_bytes / unit; });
  sink.int32("units", [&] { return blocks.copied_bytes() / unit; });
  sink.int32("row", [&] { return blocks.row_bytes / unit; });
  sink.int32("h", [&] { return blocks.h; });
  sink.int32("w", [&] { return blocks.w; });
  sink.int32("block_h", [&] { return blocks.block_h; });
  sink.int32("block_w", [&] { return blocks.block_w; });
  sink.int32("rows_h", [&] { return ceil_div(blocks.h, blocks.block_h); });
  sink.int32("rows_w", [&] { return ceil_div(blocks.w, blocks.block_w); });
  describe_divisor_by(sink, "by_row", [&] { return blocks.row_bytes / unit; });
  describe_divisor_by(sink, "by_h", [&] { return blocks.h; });
  describe_divisor_by(sink, "by_w", [&] { return blocks.w; });
  describe_divisor_by(sink, "by_block_h", [&] { return blocks.block_h; });
  describe_divisor_by(sink, "by_block_w", [&] { return blocks.block_w; });
  sink.int32("groups", [&] { return blocks.groups; });
  sink.int32("group", [&] { return blocks.group_bytes / unit; });
  describe_divisor_by(sink, "by_groups", [&] { return blocks.groups; });
  sink.int32("part", [&] { return blocks.block_h * blocks.block_w * blocks.row_bytes / unit; });
  sink.int32("parts", [&] { return blocks.parts; });
  describe_divisor_by(sink, "by_images_of_part", [&] { return blocks.images_of_part; });
  describe_divisor_by(sink, "by_parts", [&] { return blocks.parts; });
}

/// `copy` may be null for a sink that asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const ConvCopyPlan& plan, const op::ConvCopy* copy) {
  switch (plan.kind) {
    case Kind::rows:
      describe(sink, copy == nullptr ? op::RowCopy{} : std::get<op::RowCopy>(copy->copy));
      break;
    case Kind::filter_blocks:
      describe(sink, copy == nullptr ? op::FilterBlocks{} : std::get<op::FilterBlocks>(copy->copy));
      break;
    case Kind::pixel_blocks:
      describe(sink, copy == nullptr ? op::PixelBlocks{} : std::get<op::PixelBlocks>(copy->copy), plan.unit_bytes);
      break;
  }
  sink.finish();
}

}  // namespace

std::string to_string(const ConvCopyPlan& plan) {
  const char* const kind = plan.kind == Kind::rows            ? "rows"
                           : plan.kind == Kind::filter_blocks ? "filters of blocks"
                                                              : "pixels of blocks";
  return fmt::format("{}, {} bytes", kind, plan.unit_bytes);
}

ConvCopyPlan plan_conv_copy(const op::ConvCopy& copy, const Target& target) {
  ConvCopyPlan plan{.target = target, .kind = kind_of(copy)};
  if (const auto* const pixels = std::get_if<op::PixelBlocks>(&copy.copy)) plan.unit_bytes = widest_unit(*pixels);
  if (const auto* const filter = std::get_if<op::FilterBlocks>(&copy.copy)) plan.unit_bytes = filter->element_bytes;
  return plan;
}

Support check_arguments(const ConvCopyPlan& plan, const op::ConvCopy& copy) {
  if (plan.kind != kind_of(copy)) return refuse("the copy is one of another kind").as(RefusalCode::design);
  if (work_of(plan, copy) > kMaxIndex) {
    return refuse("a copy has at most {} units of {} bytes, got {}", kMaxIndex, plan.unit_bytes, work_of(plan, copy))
        .as(RefusalCode::shape);
  }
  if (const auto* const rows = std::get_if<op::RowCopy>(&copy.copy)) {
    const std::int64_t reach = std::max(rows->line_bytes, rows->rows * rows->step + rows->row_bytes);
    if (reach > kMaxIndex)
      return refuse("a line that is copied has at most {} bytes, got {}", kMaxIndex, reach).as(RefusalCode::shape);
  }
  const auto* const pixels = std::get_if<op::PixelBlocks>(&copy.copy);
  if (pixels != nullptr && widest_unit(*pixels) % plan.unit_bytes != 0) {
    return refuse("the copy stores {} bytes, the alignment allows {}", plan.unit_bytes, widest_unit(*pixels))
        .as(RefusalCode::alignment);
  }
  const auto* const filter = std::get_if<op::FilterBlocks>(&copy.copy);
  if (filter != nullptr && filter->element_bytes != plan.unit_bytes) {
    return refuse("the copy has elements of {} bytes, got {}", plan.unit_bytes, filter->element_bytes)
        .as(RefusalCode::types);
  }
  return {};
}

ParameterLayout parameter_layout(const ConvCopyPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const ConvCopyPlan& plan, const op::ConvCopy& copy) {
  Launch launch;
  const std::int64_t cta_work = plan.kind == Kind::filter_blocks ? 1 : ConvCopyPlan::kThreads * plan.units();
  launch.grid = {static_cast<std::uint32_t>(ceil_div(work_of(plan, copy), cta_work)), 1, 1};
  launch.block = {ConvCopyPlan::kThreads, 1, 1};
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &copy);
  return launch;
}

std::int64_t written_bytes(const op::ConvCopy& copy) {
  if (const auto* const rows = std::get_if<op::RowCopy>(&copy.copy)) return rows->copied_bytes();
  if (const auto* const filter = std::get_if<op::FilterBlocks>(&copy.copy))
    return filter->copied_elements() * filter->element_bytes;
  return std::get<op::PixelBlocks>(copy.copy).copied_bytes();
}

double estimate_us(const ConvCopyPlan& plan, const op::ConvCopy& copy) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto written = static_cast<double>(written_bytes(copy));
  double read = written, instructions = 0;
  if (const auto* const rows = std::get_if<op::RowCopy>(&copy.copy)) {
    read = static_cast<double>(rows->lines * std::min(rows->line_bytes, rows->rows * rows->row_bytes));
    instructions = written / kVectorBytes * kInstructionsPerRowVector;
  } else if (const auto* const filter = std::get_if<op::FilterBlocks>(&copy.copy)) {
    read = static_cast<double>(filter->groups * filter->outputs * filter->inputs * filter->h.taps * filter->w.taps *
                               filter->element_bytes);
    instructions = static_cast<double>(work_of(plan, copy) * ConvCopyPlan::kFilterTaps * ConvCopyPlan::kFilterTile *
                                       ConvCopyPlan::kFilterTile) *
                   kInstructionsPerTap;
  } else {
    instructions = written / plan.unit_bytes * kInstructionsPerPixelUnit;
  }
  const double issue_us = instructions / 32 / (limits.sm_count * kIssuesPerClock * limits.clock_ghz * 1e3);
  return limits.launch_us + kLatencyUs + std::max(transfer_us(plan.target, read + written), issue_us);
}

}  // namespace tilewright::plan
