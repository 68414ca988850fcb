// A family of GEMM kernels whose designs are a plan::FlatDesign, and whose plans are made without a sketch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/kernels/requirements.hpp"

namespace tilewright::kernels {

/// What PlannedGemm asks of a Family, except kName, kNoDesign and lower(). kDesigns(view, signature, target) returns
/// the candidate designs, and kPlan(signature, design) plans one of them. No kernel of the family has the order of sums
/// that other families have, so that none is batch-invariant.
template <class PlanType, auto kDesigns, auto kPlan>
struct FlatFamily {
  using Design = plan::FlatDesign;
  using Plan = PlanType;
  using Sketch = Plan;
  static constexpr Target kNeeds = kSm80;
  static constexpr compile::Language kLanguage = compile::Language::cuda;

  static Support is_available() { return {}; }
  static Support accepts(const op::GemmSignature& /*signature*/) { return {}; }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& /*order*/) {
    return kDesigns(view, signature, target);
  }
  static std::optional<Design> invariant_design(const op::GemmSignature& /*signature*/, const Target& /*target*/) {
    return std::nullopt;
  }
  static Result<Design> design(const plan::Design& given, const op::GemmSignature& /*signature*/) {
    return flat_design_of(given);
  }
  static Result<Sketch> sketch(const op::GemmSignature& signature, const Design& design) {
    return kPlan(signature, design);
  }
  static Result<Plan> plan(const op::GemmSignature& signature, const Design& design) {
    return kPlan(signature, design);
  }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return plan::estimate_us(sketch, view); }
};

}  // namespace tilewright::kernels
