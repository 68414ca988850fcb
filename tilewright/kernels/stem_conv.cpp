// The family of forward convolutions of images with few channels.
#include "tilewright/plan/stem_conv.hpp"

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/stem_conv.hpp"

namespace tilewright::kernels {
namespace {

struct StemConvFamily {
  using Design = plan::FlatDesign;
  using Plan = plan::StemConvPlan;
  using Sketch = Plan;
  static constexpr const char* kName = "stem_conv";
  static constexpr Target kNeeds = kSm80;
  static constexpr const char* kNoDesign =
      "computes forward convolutions of f16 and bf16 images with at most 8 channels, without groups";
  static constexpr compile::Language kLanguage = compile::Language::cuda;

  static Support accepts(const op::GemmSignature& /*signature*/) { return {}; }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& /*order*/) {
    return plan::stem_conv_designs(view, signature, target);
  }
  /// No other family fills up the rows of a window.
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
    return plan::plan_stem_conv(signature, design);
  }
  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
  static Support is_available() { return {}; }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return plan::estimate_us(sketch, view); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_stem_conv_provider() {
  return std::make_unique<PlannedGemmProvider<StemConvFamily>>();
}

}  // namespace tilewright::kernels
