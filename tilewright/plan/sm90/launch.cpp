#include "tilewright/plan/sm90/launch.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/plan/folded.hpp"
#include "tilewright/plan/sm90/folded.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/repacking.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

std::int64_t leading_dimension(const op::Tensor& tensor) { return op::view_matrix(tensor, "operand")->ld; }

/// The number of matrices in an operand's tensor map. The CUDA documentation does not say that a tensor map may have a
/// stride of 0, so a matrix that is broadcast over the batch is mapped as one matrix, and the kernel loads it at
/// coordinate 0. A tensor map of a pointer array has one matrix, too.
std::int64_t mapped_matrices(const op::Tensor& tensor) { return tensor.batch_stride() == 0 ? 1 : tensor.batch(); }

/// Matrices in global memory: the contiguous, the strided and the batch mode, in elements, and the strides of the last
/// two, in bytes.
struct Matrices {
  std::uint64_t address = 0;
  std::int64_t contiguous = 1, strided = 1, batch = 1;
  std::int64_t row_bytes = 0, matrix_bytes = 0;
};

/// The tensor map with the type, box and swizzle of `map` for these matrices. L2 fetches lines of 128 bytes, as long as
/// those of most boxes. With 256 bytes, 216 kernels that read an operand along M or N took 4 % longer in the mean, and
/// 314 that read it along K took 1.6 % longer; single sectors made the latter slower, too (seeds 52 and 53, H200,
/// 2026-11-27).
TensorMap map_of(TensorMap map, const Matrices& matrices) {
  const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  map.rank = 3;
  map.address = matrices.address;
  map.extents = {unsigned_of(matrices.contiguous), unsigned_of(matrices.strided), unsigned_of(matrices.batch)};
  map.strides = {0, unsigned_of(matrices.row_bytes), unsigned_of(matrices.matrix_bytes)};
  map.promotion = TensorMapPromotion::bytes_128;
  return map;
}

/// The request for the tensor map of an operand with `contiguous` x `strided` elements, with the type, box and swizzle
/// of `map`. A pointer array's address is not that of a matrix; it is rounded down to one that a tensor map may have.
/// If there is only one row or only one matrix, its stride is never used, but must still be one that tensor maps allow.
TensorMapRequest request(const TensorMap& map, const op::Tensor& tensor, std::int64_t contiguous,
                         std::int64_t strided) {
  const std::int64_t ld = strided == 1 ? contiguous : leading_dimension(tensor);
  const std::int64_t row_bytes = round_up(ld * bytes(map.type), kTmaBytes);
  const std::int64_t batch = mapped_matrices(tensor);
  return {.map = map_of(map,
                        {.address = tensor.is_pointer_array() ? tensor.address / kTmaBytes * kTmaBytes : tensor.address,
                         .contiguous = contiguous,
                         .strided = strided,
                         .batch = batch,
                         .row_bytes = row_bytes,
                         .matrix_bytes = batch == 1 ? row_bytes * strided : tensor.batch_stride() * bytes(map.type)})};
}

/// The operands and the extents of the problem as computed.
struct View {
  const op::Tensor& a;
  const op::Tensor& b;
  std::int64_t m, n, k;
};
View view(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  return plan.is_transposed ? View{arguments.b.tensor, arguments.a.tensor, arguments.n(), arguments.m(), arguments.k()}
                            : View{arguments.a.tensor, arguments.b.tensor, arguments.m(), arguments.n(), arguments.k()};
}

/// Number of cluster-sized groups of tiles along m and n in one matrix of D, or in the stack of the groups.
std::pair<std::int64_t, std::int64_t> cluster_tiles(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  GemmTile cluster = plan;
  cluster.tile.m *= plan.cluster_m;
  cluster.tile.n *= plan.cluster_n;
  const TileCounts tiles = tile_counts(cluster, arguments);
  return {tiles.m, tiles.n};
}

/// The cluster tiles of classes of rows, as RowClasses of device/tilewright/scheduler/groups.cuh has them.
struct ClassGrids {
  struct Class {
    std::int64_t first_tile = 0, m = 0, k = 0;
    TileGrid grid;
  };
  std::array<Class, kMaxRowClasses> of;
  std::int64_t tiles = 0;

  ClassGrids(const Sm90GemmSketch& plan, const std::vector<RowClass>& classes) {
    const std::int64_t rows = std::int64_t{plan.tile.m} * plan.cluster_m,
                       columns = std::int64_t{plan.tile.n} * plan.cluster_n;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const std::int64_t tiles_m = ceil_div(classes[i].m(), rows);
      const std::int64_t tiles_n = ceil_div(classes[i].d.im2col.channels, columns);
      of[i] = {tiles, classes[i].m(), classes[i].k(), tile_grid(plan.raster, tiles_m, tiles_n)};
      tiles += tiles_m * tiles_n;
    }
    for (std::size_t i = classes.size(); i < of.size(); ++i) of[i].first_tile = tiles;
  }
};

/// Number of groups that work at once, where a group consists of `split_k` clusters that compute the same tiles.
std::int64_t working_groups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (plan.has_row_classes()) {
    const std::int64_t tiles = ClassGrids(plan, row_classes(arguments)).tiles;
    return std::min<std::int64_t>(tiles, arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()));
  }
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, arguments);
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.split_k;
  return std::min<std::int64_t>(tiles_m * tiles_n * counted_matrices(plan, arguments), resident);
}

