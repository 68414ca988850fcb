#include "tilewright/plan/sm90_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/sm90_repacking.hpp"

namespace tilewright::plan {
namespace {

constexpr int kTmaBytes = 16;      // what TMA's addresses and strides are multiples of
constexpr int kAtomM = 64;         // rows of one wgmma
constexpr int kMaxConsumers = 3;   // beside the producer: 512 threads of 128 registers
constexpr int kMaxRowBytes = 128;  // of a box: the widest swizzle
constexpr int kMbarrierBytes = 8;
constexpr int kAddressRegisters = 40;      // beside accumulators; from ptxas -v of this family
constexpr int kInstructionRegisters = 26;  // of one wgmma beside its sums; ptxas asks for 138 where those are 112
constexpr int kMatrixStoreRegisters = 16;  // of stores of D other than by TMA, of 16-bit elements; the same
constexpr int kPairStoreRegisters = 24;    // and of other widths
constexpr int kGatheredBytes = 4;          // that a thread gathers at once, or twice as many: a bank's width

std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

DType multiplied_type(DType element, op::MathOperation math) {
  return math == op::MathOperation::multiply_add_tf32 ? DType::tf32 : element;
}

/// Which way an operand lies: A is contiguous along K row by row, B column by column.
arch::Major major_of(const op::TensorDescription& operand, op::MatrixLayout along_k) {
  return operand.layout == along_k ? arch::Major::k : arch::Major::mn;
}
arch::Major major_a(const op::GemmDescription& operands) { return major_of(operands.a, op::MatrixLayout::row_major); }
arch::Major major_b(const op::GemmDescription& operands) {
  return major_of(operands.b, op::MatrixLayout::column_major);
}

/// With A from registers where wgmma cannot read it from shared memory as it lies.
Result<const arch::WgmmaAtom*> find_atom(const op::GemmDescription& operands, const Design& design) {
  using enum arch::OperandSource;
  if (design.target.sm != 90 || !design.target.arch_specific) {
    return refuse("wgmma needs sm_90a, the target is {}", design.target.name());
  }
  const DType a = multiplied_type(operands.a.element, operands.math);
  const DType b = multiplied_type(operands.b.element, operands.math);
  const arch::WgmmaAtom* atom = arch::find_wgmma_atom(a, b, operands.accumulator, shared_memory);
  if (atom == nullptr) {
    return refuse("no wgmma of {} and {} accumulating in {}; there is: {}", name(a), name(b),
                  name(operands.accumulator), arch::known_wgmma(a, b));
  }
  if (design.repacks_operands) return atom;
  if (major_b(operands) == arch::Major::mn && !atom->b_may_be_mn_major) {
    const bool are_both = major_a(operands) == arch::Major::mn;
    return refuse("wgmma reads {} K-major only, A alone may go through registers: {}", name(b),
                  are_both ? "A and B are MN-major, repack them" : "B is MN-major, swap the operands or repack them");
  }
  const bool reads_a = major_a(operands) == arch::Major::k || atom->a_may_be_mn_major;
  return reads_a ? atom : arch::find_wgmma_atom(a, b, operands.accumulator, registers);
}

/// The one stride of a layout of instructions or CTAs: 0 where there is one, refused where no one step leads along.
Result<TmaStep> step_of(char role, const layout::Layout& coordinates, const layout::Layout& offsets, int bits) {
  const layout::Layout along = layout::coalesce(coordinates);
  const layout::Layout to = layout::coalesce(offsets);
  TmaStep step;
  if (layout::size(along) == 1) return step;
  if (!along.stride().is_leaf() || !to.stride().is_leaf()) {
    return refuse("{} takes boxes at {}, which no one step leads along", role, layout::to_string(along));
  }
  (along.stride().basis()[0] == 0 ? step.contiguous : step.strided) = along.stride().basis_value();
  step.smem_bytes = to.stride().value() * bits / 8;
  return step;
}

/// The operand as boxes of TMA.
Support plan_boxes(TmaOperandPlan& operand, char role) {
  const int element_bits = bits(operand.element);
  // A tensor of two tiles each way stands for all: a launch puts its own extents and strides in the map.
  const std::int64_t mn = 2 * operand.mn;
  const std::int64_t k = 2 * operand.k;
  const layout::IntTuple stride =
      operand.major == arch::Major::k ? layout::IntTuple{k, 1, mn * k} : layout::IntTuple{1, mn, mn * k};
  Result<arch::TmaCopy> copy = arch::make_tma_copy({.global = layout::Layout({mn, k, 2}, stride),
                                                    .element_bits = element_bits,
                                                    .smem = operand.smem,
                                                    .tile = {operand.mn, operand.k},
                                                    .multicast = operand.shares});
  if (!copy) return refuse("{}: {}", role, copy.reason());
  operand.map = copy->map;
  operand.boxes = static_cast<int>(arch::box_count(*copy));
  const Result<TmaStep> box = step_of(role, copy->box_coordinate, copy->box_offset, element_bits);
  if (!box) return box.refusal();
  operand.box = *box;
  const Result<TmaStep> share = step_of(role, copy->slice_coordinate, copy->slice_offset, element_bits);
  if (!share) return share.refusal();
  operand.share = *share;
  return {};
}

/// Of an operand that TMA can reach, 16; else what the addresses of threads that gather are multiples of.
int alignment_bytes(const op::TensorDescription& operand) {
  return std::min(kTmaBytes, operand.alignment * bytes(operand.element));
}

/// That a thread moves at once: 8 bytes or the 4 of a bank; 0 by TMA.
int gathered_bytes(int alignment) {
  if (alignment >= kTmaBytes) return 0;
  return (alignment >= 2 * kGatheredBytes ? 2 : 1) * kGatheredBytes;
}

OperandWay way_of(const op::TensorDescription& operand, arch::Major major, bool repacks) {
  OperandWay way{.major = major};
  way.is_repacked = repacks && must_be_repacked(operand, major == arch::Major::k);
  way.is_transposed = way.is_repacked && major == arch::Major::mn && bytes(operand.element) != 2;
  if (way.is_transposed) way.major = arch::Major::k;
  if (!way.is_repacked) way.gathered_bytes = gathered_bytes(alignment_bytes(operand));
  return way;
}

/// The operand as passes of the producer's threads.
Support plan_gathering(TmaOperandPlan& operand, char role) {
  if (operand.shares > 1) {
    return refuse("{} is aligned to {} bytes, TMA needs {}: it is gathered, which {} CTAs cannot share", role,
                  operand.alignment_bytes, kTmaBytes, operand.shares);
  }
  const int lines = operand.major == arch::Major::k ? operand.mn : operand.k;
  if (lines % operand.lines_of_pass() != 0) {
    return refuse("{} is gathered by {} lines of a tile at once, which do not divide its {}", role,
                  operand.lines_of_pass(), lines);
  }
  return {};
}

/// `role` is A or B, `shares` the CTAs of a cluster that need the same tile.
Result<TmaOperandPlan> plan_operand(char role, const op::TensorDescription& tensor, DType multiplied,
                                    const OperandWay& way, int tile_mn, int tile_k, int shares) {
  const int element_bits = bits(tensor.element);
  TmaOperandPlan operand;
  static_cast<OperandWay&>(operand) = way;
  operand.element = multiplied;
  operand.mn = tile_mn;
  operand.k = tile_k;
  operand.shares = shares;
  operand.alignment_bytes = alignment_bytes(tensor);
  const Result<arch::SwizzleMode> mode = arch::widest_swizzle(way.major, element_bits, tile_mn, tile_k);
  if (!mode) return refuse("{}: {}", role, mode.reason());
  Result<layout::ComposedLayout> smem = arch::smem_tile({way.major, *mode, element_bits, tile_mn, tile_k});
  if (!smem) return refuse("{}: {}", role, smem.reason());
  operand.smem = *std::move(smem);
  if (const Support planned = way.is_gathered() ? plan_gathering(operand, role) : plan_boxes(operand, role); !planned) {
    return refuse("{}", planned.reason());
  }
  return operand;
}

/// How wgmma reads the operands' tiles.
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
    return refuse("fragments of A are double buffered: a tile has an even number of instructions along k, got {}",
                  steps);
  }
  Result<arch::FragmentLoads> fragments = arch::fragment_loads(*plan.atom, plan.a.smem);
  if (!fragments) return fragments.refusal();
  plan.a.fragments = *std::move(fragments);
  Result<arch::WgmmaOperand> b = arch::wgmma_operand(plan.b.major, plan.b.smem, bits(plan.atom->b), plan.tile.n);
  if (!b) return b.refusal();
  plan.b.wgmma = *std::move(b);
  return {};
}

