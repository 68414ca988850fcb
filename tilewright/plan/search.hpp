// Which designs are worth ranking for a problem: tiles that have proved themselves.
#pragma once

#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

/// Designs of CUDA cores, for any type. They need not fit: planning says so.
std::vector<Design> simt_gemm_designs(const op::GemmSignature& description, const Target& target);

/// Designs of mma.sync for the description's types and math. Empty where no instruction multiplies them.
std::vector<Design> sm80_gemm_designs(const op::GemmSignature& description, const Target& target);

/// Designs of wgmma for the problem's types, math and extents: of all tiles and schedules, the dozen that the cost
/// model puts first. Those that sketch_sm90_gemm accepts, plan_sm90_gemm does. Empty where no instruction multiplies
/// the types, and for other targets than sm_90a.
std::vector<Design> sm90_gemm_designs(const op::GemmView& arguments, const op::GemmSignature& description,
                                      const Target& target);

}  // namespace tilewright::plan