/// The parts of a launch's workspace, as byte offsets from its beginning. In this order it holds the counters, the
/// split-K partial sums of each group (epilogue/split_k_sum.cuh), the partial results of reductions, and for each of A
/// and B the repacked copy or the tensor maps that the CTAs make.
struct Workspace {
  RepackedCopy a, b;
  std::int64_t at_a = 0, at_b = 0;
  std::int64_t reduction_parts = 0;
  std::int64_t bytes = 0;
};

/// The blocks of D that write partial results of reductions. A block is a warpgroup's part of a tile; with split-K it
/// is 64 rows of the tile.
ReductionBlocks reduction_blocks_of_warpgroups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const std::int64_t rows = plan.split_k > 1 ? kWgmmaM : plan.tile.m / plan.team();
  ReductionBlocks blocks = plan::reduction_blocks(plan.groups(), problem.m, problem.n, rows, plan.tile.n,
                                                  std::max<std::int64_t>(arguments.batch(), 1));
  blocks.shares = plan.split_k;
  return blocks;
}

/// The tensor of output number `i` among those other than D that TMA stores.
const op::Tensor& other_output(const Sm90GemmSketch& plan, const op::GemmView& arguments, int i) {
  const auto number = static_cast<std::size_t>(plan.others.numbers[static_cast<std::size_t>(i)]);
  return arguments.tensor(arguments.epilogue->outputs[number].label);
}

/// Bytes of the operands that are repacked.
double repacked_bytes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  return (plan.path_a.is_repacked ? bytes_to_copy(problem.a) : 0) +
         (plan.path_b.is_repacked ? bytes_to_copy(problem.b) : 0);
}

/// The bytes that repacking moves for both operands, as moved_bytes() of repacking.hpp counts them.
double moved_bytes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const auto moved = [&](const OperandPath& path, const op::Tensor& tensor, std::int64_t mn) {
    if (!path.is_repacked) return 0.0;
    return moved_bytes(tensor, repacked_copy(tensor, path.major, mn, problem.k), path.is_transposed);
  };
  return moved(plan.path_a, problem.a, problem.m) + moved(plan.path_b, problem.b, problem.n);
}

/// Number of groups to launch: those that compute tiles, and more if repacking has enough work for them.
std::int64_t launched_groups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  constexpr double kBytesOfCta = 32768;  // two rounds of a CTA's warps; see copy/repacked_lines.cuh
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.split_k;
  const double copying = repacked_bytes(plan, arguments) / (kBytesOfCta * plan.group_size());
  const auto wanted = static_cast<std::int64_t>(std::min<double>(copying, resident));
  return std::max(working_groups(plan, arguments), wanted);
}

std::int64_t launched_ctas(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  return launched_groups(plan, arguments) * plan.group_size();
}

Workspace workspace(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  constexpr std::int64_t kAlignment = 256;
  Workspace workspace;
  const ReductionCounts reductions = reduction_counts(plan.operands.epilogue);
  if (plan.split_k == 1 && !plan.repacks() && reductions.all() == 0 && plan.made_tensor_maps() == 0) return workspace;
  workspace.bytes = kWorkspaceCounterBytes;
  if (plan.split_k > 1) {
    const std::int64_t partial_bytes = std::int64_t{plan.consumers()} * kWgmmaM * plan.tile.n * 4;
    workspace.bytes += working_groups(plan, arguments) * plan.cluster_size() * 2 * plan.split_k * partial_bytes;
  }
  const View problem = view(plan, arguments);
  if (reductions.all() > 0) {
    workspace.reduction_parts = round_up(workspace.bytes, kAlignment);
    workspace.bytes =
        workspace.reduction_parts + reduction_part_bytes(reductions, reduction_blocks_of_warpgroups(plan, arguments),
                                                         problem.m, problem.n, bytes(plan.operands.epilogue.compute));
  }
  const auto add = [&](const OperandPath& operand, const op::Tensor& tensor, std::int64_t mn, RepackedCopy& copy) {
    if (!operand.is_repacked && !operand.makes_tensor_maps) return std::int64_t{0};
    const std::int64_t at = round_up(workspace.bytes, kAlignment);
    if (operand.is_repacked) {
      copy = repacked_copy(tensor, operand.major, mn, problem.k);
      workspace.bytes = at + copy.bytes();
    } else {
      workspace.bytes = at + launched_ctas(plan, arguments) * plan.tensor_map_slots() * Sm90SharedMemory::kTensorMap;
    }
    return at;
  };
  workspace.at_a = add(plan.path_a, problem.a, problem.m, workspace.a);
  workspace.at_b = add(plan.path_b, problem.b, problem.n, workspace.b);
  return workspace;
}

TensorMapRequest operand_map(const TmaOperandPlan& operand, const op::Tensor& tensor, std::int64_t mn, std::int64_t k) {
  const bool is_k_major = operand.major == arch::Major::k;
  return request(operand.map, tensor, is_k_major ? k : mn, is_k_major ? mn : k);
}

