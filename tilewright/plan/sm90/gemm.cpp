#include "tilewright/plan/sm90/gemm.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/repacking.hpp"

namespace tilewright::plan {
namespace {

constexpr int kMaxConsumers = 3;  // with the producer warpgroup this makes 512 threads of 128 registers each
/// Registers for addresses in addition to the accumulators; from the output of ptxas -v for this family.
constexpr int kAddressRegisters = 40;
// Each of the next constants is a number of address registers that a kernel needs beyond kAddressRegisters. Without
// them, the tiles in parentheses spilled the given number of bytes.
// wgmma reads both operands MN-major: 4 bytes (128x192 in ping-pong, 240 registers).
constexpr int kMnMajorRegisters = 9;
// Plain loads copy C for tiles of groups: 68 bytes (128x192 in ping-pong).
constexpr int kSourceRegisters = 9;
// Groups differ in k: 32 bytes (128x176 in ping-pong, with both operands K-major).
constexpr int kGroupKRegisters = 18;
// D is a pointer array: 68 bytes (128x176 in ping-pong).
constexpr int kPointerRegisters = 17;
// The epilogue has reductions. Row, column and single results were compiled alone and together. With groups, any
// reduction spilled in 128x160 with ping-pong (248 bytes) and three in 256x128 (72), but no two in 128x256. Without
// groups, three spilled in 256x128 (96) and sums of columns in 128x176 with ping-pong (104), but not in 128x160, and no
// single result in 128x192.
constexpr int kReductionsRegisters = 33, kReductionRegisters = 11, kVectorRegisters = 18;
constexpr int kManyReductions = 3;
/// Registers of one wgmma in addition to its accumulators: ptxas asks for 138 if these are 112.
constexpr int kInstructionRegisters = 26;
/// One wgmma that takes A from registers needs this many more for the fragment: ptxas asks for 130 registers if the
/// accumulators are 100.
constexpr int kFragmentRegisters = 4;
/// Registers for plain stores of D with 16-bit elements and with other widths; also from ptxas -v.
constexpr int kMatrixStoreRegisters = 16;
constexpr int kPairStoreRegisters = 24;
/// Registers for storing 1-byte elements of D with promoted accumulators: without them, 256x128 spilled 48 bytes.
constexpr int kByteStoreRegisters = 8;

DType multiplied_type(DType element, op::MathOperation math) {
  return math == op::MathOperation::multiply_add_tf32 ? DType::tf32 : element;
}

/// The major mode of an operand: a row-major A and a column-major B are K-major.
arch::Major major_of(const op::TensorSignature& operand, op::MatrixLayout along_k) {
  return operand.layout == along_k ? arch::Major::k : arch::Major::mn;
}
arch::Major major_a(const op::GemmSignature& operands) { return major_of(operands.a, op::MatrixLayout::row_major); }
arch::Major major_b(const op::GemmSignature& operands) { return major_of(operands.b, op::MatrixLayout::column_major); }

/// Finds the wgmma atom. It takes A from registers if wgmma cannot read A's major mode from shared memory.
Result<const arch::WgmmaAtom*> find_atom(const op::GemmSignature& operands, const Sm90GemmDesign& design) {
  using enum arch::OperandSource;
  if (const Support has = check_feature(design.target, TargetFeature::wgmma); !has) return has.refusal();
  const DType a = multiplied_type(operands.a.element, operands.math);
  const DType b = multiplied_type(operands.b.element, operands.math);
  const arch::WgmmaAtom* atom = arch::find_wgmma_atom(a, b, operands.accumulator, shared_memory);
  if (atom == nullptr) {
    return refuse("no wgmma of {} and {} accumulating in {}; there is: {}", name(a), name(b),
                  name(operands.accumulator), arch::known_wgmma(a, b))
        .as(RefusalCode::types);
  }
  if (design.repacks_operands && !design.repacks_only_b) return atom;
  if (!design.repacks_operands && major_b(operands) == arch::Major::mn && !atom->b_may_be_mn_major) {
    const bool are_both = major_a(operands) == arch::Major::mn;
    return refuse("wgmma reads {} K-major only, except for A from registers: {}", name(b),
                  are_both ? "A and B are MN-major, repack them" : "B is MN-major, swap the operands or repack them")
        .as(RefusalCode::strides);
  }
  const bool reads_a = major_a(operands) == arch::Major::k || atom->a_may_be_mn_major;
  return reads_a ? atom : arch::find_wgmma_atom(a, b, operands.accumulator, registers);
}

/// Plans how wgmma reads the operands' tiles: through descriptors, or A as fragments from registers.
Support plan_reads(Sm90GemmPlan& plan) {
  if (plan.atom->a_source == arch::OperandSource::shared_memory) {
    const Result<arch::WgmmaTile> wgmma =
        arch::wgmma_tile(*plan.atom, plan.tile.n, {plan.a.major, plan.a.smem}, {plan.b.major, plan.b.smem});
    if (!wgmma) return wgmma.refusal();
    plan.a.wgmma = wgmma->a;
    plan.b.wgmma = wgmma->b;
    return {};
  }
  if (const int steps = plan.tile.k / plan.atom->k; steps % 2 != 0) {
    return refuse("fragments of A are double buffered, so a tile needs an even number of instructions along k, got {}",
                  steps)
        .as(RefusalCode::design);
  }
  Result<arch::FragmentLoads> fragments = arch::fragment_loads(*plan.atom, plan.a.smem);
  if (!fragments) return fragments.refusal();
  plan.a.fragments = *std::move(fragments);
  Result<arch::WgmmaOperand> b = arch::wgmma_operand(plan.b.major, plan.b.smem, bits(plan.atom->b), plan.tile.n);
  if (!b) return b.refusal();
  plan.b.wgmma = *std::move(b);
  return {};
}

Support check_cluster(int m, int n) {
  constexpr int kMaxCtas = 8;  // portable cluster size: CUDA C++ Programming Guide, "Thread Block Clusters"
  for (const auto& [what, value] : {std::pair{'m', m}, {'n', n}}) {
    if (value < 1 || value > kMaxCtas)
      return refuse("cluster shape {} must be from 1 to {}, got {}", what, kMaxCtas, value).as(RefusalCode::design);
  }
  if (m * n > kMaxCtas)
    return refuse("a cluster has at most {} CTAs, got {}x{}", kMaxCtas, m, n).as(RefusalCode::design);
  return {};
}

/// Refuses operands that TMA does not load in boxes a constant step apart, and those that the CTAs of a cluster cannot
/// multicast to each other.
Support check_copies(const Sm90GemmSketch& plan) {
  const int element_bytes = bytes(plan.atom->a);
  const auto check = [&](const OperandPath& path, int mn, int shares) -> Support {
    if (path.uses_plain_loads()) return {};
    const int tap_k = path.tap_k(plan.tile.k), tap_mn = path.tap_mn(mn);
    const int row = row_bytes(path.major, element_bytes, tap_mn, tap_k, path.max_row_bytes);
    const Support fits = check_boxes(path.major, row, element_bytes, tap_mn, tap_k);
    return fits ? check_slices(path.major, row, tap_mn, tap_k, shares) : fits;
  };
  if (const Support fits = check(plan.path_a, plan.tile.m, plan.cluster_n); !fits) return fits;
  return check(plan.path_b, plan.tile.n, plan.cluster_m);
}

/// Refuses a split_k whose CTAs cannot all be resident at once, because they wait for each other.
Support check_split_k(const Sm90GemmSketch& plan) {
  const int most = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size());
  if (plan.split_k < 1 || plan.split_k > most) {
    return refuse("split_k must be from 1 to the {} clusters of {} that {} holds, got {}", most, plan.cluster_size(),
                  plan.target.name(), plan.split_k)
        .as(RefusalCode::design);
  }
  if (plan.split_k == 1) return {};
  if (plan.operands.accumulator == DType::f16)
    return refuse("split-K accumulates in f32 or s32, not in f16").as(RefusalCode::types);
  return {};
}

Support check_warps(const GemmTile& tile) {
  if (tile.warps_n != 1 || tile.warps_m % 4 != 0 || tile.warps_m / 4 > kMaxConsumers) {
    return refuse("math warps must be 4, 8 or 12 along m and 1 along n, got {}x{}", tile.warps_m, tile.warps_n)
        .as(RefusalCode::design);
  }
  return {};
}

Support check_teams(const Sm90GemmSketch& plan) {
  if (const int rows = kWgmmaM * plan.team(); plan.tile.m % rows != 0) {
    return refuse("tile m {} is not divisible by the {} rows of {} warpgroups", plan.tile.m, rows, plan.team())
        .as(RefusalCode::design);
  }
  if (plan.schedule == Schedule::ping_pong && plan.consumers() == 1) {
    return refuse("ping_pong needs at least 2 consumer warpgroups, got 1").as(RefusalCode::design);
  }
  return {};
}

/// Refuses groups that end along K unless TMA loads the operands, which replaces elements behind a group by zeros.
Support check_ends_along_k(const Sm90GemmSketch& plan) {
  for (const auto& [role, path] : {std::pair{'A', &plan.path_a}, {'B', &plan.path_b}}) {
    if (!path->ends_along_k || path->makes_tensor_maps) continue;
    return refuse(
               "groups that differ in k must be loaded by TMA, which {} is not: {}its address and leading dimension "
               "must be multiples of {} bytes",
               plan.is_transposed == (role == 'A') ? 'B' : 'A',
               op::is_ragged(plan.groups()) ? "k may not be its contiguous mode, and " : "", kTmaBytes)
        .as(RefusalCode::strides);
  }
  return {};
}

/// Refuses operands of independent groups unless TMA loads them: only tensor maps have the leading dimension of a
/// group.
Support check_independent(const Sm90GemmSketch& plan) {
  for (const auto& [role, path] : {std::pair{'A', &plan.path_a}, {'B', &plan.path_b}}) {
    if (!path->is_independent || path->makes_tensor_maps) continue;
    return refuse(
               "independent groups must be loaded by TMA, which {} is not: the alignment of its addresses and leading "
               "dimensions must be declared as {} bytes",
               plan.is_transposed == (role == 'A') ? 'B' : 'A', kTmaBytes)
        .as(RefusalCode::strides);
  }
  return {};
}

/// Plans the epilogue: which of C and D TMA moves, and the epilogue subtile. TMA requires lines that begin and end at
/// multiples of 16 bytes.
Support plan_output(Sm90GemmSketch& plan) {
  const op::TensorSignature& d = plan.operands.d;
  if (d.folded_modes != 0 && plan.split_k > 1 && !plan.has_tap_columns)
    return refuse("D is folded, which split_k of {} does not store", plan.split_k).as(RefusalCode::design).of("D");
  if (d.folded_modes != 0 && plan.operands.epilogue.columns_per_element() != 1)
    return refuse("D is folded, but the epilogue pairs columns").as(RefusalCode::epilogue);
  plan.store_bytes = std::min(kTmaBytes, d.alignment * bytes(d.element));
  plan.stores_by_tma = stores_by_tma(d) && plan.split_k == 1;
  const op::TensorSignature& c = plan.operands.c;
  plan.source_bytes = std::min(kTmaBytes, c.alignment * bytes(c.element));
  plan.loads_source_by_tma = plan.operands.has_c && plan.stores_by_tma && stores_by_tma(c) && c.layout == d.layout &&
                             !copies_source(plan.operands);
  if (plan.split_k > 1) return {};
  const Sm90SharedMemory memory{.stages = plan.stages,
                                .stage_bytes = plan.stage_bytes(),
                                .consumers = plan.consumers(),
                                .staging_bytes = plan.staging_bytes(),
                                .output_barriers = kOutputBuffers,
                                .group_bytes = group_table_bytes(plan.groups()),
                                .tensor_maps = plan.made_tensor_maps()};
  plan.others = tma_outputs(plan.operands, plan.split_k);
  plan.subtile = epilogue_subtile(plan.output_elements(), plan.d_tile_columns(),
                                  memory.most_output_bytes(arch::limits(plan.target).smem_per_block_bytes));
  if (plan.subtile.panel_columns != 0) return {};
  return refuse("{} columns of D are not divisible by {}, the fewest that are stored at once", plan.d_tile_columns(),
                std::max(8, plan.d_is_row_major() ? kTmaBytes / bytes(d.element) : 8))
      .as(RefusalCode::alignment)
      .of("D");
}

}  // namespace

