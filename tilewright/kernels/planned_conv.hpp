// A kernel of a family that computes only convolutions: its source, launch and estimate are computed from a plan.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tilewright/op/problem.hpp"
#include "tilewright/plan/depthwise_conv.hpp"  // declares plan::launch and plan::estimate_us, which others overload
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// check_arguments, launch and estimate_us of a Plan are found in plan/ by argument-dependent lookup.
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
    using plan::launch;  // not Kernel::launch
    return launch(plan_, op::view(problem).value_or_throw());
  }
  double do_estimate_us(const op::Problem& problem) const override {
    using plan::estimate_us;  // not Kernel::estimate_us
    return estimate_us(plan_, op::view(problem).value_or_throw());
  }

 private:
  Plan plan_;
  Lower lower_;
};

/// A kernel of the family whose sums have the same order in every run, which may depend on M.
template <class Plan>
registry::KernelPtr make_planned_conv(const char* family, const op::GemmSignature& signature,
                                      const plan::FlatDesign& design, Plan plan,
                                      typename PlannedConv<Plan>::Lower lower) {
  registry::KernelMetadata metadata{family, signature, design};
  metadata.promises = {.deterministic = true, .batch_invariant = false};
  return std::make_shared<PlannedConv<Plan>>(std::move(metadata), std::move(plan), lower);
}

}  // namespace tilewright::kernels