/// The tensor map of the repacked copy at `offset` bytes from the beginning of the workspace.
TensorMapRequest repacked_map(const TmaOperandPlan& operand, const RepackedCopy& copy, std::int64_t offset) {
  return {.map = map_of(operand.map, {.address = static_cast<std::uint64_t>(offset),
                                      .contiguous = copy.contiguous,
                                      .strided = copy.lines,
                                      .batch = copy.matrices,
                                      .row_bytes = copy.pitch,
                                      .matrix_bytes = copy.pitch * copy.lines}),
          .is_in_workspace = true};
}

/// The tensor map of C, D or another output. Its box is that of panel_boxes().
TensorMapRequest output_map(const Sm90GemmPlan& plan, const View& problem, const op::TensorSignature& described,
                            const op::Tensor& tensor) {
  const bool is_row_major = described.layout == op::MatrixLayout::row_major;
  const int element_bytes = bytes(described.element);
  const PanelBoxes boxes = panel_boxes(element_bytes, is_row_major, plan.subtile.panel_columns);
  const std::int64_t columns = problem.n / plan.operands.epilogue.columns_per_element();
  TensorMap map;
  map.type = tensor_map_type(described.element).value_or_throw();
  map.box = {static_cast<std::uint32_t>(boxes.line), static_cast<std::uint32_t>(boxes.lines), 1};
  map.swizzle = swizzle_of_width(boxes.line * element_bytes);
  return request(map, tensor, is_row_major ? columns : problem.m, is_row_major ? problem.m : columns);
}

/// The L2 eviction policy for an operand each of whose tiles is multiplied by `times` tiles of the other operand. Data
/// that is read once is evicted first. This gained 1 to 4 % on problems with few rows but cost 12 % on batches of small
/// matrices, so batches use the normal policy (H200, docs/performance.md).
std::uint64_t load_policy(const op::GemmView& arguments, std::int64_t times) {
  return times == 1 && arguments.batch() == 1 ? arch::kEvictFirst : arch::kEvictNormal;
}

/// The tensor map of the rows of D of a class.
TensorMap class_output_map(const Sm90GemmSketch& plan, const op::OperandView& d) {
  const int element_bytes = bytes(d.tensor.dtype);
  const PanelBoxes boxes = panel_boxes(element_bytes, true, plan.subtile.panel_columns);
  TensorMap map;
  map.type = tensor_map_type(d.tensor.dtype).value_or_throw();
  map.box = {static_cast<std::uint32_t>(boxes.line), static_cast<std::uint32_t>(boxes.lines)};
  map.swizzle = swizzle_of_width(boxes.line * element_bytes);
  return im2col_map(map, d, true);
}

/// The values from which the kernel's parameters are computed.
struct LaunchValues {
  const op::GemmView& arguments;
  View problem;
  Workspace workspace;
  std::pair<std::int64_t, std::int64_t> cluster_tiles;
  std::vector<RowClass> classes;  // empty unless the plan has them
  ClassGrids grids;               // of the classes

  /// Class number `number`, or the first if there are fewer classes: a field that is not used needs a valid value.
  const RowClass& row_class(std::size_t number) const { return classes[number < classes.size() ? number : 0]; }
  /// Class number `number` if its operands are loaded, or else the first, which has the longest K.
  const RowClass& loaded_class(std::size_t number) const {
    return number < classes.size() && classes[number].k() > 0 ? classes[number] : classes[0];
  }
};

constexpr std::array<const char*, kMaxRowClasses> kClassNames{"of[0]", "of[1]", "of[2]", "of[3]", "of[4]",
                                                              "of[5]", "of[6]", "of[7]", "of[8]"};

/// Describes the field `of` of a TmaIm2colClasses or RepackedClasses. `view(number)` returns the OperandView of a
/// class, `request(view)` its tensor map.
template <class Sink, class View, class Request>
void describe_classes(Sink& sink, int classes, const View& view, const Request& request) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(classes); ++i) {
    const auto of_class = [&, i]() -> const op::OperandView& { return view(i); };
    describe_tma_im2col(
        sink, kClassNames[i], of_class, [&] { return request(of_class()); }, [] { return true; });
  }
}

/// Describes RowClasses of device/tilewright/scheduler/groups.cuh.
template <class Sink>
void describe_row_classes(Sink& sink, int classes, const LaunchValues* values) {
  const auto index = [&](const char* name, const auto& value) {
    sink.field(name, [&] { return static_cast<std::int32_t>(value()); });
  };
  const auto grids = [&]() -> const ClassGrids& { return values->grids; };
  sink.begin("groups");
  for (std::size_t i = 0; i < static_cast<std::size_t>(classes); ++i) {
    sink.begin(kClassNames[i]);
    index("first_tile", [&] { return grids().of[i].first_tile; });
    index("m", [&] { return grids().of[i].m; });
    index("k", [&] { return grids().of[i].k; });
    describe_tile_grid(sink, "grid", [&] { return grids().of[i].grid; });
    sink.end(sizeof(std::int32_t));
  }
  index("tiles", [&] { return grids().tiles; });
  sink.end(sizeof(std::int32_t));
}