Support check_cluster(const std::array<int, 3>& cluster) {
  constexpr int kMaxCtas = 8;  // portable: CUDA C++ Programming Guide, "Thread Block Clusters"
  const auto [m, n, k] = cluster;
  for (const auto& [what, value] : {std::pair{'m', m}, {'n', n}}) {
    if (value < 1 || value > kMaxCtas)
      return refuse("cluster shape {} must be from 1 to {}, got {}", what, kMaxCtas, value);
  }
  if (k != 1) return refuse("cluster shape k must be 1, got {}: slices of K are the design's split_k", k);
  if (m * n > kMaxCtas) return refuse("a cluster has at most {} CTAs, got {}x{}", kMaxCtas, m, n);
  return {};
}

/// CTAs that wait for each other are resident together.
Support check_slices(const Sm90GemmOutline& plan) {
  const int most = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size());
  if (plan.slices < 1 || plan.slices > most) {
    return refuse("split_k must be from 1 to the {} clusters of {} that {} holds, got {}", most, plan.cluster_size(),
                  plan.target.name(), plan.slices);
  }
  if (plan.slices == 1) return {};
  if (plan.operands.accumulator == DType::f16) return refuse("slices of K are summed in f32 or s32, not f16");
  return {};
}

Support check_warps(const GemmTile& tile) {
  if (tile.warps_n != 1 || tile.warps_m % 4 != 0 || tile.warps_m / 4 > kMaxConsumers) {
    return refuse("warps that multiply must be 4, 8 or 12 along m, got {}x{}", tile.warps_m, tile.warps_n);
  }
  return {};
}

