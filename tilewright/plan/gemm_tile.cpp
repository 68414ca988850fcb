#include "tilewright/plan/gemm_tile.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/folded.hpp"
#include "tilewright/plan/im2col.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

constexpr int kSplitKVectorBytes = 16;  // of a tile's accumulators that one thread sums; see epilogue/split_k_tile.cuh

/// m and n of the problem as computed.
std::pair<std::int64_t, std::int64_t> extents(const GemmTile& tile, const op::GemmView& arguments) {
  return tile.is_transposed ? std::pair{arguments.n(), arguments.m()} : std::pair{arguments.m(), arguments.n()};
}

std::int64_t matrices_of(const op::GemmView& arguments) { return std::max<std::int64_t>(arguments.batch(), 1); }

/// The largest number of tiles of `extent` rows or columns that the groups can have. In a ragged mode each group but
/// an empty one may waste all of its last tile but one row; there are at most as many such groups as rows.
std::int64_t stacked_tiles(const op::GemmView& arguments, std::int64_t capacity, std::int64_t extent) {
  const std::int64_t groups = arguments.batch();
  if (!op::is_ragged(arguments.groups)) return groups * ceil_div(capacity, extent);
  return std::min(capacity, (capacity + groups * (extent - 1)) / extent);
}

/// The blocks of D that write partial results of reductions; each is one tile.
ReductionBlocks reduction_blocks(const GemmTile& tile, const op::GemmView& arguments) {
  const auto [m, n] = extents(tile, arguments);
  ReductionBlocks blocks =
      plan::reduction_blocks(tile.groups(), m, n, tile.tile.m, tile.tile.n, matrices_of(arguments));
  blocks.shares = tile.shares_sums() ? tile.split_k : 1;
  return blocks;
}

/// The tiles of all matrices; not for groups.
std::int64_t tiles_of_all(const GemmTile& tile, const op::GemmView& arguments) {
  const auto [m, n] = extents(tile, arguments);
  return ceil_div(m, tile.tile.m) * ceil_div(n, tile.tile.n) * matrices_of(arguments);
}

/// Number of groups of split_k CTAs that work at once. Each has a GridBarrier in the first bytes of the workspace.
std::int64_t working_groups(const GemmTile& tile, const op::GemmView& arguments, const Residence& residence) {
  return std::min<std::int64_t>(tiles_of_all(tile, arguments), residence.groups(tile.split_k));
}

/// Offset of the reductions' partial results in launch_gemm's workspace. They follow the counters and the partial sums
/// of split-K, of which each group has two sets, or each tile one sum if parts are added in turn.
std::int64_t reduction_parts_from(const GemmTile& tile, const op::GemmView& arguments, const Residence& residence) {
  const std::int64_t counters = kWorkspaceCounterBytes;
  if (tile.split_k == 1) return counters;
  const std::int64_t partial = std::int64_t{tile.tile.m} * tile.tile.n * bytes(tile.operands.accumulator);
  if (tile.splits_in_turn) return counters + tiles_of_all(tile, arguments) * partial;
  return counters + working_groups(tile, arguments, residence) * 2 * tile.split_k * partial;
}

/// Bytes of launch_gemm's workspace; 0 without reductions and without split-K.
std::int64_t workspace_bytes(const GemmTile& tile, const op::GemmView& arguments, const Residence& residence) {
  const op::Epilogue& epilogue = tile.operands.epilogue;
  const ReductionCounts counts = reduction_counts(epilogue);
  if (counts.all() == 0 && tile.split_k == 1) return 0;
  const auto [m, n] = extents(tile, arguments);
  return reduction_parts_from(tile, arguments, residence) +
         reduction_part_bytes(counts, reduction_blocks(tile, arguments), m, n, bytes(epilogue.compute));
}