/// Describes GlobalMatrix of device/tilewright/operand/global_matrix.cuh. The leading dimension of a tensor without an
/// address is 0.
template <class Sink, class TensorOf>
void describe_matrix(Sink& sink, const ParameterName& name, const TensorOf& tensor) {
  sink.begin(name);
  sink.field("address", [&] { return tensor().address; });
  sink.field("ld", [&] { return tensor().address == 0 ? std::int64_t{0} : leading_dimension(tensor()); });
  sink.field("batch_stride", [&] { return tensor().batch_stride(); });
  sink.end(sizeof(std::int64_t));
}

/// The operand of the problem as computed.
const op::OperandView& operand_of(const Sm90GemmSketch& plan, const op::GemmView& arguments, bool is_a) {
  return is_a != plan.is_transposed ? arguments.a : arguments.b;
}

/// Whether the rows of operand_of() are its lines, which have adjacent elements.
bool lines_are_rows(const Sm90GemmSketch& plan, bool is_a) {
  const op::MatrixLayout computed = (is_a ? plan.operands.a : plan.operands.b).layout;
  return op::has_contiguous_rows(computed) != plan.is_transposed;
}

/// Describes the fields of RepackedMatrix and RepackedClasses behind their tensor maps. `copy` returns the operand's
/// RepackedCopy and its offset in the workspace.
template <class Sink, class CopyOf>
void describe_repacking(Sink& sink, const op::OperandView* operand, const CopyOf& copy) {
  const auto pieces = [&] { return repacked_pieces(*operand).value(); };
  sink.begin("from");
  sink.field("address", [&] { return operand->tensor.address; });
  sink.field("ld", [&] { return pieces().ld; });
  sink.field("batch_stride", [&] { return pieces().step; });
  sink.end(sizeof(std::int64_t));
  sink.field("offset", [&] { return copy().second; });
  sink.field("pitch", [&] { return copy().first.pitch; });
  sink.field("pieces", [&] { return static_cast<std::int32_t>(pieces().count); });
}

/// Describes TmaMatrix, GlobalMatrix, RepackedMatrix or one of operand/tma_batch.cuh of device/tilewright. `copy`,
/// which returns the operand's RepackedCopy and its offset in the workspace, is called only for RepackedMatrix and, for
/// the offset of the tensor maps, those of operand/tma_batch.cuh.
template <class Sink, class TensorOf, class CopyOf>
void describe_operand(Sink& sink, const char* name, const TmaOperandPlan& operand, const TensorOf& tensor,
                      const LaunchValues* values, const op::OperandView* view, std::int64_t View::*mn,
                      const CopyOf& copy) {
  if (operand.uses_plain_loads()) return describe_matrix(sink, name, tensor);
  if (operand.makes_tensor_maps) {
    sink.begin(name);
    sink.field("map", [&] { return operand_map(operand, tensor(), values->problem.*mn, values->problem.k); });
    if (!operand.ends_along_k) sink.field("addresses", [&] { return tensor().address; });
    sink.field("slots", [&] { return copy().second; });
    sink.end(kTensorMapAlignment);
    return;
  }
  if (!operand.is_repacked) {
    return sink.field(name, [&] { return operand_map(operand, tensor(), values->problem.*mn, values->problem.k); });
  }
  sink.begin(name);
  sink.field("copy", [&] { return repacked_map(operand, copy().first, copy().second); });
  describe_repacking(sink, view, copy);
  sink.end(kTensorMapAlignment);
}

/// Describes the tensor maps of the further outputs that TMA stores.
template <class Sink>
void describe_other_outputs(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  if (plan.others.count == 0) return;
  sink.begin("outputs");
  for (int i = 0; i < plan.others.count; ++i) {
    sink.field(i == 0 ? "map[0]" : "map[1]", [&] {
      const op::Tensor& tensor = other_output(plan, values->arguments, i);
      const op::TensorSignature described{tensor.dtype, plan.operands.d.layout};  // it has the storage order of D
      return output_map(plan, values->problem, described, tensor);
    });
  }
  sink.end(kTensorMapAlignment);
}

/// Describes an operand whose matrix TMA gathers from a tensor: one with row classes, a folded one, or an im2col
/// matrix. Returns whether it is one.
template <class Sink>
bool describe_gathered_operand(Sink& sink, const char* name, const Sm90GemmPlan& plan, const LaunchValues* values,
                               bool is_a) {
  const TmaOperandPlan& operand = is_a ? plan.a : plan.b;
  if (operand.has_row_classes) {
    sink.begin(name);
    describe_classes(
        sink, plan.row_classes(),
        [&](std::size_t number) -> const op::OperandView& {
          return is_a ? values->loaded_class(number).a : values->loaded_class(number).b;
        },
        [&](const op::OperandView& of_class) {
          return TensorMapRequest{.map = im2col_map(operand.map, of_class, true),
                                  .is_in_workspace = operand.is_repacked};
        });
    if (operand.is_repacked) {
      describe_repacking(sink, values == nullptr ? nullptr : &values->arguments.b, [&] {
        return std::pair{values->workspace.b, values->workspace.at_b};
      });
    }
    sink.end(kTensorMapAlignment);
    return true;
  }
  const auto view = [&]() -> const op::OperandView& { return operand_of(plan, values->arguments, is_a); };
  if (operand.is_folded) {
    const bool by_rows = lines_are_rows(plan, is_a);
    describe_tma_folded(
        sink, name, [&] { return tma_folded_modes(view(), by_rows); },
        [&] { return TensorMapRequest{.map = folded_map(operand.map, view(), by_rows)}; });
    return true;
  }
  if (!operand.is_im2col) return false;
  const auto walks = [&] { return walks_taps(plan, values->arguments); };
  describe_tma_im2col(
      sink, name, view, [&] { return TensorMapRequest{.map = im2col_map(operand.map, view(), walks())}; }, walks);
  return true;
}

