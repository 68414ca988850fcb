#include "tilewright/plan/simt_gemm.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/gathered.hpp"

namespace tilewright::plan {
namespace {

constexpr int kVectorBytes = 16;  // the widest load of one thread
constexpr int kMinCpAsyncBytes = 4;
constexpr double kFmaPerClockOfIssue = 128;  // four schedulers, one instruction of 32 lanes each
// Pointers and counters beside sums and fragments, and the fewest with which ptxas spills next to none. Threads get the
// fewest where one more would halve the CTAs of 256 threads in an SM.
constexpr int kAddressRegisters = 40;
constexpr int kFewestAddressRegisters = 24;
// More registers for addresses if the matrices of C and D are pointers in memory and rows of D are staged: kernels of
// s8 spilled 16 bytes without them.
constexpr int kStagedPointerRegisters = 4;
constexpr int kRegistersOfTwoCtas = 128;
// Lines with 16 bytes of padding take turns over the banks after 8 lines. Transposing stores of 8 consecutive elements
// of K therefore have no bank conflicts.
constexpr int kConflictFreeLines = 8;
constexpr int kSectorBytes = 32;  // what one access of global memory transfers at least
// Cost of a store from registers to shared memory, relative to a copy from global memory.
constexpr double kCopiesPerStore = 0.36;
// Clocks of each staged store of less than 16 bytes beyond one for each 16 bytes. Fitted with 43 problems of f32; 0.1
// chooses as well, 0.5 worse (H200, 2026-11-27).
constexpr double kStagedStoreClocks = 0.2;
// With more phases, fewer registers hold copied vectors, and a phase's loads have less time to arrive: at least that of
// kFmasPerPhase multiply-adds of each thread. Threads with few accumulators have registers for a single phase.
constexpr int kMaxCopyPhases = 4;
constexpr int kFmasPerPhase = 256;
constexpr int kAccumulatorsOfPhases = 64;
// Loads have two phases of time if each of four phases copies one vector of 16 bytes. Both operands K-major, tiles of
// 128x128 took 1 to 4 % less (4096^3: 2828 to 2760 us) and others 1 to 5 % more, and with shorter vectors 1 % less to
// 3 % more (H200, 2026-11-27).
constexpr int kLongLag = 2;

/// Elements of K of one line that consecutive threads copy. The rest of the line follows in later passes, at a constant
/// distance.
int segment_of(const PanelOperand& operand, int tile_mn, int tile_k, int threads) {
  const int segment = std::max(kConflictFreeLines, kSectorBytes / bytes(operand.element));
  if (tile_k % segment != 0) return tile_k;
  const int vectors = segment / operand.vector * tile_mn;
  return threads % vectors == 0 || vectors % threads == 0 ? segment : tile_k;
}

PanelOperand plan_operand(const op::TensorSignature& tensor, bool is_k_major, int tile_mn, int tile_k, DType stored,
                          int threads, bool has_phases) {
  PanelOperand operand;
  operand.element = tensor.element;
  operand.is_k_major = is_k_major;
  operand.is_interleaved = op::is_interleaved(tensor.layout);
  const int contiguous = is_k_major ? tile_k : tile_mn;
  int vector = std::min(tensor.alignment, kVectorBytes / bytes(tensor.element));
  while (contiguous % vector != 0) vector /= 2;
  operand.vector = vector;
  const bool is_copied = !is_k_major && tensor.element == stored && bytes(tensor.element) >= kMinCpAsyncBytes;
  const bool is_staged = is_k_major && vector * bytes(tensor.element) == kVectorBytes && !has_phases;
  operand.copy = is_copied ? PanelCopy::async : is_staged ? PanelCopy::staged : PanelCopy::registers;
  operand.segment = is_k_major ? segment_of(operand, tile_mn, tile_k, threads) : tile_mn;
  // Transposed stores walk down k, one line a thread: 16 bytes of padding spread them over the banks and keep vector
  // loads aligned.
  operand.line_elements = tile_mn + (is_k_major ? kVectorBytes / bytes(stored) : 0);
  return operand;
}

// Splits a warp's lanes and vectors over its tile so that a thread's share is as square as can be.
struct LaneGrid {
  int lanes_m, lanes_n, vector_m, vector_n;
};

int vector_for(int thread_elements, int largest) {
  int vector = largest;
  while (thread_elements % vector != 0) vector /= 2;
  return vector;
}

Result<LaneGrid> split_lanes(int warp_m, int warp_n, DType stored) {
  constexpr std::array<std::array<int, 2>, 6> kGrids{{{8, 4}, {4, 8}, {16, 2}, {2, 16}, {32, 1}, {1, 32}}};
  const std::array<int, 2>* best = nullptr;
  int best_difference = 0;
  for (const auto& grid : kGrids) {
    if (warp_m % grid[0] != 0 || warp_n % grid[1] != 0) continue;
    const int difference = std::abs(warp_m / grid[0] - warp_n / grid[1]);
    if (best == nullptr || difference < best_difference) {
      best = &grid;
      best_difference = difference;
    }
  }
  if (best == nullptr)
    return refuse("a warp tile of {}x{} is not divisible by 32 lanes", warp_m, warp_n).as(RefusalCode::design);
  const int largest = kVectorBytes / bytes(stored);
  const auto [lanes_m, lanes_n] = *best;
  return LaneGrid{lanes_m, lanes_n, vector_for(warp_m / lanes_m, largest), vector_for(warp_n / lanes_n, largest)};
}

}  // namespace

DType stored_type(DType accumulator, DType element) {
  if (element == DType::f64) return DType::f64;
  return accumulator == DType::s32 ? DType::s32 : DType::f32;
}

int SimtGemmPlan::register_passes() const {
  int passes = 0;
  if (a.copy != PanelCopy::async) passes += std::max(tile.m * tile.k / a.vector / threads(), 1);
  if (b.copy != PanelCopy::async) passes += std::max(tile.n * tile.k / b.vector / threads(), 1);
  return passes;
}

int SimtGemmPlan::registers() const {
  const int words = bytes(stored) / 4;
  const auto bytes_of_vector = [](const PanelOperand& operand) {
    return operand.copy == PanelCopy::async ? 0 : operand.vector * bytes(operand.element);
  };
  const int vector_bytes = std::max(bytes_of_vector(a), bytes_of_vector(b));
  const int passes = std::min(copy_lag * ceil_div(register_passes(), copy_phases), register_passes());
  const auto reach = [&](const op::TensorSignature& tensor, const PanelOperand& operand, int tile_mn) {
    return gathered_registers(tensor, std::max(tile_mn * tile.k / operand.vector / threads(), 1));
  };
  const int gathered = std::max(reach(operands.a, a, tile.m) + reach(operands.b, b, tile.n),  //
                                folded_output_registers(operands));
  const int pointers = stages_rows() && operands.has_c && operands.d.is_pointer_array ? kStagedPointerRegisters : 0;
  const int values =
      (thread_m() * thread_n() + 2 * (thread_m() + thread_n())) * words + passes * ((vector_bytes + 3) / 4) + pointers;
  // Conversions of copied elements take more registers: kernels of bf16 spilled up to 28 bytes.
  const bool converts = a.element != stored || b.element != stored;
  if (gathered != 0) return values + kAddressRegisters + gathered;
  if (!converts && values + kFewestAddressRegisters <= kRegistersOfTwoCtas)
    return std::min(values + kAddressRegisters, kRegistersOfTwoCtas);
  return values + kAddressRegisters;
}

layout::Layout smem_layout(const SimtGemmPlan& plan, bool is_a) {
  using layout::IntTuple;
  const PanelOperand& operand = is_a ? plan.a : plan.b;
  const int tile_mn = is_a ? plan.tile.m : plan.tile.n;
  if (operand.is_k_major) return {IntTuple{tile_mn, plan.tile.k}, IntTuple{1, operand.line_elements}};
  return {IntTuple{plan.tile.k, tile_mn}, IntTuple{operand.line_elements, 1}};
}

TileCopy tile_copy(const SimtGemmPlan& plan, bool is_a) {
  using layout::IntTuple;
  const layout::Layout smem = smem_layout(plan, is_a);
  const PanelOperand& operand = is_a ? plan.a : plan.b;
  const int vector = operand.vector;
  // Vectors are numbered within a segment of a line, then line after line, then segment after segment.
  const layout::Layout vectors(
      IntTuple{operand.segment / vector, size(smem.mode(0)), size(smem.mode(1)) / operand.segment},
      IntTuple{IntTuple::scaled_basis(vector, {1}), IntTuple::scaled_basis(1, {0}),
               IntTuple::scaled_basis(operand.segment, {1})});
  return tile_copy(layout::ComposedLayout{{}, 0, smem}, vectors, plan.threads());
}

SimtThreadTile thread_tile(const SimtGemmPlan& plan) {
  using layout::IntTuple;
  const auto rows = [](std::int64_t count) { return IntTuple::scaled_basis(count, {0}); };
  const auto columns = [](std::int64_t count) { return IntTuple::scaled_basis(count, {1}); };
  // Fragment loads have no bank conflict in either order of lanes. With two lanes along N, all along M, then the others
  // along N, kernels with K-major operands were up to 5 % faster on an H200, others up to 2 % slower.
  const bool is_copied_async = plan.a.copy == PanelCopy::async && plan.b.copy == PanelCopy::async;
  const int pair = is_copied_async ? plan.lanes_n : std::min(plan.lanes_n, 2);
  const IntTuple lanes{pair, plan.lanes_m, plan.lanes_n / pair};
  const IntTuple warps{plan.warps_m, plan.warps_n};
  SimtThreadTile tile;
  // A thread's vectors lie as far apart as all lanes' vectors are wide, so that a warp reads consecutive vectors.
  tile.coordinates = {
      IntTuple{IntTuple{lanes, warps}, IntTuple{IntTuple{plan.vector_m, plan.thread_m() / plan.vector_m},
                                                IntTuple{plan.vector_n, plan.thread_n() / plan.vector_n}}},
      IntTuple{
          IntTuple{IntTuple{columns(plan.vector_n), rows(plan.vector_m), columns(std::int64_t{pair} * plan.vector_n)},
                   IntTuple{rows(plan.warp_tile_m()), columns(plan.warp_tile_n())}},
          IntTuple{IntTuple{rows(1), rows(std::int64_t{plan.lanes_m} * plan.vector_m)},
                   IntTuple{columns(1), columns(std::int64_t{plan.lanes_n} * plan.vector_n)}}}};
  tile.band_row = {IntTuple{lanes, warps}, IntTuple{IntTuple{0, 1, 0}, IntTuple{plan.lanes_m, 0}}};
  tile.band = {IntTuple{plan.lanes_m, plan.warps_m}, IntTuple{plan.vector_m, plan.warp_tile_m()}};
  return tile;
}

CostInput cost_input(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  CostInput input = tile_cost(plan, arguments);
  input.registers = plan.registers();
  count_stores(plan, plan.realigns_rows(), plan.stages_rows() ? plan.tile.n : plan.lanes_n * plan.vector_n, input);
  if (plan.stages_rows() && !plan.realigns_rows()) input.more_store_clocks = kStagedStoreClocks;
  input.smem_bytes = plan.smem_bytes();
  input.fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::simt, plan.stored);
  input.multiply_issue_share = input.fma_per_clock / kFmaPerClockOfIssue;
  // A warp's lanes share what they read: one line of lanes' vectors along M, one along N.
  const int warps = plan.warps_m * plan.warps_n;
  input.smem_bytes_per_k = warps * (plan.warp_tile_m() + plan.warp_tile_n()) * bytes(plan.stored);
  const int vectors = plan.thread_m() / plan.vector_m + plan.thread_n() / plan.vector_n;
  input.smem_loads_per_k = warps * vectors;
  const double stores =
      (plan.a.copy == PanelCopy::async ? 0 : plan.tile.m) + (plan.b.copy == PanelCopy::async ? 0 : plan.tile.n);
  input.copies_per_k = static_cast<double>(plan.tile.m) / plan.a.vector +
                       static_cast<double>(plan.tile.n) / plan.b.vector + stores * kCopiesPerStore;
  if (plan.a.copy == PanelCopy::registers && plan.b.copy == PanelCopy::registers) input.copy_phases = plan.copy_phases;
  return input;
}

