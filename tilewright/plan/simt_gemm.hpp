// Numbers of the simt_gemm family: any type and alignment on CUDA cores.
#pragma once

#include <algorithm>

#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// One operand's tile in shared memory: k lines of tile_mn elements, padded.
struct PanelOperand {
  DType element = DType::f32;
  bool is_k_major = true;
  int vector = 1;         // elements that a thread moves at once from global memory
  int line_elements = 0;  // tile_mn and padding
  bool is_async = true;   // by cp.async; else through registers, converted to the stored type

  bool operator==(const PanelOperand&) const = default;
};

struct SimtGemmPlan : GemmTile {
  Target target;
  DType stored = DType::f32;  // type in shared memory, of the products and of the sums
  PanelOperand a, b;
  int lanes_m = 8, lanes_n = 4;    // a warp's lanes along M and N
  int vector_m = 4, vector_n = 4;  // elements of one shared-memory load

  int thread_m() const { return warp_tile_m() / lanes_m; }
  int thread_n() const { return warp_tile_n() / lanes_n; }
  int stage_bytes() const { return (a.line_elements + b.line_elements) * tile.k * bytes(stored); }
  /// The ring of stages, then bands of what is reduced in its place.
  int smem_bytes() const { return std::max(stages * stage_bytes(), reduction_bytes(warps_m * lanes_m)); }
  /// Sums and two steps of fragments of one thread.
  int registers() const;
  bool operator==(const SimtGemmPlan&) const = default;
};

inline Support check_arguments(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  return check_launch(plan, arguments);
}
inline Launch launch(const SimtGemmPlan& plan, const op::GemmView& arguments) {
  return launch_gemm(plan, plan.smem_bytes(), arguments);
}

/// The plan as the cost model sees it, on extents of the caller's problem.
CostInput cost_input(const SimtGemmPlan& plan, const op::GemmView& arguments);

/// Every number of the kernel, or the one that makes it impossible.
Result<SimtGemmPlan> plan_simt_gemm(const op::GemmSignature& description, const Design& design);

}  // namespace tilewright::plan
