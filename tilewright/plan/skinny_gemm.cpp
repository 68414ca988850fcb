#include "tilewright/plan/skinny_gemm.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/signature_checks.hpp"
#include "tilewright/plan/simt_gemm.hpp"

namespace tilewright::plan {
namespace {

constexpr int kVectorBytes = 16;  // the widest load of one thread
constexpr int kMaxFew = 8;        // more products for each element are a matter of tensor cores and of shared memory
constexpr int kWarpLanes = 32;
constexpr int kMaxGroups = 8, kChunksOfLane = 4;
constexpr int kMaxCluster = 8;  // that every GPU with clusters launches
// Constants of the estimate, fitted to 300 kernels on an H100 together with those of the other families (2026-11-25),
// starting from a fit to 103 kernels on an H200.
constexpr double kCallUs = 4.05;        // of a kernel that does nothing, beyond the launch
constexpr double kDramShare = 0.88;     // of the bandwidth of DRAM
constexpr double kCtaUs = 0.823;        // start of a CTA, the sums over its lanes and warps, and its epilogue
constexpr double kLoadUs = 0.285;       // latency of a step of the loop, in which a thread loads its chunks,
constexpr double kLoadUsPer64 = 0.696;  // and more for each 64 bytes that it loads at once
constexpr double kClusterUs = 4.79;     // start of a cluster, two barriers and the reads of other CTAs' sums
constexpr double kTail = 0.41;          // part of a round of CTAs in which SMs are idle
constexpr double kIssueShare = 0.579;   // of the instructions that an SM issues at most
// The extra time of DRAM for a byte of lines that a CTA loads in pieces of 128 bytes; it falls with longer ones.
constexpr double kScatter = 0.269, kScatterPower = 0.654;
// Clocks of an SM for a sector of the few rows or columns that a warp loads for a single element of K. Columns with a
// stride of 48 bytes took 517 us more than estimated without them: 884 warps read them for f16 14144x1x59008 (H200,
// 2026-11-27).
constexpr double kFewSectorClocks = 2.3;
// Instructions for each element of the large operand, relative to a multiply-add of f32.
constexpr double kConversion = 1.5, kDoubleFma = 2.7, kVectorLoad = 8.4;

/// The vectors of a thread's part of an operand, which has `contiguous` adjacent elements.
int vector_of(const op::TensorSignature& tensor, int contiguous) {
  int vector = std::min(tensor.alignment, kVectorBytes / bytes(tensor.element));
  while (contiguous % vector != 0) vector /= 2;
  return vector;
}

/// The number of rows or columns for which there is code.
int rounded_few(std::int64_t extent) {
  int few = 1;
  while (few < extent) few *= 2;
  return few;
}

struct Operands {
  op::TensorSignature lines, few;
  bool lines_are_k_major, few_is_k_major;
};

/// The large and the small operand of the problem as given.
Operands operands_of(const op::GemmSignature& signature, bool rows_are_few) {
  const bool a_is_k_major = op::has_contiguous_rows(signature.a.layout);
  const bool b_is_k_major = !op::has_contiguous_rows(signature.b.layout);
  if (rows_are_few) return {signature.b, signature.a, b_is_k_major, a_is_k_major};
  return {signature.a, signature.b, a_is_k_major, b_is_k_major};
}

Support check_signature(const op::GemmSignature& signature) {
  const bool is_plain = signature.math == op::MathOperation::multiply_add ||
                        signature.math == op::MathOperation::multiply_add_fast_accumulate;
  if (!is_plain) return refuse("{} needs tensor cores", op::name(signature.math)).as(RefusalCode::math);
  if (signature.groups != op::GroupedMode::none)
    return refuse("computes no groups, got {}", op::name(signature.groups)).as(RefusalCode::operation);
  for (const auto& [role, tensor] :
       {std::pair{"A", &signature.a}, {"B", &signature.b}, {"C", &signature.c}, {"D", &signature.d}}) {
    if (tensor->im2col != op::Im2colAccess::none || tensor->folded_modes != 0 || op::is_interleaved(tensor->layout))
      return refuse("{} must be a matrix with one leading dimension", role).as(RefusalCode::strides).of(role);
  }
  return check_no_reductions(signature.epilogue);
}

/// The largest number of few rows or columns for which designs are offered. With more, tensor cores or tiles in shared
/// memory are faster: in 198 random problems (H100 and H200, 2026-11-25 and 26), the fastest kernel of another family
/// took 0.61 to 0.87 of the time in the classes that are left out, in the geometric mean. f64 8x352x21188 took 75 us
/// here, and 26 us in sm80_gemm.
int most_few(const Operands& operands) {
  const int element_bytes = bytes(operands.lines.element);
  const bool has_vectors = operands.lines.alignment * element_bytes >= kVectorBytes;
  switch (element_bytes) {
    case 8:
      return 2;
    case 4:
      return operands.lines_are_k_major ? kMaxFew : 2;
    case 2:
      if (!operands.lines_are_k_major) return 1;
      return has_vectors ? 2 : 4;
    default:
      return 0;
  }
}

/// How the lines and K are divided among the threads.
struct Division {
  int thread_lines, lane_groups, warps_lines, warps_k, cluster_k, chunk, ahead;
};

FlatDesign design_of(const Target& target, bool rows_are_few, int few, const Division& division) {
  FlatDesign design;
  design.target = target;
  const int lines = division.thread_lines * division.lane_groups * division.warps_lines;
  design.tile = {few, lines, division.chunk};
  design.instruction = {few, division.thread_lines, division.chunk};
  design.warps_m = 1;
  design.warps_n = division.warps_lines;
  design.warps_k = division.warps_k;
  design.cluster = {1, 1, division.cluster_k};
  design.stages = division.ahead;
  design.swaps_operands = !rows_are_few;
  if (!rows_are_few) {
    std::swap(design.tile.m, design.tile.n);
    std::swap(design.instruction.m, design.instruction.n);
    std::swap(design.warps_m, design.warps_n);
  }
  return design;
}

/// Instructions for each element of the large operand: products with the few lines, conversions, and loads. Those of
/// the small operand serve all lines of the thread.
double instructions_per_element(const SkinnyGemmPlan& plan) {
  const bool converts = bytes(plan.lines.element) < bytes(plan.stored);
  const double few_of_line = static_cast<double>(plan.few) / plan.thread_lines;
  const double loads = 1.0 / plan.lines.vector + few_of_line / plan.few_lines.vector;
  return plan.few * (plan.stored == DType::f64 ? kDoubleFma : 1) + (converts ? kConversion * (1 + few_of_line) : 0) +
         kVectorLoad * loads;
}

/// The part of a sector between the few elements of one element of K and those of the next; 0 if K is contiguous.
double gaps_between_few(const SkinnyGemmPlan& plan, const op::GemmView& arguments) {
  if (plan.few_lines.is_k_major) return 0;
  constexpr double kSectorBytes = 32;
  const bool is_a = plan.rows_are_few != plan.is_transposed;  // of the problem as given
  const op::Tensor& tensor = is_a ? arguments.a.tensor : arguments.b.tensor;
  const auto stride = static_cast<double>(is_a ? tensor.column_stride() : tensor.row_stride());
  const auto few = static_cast<double>(is_a ? arguments.m() : arguments.n());
  return std::max(0.0, std::min(stride * bytes(tensor.dtype), kSectorBytes) - few * bytes(tensor.dtype)) / kSectorBytes;
}

/// The warps that load the few rows or columns, each for lines of its own.
double warps_of_lines(const SkinnyGemmPlan& plan, const TileCounts& tiles) {
  return static_cast<double>(plan.rows_are_few ? tiles.n : tiles.m) * plan.warps_lines;
}

}  // namespace

int SkinnyGemmPlan::registers() const {
  constexpr int kOthers = 40;
  const auto words = [](int elements, DType element) { return (elements * bytes(element) + 3) / 4; };
  // Elements are converted one chunk at a time.
  return kOthers + words(few * thread_lines, stored) + stages * words(thread_lines * chunk, lines.element) +
         words(few * chunk, few_lines.element) + words(thread_lines + 1, stored);
}

std::vector<FlatDesign> skinny_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                            const Target& target) {
  std::vector<FlatDesign> designs;
  const auto add = [&](bool rows_are_few, std::int64_t extent) {
    if (extent > kMaxFew) return;
    const int few = std::max(rounded_few(extent), rows_are_few ? 1 : signature.epilogue.columns_per_element());
    const Operands operands = operands_of(signature, rows_are_few);
    if (few > most_few(operands)) return;
    const int element_bytes = bytes(operands.lines.element);
    if (operands.lines_are_k_major) {
      const int chunk = vector_of(operands.lines, kVectorBytes / element_bytes);
      // Lanes load the small operand from places so far apart if it is not K-major. With 128 bytes, 8x24656x11332 of
      // f32 took 1165 us and simt_gemm 533 (H200, 2026-11-26); with 64, 4x14336x4096 took 66 us and cuBLASLt 123.
      constexpr int kFarthest = 64;
      if (!operands.few_is_k_major && few > 2 && few * chunk * bytes(operands.few.element) > kFarthest) return;
      // Lanes that would have fewer than kChunksOfLane chunks of K take other lines.
      int groups = 1;
      while (groups < kMaxGroups && view.k() < std::int64_t{kWarpLanes} / groups * chunk * kChunksOfLane) groups *= 2;
      for (const auto [lines, warps_lines, warps_k] : {std::array{4, 4, 2}, {2, 8, 1}, {1, 2, 4}, {1, 1, 8}})
        designs.push_back(design_of(target, rows_are_few, few, {lines, groups, warps_lines, warps_k, 1, chunk, 2}));
      return;
    }
    constexpr int kMinBytes = 8;  // with narrower vectors, loads across lines were slower than other families
    const int across = vector_of(operands.lines, kVectorBytes / element_bytes);
    if (across * element_bytes < kMinBytes) return;
    const int chunk = operands.few_is_k_major ? std::min(kVectorBytes / bytes(operands.few.element), 8) : 4;
    const int most_cluster = has_feature(target, TargetFeature::clusters) ? 4 : 1;
    // Lanes with different lines have at least 128 bytes of them together.
    const int least_groups = std::min(128 / (across * element_bytes), kWarpLanes);
    for (const auto [groups, warps_k] : {std::array{least_groups, 16}, {std::min(2 * least_groups, kWarpLanes), 4}}) {
      for (int cluster = 1; cluster <= most_cluster; cluster *= 2)
        designs.push_back(design_of(target, rows_are_few, few, {across, groups, 1, warps_k, cluster, chunk, 2}));
    }
  };
  add(true, view.m());
  if (view.m() > kMaxFew) add(false, view.n());
  return designs;
}

