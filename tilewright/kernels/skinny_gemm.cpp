// The family of GEMMs with few rows or columns.
#include "tilewright/plan/skinny_gemm.hpp"

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/skinny_gemm.hpp"

namespace tilewright::kernels {
namespace {

struct SkinnyGemmFamily {
  using Design = plan::FlatDesign;
  using Plan = plan::SkinnyGemmPlan;
  using Sketch = Plan;
  static constexpr const char* kName = "skinny_gemm";
  static constexpr Target kNeeds = kSm80;
  static constexpr const char* kNoDesign = "computes at most 8 rows or 8 columns";
  static constexpr compile::Language kLanguage = compile::Language::cuda;

  static Support accepts(const op::GemmSignature& /*signature*/) { return {}; }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& /*order*/) {
    return plan::skinny_gemm_designs(view, signature, target);
  }
  /// None has the order that other families have for many rows and columns.
  static std::optional<Design> invariant_design(const op::GemmSignature& /*signature*/, const Target& /*target*/) {
    return std::nullopt;
  }
  static Result<Design> design(const plan::Design& given, const op::GemmSignature& /*signature*/) {
    if (const auto* const flat = std::get_if<plan::FlatDesign>(&given)) return *flat;
    return refuse("the design is one of another family").as(RefusalCode::design);
  }
  static Result<Sketch> sketch(const op::GemmSignature& signature, const Design& design) {
    return plan(signature, design);
  }
  static Result<Plan> plan(const op::GemmSignature& signature, const Design& design) {
    return plan::plan_skinny_gemm(signature, design);
  }
  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
  static Support is_available() { return {}; }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return plan::estimate_us(sketch, view); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_skinny_gemm_provider() {
  return std::make_unique<PlannedGemmProvider<SkinnyGemmFamily>>();
}

}  // namespace tilewright::kernels
