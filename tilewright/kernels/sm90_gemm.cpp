#include "tilewright/plan/sm90/launch.hpp"

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/sm90_gemm.hpp"
#include "tilewright/op/padded_taps.hpp"
#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/op/tap_columns.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/sm90/im2col.hpp"

namespace tilewright::kernels {
namespace {

struct Sm90GemmFamily {
  using Design = plan::Sm90GemmDesign;
  using Sketch = plan::Sm90GemmSketch;
  using Plan = plan::Sm90GemmPlan;
  static constexpr const char* kName = "sm90_gemm";
  static constexpr Target kNeeds = kSm90a;
  static constexpr const char* kNoDesign = "wgmma supports only f16, bf16, tf32, e4m3, e5m2, s8 and u8";
  static constexpr compile::Language kLanguage = compile::Language::cuda;

  static Support accepts(const op::GemmSignature& signature) { return plan::check_layouts(signature); }
  static std::vector<Design> designs(const op::GemmView& view, const op::GemmSignature& signature, const Target& target,
                                     const std::optional<plan::SumOrder>& order) {
    return plan::sm90_gemm_designs(view, signature, target, order);
  }
  /// Views whose taps are padded, with which TMA loads longer rows, and views whose taps share pixels.
  static std::vector<op::GemmView> other_views(const op::GemmView& view) {
    const bool are_columns = op::can_pad_columns(view);
    std::vector<op::GemmView> views;
    for (const std::int64_t row : plan::padded_tap_rows(view))
      views.push_back(are_columns ? op::with_padded_columns(view, row) : op::with_padded_taps(view, row));
    std::vector<op::GemmView> sharing;
    const auto share = [&](const op::GemmView& each) {
      if (!plan::shares_pixels(each)) return;
      sharing.push_back(are_columns ? op::with_shared_columns(each) : op::with_shared_pixels(each));
    };
    share(view);
    for (const op::GemmView& padded : views) share(padded);
    views.insert(views.end(), sharing.begin(), sharing.end());
    return views;
  }
  static std::optional<Design> invariant_design(const op::GemmSignature& signature, const Target& target) {
    return plan::invariant_sm90_gemm_design(signature, target);
  }
  static Result<Design> design(const plan::Design& given, const op::GemmSignature& signature) {
    return plan::sm90_gemm_design(given, signature);
  }
  static Result<Sketch> sketch(const op::GemmSignature& signature, const Design& design) {
    return plan::sketch_sm90_gemm(signature, design);
  }
  static Result<Plan> plan(const op::GemmSignature& signature, const Design& design) {
    return plan::plan_sm90_gemm(signature, design);
  }
  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
  static Support is_available() { return {}; }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) { return predicted_us(sketch, view); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_sm90_gemm_provider() {
  return std::make_unique<PlannedGemmProvider<Sm90GemmFamily>>();
}

}  // namespace tilewright::kernels