int split_k_sum_groups(int tile_n, int split_k) {
  constexpr int kThreads = 128;
  const int quads = kWgmmaM * tile_n / 4;
  const int share = ceil_div(quads, split_k);
  int lanes = 1;
  while (lanes < share && lanes < kThreads) lanes *= 2;
  return kThreads / lanes;
}

EpilogueStaging epilogue_staging(const op::Epilogue& epilogue) {
  EpilogueStaging staging;
  for (const op::EpilogueNode* tensor : epilogue.tensors()) {
    if (tensor->broadcast == op::kRowVector) ++staging.rows;
    if (tensor->broadcast == op::kColumnVector) ++staging.columns;
  }
  staging.reductions = reduction_counts(epilogue);
  return staging;
}

int EpilogueStaging::bytes(int tile_rows, int tile_columns, int split_k) const {
  constexpr int kThreads = 128, kElementBytes = 4;
  if (split_k == 1) {
    return kElementBytes * (rows * tile_columns + columns * tile_rows) +
           fragment_reduction_bytes(reductions, tile_columns);
  }
  const int groups = tile_columns / 8;  // groups of four accumulators per thread; see epilogue/split_k_sum.cuh
  const int share = ceil_div(groups * kThreads, split_k);
  const int columns_of_share = std::min(tile_columns, (ceil_div(share, kThreads) + 1) * 8);
  return band_reduction_bytes(reductions, static_cast<int>(kWgmmaM), columns_of_share, kThreads, kElementBytes);
}