Support check_tile(const GemmTiling& design, int max_threads) {
  // Beyond any tile that fits shared memory and registers, and small enough that no product of them overflows.
  constexpr int kMaxExtent = 1024;
  constexpr int kMaxStages = 64;
  const auto [tile_m, tile_n, tile_k] = design.tile;
  const int warps_m = design.warps_m, warps_n = design.warps_n;
  for (const auto& [what, value] : {std::pair{'m', tile_m}, {'n', tile_n}, {'k', tile_k}}) {
    if (value < 1 || value > kMaxExtent) {
      return refuse("tile {} must be from 1 to {}, got {}", what, kMaxExtent, value).as(RefusalCode::design);
    }
  }
  for (const auto& [what, value] : {std::pair{'m', warps_m}, {'n', warps_n}}) {
    if (value < 1) return refuse("warp count {} must be at least 1, got {}", what, value).as(RefusalCode::design);
  }
  if (design.stages < 2)
    return refuse("stages must be at least 2, so that one is loaded while another is read, got {}", design.stages)
        .as(RefusalCode::design);
  if (design.stages > kMaxStages)
    return refuse("stages must be at most {}, got {}", kMaxStages, design.stages).as(RefusalCode::design);
  if (const std::int64_t warps = std::int64_t{warps_m} * warps_n; warps > max_threads / 32) {
    return refuse("{} warps, more than the {} of a CTA of {} threads", warps, max_threads / 32, max_threads)
        .as(RefusalCode::resources);
  }
  if (tile_m % warps_m != 0)
    return refuse("tile m {} is not divisible by warp count m {}", tile_m, warps_m).as(RefusalCode::design);
  if (tile_n % warps_n != 0)
    return refuse("tile n {} is not divisible by warp count n {}", tile_n, warps_n).as(RefusalCode::design);
  return {};
}

/// GemmParameters of device/tilewright/gemm/parameters.cuh. `gemm` may be null for a sink that asks for no values.
template <class Sink>
void describe_parameters(Sink& sink, const GemmTile& tile, const op::GemmView* gemm, const Residence& residence) {
  const auto view_a = [&]() -> const op::OperandView& { return tile.is_transposed ? gemm->b : gemm->a; };
  const auto view_b = [&]() -> const op::OperandView& { return tile.is_transposed ? gemm->a : gemm->b; };
  const auto a = [&]() -> const op::Tensor& { return view_a().tensor; };
  const auto b = [&]() -> const op::Tensor& { return view_b().tensor; };
  const auto reads_c = [&] { return gemm->reads_source; };
  const auto ld = [](const op::Tensor& tensor) { return op::view_matrix(tensor, "operand")->ld; };
  const auto extent = [&](bool along_m) {
    const auto [m, n] = extents(tile, *gemm);
    return static_cast<std::int32_t>(along_m ? m : n);
  };
  // Addresses in an array of pointers are read only if the call accesses the operand; its array may be missing else.
  const auto operand_address = [&](const op::Tensor& tensor) {
    return tensor.is_pointer_array() && !gemm->reads_product ? std::uint64_t{0} : tensor.address;
  };
  const auto describe_matrix = [&](const char* name, const op::TensorSignature& operand, const auto& view) {
    if (operand.im2col != op::Im2colAccess::none)
      describe_im2col(sink, name, [&]() -> const op::Im2col& { return view().im2col; });
    // The view is that of the problem as given.
    const bool by_rows = op::has_contiguous_rows(operand.layout) != tile.is_transposed;
    if (operand.folded_modes != 0) describe_folded(sink, name, operand.folded_modes, by_rows, view);
  };
  describe_matrix("matrix_a", tile.operands.a, view_a);
  describe_matrix("matrix_b", tile.operands.b, view_b);
  describe_matrix("matrix_c", tile.operands.c, [&]() -> const op::OperandView& { return gemm->c; });
  describe_matrix("matrix_d", tile.operands.d, [&]() -> const op::OperandView& { return gemm->d; });
  const auto batch_stride = [](const op::OperandView& operand) {
    return operand.access == op::OperandAccess::folded ? std::int64_t{0} : operand.tensor.batch_stride();
  };
  if (tile.groups() != op::GroupedMode::none) {
    sink.begin("groups");
    const bool is_independent = tile.groups() == op::GroupedMode::independent;
    sink.field(is_independent ? "extents" : "ends", [&] { return gemm->ends.address; });
    if (is_independent) sink.field("leading_dimensions", [&] { return gemm->leading_dimensions.address; });
    sink.end(sizeof(std::uint64_t));
  }
  sink.field("a", [&] { return operand_address(a()); });
  sink.field("b", [&] { return operand_address(b()); });
  sink.field("c", [&] { return reads_c() ? gemm->c.tensor.address : std::uint64_t{0}; });
  sink.field("d", [&] { return gemm->d.tensor.address; });
  sink.field("lda", [&] { return ld(a()); });
  sink.field("ldb", [&] { return ld(b()); });
  sink.field("ldc", [&] { return reads_c() ? ld(gemm->c.tensor) : std::int64_t{0}; });
  sink.field("ldd", [&] { return ld(gemm->d.tensor); });
  sink.field("batch_stride_a", [&] { return batch_stride(view_a()); });
  sink.field("batch_stride_b", [&] { return batch_stride(view_b()); });
  sink.field("batch_stride_c", [&] { return reads_c() ? batch_stride(gemm->c) : std::int64_t{0}; });
  sink.field("batch_stride_d", [&] { return batch_stride(gemm->d); });
  sink.field("m", [&] { return extent(true); });
  sink.field("n", [&] { return extent(false); });
  sink.int32("k", [&] { return gemm->reads_product ? gemm->k() : 0; });
  describe_tile_grid(sink, "tiles", [&] {
    const auto [tiles_m, tiles_n] = tile_counts(tile, *gemm);
    return tile_grid(tile.raster, tiles_m, tiles_n, tile.shares_sums() ? working_groups(tile, *gemm, residence) : 0);
  });
  sink.field("batch", [&] { return static_cast<std::uint32_t>(gemm->batch()); });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(workspace_bytes(tile, *gemm, residence)); });
  sink.field("reduction_parts", [&] { return reduction_parts_from(tile, *gemm, residence); });
  describe_epilogue(sink, tile.operands.epilogue, gemm, tile.is_transposed);
  sink.finish();
}

}  // namespace

