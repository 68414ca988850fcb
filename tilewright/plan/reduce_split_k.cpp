#include "tilewright/plan/reduce_split_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/reductions.hpp"
#include "tilewright/plan/signature_checks.hpp"

namespace tilewright::plan {
namespace {

constexpr int kVectorBytes = 16;  // the widest load of one thread
constexpr int kMaxVector = 16;
constexpr int kMaxVectorAcross = 4;  // if D and the parts are contiguous along different modes
constexpr int kMaxTile = 4096;
constexpr int kMaxPartsAtOnce = 16;
constexpr int kWarpThreads = 32;
// Latency in clocks of a load from DRAM: that of the first loads of a CTA and its last stores. This constant and
// kDramShare are from a fit of sm80_gemm and simt_gemm (H200, 2026-11-23).
constexpr double kLatencyClocks = 1500;
// Registers of a thread in addition to the loaded parts and their sums; from ptxas -v of this family.
constexpr int kOtherRegisters = 40;
// Share of DRAM's nominal rate that kernels reach.
constexpr double kDramShare = 0.875;

bool parts_are_row_major(const ReduceSplitKPlan& plan) {
  return plan.operands.parts.layout == op::MatrixLayout::row_major;
}

/// m and n of the problem as computed.
std::pair<std::int64_t, std::int64_t> extents(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  return plan.is_transposed ? std::pair{arguments.n(), arguments.m()} : std::pair{arguments.m(), arguments.n()};
}

std::pair<std::int64_t, std::int64_t> tile_counts(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  const auto [m, n] = extents(plan, arguments);
  return {ceil_div(m, plan.tile.m), ceil_div(n, plan.tile.n)};
}

ReductionBlocks reduction_blocks(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  const auto [tiles_m, tiles_n] = tile_counts(plan, arguments);
  return {.along_m = tiles_m, .along_n = tiles_n};
}

/// Bytes of the workspace, which holds the counters and partial results of reductions; 0 without reductions.
std::int64_t workspace_bytes(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  const op::Epilogue& epilogue = plan.operands.epilogue;
  const ReductionCounts counts = reduction_counts(epilogue);
  if (counts.all() == 0) return 0;
  const auto [m, n] = extents(plan, arguments);
  return static_cast<std::int64_t>(kWorkspaceCounterBytes) +
         reduction_part_bytes(counts, reduction_blocks(plan, arguments), m, n, bytes(epilogue.compute));
}

/// ReduceSplitKParameters of device/tilewright/reduction/reduce_split_k.cuh. `arguments` may be null for a sink that
/// asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const ReduceSplitKPlan& plan, const op::ReduceSplitK* arguments) {
  const auto ld = [](const op::Tensor& tensor) { return op::view_matrix(tensor, "operand")->ld; };
  const auto reads_c = [&] { return op::reads_source(*arguments); };
  sink.field("parts", [&] { return arguments->parts.address; });
  sink.field("c", [&] { return reads_c() ? arguments->c.address : std::uint64_t{0}; });
  sink.field("d", [&] { return arguments->d.address; });
  sink.field("ld_parts", [&] { return ld(arguments->parts); });
  sink.field("part_stride", [&] { return arguments->parts.batch_stride(); });
  sink.field("ldc", [&] { return reads_c() ? ld(arguments->c) : std::int64_t{0}; });
  sink.field("ldd", [&] { return ld(arguments->d); });
  sink.field("batch_stride_c", [] { return std::int64_t{0}; });
  sink.field("batch_stride_d", [] { return std::int64_t{0}; });
  sink.int32("m", [&] { return extents(plan, *arguments).first; });
  sink.int32("n", [&] { return extents(plan, *arguments).second; });
  sink.int32("count", [&] { return op::reads_parts(*arguments) ? arguments->count() : 0; });
  sink.int32("tiles_n", [&] { return tile_counts(plan, *arguments).second; });
  sink.field("batch", [] { return std::uint32_t{1}; });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(workspace_bytes(plan, *arguments)); });
  sink.field("reduction_parts", [] { return static_cast<std::int64_t>(kWorkspaceCounterBytes); });
  const op::GemmView outputs = arguments == nullptr ? op::GemmView() : op::outputs_view(*arguments);
  describe_epilogue(sink, plan.operands.epilogue, arguments == nullptr ? nullptr : &outputs, plan.is_transposed);
  sink.finish();
}

/// A design with the values of all choices that the family does not offer.
FlatDesign flat_design(const Target& target) {
  FlatDesign design;
  design.target = target;
  design.stages = 1;
  design.warps_n = 1;
  return design;
}