int Sm90SharedMemory::most_output_bytes(int limit) const {
  const int available = limit - stages * (stage_bytes + 2 * kMbarrierBytes) - group_bytes - tensor_map_bytes();
  return available / consumers - output_barrier_bytes() - staging_bytes;
}

RegisterSplit split_registers(int consumers, bool uses_plain_loads, const ConsumerExtras& extras, int needed) {
  if (!uses_plain_loads && consumers == 3) return {40, 152};
  // If one warpgroup holds the accumulators of 192 columns, few registers remain for the epilogue: with 232 registers
  // about 50 bytes spilled.
  constexpr int kTight = 225;
  // A producer that makes tensor maps for groups needs its 40 registers: with 24, 84 bytes spilled.
  const bool may_take_more = !extras.promotes && !extras.differs_in_k;
  if (!uses_plain_loads)
    return may_take_more && needed >= kTight && needed <= 232 ? RegisterSplit{24, 240} : RegisterSplit{40, 232};
  if (consumers == 1) return {152, 232};
  if (consumers == 3) return {96, 136};
  constexpr RegisterSplit kEven{152, 176};
  return needed <= kEven.consumer ? kEven : RegisterSplit{136, 184};
}

int plain_load_words(int consumers) { return consumers == 3 ? 24 : 80; }

bool copies_source(const op::GemmSignature& signature) {
  return signature.has_c && (op::differs_in_m(signature.groups) || op::differs_in_n(signature.groups));
}

