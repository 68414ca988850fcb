// The family that reduces the parts of split-K.
#include "tilewright/plan/reduce_split_k.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/requirements.hpp"
#include "tilewright/lower/cuda/reduce_split_k.hpp"
#include "tilewright/plan/sum_order.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "reduce_split_k";

// Every kernel adds the parts in ascending order, one at a time, so that there is only one order.
const plan::SumOrder kOrder = plan::exact_order();

const op::ReduceSplitK& reduction_of(const op::Problem& problem) { return std::get<op::ReduceSplitK>(problem); }

class ReduceSplitKKernel final : public registry::Kernel {
 public:
  ReduceSplitKKernel(registry::KernelMetadata metadata, plan::ReduceSplitKPlan plan)
      : Kernel(std::move(metadata)), plan_(std::move(plan)) {}

  bool depends_only_on_key() const override { return true; }
  bool writes_whole_outputs() const override { return true; }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    return plan::check_arguments(plan_, reduction_of(problem));
  }
  compile::Source do_source() const override {
    compile::Source source;
    source.text = lower::cuda::lower(plan_, name());
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    return plan::launch(plan_, reduction_of(problem));
  }
  double do_estimate_us(const op::Problem& problem) const override {
    return plan::estimate_us(plan_, reduction_of(problem));
  }
  std::optional<plan::SumOrder> do_sum_order(const op::Problem& /*problem*/) const override { return kOrder; }

 private:
  plan::ReduceSplitKPlan plan_;
};

registry::KernelPtr make_kernel(const op::ReduceSplitKSignature& signature, const plan::FlatDesign& design,
                                plan::ReduceSplitKPlan plan) {
  registry::KernelMetadata metadata{kName, signature, design};
  metadata.promises = {.deterministic = true,
                       .batch_invariant = bool(plan::check_order_of_epilogue(signature.epilogue))};
  return std::make_shared<ReduceSplitKKernel>(std::move(metadata), std::move(plan));
}

// It lists no kernels without a problem: filters of listings may rely on the operands of a GEMM.
class ReduceSplitKProvider final : public registry::Provider {
 public:
  std::string family() const override { return kName; }

  Support runs_on(const Target& target) const override { return check_target(target, kSm80); }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const reduction = std::get_if<op::ReduceSplitK>(&problem);
    if (reduction == nullptr) {
      found.refused.push_back(
          {kName, refuse("computes only reduce_split_k, but the problem is a {}", op::operation_name(problem))
                      .as(RefusalCode::operation)});
      return;
    }
    const op::ReduceSplitKSignature signature = op::describe(*reduction);
    for (const plan::FlatDesign& design : plan::reduce_split_k_designs(signature, target)) {
      Result<plan::ReduceSplitKPlan> plan = plan::plan_reduce_split_k(signature, design);
      const Support support = plan ? plan::check_arguments(*plan, *reduction) : Support(plan.refusal());
      if (support) {
        found.kernels.push_back(make_kernel(signature, design, *std::move(plan)));
      } else {
        found.refused.push_back({fmt::format("{} {}", kName, plan::to_string(design)), support.refusal()});
      }
    }
  }

  Result<plan::SumOrder> invariant_order(const op::Problem& problem, const Target& /*target*/) const override {
    if (std::holds_alternative<op::ReduceSplitK>(problem)) return kOrder;
    return refuse("computes only reduce_split_k, but the problem is a {}", op::operation_name(problem))
        .as(RefusalCode::operation);
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const op::ReduceSplitKSignature* const reduction = signature.reduce_split_k();
    if (reduction == nullptr)
      return refuse("computes only reduce_split_k, got {}", signature.operation).as(RefusalCode::operation);
    if (const Support valid = op::validate(*reduction); !valid) return valid.refusal();
    const Result<plan::FlatDesign> flat = flat_design_of(design);
    if (!flat) return flat.refusal();
    Result<plan::ReduceSplitKPlan> plan = plan::plan_reduce_split_k(*reduction, *flat);
    if (!plan) return plan.refusal();
    return make_kernel(*reduction, *flat, *std::move(plan));
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_reduce_split_k_provider() { return std::make_unique<ReduceSplitKProvider>(); }

}  // namespace tilewright::kernels
