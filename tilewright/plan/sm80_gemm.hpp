// Numbers of the sm80_gemm family: cp.async into swizzled stages, ldmatrix, mma.sync.
#pragma once

#include <algorithm>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/layout/swizzle.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// One operand's tile in shared memory: `strided` lines of `contiguous` elements, cut into panels of `panel_bytes`.
struct SmemOperand {
  DType element = DType::f16;
  bool is_k_major = true;
  int strided = 0;          // lines: M or N of the tile for a K-major operand, else K
  int contiguous = 0;       // elements of a line
  int panel_bytes = 0;      // of a line, in one panel
  int alignment_bytes = 0;  // of one cp.async
  bool uses_ldmatrix = true;
  layout::Swizzle swizzle;  // of byte offsets

  int tile_bytes() const { return strided * contiguous * bits(element) / 8; }
  bool operator==(const SmemOperand&) const = default;
};

/// (line, element of the line) -> byte offset in the tile.
layout::ComposedLayout smem_layout(const SmemOperand& operand);

struct Sm80GemmPlan : GemmTile {
  Target target;
  const arch::MmaAtom* atom = nullptr;  // row of the table
  SmemOperand a, b;
  bool promotes_accumulators = false;  // each tile's sum is added in f32 outside the tensor cores

  int stage_bytes() const { return a.tile_bytes() + b.tile_bytes(); }
  /// Elements from row to row of a band of accumulators on its way out: 8 more than the tile, so that the lanes of a
  /// warp, 4 along a row and 8 rows, write to different banks.
  int band_line() const { return tile.n + 8; }
  int band_bytes() const;
  /// The ring of stages, which the bands and those of what is reduced reuse.
  int smem_bytes() const { return std::max(stages * stage_bytes(), band_bytes() + reduction_bytes(warps_m * atom->m)); }
  /// Accumulators and two steps of fragments of one thread: what surely lives in registers.
  int registers() const;
  bool operator==(const Sm80GemmPlan&) const = default;
};

inline Support check_arguments(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  return check_launch(plan, arguments);
}
inline Launch launch(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  return launch_gemm(plan, plan.smem_bytes(), arguments);
}

/// The accumulators of all threads in a band: one row of instruction tiles of every warp.
AccumulatorTile accumulator_tile(const Sm80GemmPlan& plan);

/// The plan as the cost model sees it, on extents of the caller's problem.
CostInput cost_input(const Sm80GemmPlan& plan, const op::GemmView& arguments);

/// Every number of the kernel, or the one that makes it impossible.
Result<Sm80GemmPlan> plan_sm80_gemm(const op::GemmSignature& description, const Design& design);

}  // namespace tilewright::plan
