// These functions check what families require of a target, of a signature and of a design, and word the refusals.
#pragma once

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/op/signature.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::kernels {

/// Refuses targets that lack a feature of `needed`.
Support check_target(const Target& target, const Target& needed);

/// The GEMM of the signature, which lives as long as the signature does. Refuses other operations and invalid GEMMs.
Result<const op::GemmSignature*> gemm_of(const op::Signature& signature);

/// The design of a family that has no struct of its own in plan::Design. Refuses the designs of those that have one.
Result<plan::FlatDesign> flat_design_of(const plan::Design& design);

}  // namespace tilewright::kernels