Result<SkinnyGemmPlan> plan_skinny_gemm(const op::GemmSignature& signature, const FlatDesign& design) {
  if (const Support computes = check_signature(signature); !computes) return computes.refusal();
  if (design.op_class != OpClass::simt)
    return refuse("needs a simt instruction, got {}", name(design.op_class)).as(RefusalCode::design);
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  const bool rows_are_few = !design.swaps_operands;
  const Operands operands = operands_of(signature, rows_are_few);
  const auto lines_first = [&](int m, int n) { return rows_are_few ? std::pair{n, m} : std::pair{m, n}; };
  const auto [tile_lines, tile_few] = lines_first(design.tile.m, design.tile.n);
  const auto [thread_lines, few] = lines_first(design.instruction.m, design.instruction.n);
  const auto [warps_lines, warps_few] = lines_first(design.warps_m, design.warps_n);
  const FlatDesign own = [&] {
    const int groups = thread_lines > 0 && warps_lines > 0 ? tile_lines / thread_lines / warps_lines : 0;
    return design_of(
        design.target, rows_are_few, few,
        {thread_lines, groups, warps_lines, design.warps_k, design.cluster.k, design.instruction.k, design.stages});
  }();
  if (own != design) {
    return refuse(
               "skinny_gemm offers a tile, the part of a thread, warps along the lines and along K, and clusters "
               "along K on CUDA cores, got {}",
               to_string(design))
        .as(RefusalCode::design);
  }
  SkinnyGemmPlan plan{*std::move(tile), design.target, DType::f32, true, {}, {}};
  plan.stored = stored_type(plan.operands.accumulator, signature.a.element);
  plan.rows_are_few = rows_are_few != plan.is_transposed;
  plan.few = few;
  plan.thread_lines = thread_lines;
  plan.lane_groups = tile_lines / thread_lines / warps_lines;
  plan.chunk = design.instruction.k;
  plan.warps_lines = warps_lines;
  plan.warps_k = design.warps_k;
  plan.cluster_k = design.cluster.k;
  for (const auto& [what, value, most] : {std::tuple{"the few rows or columns", plan.few, kMaxFew},
                                          {"the lines of a thread", plan.thread_lines, 16},
                                          {"the lanes with different lines", plan.lane_groups, kWarpLanes},
                                          {"the chunk along K", plan.chunk, 16},
                                          {"the number of warps along the lines", plan.warps_lines, 32},
                                          {"the number of warps along K", plan.warps_k, 32},
                                          {"the cluster along K", plan.cluster_k, kMaxCluster}}) {
    if (!is_power_of_two(value) || value > most)
      return refuse("{} must be a power of two up to {}, got {}", what, most, value).as(RefusalCode::design);
  }
  if (tile_few != few) return refuse("a tile has {} of {} few lines", tile_few, few).as(RefusalCode::design);
  if (plan.threads() > arch::limits(design.target).max_threads_per_block)
    return refuse("{} threads, more than a CTA has", plan.threads()).as(RefusalCode::resources);
  if (plan.cluster_k > 1) {
    if (const Support has = check_feature(design.target, TargetFeature::clusters); !has) return has.refusal();
  }
  if (const int paired = signature.epilogue.columns_per_element();
      (plan.rows_are_few ? plan.tile.n : plan.few) % paired != 0) {
    return refuse("a tile has {} columns, the epilogue pairs them", plan.tile.n).as(RefusalCode::epilogue);
  }
  plan.lines = {operands.lines.element, operands.lines_are_k_major,
                vector_of(operands.lines, operands.lines_are_k_major ? plan.chunk : plan.thread_lines)};
  plan.few_lines = {operands.few.element, operands.few_is_k_major,
                    vector_of(operands.few, operands.few_is_k_major ? plan.chunk : plan.few)};
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return fits.refusal();
  const arch::ArchLimits& limits = arch::limits(design.target);
  if (const int available = std::min(limits.max_registers_per_thread, limits.registers_per_sm / plan.threads());
      plan.registers() > available) {
    return refuse("a thread needs about {} registers, of {}", plan.registers(), available).as(RefusalCode::resources);
  }
  return plan;
}