Support check_teams(const Sm90GemmOutline& plan) {
  if (const int rows = kAtomM * plan.team(); plan.tile.m % rows != 0) {
    return refuse("threadblock shape m {} is not divisible by the {} rows of {} warpgroups", plan.tile.m, rows,
                  plan.team());
  }
  if (plan.schedule == Schedule::ping_pong && plan.consumers() == 1) {
    return refuse("ping_pong needs at least 2 warpgroups that multiply in turn, got 1");
  }
  return {};
}

/// How D leaves: lines that begin and end at 16 bytes by TMA.
Support plan_output(Sm90GemmOutline& plan) {
  const op::TensorDescription& d = plan.operands.d;
  plan.store_bytes = std::min(kTmaBytes, d.alignment * bytes(d.element));
  plan.stores_by_tma = stores_by_tma(d) && plan.slices == 1;
  const op::TensorDescription& c = plan.operands.c;
  plan.source_bytes = std::min(kTmaBytes, c.alignment * bytes(c.element));
  plan.loads_source_by_tma = plan.stores_by_tma && plan.source_bytes == kTmaBytes && c.layout == d.layout;
  if (plan.slices > 1) return {};
  const Sm90SharedMemory memory{.stages = plan.stages,
                                .stage_bytes = plan.stage_bytes(),
                                .consumers = plan.consumers(),
                                .output_barriers = kOutputBuffers};
  plan.chunks = output_chunks(plan.output_elements(), plan.tile.n,
                              memory.most_output_bytes(arch::limits(plan.target).smem_per_block_bytes));
  if (plan.chunks.columns != 0) return {};
  return refuse("{} columns of D are not divisible by {}, the fewest that are stored at once", plan.tile.n,
                std::max(8, plan.d_is_row_major() ? kTmaBytes / bytes(d.element) : 8));
}

std::int64_t leading_dimension(const op::Tensor& tensor) { return op::view_matrix(tensor, "operand")->ld; }

/// Matrices of an operand that differ. CUDA's documents do not say that a tensor map may have a stride of 0: what
/// serves the whole batch is one matrix, at coordinate 0.
std::int64_t distinct(const op::Tensor& tensor) { return tensor.batch_stride() == 0 ? 1 : tensor.batch(); }

/// The tensor map of matrices of `contiguous` x `strided` elements. One row may lie anywhere, and so may one matrix:
/// the distance to the next is not read, and need only be one that tensor maps may have.
TensorMapRequest request(DType element, const op::Tensor& tensor, std::int64_t contiguous, std::int64_t strided,
                         const std::array<std::int64_t, 3>& box, int swizzle_bytes) {
  const std::int64_t ld = strided == 1 ? contiguous : leading_dimension(tensor);
  const std::int64_t row_bytes = ceil_div(ld * bits(element) / 8, kTmaBytes) * kTmaBytes;
  const std::int64_t batch = distinct(tensor);
  return {.element = element,
          .address = tensor.address,
          .extents = {contiguous, strided, batch},
          .strides = {row_bytes, batch == 1 ? row_bytes * strided : tensor.batch_stride() * bits(element) / 8},
          .box = box,
          .swizzle_bytes = swizzle_bytes};
}

/// The operands of the problem as computed, and how they lie.
struct View {
  const op::Tensor& a;
  const op::Tensor& b;
  std::int64_t m, n, k;
};
View view(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  return plan.is_transposed ? View{arguments.b, arguments.a, arguments.n(), arguments.m(), arguments.k()}
                            : View{arguments.a, arguments.b, arguments.m(), arguments.n(), arguments.k()};
}

/// Clusters' tiles along m and n of one matrix of D.
std::pair<std::int64_t, std::int64_t> cluster_tiles(const Sm90GemmOutline& plan, const View& problem) {
  return {ceil_div(problem.m, std::int64_t{plan.tile.m} * plan.cluster_m),
          ceil_div(problem.n, std::int64_t{plan.tile.n} * plan.cluster_n)};
}