TileCounts tile_counts(const GemmTile& tile, const op::GemmView& arguments) {
  const auto [m, n] = extents(tile, arguments);
  if (op::differs_in_m(tile.groups())) return {stacked_tiles(arguments, m, tile.tile.m), ceil_div(n, tile.tile.n)};
  if (op::differs_in_n(tile.groups())) return {ceil_div(m, tile.tile.m), stacked_tiles(arguments, n, tile.tile.n)};
  return {ceil_div(m, tile.tile.m), ceil_div(n, tile.tile.n)};
}

std::int64_t counted_matrices(const GemmTile& tile, const op::GemmView& arguments) {
  const bool is_stacked = op::differs_in_m(tile.groups()) || op::differs_in_n(tile.groups());
  return is_stacked ? 1 : matrices_of(arguments);
}

Result<GemmTile> plan_gemm_tile(const op::GemmSignature& signature, const GemmTiling& design, bool swaps_operands) {
  if (const Support has = check_feature(design.target, TargetFeature::cp_async); !has) return has.refusal();
  if (const Support valid = check_tile(design, arch::limits(design.target).max_threads_per_block); !valid) {
    return valid.refusal();
  }
  if (design.raster.width > 8 || !is_power_of_two(design.raster.width)) {
    return refuse("raster width must be 1, 2, 4 or 8, got {}", design.raster.width).as(RefusalCode::design);
  }

  if (signature.groups != op::GroupedMode::none && design.split_k != 1) {
    return refuse("groups ({}) are computed without split-K, got split_k {}", op::name(signature.groups),
                  design.split_k)
        .as(RefusalCode::design);
  }
  if (swaps_operands && signature.epilogue.is_gated()) {
    return refuse(
               "the epilogue pairs columns of A*B, which would be rows if the operands were swapped: do not swap them")
        .as(RefusalCode::epilogue);
  }
  const bool is_transposed = computes_transposed(signature, swaps_operands);
  GemmTile plan{.operands = is_transposed ? op::transposed(signature) : signature,
                .is_transposed = is_transposed,
                .tile = design.tile,
                .warps_m = design.warps_m,
                .warps_n = design.warps_n,
                .stages = design.stages,
                .raster = is_transposed ? design.raster.transposed() : design.raster,
                .split_k = design.split_k,
                .splits_in_turn = design.splits_in_turn};
  if (is_transposed) {
    std::swap(plan.tile.m, plan.tile.n);
    std::swap(plan.warps_m, plan.warps_n);
  }
  return plan;
}

Support check_warps_are_powers_of_two(const GemmTiling& design) {
  for (const auto& [what, value] : {std::pair{'m', design.warps_m}, {'n', design.warps_n}}) {
    if (!is_power_of_two(value))
      return refuse("warp count {} must be a power of two, got {}", what, value).as(RefusalCode::design);
  }
  return {};
}