/// Describes PixelOutput of device/tilewright/operand/pixel_output.cuh.
template <class Sink>
void describe_pixel_output(Sink& sink, const LaunchValues* values) {
  const auto a = [&]() -> const op::Im2col& { return values->arguments.a.im2col; };
  const auto rows = [&]() -> const op::Mode& { return values->arguments.d.rows; };
  sink.begin("d");
  sink.field("address", [&] { return values->arguments.d.tensor.address; });
  sink.field("pixel", [&] { return rows().stride[0]; });
  sink.field("line", [&] { return rows().stride[1]; });
  sink.field("image", [&] { return rows().shape.rank() > 2 ? rows().stride[2] : std::int64_t{0}; });
  sink.field("lines", [&] { return static_cast<std::int32_t>(rows().shape[1]); });
  sink.field("positions", [&] { return static_cast<std::int32_t>(a().w.positions); });
  sink.field("width", [&] { return static_cast<std::int32_t>(op::stored_width(a())); });
  describe_divisor(sink, "by_positions", [&] { return divisor_by(a().w.positions); });
  describe_divisor(sink, "by_lines", [&] { return divisor_by(rows().shape[1]); });
  sink.end(sizeof(std::int64_t));
}

/// Describes TapColumns of device/tilewright/operand/tap_columns.cuh.
template <class Sink>
void describe_tap_columns(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto pixels = [&]() -> const op::Im2col& { return values->arguments.b.im2col; };
  const auto blocks = [&] { return pixels().columns_of_tap() / plan.tap_column_block(); };
  sink.begin("d");
  sink.field("address", [&] { return values->arguments.d.tensor.address; });
  sink.field("row", [&] { return values->arguments.d.tensor.row_stride(); });
  sink.field("channels", [&] { return static_cast<std::int32_t>(pixels().channels); });
  sink.field("blocks", [&] { return static_cast<std::int32_t>(blocks()); });
  describe_divisor(sink, "by_blocks", [&] { return divisor_by(blocks()); });
  sink.end(sizeof(std::int64_t));
}

/// Describes D: the tensor maps of its row classes, its taps, its lines of pixels, the modes of a folded D, its tensor
/// map, or a matrix.
template <class Sink>
void describe_d(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto d = [&]() -> const op::Tensor& { return values->arguments.d.tensor; };
  if (plan.has_row_classes()) {
    sink.begin("d");
    describe_classes(
        sink, plan.row_classes(),
        [&](std::size_t number) -> const op::OperandView& { return values->row_class(number).d; },
        [&](const op::OperandView& of_class) { return TensorMapRequest{.map = class_output_map(plan, of_class)}; });
    sink.end(kTensorMapAlignment);
  } else if (plan.has_tap_columns) {
    describe_tap_columns(sink, plan, values);
  } else if (plan.shared_pixels().are_shared()) {
    describe_pixel_output(sink, values);
  } else if (const int folded_modes = plan.operands.d.folded_modes; folded_modes != 0) {
    const bool by_rows = plan.d_is_row_major() != plan.is_transposed;
    sink.begin("d");
    sink.field("address", [&] { return d().address; });
    describe_folded(sink, "modes", folded_modes, by_rows,
                    [&]() -> const op::OperandView& { return values->arguments.d; });
    sink.end(sizeof(std::int64_t));
  } else if (plan.stores_by_tma) {
    sink.field("d", [&] { return output_map(plan, values->problem, plan.operands.d, d()); });
  } else {
    describe_matrix(sink, "d", d);
  }
}

/// Describes where the kernel reads the extents of the groups, or the row classes.
template <class Sink>
void describe_groups(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  if (plan.has_row_classes()) return describe_row_classes(sink, plan.row_classes(), values);
  if (plan.groups() == op::GroupedMode::none) return;
  sink.begin("groups");
  const bool is_independent = plan.groups() == op::GroupedMode::independent;
  sink.field(is_independent ? "extents" : "ends", [&] { return values->arguments.ends.address; });
  if (is_independent) sink.field("leading_dimensions", [&] { return values->arguments.leading_dimensions.address; });
  if (!op::differs_in_k(plan.groups())) {
    describe_matrix(sink, "d", [&]() -> const op::Tensor& { return values->arguments.d.tensor; });
  }
  sink.end(sizeof(std::int64_t));
}