bool promotes_accumulators(const op::GemmSignature& signature) {
  return is_fp8(signature.a.element) && signature.accumulator == DType::f32 &&
         signature.math == op::MathOperation::multiply_add;
}

Support check_promotion(const TileShape& tile) {
  if (tile.k > op::kFp8PromotionInterval) {
    return refuse("tile k must be at most {} where sums of 8-bit floats are promoted, got {}",
                  op::kFp8PromotionInterval, tile.k)
        .as(RefusalCode::types);
  }
  return {};
}

double exposed_clocks(const TileShape& tile, int team, const ConsumerExtras& extras, int element_bytes) {
  constexpr double kAddsPerClock = 128;
  // Half of the 128 bytes per clock that shared memory delivers; measured on an H200 with tf32 128x128x32.
  constexpr double kFragmentBytesPerClock = 64;
  // Share of the additions that is exposed if a warpgroup has two instructions along M: the estimate without
  // it was 11 % too short for 8192x8192x8192 in tiles of 256x96 (H200, 2026-11-26).
  constexpr double kShareOfTwoAtoms = 0.6;
  double clocks = 0;
  if (extras.promotes) {
    const double adds = tile.m * tile.n / kAddsPerClock;
    clocks += (team == 1 ? adds : 0) + (tile.m > kWgmmaM * team ? kShareOfTwoAtoms * adds : 0);
  }
  if (team != 1) return clocks;
  if (extras.loads_fragments) clocks += tile.m * tile.k * element_bytes / kFragmentBytesPerClock;
  return clocks;
}

int reduction_registers(const ReductionCounts& counts, op::GroupedMode groups) {
  const int vectors = counts.rows + counts.columns, all = vectors + counts.singles;
  if (all == 0) return 0;
  if (groups == op::GroupedMode::none && all < kManyReductions) return kVectorRegisters * vectors;
  return kReductionsRegisters + kReductionRegisters * all;
}

RegisterNeeds register_needs(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                             const ConsumerExtras& extras) {
  const int of_an_instruction = kWgmmaM * tile.n / 128;
  int beside = extras.promotes ? of_an_instruction : 0;
  if (extras.promotes && extras.stores_bytes) beside += kByteStoreRegisters;
  // Fragments of A need two buffers and the address of each load.
  if (extras.loads_fragments) beside += 3 * 4 * tile.m / (kWgmmaM * team);
  if (extras.plain_bytes > 0) beside += extras.plain_bytes == 2 ? kMatrixStoreRegisters : kPairStoreRegisters;
  if (extras.reads_mn_major) beside += kMnMajorRegisters;
  if (extras.copies_source) beside += kSourceRegisters;
  if (extras.differs_in_k) beside += kGroupKRegisters;
  if (extras.finds_output) beside += kPointerRegisters;
  beside += extras.reduction_registers;
  // ptxas requires that one wgmma fits in the registers that every thread has at launch, regardless of setmaxnreg
  // (error C7602).
  constexpr int kRegistersOfAnSm = 65536;
  const int needed = tile.m * tile.n / (128 * team) + beside + kAddressRegisters;
  return {.tile = needed,
          .given = split_registers(consumers, uses_plain_loads, extras, needed).consumer,
          .instruction = of_an_instruction + kInstructionRegisters + (extras.loads_fragments ? kFragmentRegisters : 0),
          .alike = kRegistersOfAnSm / (128 * (consumers + 1))};
}

Support check_registers(const TileShape& tile, int team, int consumers, bool uses_plain_loads,
                        const ConsumerExtras& extras) {
  const RegisterNeeds needs = register_needs(tile, team, consumers, uses_plain_loads, extras);
  if (needs.tile > needs.given) {
    return refuse("a tile of {}x{} over {} warpgroups needs about {} registers a thread, of {}", tile.m, tile.n, team,
                  needs.tile, needs.given)
        .as(RefusalCode::resources);
  }
  if (needs.instruction > needs.alike) {
    return refuse("an instruction of {} columns needs {} registers a thread, of {} in {} warpgroups", tile.n,
                  needs.instruction, needs.alike, consumers + 1)
        .as(RefusalCode::resources);
  }
  return {};
}

int Sm90GemmSketch::output_bytes() const {
  if (split_k > 1) return kSplitKSumBytes;
  return subtile.bytes(output_elements());
}

int Sm90GemmSketch::staging_bytes() const {
  return epilogue_staging(operands.epilogue).bytes(tile.m / team(), tile.n, split_k);
}

AccumulatorTile accumulator_tile(const Sm90GemmPlan& plan) {
  using layout::IntTuple;
  const int n = plan.tile.n;
  const arch::MmaAtom instruction = arch::instruction(*plan.atom, n).value_or_throw();
  const bool pairs_rows = plan.a.fragments && plan.a.fragments->pairs_rows;
  // With paired rows, row g + 8 * h of the warp's 16 rows in the instruction's numbering holds row 2 * g + h of A.
  const layout::Layout rows =
      pairs_rows ? layout::Layout(IntTuple{8, 2, 4}, IntTuple{2, 1, 16}) : layout::Layout(kWgmmaM, 1);
  const layout::Layout tile = layout::concatenate({rows, layout::Layout(n, kWgmmaM)});
  const layout::Layout offsets = layout::composition(tile, instruction.c_tv);
  // The modes of `threads` are the lanes (four along a row, eight along the rows) and the warps.
  const layout::Layout threads = layout::group(offsets.mode(0), 0, 2);
  return accumulator_tile(layout::concatenate({threads, offsets.mode(1)}), kWgmmaM, n);
}