Support check_blocks_along_k(const GemmTile& tile) {
  const bool has_blocks = op::is_interleaved(tile.operands.a.layout) || op::is_interleaved(tile.operands.b.layout);
  if (!has_blocks || tile.tile.k % op::kInterleaved == 0) return {};
  return refuse("tile k must be a multiple of {} for interleaved operands, got {}", op::kInterleaved, tile.tile.k)
      .as(RefusalCode::design);
}

Support check_workspace(std::int64_t bytes) {
  if (bytes > kMaxWorkspaceBytes)
    return refuse("needs a workspace of {} bytes, at most {}", bytes, kMaxWorkspaceBytes).as(RefusalCode::resources);
  return {};
}

Support check_smem(int smem_bytes, const Target& target) {
  const int limit = arch::limits(target).smem_per_block_bytes;
  if (smem_bytes > limit) {
    return refuse("needs {} bytes of shared memory, more than the {} of a CTA on {}", smem_bytes, limit, target.name())
        .as(RefusalCode::resources);
  }
  return {};
}

Support check_extents(const GemmTile& tile, const op::GemmView& arguments) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() - 1024;  // room to round up to a tile
  for (const auto& [what, extent] : {std::pair{"m", arguments.m()}, {"n", arguments.n()}, {"k", arguments.k()}}) {
    if (extent > kLimit) return refuse("{} must be at most {}, got {}", what, kLimit, extent).as(RefusalCode::shape);
  }
  const auto [tiles_m, tiles_n] = tile_counts(tile, arguments);
  const std::int64_t ctas = tiles_m * tiles_n;
  constexpr std::int64_t kMaxGrid = std::numeric_limits<std::int32_t>::max();
  if (ctas > kMaxGrid)
    return refuse("needs {} CTAs, more than the {} of a grid", ctas, kMaxGrid).as(RefusalCode::shape);
  const int width = tile.raster.width;
  if (const std::int64_t tiles = tile.raster.along_n ? tiles_n : tiles_m; tiles > kMaxGrid / width) {
    return refuse("a raster of width {} must have at most {} tiles a {}, got {}", width, kMaxGrid / width,
                  tile.raster.along_n != tile.is_transposed ? "row" : "column", tiles)
        .as(RefusalCode::shape);
  }
  return {};
}

int GemmTile::split_k_rows() const {
  const int row_vectors = tile.n * bytes(operands.accumulator) / kSplitKVectorBytes;
  const int share = ceil_div(tile.m * row_vectors, split_k);  // vectors
  return std::min(tile.m, (share - 2 + row_vectors) / row_vectors + 1);
}

Support check_split_k(const GemmTile& tile, const Residence& residence) {
  if (tile.split_k < 1 || tile.split_k > residence.ctas()) {
    return refuse("split_k must be from 1 to {}, the number of CTAs of this kernel that are resident at once, got {}",
                  residence.ctas(), tile.split_k)
        .as(RefusalCode::design);
  }
  if (tile.splits_in_turn && tile.split_k == 1)
    return refuse("the parts of K are added in turn, but split_k is 1").as(RefusalCode::design);
  if (tile.split_k == 1) return {};
  if (tile.splits_in_turn && reduction_counts(tile.operands.epilogue).all() > 0)
    return refuse("the parts of K are not added in turn if the epilogue has reductions").as(RefusalCode::epilogue);
  if (const int thread_bytes = tile.tile.m * tile.tile.n * bytes(tile.operands.accumulator) / tile.threads();
      tile.splits_in_turn && thread_bytes % kSplitKVectorBytes != 0) {
    return refuse("a thread adds parts in vectors of {} bytes, but has {} bytes of accumulators", kSplitKVectorBytes,
                  thread_bytes)
        .as(RefusalCode::design);
  }
  if (tile.operands.accumulator == DType::f16)
    return refuse("split-K accumulates in f32, f64 or s32, not in f16").as(RefusalCode::types);
  if (const int row_bytes = tile.tile.n * bytes(tile.operands.accumulator); row_bytes % kSplitKVectorBytes != 0) {
    return refuse("with split-K a row of a tile must be a multiple of {} bytes of accumulators, got {}",
                  kSplitKVectorBytes, row_bytes)
        .as(RefusalCode::design);
  }
  return {};
}

