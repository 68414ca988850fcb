// A kernel of a family that computes only convolutions: its source, launch and estimate are computed from a plan.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/kernels/requirements.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

// check_arguments, launch and estimate_us of a Plan are found in plan/ by argument-dependent lookup. Within a kernel,
// the names launch and estimate_us would find members of Kernel.
template <class Plan>
plan::Launch launch_of_conv(const Plan& plan, const op::GemmView& view) {
  return launch(plan, view);
}
template <class Plan>
double estimate_us_of_conv(const Plan& plan, const op::GemmView& view) {
  return estimate_us(plan, view);
}

template <class Plan>
class PlannedConv final : public registry::Kernel {
 public:
  /// Writes the plan as CUDA C++, as a kernel of that name.
  using Lower = std::string (*)(const Plan&, std::string_view);

  PlannedConv(registry::KernelMetadata metadata, Plan plan, Lower lower)
      : Kernel(std::move(metadata)), plan_(std::move(plan)), lower_(lower) {}

  // The key of a convolution with groups has the alignments of addresses, which vectors of channels need and the
  // signature of a batch of single channels does not have.
  bool depends_only_on_key() const override { return true; }
  bool writes_whole_outputs() const override { return true; }
  // The launch takes strides of rows, or of columns, which are those of either layout of a single column or row.
  bool takes_lines_of_any_layout() const override { return true; }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    return check_arguments(plan_, op::view(problem).value_or_throw());
  }
  compile::Source do_source() const override {
    compile::Source source;
    source.text = lower_(plan_, name());
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    return launch_of_conv(plan_, op::view(problem).value_or_throw());
  }
  double do_estimate_us(const op::Problem& problem) const override {
    return estimate_us_of_conv(plan_, op::view(problem).value_or_throw());
  }

 private:
  Plan plan_;
  Lower lower_;
};

/// How a family makes its kernels, or those of one of its plans. The sums of a kernel have the same order in every run,
/// which may depend on M.
template <class Plan>
struct PlannedConvFamily {
  const char* name;
  Result<Plan> (*plan_of)(const op::GemmSignature& signature, const plan::FlatDesign& design);
  typename PlannedConv<Plan>::Lower lower;

  registry::KernelPtr kernel(const op::GemmSignature& signature, const plan::FlatDesign& design, Plan planned) const {
    registry::KernelMetadata metadata{name, signature, design};
    metadata.promises = {.deterministic = true, .batch_invariant = false};
    return std::make_shared<PlannedConv<Plan>>(std::move(metadata), std::move(planned), lower);
  }

  /// Appends the kernels of the designs that compute the view, and the refusals of the others.
  void offer(const op::GemmSignature& signature, const op::GemmView& view, const std::vector<plan::FlatDesign>& designs,
             registry::Discovery& found) const {
    for (const plan::FlatDesign& design : designs) {
      Result<Plan> planned = plan_of(signature, design);
      const Support support = planned ? check_arguments(*planned, view) : Support(planned.refusal());
      if (support) {
        found.kernels.push_back(kernel(signature, design, *std::move(planned)));
      } else {
        found.refused.push_back({fmt::format("{} {}", name, plan::to_string(design)), support.refusal()});
      }
    }
  }

  Result<registry::KernelPtr> make(const op::GemmSignature& signature, const plan::Design& design) const {
    const Result<plan::FlatDesign> flat = flat_design_of(design);
    if (!flat) return flat.refusal();
    Result<Plan> planned = plan_of(signature, *flat);
    if (!planned) return planned.refusal();
    return kernel(signature, *flat, *std::move(planned));
  }
};

}  // namespace tilewright::kernels