/// Clusters, or as many CTAs as K has slices, that work at once.
std::int64_t working_groups(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, view(plan, arguments));
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.slices;
  return std::min<std::int64_t>(tiles_m * tiles_n * arguments.batch(), resident);
}

/// Where in a launch's workspace, bytes from its beginning: counters, for each group what epilogue/slice_sum.cuh asks
/// for, the copies of operands.
struct Workspace {
  RepackedCopy a, b;
  std::int64_t at_a = 0, at_b = 0;
  std::int64_t bytes = 0;
};
Workspace workspace(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  constexpr std::int64_t kAlignment = 256;
  Workspace workspace;
  if (plan.slices == 1 && !plan.repacks()) return workspace;
  workspace.bytes = kWorkspaceCounterBytes;
  if (plan.slices > 1) {
    const std::int64_t slice_bytes = std::int64_t{plan.consumers()} * kAtomM * plan.tile.n * 4;
    workspace.bytes += working_groups(plan, arguments) * plan.cluster_size() * 2 * plan.slices * slice_bytes;
  }
  const View problem = view(plan, arguments);
  const auto add = [&](const OperandWay& operand, const op::Tensor& tensor, std::int64_t mn, RepackedCopy& copy) {
    if (!operand.is_repacked) return std::int64_t{0};
    const std::int64_t at = ceil_div(workspace.bytes, kAlignment) * kAlignment;
    copy = repacked_copy(tensor, operand.major, mn, problem.k);
    workspace.bytes = at + copy.bytes();
    return at;
  };
  workspace.at_a = add(plan.way_a, problem.a, problem.m, workspace.a);
  workspace.at_b = add(plan.way_b, problem.b, problem.n, workspace.b);
  return workspace;
}

/// Of operands that are repacked.
double repacked_bytes(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  const View problem = view(plan, arguments);
  return (plan.way_a.is_repacked ? bytes_to_copy(problem.a) : 0) +
         (plan.way_b.is_repacked ? bytes_to_copy(problem.b) : 0);
}

/// Groups of a launch: those that work, and more where there is so much to copy.
std::int64_t launched_groups(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  constexpr double kBytesOfCta = 32768;  // two rounds of its warps: copy/repacked_lines.cuh
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.slices;
  const double copying = repacked_bytes(plan, arguments) / (kBytesOfCta * plan.group_size());
  const auto wanted = static_cast<std::int64_t>(std::min<double>(copying, resident));
  return std::max(working_groups(plan, arguments), wanted);
}

TensorMapRequest operand_map(const TmaOperandPlan& operand, const op::Tensor& tensor, std::int64_t mn, std::int64_t k) {
  const bool is_k_major = operand.major == arch::Major::k;
  const arch::TensorMap& map = operand.map;
  return request(operand.element, tensor, is_k_major ? k : mn, is_k_major ? mn : k, {map.box_dim[0], map.box_dim[1], 1},
                 arch::width_bytes(map.swizzle));
}

/// GlobalMatrix of gemm/sm90_parameters.cuh; nulls for a tensor that is not there.
void append_matrix(Launch& launch, const op::Tensor& tensor) {
  launch.append(tensor.address);
  launch.append(tensor.address == 0 ? std::int64_t{0} : leading_dimension(tensor));
  launch.append(tensor.batch_stride());
}

/// RepackedMatrix of gemm/sm90_parameters.cuh.
void append_repacked(Launch& launch, const TmaOperandPlan& operand, const op::Tensor& tensor, const RepackedCopy& copy,
                     std::int64_t offset) {
  const arch::TensorMap& map = operand.map;
  launch.append(TensorMapRequest{.element = operand.element,
                                 .address = static_cast<std::uint64_t>(offset),
                                 .is_in_workspace = true,
                                 .extents = {copy.contiguous, copy.lines, copy.matrices},
                                 .strides = {copy.pitch, copy.pitch * copy.lines},
                                 .box = {map.box_dim[0], map.box_dim[1], 1},
                                 .swizzle_bytes = arch::width_bytes(map.swizzle)});
  append_matrix(launch, tensor);
  launch.append(offset);
  launch.append(copy.pitch);
  launch.finish(kTensorMapAlignment);
}

void append_operands(Launch& launch, const Sm90GemmPlan& plan, const View& problem, const Workspace& workspace) {
  const auto append = [&](const TmaOperandPlan& operand, const op::Tensor& tensor, std::int64_t mn,
                          const RepackedCopy& copy, std::int64_t offset) {
    if (operand.is_repacked) return append_repacked(launch, operand, tensor, copy, offset);
    if (operand.is_gathered()) return append_matrix(launch, tensor);
    launch.append(operand_map(operand, tensor, mn, problem.k));
  };
  append(plan.a, problem.a, problem.m, workspace.a, workspace.at_a);
  append(plan.b, problem.b, problem.n, workspace.b, workspace.at_b);
}