Support check_design(const FlatDesign& design) {
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has;
  const int most_warps = arch::limits(design.target).max_threads_per_block / kWarpThreads;
  for (const Support& fits :
       {check_between("tile m", design.tile.m, 1, kMaxTile), check_between("tile n", design.tile.n, 1, kMaxTile),
        check_between("tile k, the parts loaded at once,", design.tile.k, 1, kMaxPartsAtOnce),
        check_between("the number of warps", design.warps_m, 1, most_warps)}) {
    if (!fits) return fits;
  }
  FlatDesign own = flat_design(design.target);
  own.tile = design.tile;
  own.instruction = design.instruction;
  own.warps_m = design.warps_m;
  if (own != design) {
    return refuse("reduce_split_k offers a tile, warps along m and an instruction shape on CUDA cores, got {}",
                  to_string(design))
        .as(RefusalCode::design);
  }
  return {};
}

}  // namespace

int ReduceSplitKPlan::smem_bytes() const {
  const op::Epilogue& epilogue = operands.epilogue;
  return band_reduction_bytes(reduction_counts(epilogue), threads_m, tile.n, threads(), bytes(epilogue.compute));
}

layout::Layout thread_coordinates(const ReduceSplitKPlan& plan) {
  using layout::IntTuple;
  const IntTuple along_rows = IntTuple::scaled_basis(1, {0});
  const IntTuple along_columns = IntTuple::scaled_basis(plan.vector, {1});
  if (parts_are_row_major(plan)) return {IntTuple{plan.threads_n, plan.threads_m}, IntTuple{along_columns, along_rows}};
  return {IntTuple{plan.threads_m, plan.threads_n}, IntTuple{along_rows, along_columns}};
}

std::vector<FlatDesign> reduce_split_k_designs(const op::ReduceSplitKSignature& signature, const Target& target) {
  constexpr int kWarps = 4, kPartsAtOnce = 4;
  const bool is_transposed = signature.d.layout == op::MatrixLayout::column_major;
  const bool is_coalesced = signature.parts.layout == signature.d.layout;
  // One load moves `widest` elements of a part. If the parts lie the other way, a thread's vector is one of D, and it
  // loads the elements of each part one by one: a vector of 16 bytes would take up to 241 registers.
  const op::TensorSignature& vectors = is_coalesced ? signature.parts : signature.d;
  const int most = is_coalesced ? kMaxVector : kMaxVectorAcross;
  const int paired = signature.epilogue.columns_per_element();
  const int widest = std::max(paired, std::min({vectors.alignment, kVectorBytes / bytes(vectors.element), most}));
  const bool has_reductions = reduction_counts(signature.epilogue).all() > 0;
  std::vector<FlatDesign> designs;
  for (const int vector : widest == paired ? std::vector{widest} : std::vector{widest, paired}) {
    // Threads along the mode in which the parts are contiguous. The narrow form is for matrices with few columns.
    for (const int along : {kWarpThreads, 4}) {
      const int across = kWarps * kWarpThreads / along;
      const int threads_m = is_coalesced ? across : along;
      const int threads_n = is_coalesced ? along : across;
      // Reductions leave fewer partial results if a tile has many rows.
      const int bands = has_reductions ? 8 : 1;
      FlatDesign design = flat_design(target);
      design.tile = {threads_m * bands, threads_n * vector, kPartsAtOnce};
      design.instruction = {1, vector, 1};
      design.warps_m = kWarps;
      if (is_transposed) {
        std::swap(design.tile.m, design.tile.n);
        std::swap(design.instruction.m, design.instruction.n);
      }
      designs.push_back(design);
    }
  }
  return designs;
}

