#include "tilewright/plan/permute.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

constexpr int kMaxElements = 8;   // along each side of a block that is transposed; 16 took up to 171 registers
constexpr int kBlockBytes = 128;  // that a thread has in flight
constexpr int kMaxBlockElements = kMaxElements * kMaxElements;
constexpr int kMaxLoads = 32;      // of a thread, each of which keeps an address
constexpr int kSegmentBytes = 64;  // of the source that the threads of a warp read together, if they transpose
constexpr int kLongRow = 256, kManyLines = 512;  // elements and lines beyond which an axis takes no more modes
// Share of the nominal rates of DRAM and L2 that is assumed for a copy.
constexpr double kTransferShare = 0.75;
// Instructions for one load or store and its address, which is computed by divisions.
constexpr double kInstructionsPerAccess = 24;
constexpr double kIssuesPerClock = 4;  // warp instructions of an SM

using Modes = std::vector<op::PermutedMode>;

std::int64_t extent_of(const Modes& modes) {
  std::int64_t product = 1;
  for (const op::PermutedMode& mode : modes) product *= mode.extent;
  return product;
}

struct Axes {
  Modes row, lines, rest;
  bool is_contiguous_row = false;    // the row is contiguous in the destination
  bool is_contiguous_lines = false;  // the lines begin with a mode that is contiguous in the source
  bool transposes = false;           // that mode is not the first one of the row
};

/// Moves the mode `at` of `from` to the end of `to`.
void move_mode(Modes& from, std::size_t at, Modes& to) {
  to.push_back(from[at]);
  from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Extends `axis` by modes of `rest` whose `stride` continues it.
void extend(Modes& axis, Modes& rest, std::int64_t op::PermutedMode::*stride, std::int64_t enough) {
  while (extent_of(axis) < enough) {
    const std::int64_t next = extent_of(axis);
    const auto found = std::ranges::find(rest, next, stride);
    if (found == rest.end()) return;
    move_mode(rest, static_cast<std::size_t>(found - rest.begin()), axis);
  }
}

Axes axes_of(const op::Permutation& permutation) {
  Axes axes;
  axes.rest = op::permuted_modes(permutation);
  if (axes.rest.empty()) axes.rest.push_back({1, 1, 1});
  const auto fastest =
      static_cast<std::size_t>(std::ranges::min_element(axes.rest, {}, &op::PermutedMode::from) - axes.rest.begin());
  axes.is_contiguous_row = axes.rest[0].to == 1;
  axes.transposes = fastest != 0;
  axes.is_contiguous_lines = axes.rest[fastest].from == 1;
  if (axes.transposes) move_mode(axes.rest, fastest, axes.lines);
  move_mode(axes.rest, 0, axes.row);
  if (axes.is_contiguous_row) extend(axes.row, axes.rest, &op::PermutedMode::to, kLongRow);
  if (axes.transposes && axes.is_contiguous_lines) extend(axes.lines, axes.rest, &op::PermutedMode::from, kManyLines);
  while (!axes.rest.empty() && extent_of(axes.lines) < kManyLines) move_mode(axes.rest, 0, axes.lines);
  return axes;
}

/// The largest power of two in elements, of at most 16 bytes, such that vectors along `axis` are aligned and do not
/// cross the end of its contiguous modes. The end of the whole axis is no limit, because its last elements move one by
/// one.
int widest_vector(const op::Tensor& tensor, const Axes& axes, const Modes& axis,
                  std::int64_t op::PermutedMode::*stride) {
  std::int64_t run = 1;        // elements that are contiguous together
  std::size_t contiguous = 0;  // modes of the axis that they are from
  while (contiguous < axis.size() && axis[contiguous].*stride == run) run *= axis[contiguous++].extent;
  if (contiguous == 0) return 1;
  std::vector<std::int64_t> steps;
  for (const Modes* const modes : {&axes.row, &axes.lines, &axes.rest}) {
    for (std::size_t i = modes == &axis ? contiguous : 0; i < modes->size(); ++i) steps.push_back((*modes)[i].*stride);
  }
  if (contiguous < axis.size()) steps.push_back(run);
  return op::shared_alignment(tensor, steps);
}

struct Vectors {
  bool transposes = false;
  int from = 1, to = 1;
};

Vectors vectors_of(const Axes& axes, const op::Permutation& permutation) {
  const int element = bytes(permutation.to.dtype);
  const int to = axes.is_contiguous_row ? widest_vector(permutation.to, axes, axes.row, &op::PermutedMode::to) : 1;
  if (axes.transposes) {
    const int from =
        axes.is_contiguous_lines ? widest_vector(permutation.from, axes, axes.lines, &op::PermutedMode::from) : 1;
    return {true, std::min(from, kMaxElements), std::min(to, kMaxElements)};
  }
  const int from = axes.row[0].from == 1 ? widest_vector(permutation.from, axes, axes.row, &op::PermutedMode::from) : 1;
  // Single loads and wide stores are better than short vectors on both sides.
  if (from * element < 4 && to > from) return {true, 1, std::min(to, kMaxElements)};
  return {false, 1, std::min(from, to)};
}

int power_of_two_above(std::int64_t value, int most) {
  return static_cast<int>(std::min<std::int64_t>(
      most, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1))))));
}

