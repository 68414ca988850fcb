// The plan of GEMM kernels that are written as programs; program/gemm.hpp writes them.
#pragma once

#include <vector>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

struct ProgramGemmPlan : GemmTile {
  Target target;
  AtomMix mix = AtomMix::tma_wgmma;
  int cluster_m = 1, cluster_n = 1;  // of the problem as computed
  /// The elements in shared memory: tf32 for f32 operands, which TMA rounds.
  DType element_a = DType::f16, element_b = DType::f16;
  arch::Major major_a = arch::Major::k, major_b = arch::Major::k;
  const arch::WgmmaAtom* wgmma = nullptr;  // one of these is set
  const arch::MmaAtom* mma = nullptr;

  /// If TMA stores D: the columns of a panel of 64 rows, and the number of panels that a warpgroup has room for in
  /// shared memory. 0: plain stores.
  int panel_columns = 0, output_buffers = 0;

  int cluster_size() const { return cluster_m * cluster_n; }
  int consumers() const { return warps_m * warps_n / 4; }  // warpgroups that multiply
  int threads() const { return GemmTile::threads() + 128; }
  /// Panels of a warpgroup's part of a tile. @pre panel_columns != 0
  int panels_m() const { return tile.m / (64 * consumers()); }
  int panels_n() const { return tile.n / panel_columns; }
  int output_bytes() const { return consumers() * output_buffers * 64 * panel_columns * bytes(operands.d.element); }
  int smem_bytes() const {
    return stages * ((tile.m * bits(element_a) + tile.n * bits(element_b)) / 8 * tile.k + 2 * kMbarrierBytes) +
           output_bytes();
  }
  bool operator==(const ProgramGemmPlan&) const = default;

  static constexpr int kMbarrierBytes = 8;
};

/// Refuses what the programs do not compute: groups, pointer arrays, im2col and folded operands, interleaved layouts,
/// operands that are aligned to less than 16 bytes, split-K, types and math without an instruction, and epilogues with
/// functions other than those of check_functions().
Result<ProgramGemmPlan> plan_program_gemm(const op::GemmSignature& signature, const ProgramGemmDesign& design);

/// The tile of A, or of B, in shared memory: (mn, k) -> offset in elements.
layout::ComposedLayout smem_layout(const ProgramGemmPlan& plan, bool is_a);

/// Refuses epilogues that programs cannot express, naming the function: those that are no short sequence of PTX
/// instructions, reductions, pairs of columns, and compute types other than f32.
Support check_functions(const op::Epilogue& epilogue);

/// Refuses k == 0 and extents beyond 32-bit indices.
Support check_arguments(const ProgramGemmPlan& plan, const op::GemmView& arguments);
/// Estimated microseconds, including the launch. Programs whose operands TMA loads for wgmma have the pipeline of
/// sm90_gemm, whose cost model estimates them; the others are estimated by that of all families.
double estimate_us(const ProgramGemmPlan& plan, const op::GemmView& arguments);
SumOrder sum_order(const ProgramGemmPlan& plan, const op::GemmView& arguments);

/// The designs to offer for problems with this signature: a few tiles for each mix.
std::vector<ProgramGemmDesign> program_gemm_designs(const op::GemmSignature& signature, const Target& target);

}  // namespace tilewright::plan