std::vector<DType> Sm90GemmSketch::panel_elements() const {
  std::vector<DType> elements{operands.c.element, operands.d.element};
  const std::size_t sources = operands.epilogue.tensors().size();
  for (int i = 0; i < others.count; ++i) {
    const auto number = static_cast<std::size_t>(others.numbers[static_cast<std::size_t>(i)]);
    elements.push_back(operands.tensors[sources + number].element);
  }
  return elements;
}

int Sm90GemmSketch::subtiles() const {
  if (split_k > 1) return 0;
  return tile.m / kWgmmaM / team() * subtile.count(d_tile_columns());
}

TileStores Sm90GemmSketch::tile_stores() const {
  if (!stores_by_tma) return {};
  return plan::tile_stores(subtile, output_elements(), tile.m / kWgmmaM / team(), d_tile_columns());
}

Sm90SharedMemory Sm90GemmSketch::shared_memory() const {
  const bool transposes = path_a.is_transposed || path_b.is_transposed;
  return {
      .stages = stages,
      .stage_bytes = stage_bytes(),
      .consumers = consumers(),
      .output_bytes = output_bytes(),
      .staging_bytes = staging_bytes(),
      .output_barriers = split_k > 1 ? 0 : kOutputBuffers,
      .warps = threads() / 32,
      .repacking_bytes = transposes ? transposing_bytes(bytes(operands.a.element)) : 0,
      .group_bytes = group_table_bytes(groups()),
      .tensor_maps = made_tensor_maps(),
  };
}

namespace {

Support refuse_major(char role, std::string_view kind, const op::TensorSignature& tensor) {
  return refuse("{} is {} of {} with stride 1 along {}, which wgmma takes along k only", role, kind,
                name(tensor.element), role == 'A' ? "m" : "n")
      .as(RefusalCode::strides)
      .of(role);
}

/// Im2col and folded matrices are not loaded with plain loads. Of those that wgmma does not read as they are, only the
/// filter of dgrad is repacked: an im2col matrix, as the `other` operand is.
Support check_gathered_layout(char role, const op::TensorSignature& tensor, const op::TensorSignature& other) {
  if (tensor.im2col == op::Im2colAccess::none && tensor.folded_modes == 0) return {};
  if (tensor.folded_modes != 0 && role == 'C')
    return refuse("C is folded, but the family reads rows and columns of one stride").as(RefusalCode::strides).of(role);
  if (tensor.folded_modes != 0 && role == 'D') {
    if (alignment_bytes(tensor) >= kTmaBytes) return {};
    return refuse("D is a folded matrix that is aligned to {} bytes, the family stores vectors of {}",
                  alignment_bytes(tensor), kTmaBytes)
        .as(RefusalCode::alignment)
        .of(role);
  }
  if (tensor.im2col == op::Im2colAccess::blocks) {
    return refuse(
               "{} is an im2col matrix of images with blocks of channels, which tensor maps of four modes do not "
               "describe",
               role)
        .as(RefusalCode::strides)
        .of(role);
  }
  const std::string_view kind = tensor.folded_modes == 0 ? "an im2col matrix" : "a folded matrix";
  const bool is_k_major = op::has_contiguous_rows(tensor.layout) == (role == 'A');
  if (!must_be_repacked(tensor, is_k_major)) return {};
  if (alignment_bytes(tensor) < kTmaBytes) {
    return refuse("{} is {} that is aligned to {} bytes, TMA needs {}", role, kind, alignment_bytes(tensor), kTmaBytes)
        .as(RefusalCode::alignment)
        .of(role);
  }
  const bool may_be_filter = tensor.folded_modes == 0 && other.im2col != op::Im2colAccess::none;
  return may_be_filter ? Support() : refuse_major(role, kind, tensor);
}

/// Refuses designs that repack only B, unless TMA loads an A that wgmma takes from registers.
Support check_repacks_only_b(const Sm90GemmSketch& plan, bool repacks_only_b) {
  if (!repacks_only_b) return {};
  if (plan.path_b.is_repacked && plan.loads_fragments() && !plan.path_a.uses_plain_loads()) return {};
  return refuse("repacks_only_b is for a B that is repacked and an A that TMA loads and that goes through registers")
      .as(RefusalCode::design);
}

/// Refuses im2col matrices that wgmma cannot read unless they are repacked.
Support check_im2col_majors(const Sm90GemmSketch& plan) {
  for (const bool is_a : {true, false}) {
    const op::TensorSignature& tensor = is_a ? plan.operands.a : plan.operands.b;
    const OperandPath& path = is_a ? plan.path_a : plan.path_b;
    if (path.is_im2col && must_be_repacked(tensor, path.major == arch::Major::k))
      return refuse_major(is_a != plan.is_transposed ? 'A' : 'B', "an im2col matrix", tensor);
  }
  return {};
}

}  // namespace

