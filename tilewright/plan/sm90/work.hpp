// The work of a launch of sm90_gemm: the problem as it is computed, its tiles, the CTAs and the workspace.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/reductions.hpp"
#include "tilewright/plan/sm90/gemm.hpp"
#include "tilewright/plan/sm90/repacking.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan::sm90 {

/// The operands and the extents of the problem as computed.
struct View {
  const op::Tensor& a;
  const op::Tensor& b;
  std::int64_t m, n, k;
};
View view(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The operand of the problem as computed.
const op::OperandView& operand_of(const Sm90GemmSketch& plan, const op::GemmView& arguments, bool is_a);

/// Whether the rows of operand_of() are its lines, which have adjacent elements.
bool lines_are_rows(const Sm90GemmSketch& plan, bool is_a);

/// The tensor of output number `i` among those other than D that TMA stores.
const op::Tensor& other_output(const Sm90GemmSketch& plan, const op::GemmView& arguments, int i);

/// Number of cluster-sized groups of tiles along m and n in one matrix of D, or in the stack of the groups.
std::pair<std::int64_t, std::int64_t> cluster_tiles(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The cluster tiles of classes of rows, as RowClasses of device/tilewright/scheduler/groups.cuh has them.
struct ClassGrids {
  struct Class {
    std::int64_t first_tile = 0, m = 0, k = 0;
    TileGrid grid;
  };
  std::array<Class, kMaxRowClasses> of;
  std::int64_t tiles = 0;

  ClassGrids(const Sm90GemmSketch& plan, const std::vector<RowClass>& classes);
};

/// Number of groups that work at once, where a group consists of `split_k` clusters that compute the same tiles.
std::int64_t working_groups(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The blocks of D that write partial results of reductions. A block is a warpgroup's part of a tile; with split-K it
/// is 64 rows of the tile.
ReductionBlocks reduction_blocks_of_warpgroups(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The number of CTAs to launch: those that compute tiles, and more if repacking has enough work for them.
std::int64_t launched_ctas(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The parts of a launch's workspace, as byte offsets from its beginning. In this order it holds the counters, the
/// split-K partial sums of each group (epilogue/split_k_sum.cuh), the partial results of reductions, and for each of A
/// and B the repacked copy or the tensor maps that the CTAs make.
struct WorkspaceParts {
  RepackedCopy a, b;
  std::int64_t at_a = 0, at_b = 0;
  std::int64_t reduction_parts = 0;
  std::int64_t bytes = 0;
};

WorkspaceParts workspace(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The bytes that repacking moves for both operands, as moved_bytes() of repacking.hpp counts them.
double moved_bytes(const Sm90GemmSketch& plan, const op::GemmView& arguments);

/// The classes of rows, whose B is that of the repacked copy if B is repacked.
std::vector<RowClass> classes_of(const Sm90GemmSketch& plan, const op::GemmView& arguments,
                                 const WorkspaceParts& workspace);

}  // namespace tilewright::plan::sm90
