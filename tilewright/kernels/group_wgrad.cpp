// The family of filter gradients of convolutions whose groups have few channels.
#include "tilewright/plan/group_wgrad.hpp"

#include <utility>
#include <variant>

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_conv.hpp"
#include "tilewright/lower/cuda/group_wgrad.hpp"

namespace tilewright::kernels {
namespace {

constexpr PlannedConvFamily<plan::GroupWgradPlan> kFamily{"group_wgrad", plan::plan_group_wgrad, lower::cuda::lower};

class GroupWgradProvider final : public registry::Provider {
 public:
  std::string family() const override { return kFamily.name; }

  Support runs_on(const Target& target) const override { return check_target(target, kSm80); }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    if (conv == nullptr || conv->pass != op::ConvPass::wgrad || conv->groups == 1) {
      found.refused.push_back(
          {kFamily.name,
           refuse("computes only filter gradients of convolutions with groups").as(RefusalCode::operation)});
      return;
    }
    const op::GemmView view = op::with_longest_lines(op::view(*conv));
    const op::GemmSignature signature = op::describe(view);
    const std::vector<plan::FlatDesign> designs = plan::group_wgrad_designs(view, signature, target);
    if (designs.empty()) {
      found.refused.push_back(
          {kFamily.name,
           refuse("computes filter gradients of f16 and bf16 convolutions with groups of 8 to 64 channels")
               .as(RefusalCode::types)});
    }
    kFamily.offer(signature, view, designs, found);
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const Result<const op::GemmSignature*> gemm = gemm_of(signature);
    if (!gemm) return gemm.refusal();
    return kFamily.make(**gemm, design);
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_group_wgrad_provider() { return std::make_unique<GroupWgradProvider>(); }

}  // namespace tilewright::kernels