/// Describes Sm90GemmParameters of device/tilewright/gemm/sm90_parameters.cuh. `values` may be null for a sink that
/// does not evaluate values.
template <class Sink>
void describe_parameters(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto a = [&]() -> const op::Tensor& { return values->problem.a; };
  const auto b = [&]() -> const op::Tensor& { return values->problem.b; };
  const auto c = [&]() -> const op::Tensor& { return values->arguments.c.tensor; };
  const auto d = [&]() -> const op::Tensor& { return values->arguments.d.tensor; };
  describe_other_outputs(sink, plan, values);
  const auto view_of = [&](bool is_a) {
    return values == nullptr ? nullptr : &operand_of(plan, values->arguments, is_a);
  };
  if (!describe_gathered_operand(sink, "a", plan, values, true)) {
    describe_operand(sink, "a", plan.a, a, values, view_of(true), &View::m, [&] {
      return std::pair{values->workspace.a, values->workspace.at_a};
    });
  }
  if (!describe_gathered_operand(sink, "b", plan, values, false)) {
    describe_operand(sink, "b", plan.b, b, values, view_of(false), &View::n, [&] {
      return std::pair{values->workspace.b, values->workspace.at_b};
    });
  }
  describe_d(sink, plan, values);
  const auto index = [&](const char* name, const auto& value) {
    sink.field(name, [&] { return static_cast<std::int32_t>(value()); });
  };
  index("m", [&] { return values->problem.m; });
  index("n", [&] { return values->problem.n; });
  index("k", [&] { return values->problem.k; });
  index("batches", [&] { return values->arguments.batch(); });
  const auto batch_step = [](const op::Tensor& tensor) { return tensor.distinct_matrices() == 1 ? 0 : 1; };
  index("batch_step_a", [&] { return batch_step(a()); });
  index("batch_step_b", [&] { return batch_step(b()); });
  index("batch_step_c", [&] { return batch_step(c()); });
  describe_tile_grid(sink, "tiles", [&] {
    const auto [tiles_m, tiles_n] = values->cluster_tiles;
    return tile_grid(plan.raster, tiles_m, tiles_n, working_groups(plan, values->arguments));
  });
  // If C is not read, its field still needs a valid value: a null address or, for TMA, the tensor map of D.
  const auto reads_c = [&] { return values->arguments.reads_source; };
  if (plan.loads_source_by_tma) {
    sink.field("c", [&] { return output_map(plan, values->problem, plan.operands.c, reads_c() ? c() : d()); });
  } else {
    static const op::Tensor kNoTensor;
    describe_matrix(sink, "c", [&]() -> const op::Tensor& { return reads_c() ? c() : kNoTensor; });
  }
  describe_groups(sink, plan, values);
  sink.field("policy_a", [&] { return load_policy(values->arguments, values->cluster_tiles.second); });
  sink.field("policy_b", [&] { return load_policy(values->arguments, values->cluster_tiles.first); });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(values->workspace.bytes); });
  sink.field("reduction_parts", [&] { return values->workspace.reduction_parts; });
  describe_epilogue(sink, plan.operands.epilogue, values == nullptr ? nullptr : &values->arguments, plan.is_transposed);
  sink.finish();
}

/// Refuses operands whose plain loads need a step from one pass to the next that exceeds 31 bits; see
/// copy/plain_load_operand.cuh.
Support check_plain_loads(const OperandPath& operand, int tile_mn, int tile_k, const op::Tensor& tensor) {
  constexpr std::int64_t kMaxStep = (std::int64_t{1} << 31) - 1;
  if (!operand.uses_plain_loads()) return {};
  const Result<arch::SwizzleMode> mode = arch::widest_swizzle(operand.major, bits(tensor.dtype), tile_mn, tile_k);
  if (!mode) return mode.refusal();
  const int lines = TmaOperandPlan::lines_of_pass(operand.plain_load_bytes, arch::width_bytes(*mode));
  const std::int64_t step = lines * leading_dimension(tensor) * bits(tensor.dtype) / 8;
  if (step > kMaxStep)
    return refuse("plain loads advance by {} bytes from one pass to the next, the limit is {}", step, kMaxStep)
        .as(RefusalCode::strides);
  return {};
}

Support check_tma_strides(const op::Tensor& tensor) {
  constexpr auto kMaxStride = static_cast<std::int64_t>(kTensorMapStrideLimit);
  const std::int64_t row_bytes = leading_dimension(tensor) * bits(tensor.dtype) / 8;
  if (row_bytes >= kMaxStride)
    return refuse("rows are {} bytes apart, TMA needs strides below {}", row_bytes, kMaxStride)
        .as(RefusalCode::strides);
  if (tensor.batch_stride() >= kMaxStride / bytes(tensor.dtype)) {
    return refuse("matrices are {} elements of {} apart, TMA needs strides below {} bytes", tensor.batch_stride(),
                  name(tensor.dtype), kMaxStride)
        .as(RefusalCode::strides);
  }
  return {};
}

Refusal refuse_pieces() {
  return refuse("an im2col matrix is repacked if its K has two strides and pieces of multiples of {} bytes", kTmaBytes)
      .as(RefusalCode::strides);
}

/// Refuses an im2col or folded operand that TMA cannot load.
Support check_gathered_loads(const Sm90GemmSketch& plan, const op::OperandView& operand, bool is_a) {
  const OperandPath& path = is_a ? plan.path_a : plan.path_b;
  if (path.is_repacked && !path.has_row_classes && !repacked_pieces(operand)) return refuse_pieces();
  if (!path.is_im2col && !path.is_folded && !path.has_row_classes) return {};
  const int element_bytes = bytes(operand.tensor.dtype);
  const int tile_mn = is_a ? plan.tile.m : plan.tile.n;
  const int row =
      row_bytes(path.major, element_bytes, path.tap_mn(tile_mn), path.tap_k(plan.tile.k), path.max_row_bytes);
  if (path.is_im2col || path.has_row_classes) return check_im2col(operand, row / element_bytes);
  const int lines = path.major == arch::Major::k ? tile_mn : plan.tile.k;
  return check_folded(is_a ? 'A' : 'B', operand, lines_are_rows(plan, is_a), row / element_bytes, lines);
}