SumOrder sum_order(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  return {.unit = arch::MathUnit::simt,
          .padded_k = padded_k(arguments, plan.tile.k),
          .split_k = plan.split_k,
          .split_k_step = plan.split_k > 1 ? plan.tile.k : 0};
}

Result<SimtGemmPlan> plan_simt_gemm(const op::GemmSignature& signature, const SimtGemmDesign& design) {
  // multiply_add_fast_accumulate allows less precise sums and does not require them.
  const bool is_plain = signature.math == op::MathOperation::multiply_add ||
                        signature.math == op::MathOperation::multiply_add_fast_accumulate;
  if (!is_plain) {
    return refuse("{} needs tensor cores", op::name(signature.math)).as(RefusalCode::math);
  }
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  if (const Support fits = check_warps_are_powers_of_two(design); !fits) return fits.refusal();
  SimtGemmPlan plan{*std::move(tile), design.target, DType::f32, {}, {}, 0, 0, 0, 0};
  plan.stored = stored_type(plan.operands.accumulator, plan.operands.a.element);
  if (const Support fits = check_blocks_along_k(plan); !fits) return fits.refusal();
  const bool a_is_k_major = op::has_contiguous_rows(plan.operands.a.layout);
  const bool b_is_k_major = !op::has_contiguous_rows(plan.operands.b.layout);
  const bool has_phases = plan.warp_tile_m() * plan.warp_tile_n() / 32 >= kAccumulatorsOfPhases;
  plan.a =
      plan_operand(plan.operands.a, a_is_k_major, plan.tile.m, plan.tile.k, plan.stored, plan.threads(), has_phases);
  plan.b =
      plan_operand(plan.operands.b, b_is_k_major, plan.tile.n, plan.tile.k, plan.stored, plan.threads(), has_phases);
  const Result<LaneGrid> lanes = split_lanes(plan.warp_tile_m(), plan.warp_tile_n(), plan.stored);
  if (!lanes) return lanes.refusal();
  plan.lanes_m = lanes->lanes_m;
  plan.lanes_n = lanes->lanes_n;
  plan.vector_m = lanes->vector_m;
  plan.vector_n = lanes->vector_n;
  const auto is_worth = [&](int phases) {
    return phases <= std::min(kMaxCopyPhases, plan.register_passes()) && plan.tile.k % phases == 0 &&
           plan.thread_m() * plan.thread_n() >= kAccumulatorsOfPhases &&
           plan.thread_m() * plan.thread_n() * plan.tile.k / phases >= kFmasPerPhase;
  };
  while (is_worth(2 * plan.copy_phases)) plan.copy_phases *= 2;
  const auto has_whole_vectors = [](const PanelOperand& operand) {
    return operand.copy == PanelCopy::registers && operand.vector * bytes(operand.element) == kVectorBytes;
  };
  const bool lags = plan.copy_phases == kMaxCopyPhases && plan.register_passes() == kMaxCopyPhases &&
                    plan.stages > kLongLag && has_whole_vectors(plan.a) && has_whole_vectors(plan.b);
  plan.copy_lag = lags ? kLongLag : 1;
  for (const PanelOperand* operand : {&plan.a, &plan.b}) {
    const int tile_mn = operand == &plan.a ? plan.tile.m : plan.tile.n;
    const int vectors_per_line = (operand->is_k_major ? plan.tile.k : tile_mn) / operand->vector;
    const int vectors = tile_mn * plan.tile.k / operand->vector;
    const bool divides = plan.threads() % vectors_per_line == 0 || vectors_per_line % plan.threads() == 0;
    if (!divides || (vectors > plan.threads() && vectors % plan.threads() != 0)) {
      return refuse("{} threads copy lines of {} vectors, {} in a tile, which does not divide", plan.threads(),
                    vectors_per_line, vectors)
          .as(RefusalCode::design);
    }
    const int vector = operand == &plan.a ? plan.vector_m : plan.vector_n;
    if (operand->line_elements % vector != 0) {
      return refuse("a line of {} elements in shared memory is not divisible by a load of {}", operand->line_elements,
                    vector)
          .as(RefusalCode::design);
    }
    const int panel_bytes = operand->line_elements * plan.tile.k * bytes(plan.stored);
    if (panel_bytes % kVectorBytes != 0) {
      return refuse("an operand's {} bytes of a stage must be a multiple of {}, for what follows it", panel_bytes,
                    kVectorBytes)
          .as(RefusalCode::design);
    }
  }
  if (const int paired = plan.operands.epilogue.columns_per_element(); plan.vector_n % paired != 0)
    return refuse("a thread has {} neighbouring columns, the epilogue pairs them", plan.vector_n)
        .as(RefusalCode::epilogue);
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return fits.refusal();
  const arch::ArchLimits& limits = arch::limits(design.target);
  const int available = std::min(limits.max_registers_per_thread, limits.registers_per_sm / plan.threads());
  if (plan.registers() > available) {
    return refuse("a thread's {}x{} elements need about {} registers, of {}", plan.thread_m(), plan.thread_n(),
                  plan.registers(), available)
        .as(RefusalCode::resources);
  }
  if (const Support fits = check_split_k(plan, residence_of(plan)); !fits) return fits.refusal();
  return plan;
}

}  // namespace tilewright::plan