std::int32_t logarithm(int power_of_two) { return std::countr_zero(static_cast<unsigned>(power_of_two)); }

int coordinates_of(const Axes& axes) {
  const std::size_t most = std::max({axes.row.size(), axes.lines.size(), axes.rest.size(), std::size_t{2}});
  return static_cast<int>(std::bit_ceil(most));
}

/// How the threads of a CTA lie along the rows and lines of its tile.
struct Arrangement {
  int lanes_row = 1, warps_row = 1;
  std::int64_t tile_row = 1, tile_lines = 1;                   // elements of a row, lines
  std::int64_t row_tiles = 1, line_tiles = 1, rest_tiles = 1;  // of the permutation

  std::int64_t tiles() const { return row_tiles * line_tiles * rest_tiles; }
};

Arrangement arrange(const PermutePlan& plan, const Axes& axes) {
  const std::int64_t row_vectors = ceil_div(extent_of(axes.row), plan.to_vector);
  const std::int64_t line_vectors = ceil_div(extent_of(axes.lines), plan.from_vector);
  Arrangement result;
  if (plan.transposes) {
    const int segment = kSegmentBytes / (plan.from_vector * plan.element_bytes);
    const int lanes_lines = power_of_two_above(line_vectors, std::clamp(segment, 2, 16));
    result.lanes_row = power_of_two_above(row_vectors, 32 / lanes_lines);
    result.warps_row = power_of_two_above(ceil_div(row_vectors, result.lanes_row), 2);
  } else {
    result.lanes_row = power_of_two_above(row_vectors, 32);
  }
  result.tile_row = std::int64_t{plan.to_vector} * result.lanes_row * result.warps_row;
  result.tile_lines =
      std::int64_t{plan.from_vector} * plan.blocks * (32 / result.lanes_row) * (PermutePlan::kWarps / result.warps_row);
  result.row_tiles = ceil_div(extent_of(axes.row), result.tile_row);
  result.line_tiles = ceil_div(extent_of(axes.lines), result.tile_lines);
  result.rest_tiles = extent_of(axes.rest);
  return result;
}

/// PermuteParameters of device/tilewright/permute/permute.cuh. `permutation` may be null for a sink that asks for no
/// values.
template <class Sink>
void describe_parameters(Sink& sink, const PermutePlan& plan, const op::Permutation* permutation) {
  const Axes axes = permutation == nullptr ? Axes{} : axes_of(*permutation);
  constexpr std::array<const char*, op::Dims::kMaxRank> kCoordinates{"coordinate[0]", "coordinate[1]", "coordinate[2]",
                                                                     "coordinate[3]", "coordinate[4]", "coordinate[5]",
                                                                     "coordinate[6]", "coordinate[7]"};
  for (const auto& [name, modes] : {std::pair{"row", &axes.row}, {"lines", &axes.lines}, {"rest", &axes.rest}}) {
    sink.begin(name);
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.coordinates); ++i) {
      const auto mode = [&, axis = modes] { return i < axis->size() ? (*axis)[i] : op::PermutedMode{}; };
      sink.begin(kCoordinates[i]);
      sink.field("from", [&] { return mode().from; });
      sink.field("to", [&] { return mode().to; });
      sink.int32("extent", [&] { return mode().extent; });
      describe_divisor_by(sink, "by_extent", [&] { return mode().extent; });
      sink.end(sizeof(std::int64_t));
    }
    sink.end(sizeof(std::int64_t));
  }
  const auto arrangement = [&] { return arrange(plan, axes); };
  sink.field("from", [&] { return permutation->from.address; });
  sink.field("to", [&] { return permutation->to.address; });
  sink.int32("row_extent", [&] { return extent_of(axes.row); });
  sink.int32("line_extent", [&] { return extent_of(axes.lines); });
  sink.int32("row_tiles", [&] { return arrangement().row_tiles; });
  sink.int32("line_tiles", [&] { return arrangement().line_tiles; });
  describe_divisor_by(sink, "by_row_tiles", [&] { return arrangement().row_tiles; });
  describe_divisor_by(sink, "by_line_tiles", [&] { return arrangement().line_tiles; });
  sink.field("lane_bits", [&] { return logarithm(arrangement().lanes_row); });
  sink.field("warp_bits", [&] { return logarithm(arrangement().warps_row); });
  sink.finish();
}

}  // namespace