Support check_row_classes(const op::GemmSignature& signature) {
  if (signature.a.im2col != op::Im2colAccess::divided) return {};
  if (alignment_bytes(signature.b) < kTmaBytes || !stores_by_tma(signature.d)) {
    return refuse(
               "the gradient of a convolution with a stride needs tensors that TMA moves, with channels that are "
               "multiples of 16 bytes")
        .as(RefusalCode::alignment);
  }
  if (!op::has_contiguous_rows(signature.b.layout) || !op::has_contiguous_rows(signature.d.layout)) {
    return refuse("the gradient of a convolution with a stride needs filters and images with contiguous channels")
        .as(RefusalCode::strides);
  }
  if (!signature.tensors.empty()) {
    return refuse("the gradient of a convolution with a stride has no tensors in its epilogue, got {}",
                  signature.tensors.size())
        .as(RefusalCode::epilogue);
  }
  return {};
}

Support check_layouts(const op::GemmSignature& signature) {
  if (const Support fits = check_row_classes(signature); !fits) return fits;
  if (const Support fits = check_shared_pixels(signature); !fits) return fits;
  if (const Support fits = check_tap_columns(signature); !fits) return fits;
  for (const auto& [role, tensor] :
       {std::pair{'A', &signature.a}, {'B', &signature.b}, {'C', &signature.c}, {'D', &signature.d}}) {
    if (role == 'C' && !signature.has_c) continue;
    const op::TensorSignature& other = role == 'A' ? signature.b : signature.a;
    if (const Support loads = check_gathered_layout(role, *tensor, other); !loads) return loads;
    if (op::is_interleaved(tensor->layout)) {
      return refuse("TMA moves row-major and column-major matrices, but {} is {}", role, op::name(tensor->layout))
          .as(RefusalCode::strides)
          .of(role);
    }
  }
  return {};
}

namespace {

/// Sets the paths of operands whose taps are columns that share pixels, or refuses the design.
Support plan_shared_columns(Sm90GemmSketch& plan, const SharedPixels& shared) {
  constexpr int kShortestRow = 32;  // bytes of the narrowest swizzle
  const int row = plan.tile.n / shared.taps * bytes(plan.operands.b.element);
  if (plan.tile.n % shared.taps != 0 || row < kShortestRow || row > plan.path_b.max_row_bytes ||
      plan.path_b.max_row_bytes % row != 0) {
    return refuse("{} taps that share pixels need a tile n with 16, 32 or 64 channels of each, got {}", shared.taps,
                  plan.tile.n)
        .as(RefusalCode::design);
  }
  if (plan.loads_fragments() || plan.repacks())
    return refuse("taps that share pixels have neither A in registers nor repacked operands").as(RefusalCode::design);
  if (plan.cluster_m > 1) {
    return refuse("pixels that taps share are not multicast, got a cluster in which {} CTAs need the same",
                  plan.cluster_m)
        .as(RefusalCode::design);
  }
  plan.path_a.shared_pixels = plan.path_b.shared_pixels = shared;
  plan.path_b.is_pixels = true;
  plan.path_b.max_row_bytes = row;
  return {};
}

/// Sets the paths of operands whose taps share pixels, or refuses the design.
Support plan_shared_pixels(Sm90GemmSketch& plan, const SharedPixels& shared) {
  if (!shared.are_shared()) return {};
  if (shared.are_columns) return plan_shared_columns(plan, shared);
  const int element_bytes = bytes(plan.operands.a.element);
  if (const int row = plan.tile.k / shared.taps * element_bytes;
      plan.tile.k % shared.taps != 0 || row != kMaxRowBytes || plan.path_a.max_row_bytes != kMaxRowBytes ||
      plan.path_b.max_row_bytes != kMaxRowBytes) {
    return refuse("{} taps that share pixels need a tile k of {}, got {}, and rows of {} bytes for each tap",
                  shared.taps, shared.taps * kMaxRowBytes / element_bytes, plan.tile.k, kMaxRowBytes)
        .as(RefusalCode::design);
  }
  if (plan.split_k > 1 || plan.loads_fragments() || plan.repacks())
    return refuse("taps that share pixels have neither split-K, nor A in registers, nor repacked operands")
        .as(RefusalCode::design);
  plan.path_a.shared_pixels = plan.path_b.shared_pixels = shared;
  (plan.is_transposed ? plan.path_b : plan.path_a).is_pixels = true;
  if (const int ctas = plan.is_transposed ? plan.cluster_m : plan.cluster_n; ctas > 1) {
    return refuse("pixels that taps share are not multicast, got a cluster in which {} CTAs need the same", ctas)
        .as(RefusalCode::design);
  }
  return {};
}

}  // namespace

