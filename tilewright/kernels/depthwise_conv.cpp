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
constexpr PlannedConvFamily<plan::DepthwiseConvPlan> kConvolutions{kName, plan::plan_depthwise_conv,
                                                                   lower::cuda::lower};
constexpr PlannedConvFamily<plan::DepthwiseWgradPlan> kFilterGradients{kName, plan::plan_depthwise_wgrad,
                                                                       lower::cuda::lower};

/// Filter gradients multiply y by the im2col matrix of x; in other passes A is an im2col matrix.
bool is_filter_gradient(const op::GemmSignature& signature) { return signature.b.im2col != op::Im2colAccess::none; }

class DepthwiseConvProvider final : public registry::Provider {
 public:
  std::string family() const override { return kName; }

  Support runs_on(const Target& target) const override { return check_target(target, kSm80); }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    if (conv == nullptr || conv->groups == 1) {
      found.refused.push_back({kName, refuse("computes only convolutions with groups").as(RefusalCode::operation)});
      return;
    }
    const op::GemmView view = op::view(*conv);
    const op::GemmSignature signature = op::describe(op::with_longest_lines(view));
    if (conv->pass == op::ConvPass::wgrad) {
      kFilterGradients.offer(signature, view, plan::depthwise_wgrad_designs(signature, target), found);
    } else {
      kConvolutions.offer(signature, view, plan::depthwise_conv_designs(signature, target), found);
    }
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const Result<const op::GemmSignature*> gemm = gemm_of(signature);
    if (!gemm) return gemm.refusal();
    return is_filter_gradient(**gemm) ? kFilterGradients.make(**gemm, design) : kConvolutions.make(**gemm, design);
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_depthwise_conv_provider() { return std::make_unique<DepthwiseConvProvider>(); }

}  // namespace tilewright::kernels
