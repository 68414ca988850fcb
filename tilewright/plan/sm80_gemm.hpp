// The plan of the sm80_gemm family: cp.async fills swizzled stages, and ldmatrix loads the fragments of mma.sync.
#pragma once

#include <algorithm>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/layout/swizzle.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/smem_access.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// One operand's tile in shared memory. It has `strided` lines of `contiguous` elements, and each line is divided into
/// panels of `panel_bytes`.
struct SmemOperand {
  DType element = DType::f16;
  bool is_k_major = true;
  int strided = 0;          // number of lines: the tile's extent along M or N if K-major, else along K
  int contiguous = 0;       // elements per line
  int panel_bytes = 0;      // bytes of a line in one panel
  int alignment_bytes = 0;  // bytes per cp.async; less than 4, which cp.async does not move: an element
  bool uses_ldmatrix = true;
  layout::Swizzle swizzle;      // acts on byte offsets
  bool is_interleaved = false;  // K-major in blocks of op::kInterleaved

  int tile_bytes() const { return strided * contiguous * bits(element) / 8; }
  /// Whether cp.async copies the operand. If not, each thread loads a tile's elements into registers and stores them.
  bool is_async() const { return alignment_bytes >= 4; }
  bool operator==(const SmemOperand&) const = default;
};

/// Maps (line, element of the line) to the byte offset in the tile.
layout::ComposedLayout smem_layout(const SmemOperand& operand);

struct Sm80GemmPlan : GemmTile {
  Target target;
  const arch::MmaAtom* atom = nullptr;  // entry of the atom table
  SmemOperand a, b;
  bool promotes_accumulators = false;  // the accumulators of each k tile are added in f32 outside the tensor cores

  int stage_bytes() const { return a.tile_bytes() + b.tile_bytes(); }
  /// Leading dimension, in elements, of a band of accumulators that the epilogue stages in shared memory. It is padded
  /// by 8 elements so that the lanes of a warp, which cover 8 rows with 4 lanes each, write to different banks.
  int band_line() const { return tile.n + 8; }
  int band_bytes() const;
  /// With an alignment of 8 bytes, the second pass cost 16 to 33 %; with less, it gained up to 48 % (H200, 2026-11-23).
  bool realigns_rows() const { return stages_rows_below(8); }
  /// Bytes of shared memory in which the epilogue stages and reduces bands; if CTAs share the sums, it only reduces.
  int epilogue_bytes() const {
    return shares_sums() ? reduction_bytes(split_k_rows()) : band_bytes() + reduction_bytes(warps_m * atom->m);
  }
  /// Bytes of shared memory per CTA. The epilogue reuses the memory of the stages.
  int smem_bytes() const { return std::max(stages * stage_bytes(), epilogue_bytes()); }
  /// Registers per thread for the accumulators and two steps of fragments, which is a lower bound of the real need.
  int registers() const;
  bool operator==(const Sm80GemmPlan&) const = default;
};

inline Support check_arguments(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  return check_launch(plan, residence_of(plan), arguments);
}
inline Launch launch(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  return launch_gemm(plan, residence_of(plan), plan.smem_bytes(), arguments);
}

/// The cp.async copy of an operand's tile by the plan's threads. Offsets in shared memory are in bytes.
TileCopy tile_copy(const Sm80GemmPlan& plan, const SmemOperand& operand);

/// The loads of one operand's fragments by all warps, for one k step after another. ldmatrix.x4 takes a row of 16 bytes
/// from each lane and fills four registers; other loads fill one register of each lane with one element. The registers
/// of a warp's instruction tiles are filled in their order, those of one instruction tile first.
struct MmaFragmentLoads {
  /// ((lane, warp), load, k step) -> offset in bytes of what the lane loads.
  layout::ComposedLayout offset;
  /// (lane, value) -> offset in the column-major tile that one k step of an instruction tile takes, in the order of the
  /// registers. It is the instruction's layout unless fast math permutes k; see device/tilewright/mma/warp_math.cuh.
  layout::Layout tv;
  int step_k = 0;  // elements of K that a step loads

  int loads() const { return static_cast<int>(layout::size(offset.layout.mode(1))); }
  int steps() const { return static_cast<int>(layout::size(offset.layout.mode(2))); }
};
/// The loads of A, or those of B.
MmaFragmentLoads fragment_loads(const Sm80GemmPlan& plan, bool is_a);

/// The accumulators of all threads in a band, which is one row of instruction tiles of every warp.
AccumulatorTile accumulator_tile(const Sm80GemmPlan& plan);

/// The input of the cost model for the plan. The extents of `arguments` are those of the caller's problem.
CostInput cost_input(const Sm80GemmPlan& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const Sm80GemmPlan& plan, const op::GemmView& arguments);

/// Computes the plan, or refuses with the first number that makes it impossible.
Result<Sm80GemmPlan> plan_sm80_gemm(const op::GemmSignature& signature, const Sm80GemmDesign& design);

}  // namespace tilewright::plan