Support check_tap_columns(const op::GemmSignature& signature) {
  if (!has_tap_columns(signature)) return {};
  if (alignment_bytes(signature.d) < kTmaBytes || bytes(signature.b.element) != 2) {
    return refuse(
               "taps are columns that are padded or share pixels only if elements have 16 bits, and the channels of D "
               "are multiples of {} bytes",
               kTmaBytes)
        .as(RefusalCode::alignment);
  }
  if (signature.has_c)
    return refuse("taps are columns that are padded or share pixels only without C").as(RefusalCode::epilogue).of("C");
  const bool differs_between_columns = std::ranges::any_of(signature.epilogue.nodes, [](const op::EpilogueNode& node) {
    return node.op == op::EpilogueOp::column_index || (node.op == op::EpilogueOp::tensor && node.broadcast.along_n);
  });
  if (differs_between_columns || !signature.epilogue.outputs.empty() || signature.epilogue.is_gated()) {
    return refuse(
               "taps are columns that are padded or share pixels only if the epilogue stores nothing but D, and reads "
               "no tensor of several channels")
        .as(RefusalCode::epilogue);
  }
  return {};
}

Support check_shared_pixels(const op::GemmSignature& signature) {
  if (signature.a.shared_taps == 0) return {};
  if (alignment_bytes(signature.d) < kTmaBytes || alignment_bytes(signature.b) < kTmaBytes) {
    return refuse("taps share pixels only if filters and output have channels that are multiples of {} bytes",
                  kTmaBytes)
        .as(RefusalCode::alignment);
  }
  if (must_be_repacked(signature.b, signature.b.layout == op::MatrixLayout::column_major)) {
    return refuse("taps share pixels only with a filter that wgmma reads without repacking")
        .as(RefusalCode::strides)
        .of("B");
  }
  if (signature.has_c) return refuse("taps share pixels only without C").as(RefusalCode::epilogue).of("C");
  const bool differs_between_pixels = std::ranges::any_of(signature.epilogue.nodes, [](const op::EpilogueNode& node) {
    return node.op == op::EpilogueOp::row_index || (node.op == op::EpilogueOp::tensor && node.broadcast.along_m);
  });
  if (differs_between_pixels || !signature.epilogue.outputs.empty() || signature.epilogue.is_gated()) {
    return refuse("taps share pixels only if the epilogue stores nothing but D, and reads no tensor of several pixels")
        .as(RefusalCode::epilogue);
  }
  return {};
}

bool walks_taps(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const op::OperandView& images = arguments.a;  // the other operand may be a filter with padded taps
  // The classes of pixels of a gradient with a stride meet adjacent pixels with adjacent taps.
  if (images.access != op::OperandAccess::im2col || images.im2col.divides() || plan.shared_pixels().are_shared())
    return true;
  return walks_taps(images.im2col, bytes(images.tensor.dtype), plan.tile.k, arch::limits(plan.target).l2_bytes);
}

/// See SumOrder. The kernel decides in the same way: k_order() of device/tilewright/gemm/sm90_gemm.cuh.
int channels_of_taps(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  constexpr int kLine = 128;  // bytes of L2
  if (plan.has_tap_columns) return 0;
  if (plan.shared_pixels().are_shared()) {
    const int row = plan.tile.k / plan.shared_pixels().taps;
    return arguments.a.im2col.columns_of_tap() > row ? row : 0;
  }
  if (plan.tile.k * bytes(plan.atom->a) < kLine) return 0;
  const op::OperandView& a = plan.is_transposed ? arguments.b : arguments.a;
  const op::OperandView& b = plan.is_transposed ? arguments.a : arguments.b;
  if (!walks_taps(plan, arguments)) return 0;
  const auto has_taps = [&](const OperandPath& path, const op::OperandView& operand) {
    return path.is_im2col && path.major == arch::Major::k && operand.im2col.columns_of_tap() % plan.tile.k == 0 &&
           operand.im2col.columns_of_tap() > plan.tile.k;
  };
  return has_taps(plan.path_a, a) || has_taps(plan.path_b, b) ? plan.tile.k : 0;
}

SumOrder sum_order(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  SumOrder order{.unit = arch::MathUnit::wgmma,
                 .instruction = {kWgmmaM, 0, plan.atom->k},
                 .exchanges_operands = plan.is_transposed,
                 .padded_k = padded_k(arguments, plan.tile.k),
                 .promotion_k = plan.promotes_accumulators ? plan.tile.k : 0,
                 .split_k = plan.split_k};
  if (const op::Im2col& a = arguments.a.im2col; a.zeros > 0) order.row_k = static_cast<int>(a.columns_of_tap());
  order.channels_of_taps = channels_of_taps(plan, arguments);
  const SharedPixels& shared = plan.shared_pixels();
  order.reverses_rows = shared.are_shared() && !shared.are_columns && shared.step < 0;
  if (shared.are_columns) order.row_k = static_cast<int>(arguments.b.im2col.w.positions);
  if (plan.atom->a == DType::tf32) {
    const auto rounding = [](const OperandPath& path) {
      return path.uses_plain_loads() ? Tf32Rounding::scaled : Tf32Rounding::nearest;
    };
    order.rounding_a = rounding(plan.is_transposed ? plan.path_b : plan.path_a);
    order.rounding_b = rounding(plan.is_transposed ? plan.path_a : plan.path_b);
  }
  if (plan.split_k > 1) {
    order.split_k_step = plan.tile.k;
    order.split_k_groups = split_k_sum_groups(plan.tile.n, plan.split_k);
  }
  return order;
}