/// The tensor map of C or D: boxes as epilogue/output_chunk.cuh lays them out.
TensorMapRequest output_map(const Sm90GemmPlan& plan, const View& problem, const op::TensorDescription& described,
                            const op::Tensor& tensor) {
  const bool is_row_major = described.layout == op::MatrixLayout::row_major;
  const int element_bytes = bytes(described.element);
  const std::int64_t line = is_row_major ? plan.chunks.columns : std::min(kAtomM, kMaxRowBytes / element_bytes);
  const std::int64_t lines = is_row_major ? kAtomM : plan.chunks.columns;
  return request(described.element, tensor, is_row_major ? problem.n : problem.m, is_row_major ? problem.m : problem.n,
                 {line, lines, 1}, static_cast<int>(line) * element_bytes);
}

void append_output(Launch& launch, const Sm90GemmPlan& plan, const op::Gemm& arguments) {
  if (!plan.stores_by_tma) return append_matrix(launch, arguments.d);
  launch.append(output_map(plan, view(plan, arguments), plan.operands.d, arguments.d));
}

/// C, or where none is read what stands in for it: a null address, or, for TMA, D.
void append_source(Launch& launch, const Sm90GemmPlan& plan, const op::Gemm& arguments) {
  const bool reads = op::reads_source(arguments);
  if (!plan.loads_source_by_tma) return append_matrix(launch, reads ? arguments.c : op::Tensor{});
  launch.append(output_map(plan, view(plan, arguments), plan.operands.c, reads ? arguments.c : arguments.d));
}

/// Of an operand of which each tile meets `times` tiles of the other. What is read once makes room in L2 first, which
/// gave 1 to 4 % of problems with few rows; batches of small matrices lost 12 % by it (H200, docs/performance.md).
std::uint64_t load_policy(const op::Gemm& arguments, std::int64_t times) {
  return times == 1 && arguments.batch() == 1 ? arch::kEvictFirst : arch::kEvictNormal;
}

/// Steps from one pass to the next are 31 bits: copy/gathered_operand.cuh.
Support check_gathering(const OperandWay& operand, int tile_mn, int tile_k, const op::Tensor& tensor) {
  constexpr std::int64_t kMaxStep = (std::int64_t{1} << 31) - 1;
  if (!operand.is_gathered()) return {};
  const Result<arch::SwizzleMode> mode = arch::widest_swizzle(operand.major, bits(tensor.dtype), tile_mn, tile_k);
  if (!mode) return mode.refusal();
  const int lines = TmaOperandPlan::lines_of_pass(operand.gathered_bytes, arch::width_bytes(*mode));
  const std::int64_t step = lines * leading_dimension(tensor) * bits(tensor.dtype) / 8;
  if (step > kMaxStep)
    return refuse("lines gathered one after the other are {} bytes apart, at most {}", step, kMaxStep);
  return {};
}

}  // namespace

int Sm90SharedMemory::bytes() const {
  return std::max(stages * stage_bytes + consumers * output_bytes, repacking_bytes) +
         (2 * stages + consumers * output_barriers) * kMbarrierBytes;
}

int Sm90SharedMemory::most_output_bytes(int limit) const {
  return (limit - stages * (stage_bytes + 2 * kMbarrierBytes)) / consumers - output_barriers * kMbarrierBytes;
}

int OutputChunks::bytes(int element_bytes) const {
  return kOutputBuffers * together * kAtomM * columns * element_bytes;
}

int OutputChunks::fills(int tile_columns) const { return (tile_columns / columns + together - 1) / together; }

OutputChunks output_chunks(const OutputElements& elements, int tile_columns, int most_bytes) {
  const int widest = kMaxRowBytes / elements.widest();  // 64 rows of it are 8 KB
  const int narrowest = elements.d_is_row_major ? std::max(8, kTmaBytes / elements.narrowest()) : 8;
  for (int columns = widest; columns >= narrowest; columns /= 2) {
    if (tile_columns % columns != 0) continue;
    const int together =
        std::min({widest, tile_columns, most_bytes / OutputChunks{1, 1}.bytes(elements.widest())}) / columns;
    return {columns, std::max(together, 1)};
  }
  return {};
}

int row_bytes(arch::Major major, int element_bytes, int mn, int k) {
  return std::gcd((major == arch::Major::k ? k : mn) * element_bytes, kMaxRowBytes);
}

int gathered_reads(int alignment_bytes) {
  if (alignment_bytes >= kTmaBytes) return 0;
  return alignment_bytes >= kGatheredBytes ? 1 : 2;
}

bool stores_by_tma(const op::TensorDescription& d) { return d.alignment * bytes(d.element) >= kTmaBytes; }