Support check_arguments(const SkinnyGemmPlan& plan, const op::GemmView& arguments) {
  const bool rows = plan.rows_are_few != plan.is_transposed;  // of the problem as given
  if (const std::int64_t extent = rows ? arguments.m() : arguments.n(); extent > plan.few) {
    return refuse("computes at most {} {}, got {}", plan.few, rows ? "rows" : "columns", extent).as(RefusalCode::shape);
  }
  constexpr std::int64_t kMaxK = std::int64_t{1} << 30;  // room to step beyond the end
  if (arguments.k() > kMaxK) return refuse("k must be at most {}, got {}", kMaxK, arguments.k()).as(RefusalCode::shape);
  if (const Support fits = check_launch(plan, residence_of(plan), arguments); !fits) return fits;
  const TileCounts tiles = tile_counts(plan, arguments);
  constexpr std::int64_t kMaxGrid = std::numeric_limits<std::int32_t>::max();
  if (const std::int64_t ctas = tiles.m * tiles.n * plan.cluster_k; ctas > kMaxGrid)
    return refuse("needs {} CTAs, more than the {} of a grid", ctas, kMaxGrid).as(RefusalCode::shape);
  return {};
}

Launch launch(const SkinnyGemmPlan& plan, const op::GemmView& arguments) {
  Launch launch = launch_gemm(plan, residence_of(plan), plan.smem_bytes(), arguments);
  launch.block[0] = static_cast<std::uint32_t>(plan.threads());
  launch.cluster[0] = static_cast<std::uint32_t>(plan.cluster_k);
  launch.grid[0] *= launch.cluster[0];
  return launch;
}