Result<Sm90GemmSketch> sketch_sm90_gemm(const op::GemmSignature& signature, const Sm90GemmDesign& design) {
  if (const Support fits = check_layouts(signature); !fits) return fits.refusal();
  Result<GemmTile> tile = plan_gemm_tile(signature, design, design.swaps_operands);
  if (!tile) return tile.refusal();
  Sm90GemmSketch plan{*std::move(tile), design.target};
  plan.has_tap_columns = has_tap_columns(signature);
  if (plan.has_tap_columns && plan.is_transposed)
    return refuse("taps are columns that are padded or share pixels only without swapped operands")
        .as(RefusalCode::design);
  const Result<const arch::WgmmaAtom*> atom = find_atom(plan.operands, design);
  if (!atom) return atom.refusal();
  plan.atom = *atom;
  if (const Support fits = arch::supports_n(*plan.atom, plan.tile.n); !fits) return fits.refusal();
  if (const Support fits = check_warps(plan); !fits) return fits.refusal();
  if (const Support fits = check_cluster(design.cluster_m, design.cluster_n); !fits) return fits.refusal();
  plan.cluster_m = plan.is_transposed ? design.cluster_n : design.cluster_m;
  plan.cluster_n = plan.is_transposed ? design.cluster_m : design.cluster_n;
  plan.schedule = design.schedule;
  for (const auto& check : {check_teams, check_split_k}) {
    if (const Support fits = check(plan); !fits) return fits.refusal();
  }

  plan.path_a = path_of(plan.operands.a, major_a(plan.operands), design.repacks_operands && !design.repacks_only_b,
                        plan.groups());
  plan.path_b = path_of(plan.operands.b, major_b(plan.operands), design.repacks_operands, plan.groups());
  if (plan.operands.a.im2col == op::Im2colAccess::divided || plan.operands.b.im2col == op::Im2colAccess::divided) {
    if (plan.is_transposed || plan.split_k > 1) {
      return refuse("the gradient of a convolution with a stride has neither swapped operands nor split-K")
          .as(RefusalCode::design);
    }
    plan.path_b.is_im2col = !plan.path_b.is_repacked;  // although the rows of a filter of one tap are one stride apart
    plan.path_a.has_row_classes = plan.path_b.has_row_classes = true;
    // The columns of a repacked filter are those of A.
    if (plan.path_b.is_repacked) plan.path_b.max_row_bytes = plan.path_a.max_row_bytes;
  }
  if (const Support fits = check_im2col_majors(plan); !fits) return fits.refusal();
  if (const Support fits = plan_shared_pixels(plan, shared_pixels_of(signature)); !fits) return fits.refusal();
  if (const Support fits = check_copies(plan); !fits) return fits.refusal();
  if (const Support fits = check_ends_along_k(plan); !fits) return fits.refusal();
  if (const Support fits = check_independent(plan); !fits) return fits.refusal();
  if (design.repacks_operands && !plan.repacks()) {
    return refuse("no operand needs to be repacked: TMA can load both, and wgmma reads both major modes")
        .as(RefusalCode::design);
  }
  if (const Support fits = check_repacks_only_b(plan, design.repacks_only_b); !fits) return fits.refusal();
  if (const Support fits = plan_output(plan); !fits) return fits.refusal();
  plan.plain_load_words = plan.uses_plain_loads() ? plain_load_words(plan.consumers()) : 0;
  plan.promotes_accumulators = promotes_accumulators(plan.operands);
  if (plan.promotes_accumulators) {
    if (const Support fits = check_promotion(plan.tile); !fits) return fits.refusal();
  }
  if (const Support fits =
          check_registers(plan.tile, plan.team(), plan.consumers(), plan.uses_plain_loads(), plan.extras());
      !fits) {
    return fits.refusal();
  }
  const RegisterNeeds needs =
      register_needs(plan.tile, plan.team(), plan.consumers(), plan.uses_plain_loads(), plan.extras());
  const RegisterSplit registers = split_registers(plan.consumers(), plan.uses_plain_loads(), plan.extras(), needs.tile);
  plan.producer_registers = registers.producer;
  plan.consumer_registers = registers.consumer;
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return fits.refusal();
  return plan;
}

Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmSignature& signature, const Sm90GemmDesign& design) {
  Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(signature, design);
  if (!sketch) return sketch.refusal();
  Sm90GemmPlan plan{*std::move(sketch), {}, {}};
  const auto [role_a, role_b] = plan.is_transposed ? std::pair{'B', 'A'} : std::pair{'A', 'B'};
  Result<TmaOperandPlan> a =
      plan_operand(role_a, plan.operands.a, plan.atom->a, plan.path_a, plan.tile.m, plan.tile.k, plan.cluster_n);
  if (!a) return a.refusal();
  Result<TmaOperandPlan> b =
      plan_operand(role_b, plan.operands.b, plan.atom->b, plan.path_b, plan.tile.n, plan.tile.k, plan.cluster_m);
  if (!b) return b.refusal();
  plan.a = *std::move(a);
  plan.b = *std::move(b);
  if (const Support fits = plan_reads(plan); !fits) return fits.refusal();
  return plan;
}

}  // namespace tilewright::plan