RegisterSplit split_registers(int consumers, bool gathers, int needed) {
  if (!gathers && consumers == 3) return {40, 152};
  // Sums of 192 columns over one warpgroup leave few for the epilogue: some 50 bytes spilled of 232 registers.
  constexpr int kTight = 225;
  if (!gathers) return needed >= kTight && needed <= 232 ? RegisterSplit{24, 240} : RegisterSplit{40, 232};
  if (consumers == 1) return {152, 232};
  if (consumers == 3) return {96, 136};
  constexpr RegisterSplit kEven{152, 176};
  return needed <= kEven.consumer ? kEven : RegisterSplit{136, 184};
}

int gathered_words(int consumers) { return consumers == 3 ? 24 : 80; }

bool promotes_accumulators(const op::GemmDescription& description) {
  return is_fp8(description.a.element) && description.accumulator == DType::f32 &&
         description.math == op::MathOperation::multiply_add;
}

Support check_promotion(const TileShape& tile) {
  if (tile.k > op::kFp8PromotionInterval) {
    return refuse("threadblock shape k must be at most {} where sums of 8-bit floats are promoted, got {}",
                  op::kFp8PromotionInterval, tile.k);
  }
  return {};
}

double lone_clocks(const TileShape& tile, int team, const ConsumerExtras& extras, int element_bytes) {
  constexpr double kAddsPerClock = 128;
  constexpr double kFragmentBytesPerClock = 64;  // of 128: measured on an H200, tf32 128x128x32
  if (team != 1) return 0;
  double clocks = 0;
  if (extras.promotes) clocks += tile.m * tile.n / kAddsPerClock;
  if (extras.loads_fragments) clocks += tile.m * tile.k * element_bytes / kFragmentBytesPerClock;
  return clocks;
}

RegisterNeeds register_needs(const TileShape& tile, int team, int consumers, bool gathers,
                             const ConsumerExtras& extras) {
  const int of_an_instruction = kAtomM * tile.n / 128;
  int beside = extras.promotes ? of_an_instruction : 0;
  if (extras.loads_fragments) beside += 3 * 4 * tile.m / (kAtomM * team);  // two buffers, the address of each load
  if (extras.plain_bytes > 0) beside += extras.plain_bytes == 2 ? kMatrixStoreRegisters : kPairStoreRegisters;
  // ptxas assembles an instruction within what the launch gives all threads alike, whatever setmaxnreg does (C7602).
  constexpr int kRegistersOfAnSm = 65536;
  const int needed = tile.m * tile.n / (128 * team) + beside + kAddressRegisters;
  return {.tile = needed,
          .given = split_registers(consumers, gathers, needed).consumer,
          .instruction = of_an_instruction + kInstructionRegisters,
          .alike = kRegistersOfAnSm / (128 * (consumers + 1))};
}

Support check_registers(const TileShape& tile, int team, int consumers, bool gathers, const ConsumerExtras& extras) {
  const RegisterNeeds needs = register_needs(tile, team, consumers, gathers, extras);
  if (needs.tile > needs.given) {
    return refuse("a tile of {}x{} over {} warpgroups needs about {} registers a thread, of {}", tile.m, tile.n, team,
                  needs.tile, needs.given);
  }
  if (needs.instruction > needs.alike) {
    return refuse("an instruction of {} columns needs {} registers a thread, of {} in {} warpgroups", tile.n,
                  needs.instruction, needs.alike, consumers + 1);
  }
  return {};
}

int Sm90GemmOutline::output_bytes() const {
  if (slices > 1) return kSliceSumBytes;
  return chunks.bytes(output_elements().widest());
}

int Sm90GemmOutline::fills() const {
  if (slices > 1) return 0;
  return tile.m / kAtomM / team() * chunks.fills(tile.n);
}

int Sm90GemmOutline::smem_bytes() const {
  const Sm90SharedMemory memory{
      .stages = stages,
      .stage_bytes = stage_bytes(),
      .consumers = consumers(),
      .output_bytes = output_bytes(),
      .output_barriers = slices > 1 ? 0 : kOutputBuffers,
      .repacking_bytes = way_a.is_transposed || way_b.is_transposed
                             ? threads() / 32 * transposing_bytes(bytes(operands.a.element))
                             : 0,
  };
  return memory.bytes();
}