/// The classes of rows, whose B is that of the repacked copy if B is repacked.
std::vector<RowClass> classes_of(const Sm90GemmSketch& plan, const op::GemmView& arguments,
                                 const Workspace& workspace) {
  std::vector<RowClass> classes = row_classes(arguments);
  for (RowClass& each : classes) {
    if (plan.path_b.is_repacked && each.k() > 0) each.b = class_of_copy(each, arguments, workspace.b, workspace.at_b);
  }
  return classes;
}

/// Refuses classes of rows that TMA cannot load or store.
Support check_classes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (arguments.reads_source) {
    return refuse("the gradient of a convolution with a stride cannot read C: beta must be 0, got {}", arguments.beta)
        .as(RefusalCode::scalars)
        .of("C");
  }
  if (arguments.batch() != 1) {
    return refuse("the gradient of a convolution with a stride has one group, got {}", arguments.batch())
        .as(RefusalCode::shape);
  }
  const op::Im2col& a = arguments.a.im2col;
  if (a.h.step != 1 || a.w.step != 1 || row_class_count(arguments.a) > plan.row_classes()) {
    return refuse("strides of {}x{} make {} classes of pixels, at most {} are computed in one launch", a.h.divisor,
                  a.w.divisor, row_class_count(arguments.a), plan.row_classes())
        .as(RefusalCode::shape);
  }
  if (plan.path_b.is_repacked && !repacked_pieces(arguments.b)) return refuse_pieces();
  const std::vector<RowClass> classes = classes_of(plan, arguments, workspace(plan, arguments));
  if (!classes.empty() && classes[0].k() == 0) return refuse("no tap meets a pixel").as(RefusalCode::shape);
  for (const RowClass& row_class : classes) {
    if (const Support fits = check(class_output_map(plan, row_class.d)); !fits) {
      return refuse("TMA cannot store every {}th pixel: {}", a.w.divisor, fits.reason()).as(RefusalCode::shape);
    }
    if (row_class.k() == 0) continue;
    if (const Support loads = check_gathered_loads(plan, row_class.a, true); !loads) return loads;
    if (const Support loads = check_gathered_loads(plan, row_class.b, false); !loads) return loads;
  }
  return {};
}

}  // namespace

Sm90CostInput cost_input(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const MeanExtents mean = mean_extents(arguments);
  const int element_bytes = bytes(plan.operands.a.element);
  const auto sectors = [](const OperandPath& path, const op::Tensor& tensor) {
    return path.uses_plain_loads() || path.is_repacked ? 1.0 : sector_read_amplification(tensor);
  };
  const ReadAmplification of = im2col_amplification(arguments);
  Sm90CostInput input{
      .m = plan.is_transposed ? mean.n : mean.m,
      .n = plan.is_transposed ? mean.m : mean.n,
      .k = mean.k,
      .batches = mean.batches,
      .classes = class_extents(arguments),
      .spread_m = plan.is_transposed ? arguments.spread_n() : arguments.spread_m(),
      .spread_n = plan.is_transposed ? arguments.spread_m() : arguments.spread_n(),
      .tile = plan.tile,
      .stages = plan.stages,
      .cluster_m = plan.cluster_m,
      .cluster_n = plan.cluster_n,
      .split_k = plan.split_k,
      .schedule = plan.schedule,
      .row_bytes_a = row_bytes(plan.path_a.major, element_bytes, plan.tile.m, plan.tile.k, plan.path_a.max_row_bytes),
      .row_bytes_b = row_bytes(plan.path_b.major, element_bytes, plan.path_b.tap_mn(plan.tile.n), plan.tile.k,
                               plan.path_b.max_row_bytes),
      .is_mn_major_a = plan.path_a.major == arch::Major::mn,
      .is_mn_major_b = plan.path_b.major == arch::Major::mn,
      .is_d_column_major = !plan.d_is_row_major(),
      .d_splits_sectors = lines_split_sectors(arguments.d.tensor),
      .sectors_a = sectors(plan.path_a, problem.a) * (plan.is_transposed ? of.b : of.a),
      .sectors_b = sectors(plan.path_b, problem.b) * (plan.is_transposed ? of.a : of.b),
      .distinct_a = distinct_share(operand_of(plan, arguments, true)),
      .distinct_b = distinct_share(operand_of(plan, arguments, false)),
      .raster = plan.raster,
      .reads_a = plan.path_a.uses_plain_loads() ? plain_load_reads(alignment_bytes(plan.operands.a)) : 0,
      .reads_b = plan.path_b.uses_plain_loads() ? plain_load_reads(alignment_bytes(plan.operands.b)) : 0,
      .plain_load_words = plan.plain_load_words,
      .subtiles = plan.subtiles(),
      .tile_stores = plan.tile_stores(),
      .plain_line_bytes = plan.stores_by_tma || plan.split_k > 1
                              ? 0
                              : line_bytes(plan.output_elements(), plan.subtile, plan.d_tile_columns()),
      .element_bytes = element_bytes,
      .d_bytes = bytes(plan.operands.d.element),
      .beside_bytes = beside_bytes(plan.operands),
      .slow_source_bytes = slow_source_bytes(plan.operands),
      .function_instructions = function_instructions(plan.operands.epilogue),
      .fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::wgmma, plan.atom->a),
      .tensor_maps = plan.made_tensor_maps(),
      .repacked_bytes = moved_bytes(plan, arguments),
      .exposed_clocks = exposed_clocks(plan.tile, plan.team(), plan.extras(), element_bytes),
      .shared_pixels = plan.shared_pixels(),
      .b_has_pixels = plan.b_has_pixels(),
      .loads_fragments = plan.loads_fragments(),
  };
  if (plan.groups() == op::GroupedMode::none && !plan.has_row_classes() && plan.split_k == 1 &&
      !plan.uses_plain_loads() && plan.made_tensor_maps() == 0 && mean.batches == 1) {
    set_kept_parts(arch::limits(plan.target), input);
  }
  return input;
}

