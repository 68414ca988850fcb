// The family of convolutions whose groups have few channels, and of the gradients of their inputs.
#include "tilewright/plan/group_conv.hpp"

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/group_conv.hpp"

namespace tilewright::kernels {
namespace {

struct GroupConvFamily {
  using Design = plan::FlatDesign;
  using Plan = plan::GroupConvPlan;
  using Sketch = Plan;
  static constexpr const char* kName = "group_conv";
  static constexpr Target kNeeds = kSm80;
  static constexpr const char* kNoDesign =
      "computes convolutions of f16 and bf16 with 8 to 64 channels, or in groups of as many, and input gradients with "
      "a "
      "stride of 1";
  static constexpr compile::Language kLanguage = compile::Language::cuda;

  static Support accepts(const op::GemmSignature& /*signature*/) { return {}; }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& /*order*/) {
    return plan::group_conv_designs(view, signature, target);
  }
  /// The designs depend on the groups.
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
    return plan::plan_group_conv(signature, design);
  }
  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
  static Support is_available() { return {}; }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return plan::estimate_us(sketch, view); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_group_conv_provider() {
  return std::make_unique<PlannedGemmProvider<GroupConvFamily>>();
}

}  // namespace tilewright::kernels
