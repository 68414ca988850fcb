// The family of filter gradients of convolutions whose groups have few channels.
#include "tilewright/plan/group_wgrad.hpp"

#include <utility>
#include <variant>

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_conv.hpp"
#include "tilewright/lower/cuda/group_wgrad.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "group_wgrad";

class GroupWgradProvider final : public registry::Provider {
 public:
  std::string family() const override { return kName; }

  Support runs_on(const Target& target) const override {
    if (target.has_features_of(kSm80)) return {};
    return refuse("needs {}, the target is {}", Target(kSm80).name(), target.name()).as(RefusalCode::architecture);
  }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    if (conv == nullptr || conv->pass != op::ConvPass::wgrad || conv->groups == 1) {
      found.refused.push_back(
          {kName, refuse("computes only filter gradients of convolutions with groups").as(RefusalCode::operation)});
      return;
    }
    const op::GemmView view = op::with_longest_lines(op::view(*conv));
    const op::GemmSignature signature = op::describe(view);
    const std::vector<plan::FlatDesign> designs = plan::group_wgrad_designs(view, signature, target);
    if (designs.empty()) {
      found.refused.push_back(
          {kName, refuse("computes filter gradients of f16 and bf16 convolutions with groups of 8 to "
                         "64 channels")
                      .as(RefusalCode::types)});
    }
    for (const plan::FlatDesign& design : designs) {
      auto plan = plan::plan_group_wgrad(signature, design);
      const Support support = plan ? plan::check_arguments(*plan, view) : Support(plan.refusal());
      if (support) {
        found.kernels.push_back(make_planned_conv(kName, signature, design, *std::move(plan), lower::cuda::lower));
      } else {
        found.refused.push_back({fmt::format("{} {}", kName, plan::to_string(design)), support.refusal()});
      }
    }
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const op::GemmSignature* const gemm = signature.gemm();
    if (gemm == nullptr)
      return refuse("computes only GEMMs, but {} is not one", signature.operation).as(RefusalCode::operation);
    if (const Support valid = op::validate(*gemm); !valid) return valid.refusal();
    const auto* const flat = std::get_if<plan::FlatDesign>(&design);
    if (flat == nullptr) return refuse("the design is one of another family").as(RefusalCode::design);
    auto plan = plan::plan_group_wgrad(*gemm, *flat);
    if (!plan) return plan.refusal();
    return make_planned_conv(kName, *gemm, *flat, *std::move(plan), lower::cuda::lower);
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_group_wgrad_provider() { return std::make_unique<GroupWgradProvider>(); }

}  // namespace tilewright::kernels
