// A GEMM kernel that is its plan: the text, the launch and the estimate all follow from the plan's numbers.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// Family: Plan, kName, kNoDesign (why it may have none), designs(arguments,
/// description, target), plan(description, design),
/// lower(plan, symbol). Plan: check_arguments, launch, cost_input in plan/.
template <class Family>
class PlannedGemm final : public registry::Kernel {
 public:
  using Plan = typename Family::Plan;

  PlannedGemm(registry::KernelMetadata metadata, Plan plan) : Kernel(std::move(metadata)), plan_(std::move(plan)) {}

  const Plan& plan() const { return plan_; }

 protected:
  Support do_supports(const op::Gemm& arguments) const override { return plan::check_arguments(plan_, arguments); }
  std::string do_source_text() const override { return Family::lower(plan_, name()); }
  plan::Launch do_launch(const op::Gemm& arguments) const override { return plan::launch(plan_, arguments); }
  double do_estimate_us(const op::Gemm& arguments) const override {
    return plan::estimate_us(arch::limits(plan_.target), plan::cost_input(plan_, arguments));
  }

 private:
  Plan plan_;
};

template <class Family>
class PlannedGemmProvider final : public registry::Provider {
 public:
  std::string family() const override { return Family::kName; }

  void discover(const op::Gemm& arguments, const Target& target, registry::Discovery& found) const override {
    const op::GemmDescription description = op::describe(arguments);
    const std::vector<plan::Design> designs = Family::designs(arguments, description, target);
    if (designs.empty()) found.refused.push_back({family(), Family::kNoDesign});
    for (const plan::Design& design : designs) {
      Result<registry::KernelPtr> kernel = make(description, design);
      const Support support = kernel ? (*kernel)->supports(arguments) : Support(kernel.refusal());
      if (support) {
        found.kernels.push_back(*std::move(kernel));
      } else {
        found.refused.push_back({family() + " " + plan::to_string(design), support.reason()});
      }
    }
  }

  Result<registry::KernelPtr> make(const op::GemmDescription& description, const plan::Design& design) const override {
    if (const Support valid = op::validate(description); !valid) return refuse("{}", valid.reason());
    auto plan = Family::plan(description, design);
    if (!plan) return plan.refusal();
    registry::KernelMetadata metadata{Family::kName, description, design};
    return registry::KernelPtr(std::make_shared<PlannedGemm<Family>>(std::move(metadata), *std::move(plan)));
  }
};

}  // namespace tilewright::kernels
