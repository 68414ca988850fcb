#include "tilewright/plan/sm90/work.hpp"

#include <algorithm>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::plan::sm90 {
namespace {

/// Bytes of the operands that are repacked.
double repacked_bytes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  return (plan.path_a.is_repacked ? bytes_to_copy(problem.a) : 0) +
         (plan.path_b.is_repacked ? bytes_to_copy(problem.b) : 0);
}

/// Number of groups to launch: those that compute tiles, and more if repacking has enough work for them.
std::int64_t launched_groups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  constexpr double kBytesOfCta = 32768;  // two rounds of a CTA's warps; see copy/repacked_lines.cuh
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.split_k;
  const double copying = repacked_bytes(plan, arguments) / (kBytesOfCta * plan.group_size());
  const auto wanted = static_cast<std::int64_t>(std::min<double>(copying, resident));
  return std::max(working_groups(plan, arguments), wanted);
}

}  // namespace

View view(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  return plan.is_transposed ? View{arguments.b.tensor, arguments.a.tensor, arguments.n(), arguments.m(), arguments.k()}
                            : View{arguments.a.tensor, arguments.b.tensor, arguments.m(), arguments.n(), arguments.k()};
}

const op::OperandView& operand_of(const Sm90GemmSketch& plan, const op::GemmView& arguments, bool is_a) {
  return is_a != plan.is_transposed ? arguments.a : arguments.b;
}

bool lines_are_rows(const Sm90GemmSketch& plan, bool is_a) {
  const op::MatrixLayout computed = (is_a ? plan.operands.a : plan.operands.b).layout;
  return op::has_contiguous_rows(computed) != plan.is_transposed;
}

const op::Tensor& other_output(const Sm90GemmSketch& plan, const op::GemmView& arguments, int i) {
  const auto number = static_cast<std::size_t>(plan.others.numbers[static_cast<std::size_t>(i)]);
  return arguments.tensor(arguments.epilogue->outputs[number].label);
}

std::pair<std::int64_t, std::int64_t> cluster_tiles(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  GemmTile cluster = plan;
  cluster.tile.m *= plan.cluster_m;
  cluster.tile.n *= plan.cluster_n;
  const TileCounts tiles = tile_counts(cluster, arguments);
  return {tiles.m, tiles.n};
}

ClassGrids::ClassGrids(const Sm90GemmSketch& plan, const std::vector<RowClass>& classes) {
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

std::int64_t working_groups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (plan.has_row_classes()) {
    const std::int64_t tiles = ClassGrids(plan, row_classes(arguments)).tiles;
    return std::min<std::int64_t>(tiles, arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()));
  }
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, arguments);
  const int resident = arch::resident_clusters(arch::limits(plan.target), plan.cluster_size()) / plan.split_k;
  return std::min<std::int64_t>(tiles_m * tiles_n * counted_matrices(plan, arguments), resident);
}

ReductionBlocks reduction_blocks_of_warpgroups(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const std::int64_t rows = plan.split_k > 1 ? kWgmmaM : plan.tile.m / plan.team();
  ReductionBlocks blocks = plan::reduction_blocks(plan.groups(), problem.m, problem.n, rows, plan.tile.n,
                                                  std::max<std::int64_t>(arguments.batch(), 1));
  blocks.shares = plan.split_k;
  return blocks;
}

std::int64_t launched_ctas(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  return launched_groups(plan, arguments) * plan.group_size();
}

WorkspaceParts workspace(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  constexpr std::int64_t kAlignment = 256;
  WorkspaceParts workspace;
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

double moved_bytes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const auto moved = [&](const OperandPath& path, const op::Tensor& tensor, std::int64_t mn) {
    if (!path.is_repacked) return 0.0;
    return moved_bytes(tensor, repacked_copy(tensor, path.major, mn, problem.k), path.is_transposed);
  };
  return moved(plan.path_a, problem.a, problem.m) + moved(plan.path_b, problem.b, problem.n);
}

std::vector<RowClass> classes_of(const Sm90GemmSketch& plan, const op::GemmView& arguments,
                                 const WorkspaceParts& workspace) {
  std::vector<RowClass> classes = row_classes(arguments);
  for (RowClass& each : classes) {
    if (plan.path_b.is_repacked && each.k() > 0) each.b = class_of_copy(each, arguments, workspace.b, workspace.at_b);
  }
  return classes;
}

}  // namespace tilewright::plan::sm90