Sm90CostInput cost_input(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  const View problem = view(plan, arguments);
  const int element_bytes = bytes(plan.operands.a.element);
  return {
      .m = problem.m,
      .n = problem.n,
      .k = problem.k,
      .batches = arguments.batch(),
      .tile = plan.tile,
      .stages = plan.stages,
      .cluster_m = plan.cluster_m,
      .cluster_n = plan.cluster_n,
      .slices = plan.slices,
      .schedule = plan.schedule,
      .row_bytes_a = row_bytes(plan.way_a.major, element_bytes, plan.tile.m, plan.tile.k),
      .row_bytes_b = row_bytes(plan.way_b.major, element_bytes, plan.tile.n, plan.tile.k),
      .walks_along_m = plan.raster.walks_along_m(),
      .reads_a = plan.way_a.is_gathered() ? gathered_reads(alignment_bytes(plan.operands.a)) : 0,
      .reads_b = plan.way_b.is_gathered() ? gathered_reads(alignment_bytes(plan.operands.b)) : 0,
      .gathered_words = plan.gathered_words,
      .fills = plan.fills(),
      .element_bytes = element_bytes,
      .d_bytes = bytes(plan.operands.d.element),
      .fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::wgmma, plan.atom->a),
      .repacked_bytes = repacked_bytes(plan, arguments),
      .lone_clocks = lone_clocks(plan.tile, plan.team(), plan.extras(), element_bytes),
      .loads_fragments = plan.loads_fragments(),
  };
}

Support check_arguments(const Sm90GemmOutline& plan, const op::Gemm& arguments) {
  if (const Support fits = check_extents(plan, arguments); !fits) return fits;
  if (!op::reads_product(arguments) || arguments.k() == 0) {
    return refuse("needs a product to sum: k is {}, alpha {}", arguments.k(), arguments.alpha);
  }
  const View problem = view(plan, arguments);
  // A box of D that ends within 16 bytes overwrote what lies behind them (H200, driver 580).
  const std::int64_t line_bytes = (plan.d_is_row_major() ? problem.n : problem.m) * bytes(arguments.d.dtype);
  if (plan.stores_by_tma && line_bytes % kTmaBytes != 0) {
    return refuse("{} of D have {} bytes, TMA stores multiples of {}", plan.d_is_row_major() ? "rows" : "columns",
                  line_bytes, kTmaBytes);
  }
  if (const std::int64_t k_tiles = ceil_div(problem.k, plan.tile.k); k_tiles < plan.slices) {
    return refuse("k of {} is {} steps of {}, fewer than the {} slices", problem.k, k_tiles, plan.tile.k, plan.slices);
  }
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, problem);
  constexpr std::int64_t kMaxTiles = std::numeric_limits<std::int32_t>::max() - 1024;  // room to step past the last
  if (tiles_m * tiles_n > kMaxTiles / std::max<std::int64_t>(arguments.batch(), 1)) {
    return refuse("needs {} tiles for each of {} matrices, more than {} together", tiles_m * tiles_n, arguments.batch(),
                  kMaxTiles);
  }
  if (const std::int64_t bytes = workspace(plan, arguments).bytes; bytes > kMaxWorkspaceBytes) {
    return refuse("needs a workspace of {} bytes, at most {}", bytes, kMaxWorkspaceBytes);
  }
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 40;  // bytes, cuTensorMapEncodeTiled
  for (const Support& fits : {check_gathering(plan.way_a, plan.tile.m, plan.tile.k, problem.a),
                              check_gathering(plan.way_b, plan.tile.n, plan.tile.k, problem.b)}) {
    if (!fits) return fits;
  }
  for (const op::Tensor* tensor : {&arguments.a, &arguments.b, &arguments.d}) {
    const std::int64_t row_bytes = leading_dimension(*tensor) * bits(tensor->dtype) / 8;
    if (row_bytes >= kMaxStride)
      return refuse("rows are {} bytes apart, TMA reaches less than {}", row_bytes, kMaxStride);
    if (tensor->batch_stride() >= kMaxStride / bytes(tensor->dtype)) {
      return refuse("matrices are {} elements of {} apart, TMA reaches less than {} bytes", tensor->batch_stride(),
                    name(tensor->dtype), kMaxStride);
    }
  }
  return {};
}