Result<ReduceSplitKPlan> plan_reduce_split_k(const op::ReduceSplitKSignature& signature, const FlatDesign& design) {
  if (const Support fits = check_design(design); !fits) return fits.refusal();
  const bool is_transposed = signature.d.layout == op::MatrixLayout::column_major;
  const int paired = signature.epilogue.columns_per_element();
  if (is_transposed && paired > 1)
    return refuse("the epilogue pairs columns, which needs a row-major D").as(RefusalCode::epilogue);
  ReduceSplitKPlan plan{.operands = is_transposed ? op::transposed(signature) : signature,
                        .is_transposed = is_transposed,
                        .target = design.target,
                        .tile = design.tile};
  TileShape instruction = design.instruction;
  if (is_transposed) {
    std::swap(plan.tile.m, plan.tile.n);
    std::swap(instruction.m, instruction.n);
  }
  plan.vector = instruction.n;
  if (instruction.m != 1 || instruction.k != 1 || plan.vector > kMaxVector || !is_power_of_two(plan.vector) ||
      plan.vector % paired != 0) {
    return refuse("a thread must compute 1x{}, 1x{} and so on to 1x{} elements of D as computed, got {}x{}x{}", paired,
                  2 * paired, kMaxVector, instruction.m, instruction.n, instruction.k)
        .as(RefusalCode::design);
  }
  const int threads = design.warps_m * kWarpThreads;
  if (plan.tile.n % plan.vector != 0 || threads % (plan.tile.n / plan.vector) != 0) {
    return refuse("{} threads with {} columns each do not divide a tile of {} columns", threads, plan.vector,
                  plan.tile.n)
        .as(RefusalCode::design);
  }
  plan.threads_n = plan.tile.n / plan.vector;
  plan.threads_m = threads / plan.threads_n;
  if (plan.tile.m % plan.threads_m != 0)
    return refuse("a tile of {} rows is not divisible by {} threads along them", plan.tile.m, plan.threads_m)
        .as(RefusalCode::design);
  const op::TensorSignature& parts = plan.operands.parts;
  plan.part_vector =
      parts_are_row_major(plan) ? std::min({plan.vector, parts.alignment, kVectorBytes / bytes(parts.element)}) : 1;
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return fits.refusal();
  return plan;
}

Support check_arguments(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() - kMaxTile;  // room to round up to a tile
  for (const auto& [what, extent] :
       {std::pair{"m", arguments.m()}, {"n", arguments.n()}, {"the number of parts", arguments.count()}}) {
    if (extent > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, extent).as(RefusalCode::shape);
  }
  const auto [tiles_m, tiles_n] = tile_counts(plan, arguments);
  constexpr std::int64_t kMaxGrid = std::numeric_limits<std::int32_t>::max();
  if (tiles_m * tiles_n > kMaxGrid) {
    return refuse("needs {} CTAs, more than the {} of a grid", tiles_m * tiles_n, kMaxGrid).as(RefusalCode::shape);
  }
  const Support fits = check_reductions(reduction_counts(plan.operands.epilogue), reduction_blocks(plan, arguments));
  return fits ? check_workspace(workspace_bytes(plan, arguments)) : fits;
}

ParameterLayout parameter_layout(const ReduceSplitKPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  const auto [tiles_m, tiles_n] = tile_counts(plan, arguments);
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(tiles_m * tiles_n), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(plan.smem_bytes());
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &arguments);
  return launch;
}

double estimate_us(const ReduceSplitKPlan& plan, const op::ReduceSplitK& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const auto [m, n] = extents(plan, arguments);
  const auto [tiles_m, tiles_n] = tile_counts(plan, arguments);
  const auto elements = static_cast<double>(m) * static_cast<double>(n);
  const auto count = static_cast<double>(op::reads_parts(arguments) ? arguments.count() : 0);
  const double of_c = op::reads_source(arguments) ? bytes(plan.operands.c.element) : 0;
  const double moved = elements * (count * bytes(plan.operands.parts.element) + of_c + bytes(plan.operands.d.element)) +
                       2.0 * static_cast<double>(workspace_bytes(plan, arguments));
  const double clocks_per_us = limits.clock_ghz * 1e3;
  // The GEMM has just written the parts: what fits in L2 is read from there.
  const bool is_in_l2 = moved <= static_cast<double>(limits.l2_bytes);
  const double transfer_us = is_in_l2 ? moved / limits.l2_bytes_per_clock / clocks_per_us
                                      : moved / (limits.dram_bytes_per_s * kDramShare) * 1e6;

  const int registers =
      plan.vector * (plan.tile.k * bytes(plan.operands.parts.element) + bytes(plan.operands.accumulator)) / 4 +
      kOtherRegisters;
  const int fit = arch::resident_blocks(limits, plan.threads(), registers, plan.smem_bytes());
  if (fit == 0) return INFINITY;
  const double waves = std::ceil(static_cast<double>(tiles_m * tiles_n) / (static_cast<double>(fit) * limits.sm_count));
  const double loads = plan.bands() * std::max(1.0, std::ceil(count / plan.tile.k)) + 1;
  const double waiting_us = waves * loads * kLatencyClocks / clocks_per_us;
  return limits.launch_us + std::max(transfer_us, waiting_us);
}

}  // namespace tilewright::plan
