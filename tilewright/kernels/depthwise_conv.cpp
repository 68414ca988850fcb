// The family of depthwise convolutions. Its kernels have one of two plans: that of convolutions and input gradients,
// which multiply windows of pixels by a filter, or that of filter gradients, which sum over all pixels.
#include "tilewright/plan/depthwise_conv.hpp"

#include <utility>
#include <variant>

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_conv.hpp"
#include "tilewright/lower/cuda/depthwise_conv.hpp"
#include "tilewright/lower/cuda/depthwise_wgrad.hpp"
#include "tilewright/plan/depthwise_wgrad.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "depthwise_conv";

/// Filter gradients multiply y by the im2col matrix of x; in other passes A is an im2col matrix.
bool is_filter_gradient(const op::GemmSignature& signature) { return signature.b.im2col != op::Im2colAccess::none; }

class DepthwiseConvProvider final : public registry::Provider {
 public:
  std::string family() const override { return kName; }

  Support runs_on(const Target& target) const override {
    if (target.has_features_of(kSm80)) return {};
    return refuse("needs {}, the target is {}", Target(kSm80).name(), target.name()).as(RefusalCode::architecture);
  }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    if (conv == nullptr || conv->groups == 1) {
      found.refused.push_back({kName, refuse("computes only convolutions with groups").as(RefusalCode::operation)});
      return;
    }
    const op::GemmView view = op::view(*conv);
    const op::GemmSignature signature = op::describe(op::with_longest_lines(view));
    const auto offer = [&](const std::vector<plan::FlatDesign>& designs, const auto& plan_of) {
      for (const plan::FlatDesign& design : designs) {
        auto plan = plan_of(signature, design);
        const Support support = plan ? plan::check_arguments(*plan, view) : Support(plan.refusal());
        if (support) {
          found.kernels.push_back(make_planned_conv(kName, signature, design, *std::move(plan), lower::cuda::lower));
        } else {
          found.refused.push_back({fmt::format("{} {}", kName, plan::to_string(design)), support.refusal()});
        }
      }
    };
    if (conv->pass == op::ConvPass::wgrad) {
      offer(plan::depthwise_wgrad_designs(signature, target), plan::plan_depthwise_wgrad);
    } else {
      offer(plan::depthwise_conv_designs(signature, target), plan::plan_depthwise_conv);
    }
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const op::GemmSignature* const gemm = signature.gemm();
    if (gemm == nullptr)
      return refuse("computes only GEMMs, but {} is not one", signature.operation).as(RefusalCode::operation);
    if (const Support valid = op::validate(*gemm); !valid) return valid.refusal();
    const auto* const flat = std::get_if<plan::FlatDesign>(&design);
    if (flat == nullptr) return refuse("the design is one of another family").as(RefusalCode::design);
    const auto make_with = [&](auto plan) -> Result<registry::KernelPtr> {
      if (!plan) return plan.refusal();
      return make_planned_conv(kName, *gemm, *flat, *std::move(plan), lower::cuda::lower);
    };
    if (is_filter_gradient(*gemm)) return make_with(plan::plan_depthwise_wgrad(*gemm, *flat));
    return make_with(plan::plan_depthwise_conv(*gemm, *flat));
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_depthwise_conv_provider() { return std::make_unique<DepthwiseConvProvider>(); }

}  // namespace tilewright::kernels
