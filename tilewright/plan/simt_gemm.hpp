// The plan of the simt_gemm family, which computes any type and alignment on CUDA cores.
#pragma once

#include <algorithm>

#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/smem_access.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// How the elements of an operand reach its tile in shared memory; see device/tilewright/copy/panel_copy.cuh.
enum class PanelCopy {
  async,      // cp.async stores them there
  staged,     // cp.async copies vectors to other shared memory, from which the same thread transposes them
  registers,  // loaded to registers, converted and stored
};

/// One operand's tile in shared memory, stored as tile.k padded lines of tile.m or tile.n elements.
struct PanelOperand {
  DType element = DType::f32;
  bool is_k_major = true;
  int vector = 1;         // elements per load of a thread from global memory
  int line_elements = 0;  // elements per line, including padding
  PanelCopy copy = PanelCopy::async;
  bool is_interleaved = false;  // K-major in blocks of op::kInterleaved
  int segment = 0;              // elements of a line that consecutive threads copy before those of the next line

  bool operator==(const PanelOperand&) const = default;
};

/// The type in which CUDA cores multiply elements of A and add their products.
DType stored_type(DType accumulator, DType element);

struct SimtGemmPlan : GemmTile {
  Target target;
  DType stored = DType::f32;  // type of the operands in shared memory, of the products and of the accumulators
  PanelOperand a, b;
  int lanes_m = 8, lanes_n = 4;    // a warp's lanes along M and N
  int vector_m = 4, vector_n = 4;  // elements per shared-memory load
  int copy_phases = 1;             // parts of a tile along K; each loads and stores its share of register_passes()
  int copy_lag = 1;                // phases between the loads of a share and its stores

  int thread_m() const { return warp_tile_m() / lanes_m; }
  int thread_n() const { return warp_tile_n() / lanes_n; }
  int stage_bytes() const { return (a.line_elements + b.line_elements) * tile.k * bytes(stored); }
  /// Bytes of the vectors that are staged for one tile.
  int staged_bytes() const {
    const auto bytes_of = [&](const PanelOperand& operand, int tile_mn) {
      return operand.copy == PanelCopy::staged ? tile_mn * tile.k * bytes(operand.element) : 0;
    };
    return bytes_of(a, tile.m) + bytes_of(b, tile.n);
  }
  /// Rows of the bands that the epilogue reduces.
  int band_rows() const { return shares_sums() ? split_k_rows() : warps_m * lanes_m; }
  /// With an alignment of 4 or 8 bytes, the fastest tile was up to 60 % slower with the second pass; with 2 bytes it
  /// gained 30 % (H200, 2026-11-23).
  bool realigns_rows() const { return stages_rows_below(4); }
  /// Whether the epilogue stages bands of rows in shared memory, so that a warp stores adjacent elements of D: if D's
  /// rows allow only vectors of less than 16 bytes. The pieces of a thread's own vectors would be 16 bytes apart.
  bool stages_rows() const { return stages_rows_below(16); }
  /// Leading dimension, in elements, of a band that is staged. The padding spreads the rows over the banks.
  int band_line() const { return tile.n + 8; }
  int band_bytes() const { return stages_rows() ? band_rows() * band_line() * bytes(operands.epilogue.compute) : 0; }
  /// Bytes of shared memory per CTA. The epilogue reuses the memory of the stages.
  int smem_bytes() const {
    return std::max(stages * (stage_bytes() + staged_bytes()), band_bytes() + reduction_bytes(band_rows()));
  }
  /// Vectors that each thread copies through registers, of both operands' tiles.
  int register_passes() const;
  /// Registers per thread for the accumulators, two steps of fragments, and the vectors of one phase of the copies.
  int registers() const;
  bool operator==(const SimtGemmPlan&) const = default;
};

inline Support check_arguments(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  return check_launch(plan, residence_of(plan), arguments);
}
inline Launch launch(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  return launch_gemm(plan, residence_of(plan), plan.smem_bytes(), arguments);
}

/// Maps (line, element of the line) to the offset in elements in the tile of A, or in that of B. A line is contiguous
/// in global memory; in shared memory M or N is contiguous.
layout::Layout smem_layout(const SimtGemmPlan& plan, bool is_a);

/// The copy of A's tile or of B's from global to shared memory by the plan's threads. Offsets are in elements.
TileCopy tile_copy(const SimtGemmPlan& plan, bool is_a);

/// The positions of a thread's accumulators in the CTA's tile. The accumulators number (i, .) of all threads form a
/// band of rows, one row of each thread along M, which the epilogue reduces together.
struct SimtThreadTile {
  layout::Layout coordinates;  // ((lane, warp), (i, j)) -> (row, column), as scaled basis strides
  layout::Layout band_row;     // (lane, warp) -> row of the band
  layout::Layout band;         // row of the band 0 -> row of the tile
};
SimtThreadTile thread_tile(const SimtGemmPlan& plan);

/// The input of the cost model for the plan. The extents of `arguments` are those of the caller's problem.
CostInput cost_input(const SimtGemmPlan& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const SimtGemmPlan& plan, const op::GemmView& arguments);

/// Computes the plan, or refuses with the first number that makes it impossible.
Result<SimtGemmPlan> plan_simt_gemm(const op::GemmSignature& signature, const SimtGemmDesign& design);

}  // namespace tilewright::plan