Support check_launch(const GemmTile& tile, const Residence& residence, const op::GemmView& arguments) {
  if (const Support fits = check_extents(tile, arguments); !fits) return fits;
  if (tile.split_k > 1 || tile.groups() == op::GroupedMode::independent) {
    const auto [tiles_m, tiles_n] = tile_counts(tile, arguments);
    constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() / 2;  // room to step beyond the last tile
    if (const std::int64_t tiles = tiles_m * tiles_n; tiles > kLimit / matrices_of(arguments)) {
      return refuse("{} must have at most {} tiles, got {} matrices of {}",
                    tile.split_k > 1 ? "split-K" : "independent groups", kLimit, arguments.batch(), tiles)
          .as(RefusalCode::shape);
    }
  }
  if (tile.splits_in_turn) {
    constexpr std::int64_t kMostTiles = kReductionCounterBytes / sizeof(std::uint32_t) - 1;  // one counts the tickets
    const std::int64_t tiles = tiles_of_all(tile, arguments);
    if (tiles > std::min(kMostTiles, std::int64_t{std::numeric_limits<std::int32_t>::max()} / 2 / tile.split_k)) {
      return refuse("split-K in turn must have at most {} tiles and {} parts, got {} tiles", kMostTiles,
                    std::numeric_limits<std::int32_t>::max() / 2, tiles)
          .as(RefusalCode::shape);
    }
  }
  if (const Support fits =
          check_reductions(reduction_counts(tile.operands.epilogue), reduction_blocks(tile, arguments));
      !fits) {
    return fits;
  }
  return check_workspace(workspace_bytes(tile, arguments, residence));
}

AccumulatorTile accumulator_tile(const layout::Layout& offsets, int rows, int columns) {
  AccumulatorTile tile{layout::composition(layout::make_identity_layout({rows, columns}), offsets)};
  const auto row = [&](int thread, int accumulator) {
    return static_cast<int>(coordinate(tile.coordinates, {thread, accumulator})[0].value());
  };
  constexpr int kGroupLanes = 4, kPair = 2;
  tile.lane_rows = row(kGroupLanes, 0) - row(0, 0);
  tile.other_row = layout::size(offsets.mode(1)) > kPair ? row(0, kPair) - row(0, 0) : 0;
  return tile;
}

void append_epilogue(Launch& launch, const op::Epilogue& epilogue, const op::GemmView& arguments, bool is_transposed) {
  ParameterWriter writer(launch);
  describe_epilogue(writer, epilogue, &arguments, is_transposed);
}

ParameterLayout gemm_parameter_layout(const GemmTile& tile) {
  ParameterRecorder recorder;
  describe_parameters(recorder, tile, nullptr, {});
  return std::move(recorder).take();
}

Launch launch_gemm(const GemmTile& tile, const Residence& residence, int smem_bytes, const op::GemmView& arguments) {
  // A grid's z and y, at most 65535 each (CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability"): as few as cover the batch, which is below 2^31.
  constexpr std::int64_t kMaxGridZ = 65535;
  const std::int64_t batch = counted_matrices(tile, arguments);
  const std::int64_t grid_y = ceil_div(batch, kMaxGridZ);
  const auto [tiles_m, tiles_n] = tile_counts(tile, arguments);

  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(tiles_m) * static_cast<std::uint32_t>(tiles_n),
                 static_cast<std::uint32_t>(grid_y), static_cast<std::uint32_t>(ceil_div(batch, grid_y))};
  if (tile.groups() == op::GroupedMode::independent) {
    // Persistent CTAs; if fewer are resident than the plan assumes, the others start later.
    const std::int64_t most = std::min<std::int64_t>(tiles_m * tiles_n * batch, residence.ctas());
    launch.grid = {static_cast<std::uint32_t>(most), 1, 1};
  }
  if (tile.splits_in_turn) {
    const std::int64_t parts = tiles_of_all(tile, arguments) * tile.split_k;
    launch.grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(parts, residence.ctas())), 1, 1};
  } else if (tile.split_k > 1) {
    launch.grid = {static_cast<std::uint32_t>(working_groups(tile, arguments, residence) * tile.split_k), 1, 1};
    launch.cooperative = true;
    launch.ctas_per_sm = residence.ctas_per_sm;
  }
  launch.block = {static_cast<std::uint32_t>(tile.threads()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes);
  ParameterWriter writer(launch);
  describe_parameters(writer, tile, &arguments, residence);
  return launch;
}

}  // namespace tilewright::plan