std::string to_string(const PermutePlan& plan) {
  return fmt::format("{}-bit {}x{}{}", 8 * plan.element_bytes, plan.from_vector, plan.to_vector,
                     plan.transposes ? " transposed" : "");
}

PermutePlan plan_permute(const op::Permutation& permutation, const Target& target) {
  const Axes axes = axes_of(permutation);
  const Vectors vectors = vectors_of(axes, permutation);
  PermutePlan plan{.target = target,
                   .element_bytes = bytes(permutation.to.dtype),
                   .coordinates = coordinates_of(axes),
                   .transposes = vectors.transposes,
                   .from_vector = vectors.from,
                   .to_vector = vectors.to};
  const int block = plan.from_vector * plan.to_vector;
  const int loads = plan.transposes ? plan.to_vector : 1;
  plan.blocks = std::clamp(
      std::min({kBlockBytes / (block * plan.element_bytes), kMaxBlockElements / block, kMaxLoads / loads}), 1, 8);
  return plan;
}

Support check_arguments(const PermutePlan& plan, const op::Permutation& permutation) {
  const Axes axes = axes_of(permutation);
  if (plan.element_bytes != bytes(permutation.to.dtype))
    return refuse("copies elements of {} bytes, got {}", plan.element_bytes, bytes(permutation.to.dtype))
        .as(RefusalCode::types);
  if (coordinates_of(axes) > plan.coordinates) {
    return refuse("the copy has code for {} modes in a row, along lines and outside of both, got {}", plan.coordinates,
                  coordinates_of(axes))
        .as(RefusalCode::strides);
  }
  const Vectors widest = vectors_of(axes, permutation);
  // Single elements are loaded wherever they lie.
  const bool loads_fit = plan.transposes ? plan.from_vector == 1 || (axes.transposes && plan.from_vector <= widest.from)
                                         : !widest.transposes && plan.to_vector <= widest.to;
  if (!loads_fit || plan.to_vector > widest.to) {
    return refuse("the copy moves blocks of {}, but strides and addresses allow {}x{}{}", to_string(plan), widest.from,
                  widest.to, widest.transposes ? " transposed" : "")
        .as(RefusalCode::alignment);
  }
  constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max() / 2;
  const std::int64_t most = std::max({extent_of(axes.row), extent_of(axes.lines), arrange(plan, axes).tiles()});
  if (most > kMaxExtent)
    return refuse("a row, the lines and the tiles of a copy must be at most {}, got {}", kMaxExtent, most)
        .as(RefusalCode::shape);
  return {};
}

ParameterLayout parameter_layout(const PermutePlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const PermutePlan& plan, const op::Permutation& permutation) {
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(arrange(plan, axes_of(permutation)).tiles()), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &permutation);
  return launch;
}

double transfer_us(const Target& target, double moved) {
  const arch::ArchLimits& limits = arch::limits(target);
  const bool is_in_l2 = moved <= static_cast<double>(limits.l2_bytes);
  return is_in_l2 ? moved / (limits.l2_bytes_per_clock * kTransferShare) / (limits.clock_ghz * 1e3)
                  : moved / (limits.dram_bytes_per_s * kTransferShare) * 1e6;
}

double estimate_us(const PermutePlan& plan, const op::Permutation& permutation) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto count = static_cast<double>(op::elements(permutation));
  const double moved = 2.0 * count * plan.element_bytes;
  const double clocks_per_us = limits.clock_ghz * 1e3;
  const double loads = count / (plan.transposes ? plan.from_vector : plan.to_vector);
  const double instructions = (loads + count / plan.to_vector) * kInstructionsPerAccess / 32;
  const double issue_us = instructions / (limits.sm_count * kIssuesPerClock * clocks_per_us);
  return limits.launch_us + std::max(transfer_us(plan.target, moved), issue_us);
}

}  // namespace tilewright::plan
