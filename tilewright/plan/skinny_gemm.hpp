// The plan of the skinny_gemm family: GEMMs whose D has few rows or few columns, on CUDA cores. They multiply each
// element of the large operand a few times, so that global memory bounds them; threads load it straight to registers.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// How threads load an operand of which they need a few lines: rows of A, columns of B.
struct LineOperand {
  DType element = DType::f32;
  bool is_k_major = true;  // the elements of a line are adjacent; else those of one k are
  int vector = 1;          // elements of one load

  bool operator==(const LineOperand&) const = default;
};

/// tile.m or tile.n, whichever is that of the few rows or columns, is `few`; tile.k is `chunk`; stages is the number of
/// chunks that a thread loads before it multiplies them.
struct SkinnyGemmPlan : GemmTile {
  Target target;
  DType stored = DType::f32;  // type of the products and sums
  bool rows_are_few = true;   // of the problem as computed
  LineOperand lines, few_lines;
  int few = 1;           // rows, or columns, of D that the code computes: 1, 2, 4 or 8
  int thread_lines = 1;  // adjacent lines of the large operand, of one thread
  int lane_groups = 1;   // lanes of a warp that have different lines; the others have different elements of K
  int chunk = 1;         // adjacent elements of K that a thread multiplies at a time
  int warps_lines = 1, warps_k = 1;
  int cluster_k = 1;  // CTAs of a cluster, which sum a part of K each

  int threads() const { return 32 * warps_lines * warps_k; }
  int tile_lines() const { return rows_are_few ? tile.n : tile.m; }
  /// Partial sums of an element of D.
  int parts() const { return 32 / lane_groups * warps_k * cluster_k; }
  int smem_bytes() const { return warps_k * few * tile_lines() * bytes(stored); }
  /// Registers per thread: its sums, the chunks of the large operand, one of the small one, pointers and counters.
  int registers() const;
  bool operator==(const SkinnyGemmPlan&) const = default;
};

/// The designs to rank for a problem; none where other families are faster: if D has more than 8 rows and more than 8
/// columns, fewer for 16-bit elements and unless the large operand is K-major, or if elements have 8 bits. Of a
/// FlatDesign, the family uses `tile`; `instruction`, the few rows or columns, the lines and the elements of K of a
/// thread at a time; `stages`, the number of chunks of K that a thread loads ahead; `warps_m` or `warps_n`, whichever
/// is along the lines; `warps_k`; `cluster.k`; and `swaps_operands`, which says that the columns of D are few, not its
/// rows.
std::vector<FlatDesign> skinny_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                            const Target& target);

/// Computes the plan, or refuses with the first number that makes it impossible. @pre op::validate(signature)
Result<SkinnyGemmPlan> plan_skinny_gemm(const op::GemmSignature& signature, const FlatDesign& design);

/// Refuses more rows, or columns, than the plan computes, and what launch_gemm cannot launch.
Support check_arguments(const SkinnyGemmPlan& plan, const op::GemmView& arguments);

Launch launch(const SkinnyGemmPlan& plan, const op::GemmView& arguments);

/// Estimated microseconds, including the launch: the longest of moving the bytes, of issuing the instructions, and of
/// the latencies of a thread's loads.
double estimate_us(const SkinnyGemmPlan& plan, const op::GemmView& arguments);

/// The order of the sums of one call.
SumOrder sum_order(const SkinnyGemmPlan& plan, const op::GemmView& arguments);

}  // namespace tilewright::plan