Launch launch(const Sm90GemmPlan& plan, const op::Gemm& arguments) {
  const View problem = view(plan, arguments);
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, problem);
  const Workspace workspace = plan::workspace(plan, arguments);

  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(launched_groups(plan, arguments) * plan.group_size()), 1, 1};
  launch.cooperative = plan.slices > 1 || plan.repacks();
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.cluster = {static_cast<std::uint32_t>(plan.cluster_size()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(plan.smem_bytes());
  append_operands(launch, plan, problem, workspace);
  append_output(launch, plan, arguments);
  append_source(launch, plan, arguments);
  launch.append(static_cast<std::int32_t>(problem.m));
  launch.append(static_cast<std::int32_t>(problem.n));
  launch.append(static_cast<std::int32_t>(problem.k));
  launch.append(static_cast<std::int32_t>(arguments.batch()));
  launch.append(std::int32_t{problem.a.batch_stride() == 0 ? 0 : 1});
  launch.append(std::int32_t{problem.b.batch_stride() == 0 ? 0 : 1});
  launch.append(static_cast<std::int32_t>(tiles_m));
  launch.append(static_cast<std::int32_t>(tiles_n));
  launch.append(std::uint64_t{load_policy(arguments, tiles_n)});
  launch.append(std::uint64_t{load_policy(arguments, tiles_m)});
  launch.append_workspace(static_cast<std::size_t>(workspace.bytes));
  append_scalars(launch, arguments);
  launch.finish(launch.tensor_maps().empty() ? sizeof(std::int64_t) : kTensorMapAlignment);
  return launch;
}

Result<Sm90GemmOutline> outline_sm90_gemm(const op::GemmDescription& description, const Design& design) {
  const MathInstruction& instruction = design.tile.math_instruction;
  if (const Support fits = check_instruction(description, instruction, OpClass::tensor_op); !fits) {
    return refuse("{}", fits.reason());
  }
  Result<GemmTile> tile = plan_gemm_tile(description, design);
  if (!tile) return tile.refusal();
  Sm90GemmOutline plan{*std::move(tile), design.target};
  const Result<const arch::WgmmaAtom*> atom = find_atom(plan.operands, design);
  if (!atom) return atom.refusal();
  plan.atom = *atom;
  if (const Support fits = arch::supports_n(*plan.atom, plan.tile.n); !fits) return refuse("{}", fits.reason());
  if (const std::array shape{kAtomM, plan.tile.n, plan.atom->k}; instruction.shape != shape) {
    return refuse("the instruction of this tile is m{}n{}k{}, got m{}n{}k{}", shape[0], shape[1], shape[2],
                  instruction.shape[0], instruction.shape[1], instruction.shape[2]);
  }
  if (const Support fits = check_warps(plan); !fits) return refuse("{}", fits.reason());
  if (const Support fits = check_cluster(design.tile.cluster_shape); !fits) return refuse("{}", fits.reason());
  plan.cluster_m = design.tile.cluster_shape[plan.is_transposed ? 1 : 0];
  plan.cluster_n = design.tile.cluster_shape[plan.is_transposed ? 0 : 1];
  plan.slices = design.split_k;
  plan.schedule = design.tile.schedule;
  for (const auto& check : {check_teams, check_slices}) {
    if (const Support fits = check(plan); !fits) return refuse("{}", fits.reason());
  }

  plan.way_a = way_of(plan.operands.a, major_a(plan.operands), design.repacks_operands);
  plan.way_b = way_of(plan.operands.b, major_b(plan.operands), design.repacks_operands);
  if (design.repacks_operands && !plan.repacks()) {
    return refuse("no operand needs to be repacked: TMA reaches both, and wgmma reads them as they lie");
  }
  if (const Support fits = plan_output(plan); !fits) return refuse("{}", fits.reason());
  plan.gathered_words = plan.gathers() ? gathered_words(plan.consumers()) : 0;
  plan.promotes_accumulators = promotes_accumulators(plan.operands);
  if (plan.promotes_accumulators) {
    if (const Support fits = check_promotion(plan.tile); !fits) return refuse("{}", fits.reason());
  }
  if (const Support fits = check_registers(plan.tile, plan.team(), plan.consumers(), plan.gathers(), plan.extras());
      !fits) {
    return refuse("{}", fits.reason());
  }
  const RegisterNeeds needs = register_needs(plan.tile, plan.team(), plan.consumers(), plan.gathers(), plan.extras());
  const RegisterSplit registers = split_registers(plan.consumers(), plan.gathers(), needs.tile);
  plan.producer_registers = registers.producer;
  plan.consumer_registers = registers.consumer;
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return refuse("{}", fits.reason());
  return plan;
}

Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmDescription& description, const Design& design) {
  Result<Sm90GemmOutline> outline = outline_sm90_gemm(description, design);
  if (!outline) return outline.refusal();
  Sm90GemmPlan plan{*std::move(outline), {}, {}};
  const auto [role_a, role_b] = plan.is_transposed ? std::pair{'B', 'A'} : std::pair{'A', 'B'};
  Result<TmaOperandPlan> a =
      plan_operand(role_a, plan.operands.a, plan.atom->a, plan.way_a, plan.tile.m, plan.tile.k, plan.cluster_n);
  if (!a) return a.refusal();
  Result<TmaOperandPlan> b =
      plan_operand(role_b, plan.operands.b, plan.atom->b, plan.way_b, plan.tile.n, plan.tile.k, plan.cluster_m);
  if (!b) return b.refusal();
  plan.a = *std::move(a);
  plan.b = *std::move(b);
  if (const Support fits = plan_reads(plan); !fits) return refuse("{}", fits.reason());
  return plan;
}

}  // namespace tilewright::plan