double estimate_us(const SkinnyGemmPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const CostInput input = tile_cost(plan, arguments);
  const auto m = static_cast<double>(input.m), n = static_cast<double>(input.n), k = static_cast<double>(input.k);
  const double elements_a = static_cast<double>(input.batch_a) * m * k;
  const double elements_b = static_cast<double>(input.batch_b) * n * k;
  const double moved = elements_a * input.element_bytes_a + elements_b * input.element_bytes_b +
                       static_cast<double>(input.batch) * m * n * (input.element_bytes_d + input.beside_bytes);
  const TileCounts tiles = tile_counts(plan, arguments);
  const double ctas = static_cast<double>(tiles.m * tiles.n * input.batch) * plan.cluster_k;
  const int fit = arch::resident_blocks(limits, plan.threads(), plan.registers(), plan.smem_bytes());
  if (fit == 0) return std::numeric_limits<double>::infinity();
  // The CTAs of an SM follow each other without waiting for a whole round.
  const double rounds = std::max(1.0, ctas / (static_cast<double>(fit) * limits.sm_count) + kTail);
  const double steps = std::ceil(k / (static_cast<double>(plan.parts()) * plan.chunk * plan.stages));
  const double loaded_bytes =
      static_cast<double>(plan.stages) * plan.chunk * plan.thread_lines * bytes(plan.lines.element);
  const double latency_us =
      rounds * (kCtaUs + steps * (kLoadUs + kLoadUsPer64 * loaded_bytes / 64) + (plan.cluster_k > 1 ? kClusterUs : 0));
  const double tile_lines = static_cast<double>(plan.rows_are_few ? tiles.n : tiles.m) * plan.tile_lines();
  const double elements = tile_lines * k * static_cast<double>(input.batch);
  constexpr double kLanesOfSm = 128;
  const double active = std::min<double>(limits.sm_count, ctas);
  const double issue_us =
      elements * instructions_per_element(plan) / (kLanesOfSm * kIssueShare * active * limits.clock_ghz * 1e3);
  const double large = plan.rows_are_few ? elements_b * input.element_bytes_b : elements_a * input.element_bytes_a;
  const double line_bytes = static_cast<double>(plan.tile_lines()) * bytes(plan.lines.element);
  // Lines that a CTA has as a whole follow each other in memory.
  const bool is_scattered = !plan.lines.is_k_major && plan.tile_lines() < (plan.rows_are_few ? input.n : input.m);
  const double scattered = is_scattered ? large * kScatter * std::pow(128 / line_bytes, kScatterPower) : 0;
  const double memory_us = (moved + scattered) / (limits.dram_bytes_per_s * kDramShare) * 1e6;
  const double few_us = gaps_between_few(plan, arguments) * k * warps_of_lines(plan, tiles) *
                        static_cast<double>(input.batch) * kFewSectorClocks / (active * limits.clock_ghz * 1e3);
  return limits.launch_us + kCallUs + std::max({memory_us, issue_us, latency_us}) + few_us;
}

SumOrder sum_order(const SkinnyGemmPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  return {.unit = arch::MathUnit::simt,
          .padded_k = arguments.k(),
          .split_k = plan.parts(),
          .split_k_step = plan.chunk,
          .split_k_groups = plan.warps_k * plan.cluster_k,
          .takes_turns = true};
}

}  // namespace tilewright::plan
