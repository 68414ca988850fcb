#include "tilewright/plan/sm80_gemm.hpp"

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/sm80_gemm.hpp"
#include "tilewright/plan/search.hpp"

namespace tilewright::kernels {
namespace {

struct Sm80GemmFamily {
  using Design = plan::Sm80GemmDesign;
  using Plan = plan::Sm80GemmPlan;
  using Sketch = Plan;
  static constexpr const char* kName = "sm80_gemm";
  static constexpr Target kNeeds = kSm80;
  static constexpr compile::Language kLanguage = compile::Language::cuda;
  static constexpr const char* kNoDesign =
      "supports neither 8-bit floats nor f32 with multiply_add (use multiply_add_tf32, fast_f32, fast_f16 or "
      "fast_bf16)";

  static Support accepts(const op::GemmSignature& /*signature*/) { return {}; }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& order) {
    if (order && !order->is_exact) return plan::sm80_gemm_designs(signature, target);
    return plan::sm80_gemm_designs(view, signature, target);
  }
  static std::optional<Design> invariant_design(const op::GemmSignature& signature, const Target& target) {
    return plan::invariant_sm80_gemm_design(signature, target);
  }
  static Result<Design> design(const plan::Design& given, const op::GemmSignature& signature) {
    return plan::sm80_gemm_design(given, signature);
  }
  static Result<Sketch> sketch(const op::GemmSignature& signature, const Design& design) {
    return plan(signature, design);
  }
  static Result<Plan> plan(const op::GemmSignature& signature, const Design& design) {
    return plan::plan_sm80_gemm(signature, design);
  }
  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
  static Support is_available() { return {}; }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return predicted_us(sketch, view); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_sm80_gemm_provider() {
  return std::make_unique<PlannedGemmProvider<Sm80GemmFamily>>();
}

}  // namespace tilewright::kernels
