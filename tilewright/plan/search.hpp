// The candidate designs that are worth ranking for a problem.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/sum_order.hpp"

namespace tilewright::plan {

/// Designs for CUDA cores without split-K, for any type. They may not fit the target; planning refuses those that do
/// not.
std::vector<SimtGemmDesign> simt_gemm_designs(const op::GemmSignature& signature, const Target& target);
/// Appends to those designs, for each whose tiles leave SMs idle, one with the split_k of the shortest predicted time.
std::vector<SimtGemmDesign> simt_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target);

/// Designs without split-K that use mma.sync for the types and math of the problem. The result is empty if no
/// instruction multiplies these types.
std::vector<Sm80GemmDesign> sm80_gemm_designs(const op::GemmSignature& signature, const Target& target);
/// Appends to those designs, for each whose tiles leave SMs idle, one with the split_k of the shortest predicted time.
std::vector<Sm80GemmDesign> sm80_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target);

/// Designs that use wgmma for the problem's types, math and extents: the twelve that the cost model ranks first among
/// all tiles, schedules and clusters or, with `order`, among those that sum in this order. plan_sm90_gemm accepts every
/// one that sketch_sm90_gemm accepts. The result is empty if no instruction multiplies the types, and for targets other
/// than sm_90a.
std::vector<Sm90GemmDesign> sm90_gemm_designs(const op::GemmView& view, const op::GemmSignature& signature,
                                              const Target& target, const std::optional<SumOrder>& order = {});

/// The design whose SumOrder every kernel of the family has to have where batch_invariant is required. It depends on
/// the types, the layouts and the target only. Nothing if no design suits the types.
std::optional<SimtGemmDesign> invariant_simt_gemm_design(const op::GemmSignature& signature, const Target& target);
std::optional<Sm80GemmDesign> invariant_sm80_gemm_design(const op::GemmSignature& signature, const Target& target);
std::optional<Sm90GemmDesign> invariant_sm90_gemm_design(const op::GemmSignature& signature, const Target& target);

}  // namespace tilewright::plan