Support check_arguments(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (const Support fits = check_extents(plan, arguments); !fits) return fits;
  if (!arguments.reads_product || arguments.k() == 0) {
    return refuse("k and alpha must not be 0, got k = {} and alpha = {}", arguments.k(), arguments.alpha)
        .as(RefusalCode::shape);
  }
  const View problem = view(plan, arguments);
  // TMA stores whole units of 16 bytes: a box of D whose lines ended within such a unit overwrote the bytes after the
  // line (H200, driver 580).
  const std::int64_t line =
      plan.d_is_row_major() ? problem.n / plan.operands.epilogue.columns_per_element() : problem.m;
  const std::int64_t line_bytes = line * bytes(arguments.d.tensor.dtype);
  if (plan.stores_by_tma && line_bytes % kTmaBytes != 0) {
    return refuse("{} of D have {} bytes, TMA stores multiples of {}", plan.d_is_row_major() ? "rows" : "columns",
                  line_bytes, kTmaBytes)
        .as(RefusalCode::alignment)
        .of("D");
  }
  if (const std::int64_t k_tiles = ceil_div(problem.k, plan.tile.k); k_tiles < plan.split_k) {
    return refuse("k of {} has {} tiles of {}, fewer than split_k of {}", problem.k, k_tiles, plan.tile.k, plan.split_k)
        .as(RefusalCode::shape);
  }
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, arguments);
  // The margin lets a persistent CTA step past the last tile without overflow.
  constexpr std::int64_t kMaxTiles = std::numeric_limits<std::int32_t>::max() - 1024;
  if (tiles_m * tiles_n > kMaxTiles / counted_matrices(plan, arguments)) {
    return refuse("needs {} tiles for each of {} matrices, the limit is {} in total", tiles_m * tiles_n,
                  arguments.batch(), kMaxTiles)
        .as(RefusalCode::shape);
  }
  if (const Support fits =
          check_reductions(reduction_counts(plan.operands.epilogue), reduction_blocks_of_warpgroups(plan, arguments));
      !fits) {
    return fits;
  }
  if (const Support fits = check_workspace(workspace(plan, arguments).bytes); !fits) return fits;
  for (const Support& fits : {check_plain_loads(plan.path_a, plan.tile.m, plan.tile.k, problem.a),
                              check_plain_loads(plan.path_b, plan.tile.n, plan.tile.k, problem.b)}) {
    if (!fits) return fits;
  }
  if (plan.has_row_classes()) {
    if (const Support fits = check_classes(plan, arguments); !fits) return fits;
  } else {
    for (const bool is_a : {true, false}) {
      if (const Support loads = check_gathered_loads(plan, operand_of(plan, arguments, is_a), is_a); !loads)
        return loads;
    }
  }
  for (const op::OperandView* operand : {&arguments.a, &arguments.b, &arguments.d}) {
    if (operand->access == op::OperandAccess::folded) continue;  // check_folded() has checked the strides
    if (const Support fits = check_tma_strides(operand->tensor); !fits) return fits;
  }
  for (int i = 0; i < plan.others.count; ++i) {
    if (const Support fits = check_tma_strides(other_output(plan, arguments, i)); !fits) return fits;
  }
  return {};
}

ParameterLayout parameter_layout(const Sm90GemmPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const Sm90GemmPlan& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const auto parts = workspace(plan, arguments);
  std::vector<RowClass> classes = plan.has_row_classes() ? classes_of(plan, arguments, parts) : std::vector<RowClass>{};
  const ClassGrids grids(plan, classes);
  const LaunchValues values{arguments, problem, parts, cluster_tiles(plan, arguments), std::move(classes), grids};
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(launched_ctas(plan, arguments)), 1, 1};
  launch.cooperative = plan.split_k > 1 || plan.repacks();
  launch.waits_for_last_kernel = !launch.cooperative;
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.cluster = {static_cast<std::uint32_t>(plan.cluster_size()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(plan.smem_bytes());
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &values);
  return launch;
}

}  // namespace tilewright::plan
