// Numbers of the sm90_gemm family: TMA into swizzled stages, wgmma, D by TMA or by plain stores.
#pragma once

#include <cstdint>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// The same share of a copy for each box, or for each CTA that takes part: how far to go in the tensor map's modes and
/// in shared memory from one to the next.
struct TmaStep {
  std::int64_t contiguous = 0, strided = 0;  // elements of the tensor
  std::int64_t smem_bytes = 0;
  bool operator==(const TmaStep&) const = default;
};

/// One operand's tile: in global memory as TMA boxes, in shared memory as wgmma's descriptors read it.
struct TmaOperandPlan {
  DType element = DType::f16;
  arch::Major major = arch::Major::k;
  int mn = 0, k = 0;            // extents of the tile
  layout::ComposedLayout smem;  // (mn, k) -> elements
  arch::TensorMap map;          // contiguous, strided, batch; extents are the launch's
  int shares = 1;               // CTAs of a cluster that need the tile; each loads one slice of every box
  int boxes = 1;                // that one CTA loads
  TmaStep box, share;
  arch::WgmmaOperand wgmma;

  int tile_bytes() const { return mn * k * bits(element) / 8; }
  bool operator==(const TmaOperandPlan&) const = default;
};

struct Sm90GemmPlan : GemmTile {
  Target target;
  const arch::WgmmaAtom* atom = nullptr;  // row of the table; its n is the tile's
  int cluster_m = 1, cluster_n = 1;       // CTAs that share operands
  int slices = 1;                         // CTAs of a cluster that share a tile, each a part of K
  Schedule schedule = Schedule::cooperative;
  TmaOperandPlan a, b;
  bool stores_by_tma = true;
  int store_bytes = 16;    // of D at once, where its lines do not begin and end at 16 bytes
  int chunk_columns = 0;   // of D, that leave shared memory together, 64 rows high
  int output_buffers = 2;  // chunks of each warpgroup on their way out
  int producer_registers = 0, consumer_registers = 0;

  int consumers() const { return warps_m * warps_n / 4; }                         // warpgroups that multiply
  int team() const { return schedule == Schedule::ping_pong ? 1 : consumers(); }  // those that share a tile
  int cluster_size() const { return cluster_m * cluster_n * slices; }
  int output_columns() const { return tile.n / slices; }  // of a tile, that one CTA stores
  bool d_is_row_major() const { return operands.d.layout == op::MatrixLayout::row_major; }
  int threads() const { return GemmTile::threads() + kProducerThreads; }
  int stage_bytes() const { return a.tile_bytes() + b.tile_bytes(); }
  int chunk_bytes() const;
  /// Of one warpgroup's partial sums, exchanged among the slices: epilogue/slice_sum.cuh.
  int sum_bytes() const;
  /// Stages, chunks of D, partial sums, and their barriers: gemm/sm90_gemm.cuh.
  int smem_bytes() const;
  bool operator==(const Sm90GemmPlan&) const = default;

  static constexpr int kProducerThreads = 128;
};

/// The plan as the cost model sees it, on extents of the caller's problem.
CostInput cost_input(const Sm90GemmPlan& plan, const op::Gemm& arguments);

/// Refuses arguments that kernels of the plan cannot take: no k to sum over, extents beyond 32-bit indices, tensors
/// that TMA cannot reach.
Support check_arguments(const Sm90GemmPlan& plan, const op::Gemm& arguments);

/// A persistent grid of clusters, with the parameters of device/tilewright/gemm/sm90_parameters.cuh.
/// @pre op::validate(arguments) and check_arguments accepted them
Launch launch(const Sm90GemmPlan& plan, const op::Gemm& arguments);

/// Every number of the kernel, or the one that makes it impossible.
Result<Sm90GemmPlan> plan_sm90_gemm(const op::GemmDescription& description, const Design& design);

}  // namespace tilewright::plan
