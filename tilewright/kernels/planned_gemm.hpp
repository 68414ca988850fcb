// A GEMM kernel of a shipped family: its source, launch and estimate are computed from a plan.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/kernels/listed_kernels.hpp"
#include "tilewright/kernels/requirements.hpp"
#include "tilewright/plan/cost.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/sum_order.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

// check_arguments, cost_input, launch and sum_order are found in plan/ by argument-dependent lookup. Within a kernel,
// the name launch would find Kernel::launch.
template <class Plan>
plan::Launch launch_of(const Plan& plan, const op::GemmView& view) {
  return launch(plan, view);
}
template <class Sketch>
plan::SumOrder order_of(const Sketch& sketch, const op::GemmView& view) {
  return sum_order(sketch, view);
}

/// The time that the cost model predicts for a sketch.
template <class Sketch>
double predicted_us(const Sketch& sketch, const op::GemmView& view) {
  return plan::estimate_us(arch::limits(sketch.target), cost_input(sketch, view));
}

/// A Family has:
/// - kName; kNeeds, whose features a target must have; is_available(), which refuses if something else is missing;
///   kNoDesign, the refusal if there is no design; kLanguage, that of lower();
/// - Design, its alternative of plan::Design; design(given, signature), which converts any plan::Design or refuses it;
/// - accepts(signature), which refuses problems that no design could compute, for a reason other than kNoDesign;
/// - designs(view, signature, target, order), the candidate designs; if `order` has a value, those with other orders
///   may be left out;
/// - invariant_design(signature, target), the design whose order all kernels have where batch_invariant is required;
/// - Sketch and sketch(signature, design), the partial plan that check_arguments, cost_input and sum_order need;
/// - Plan and plan(signature, design), the complete plan that launch and lower(plan, symbol) need. It must succeed for
///   every design for which sketch() succeeds;
/// - estimate_us(sketch, view);
/// - if it has other kernels for other views of a problem, other_views(view). op::with_layouts() must make such a view
///   from that of the problem and the signature of the kernel.
template <class Family>
class PlannedGemm final : public registry::Kernel {
 public:
  using Design = typename Family::Design;
  using Sketch = typename Family::Sketch;
  using Plan = typename Family::Plan;

  /// @pre the metadata's design is one of this family, which plans it
  PlannedGemm(registry::KernelMetadata metadata, Sketch sketch)
      : Kernel(std::move(metadata)), sketch_(std::move(sketch)) {}

  /// Computed on first use, since most kernels that are discovered for a problem are never run.
  const Plan& plan() const {
    std::call_once(planned_, [this] {
      Result<Plan> plan = Family::plan(metadata().operands(), std::get<Design>(metadata().design));
      TILEWRIGHT_CHECK(plan, "{} was offered but has no plan: {}", name(), plan.reason());
      plan_ = *std::move(plan);
    });
    return *plan_;
  }

  bool depends_only_on_key() const override { return true; }
  bool writes_whole_outputs() const override { return true; }
  bool takes_lines_of_any_layout() const override { return true; }
  bool compiles_quickly() const override { return Family::kLanguage == compile::Language::mlir; }

 protected:
  Support do_supports(const op::Problem& problem) const override { return check_arguments(sketch_, view_of(problem)); }
  compile::Source do_source() const override {
    compile::Source source;
    source.language = Family::kLanguage;
    source.text = Family::lower(plan(), name());
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override { return launch_of(plan(), view_of(problem)); }
  double do_estimate_us(const op::Problem& problem) const override {
    return Family::estimate_us(sketch_, view_of(problem));
  }
  std::optional<plan::SumOrder> do_sum_order(const op::Problem& problem) const override {
    return order_of(sketch_, view_of(problem));
  }

 private:
  op::GemmView view_of(const op::Problem& problem) const {
    return op::with_layouts(op::view(problem).value_or_throw(), metadata().operands());
  }

  Sketch sketch_;
  mutable std::once_flag planned_;
  mutable std::optional<Plan> plan_;  // guarded by planned_
};

template <class Family>
class PlannedGemmProvider final : public registry::Provider {
  using Design = typename Family::Design;

 public:
  std::string family() const override { return Family::kName; }

  Support runs_on(const Target& target) const override {
    const Support has_features = check_target(target, Family::kNeeds);
    return has_features ? Family::is_available() : has_features;
  }

  std::unique_ptr<registry::KernelStream> list(const Target& target) const override {
    return std::make_unique<ListedKernels>(*this, target);
  }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    discover(problem, target, {}, found);
  }
  void discover_with_order(const op::Problem& problem, const Target& target, const plan::SumOrder& order,
                           registry::Discovery& found) const override {
    discover(problem, target, std::optional(order), found);
  }

  Result<plan::SumOrder> invariant_order(const op::Problem& problem, const Target& target) const override {
    const Result<op::GemmView> view = op::view(problem);
    if (!view) return view.refusal();
    if (const Support accepted = Family::accepts(op::describe(op::with_longest_lines(*view))); !accepted)
      return accepted.refusal();
    if (plan::sums_exactly(*view)) return plan::exact_order();
    const op::GemmSignature signature = plan::signature_for_every_m(*view);
    const std::optional<Design> design = Family::invariant_design(signature, target);
    if (!design) return refuse("{}", Family::kNoDesign).as(RefusalCode::types);
    const auto sketch = Family::sketch(signature, *design);
    if (!sketch) return sketch.refusal();
    return order_of(*sketch, *view);
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override {
    const Result<const op::GemmSignature*> gemm = gemm_of(signature);
    if (!gemm) return gemm.refusal();
    const Result<Design> own = Family::design(design, **gemm);
    if (!own) return own.refusal();
    if (const auto plan = Family::plan(**gemm, *own); !plan) return plan.refusal();
    auto sketch = Family::sketch(**gemm, *own);
    if (!sketch) return sketch.refusal();
    return kernel(**gemm, *own, *std::move(sketch));
  }

 private:
  void discover(const op::Problem& problem, const Target& target, const std::optional<plan::SumOrder>& order,
                registry::Discovery& found) const {
    const Result<op::GemmView> view = op::view(problem);
    if (!view) {
      found.refused.push_back({family(), refuse("computes only GEMMs: {}", view.reason()).as(RefusalCode::operation)});
      return;
    }
    const op::GemmView lines = op::with_longest_lines(*view);
    offer(lines, target, order, found);
    if constexpr (requires { Family::other_views(lines); }) {
      if (order && !order->is_exact) return;  // the views are those of a problem with another order
      for (const op::GemmView& other : Family::other_views(lines)) offer(other, target, order, found);
    }
  }

  static void offer(const op::GemmView& lines, const Target& target, const std::optional<plan::SumOrder>& order,
                    registry::Discovery& found) {
    const op::GemmSignature signature = op::describe(lines);
    if (const Support accepted = Family::accepts(signature); !accepted) {
      found.refused.push_back({Family::kName, accepted.refusal()});
      return;
    }
    const std::vector<Design> designs = Family::designs(lines, signature, target, order);
    if (designs.empty())
      found.refused.push_back({Family::kName, refuse("{}", Family::kNoDesign).as(RefusalCode::types)});
    for (const Design& design : designs) {
      auto sketch = Family::sketch(signature, design);
      // Types, layouts and alignments match by construction, so only the checks of do_supports() remain.
      const Support support = sketch ? check_arguments(*sketch, lines) : Support(sketch.refusal());
      if (support) {
        found.kernels.push_back(kernel(signature, design, *std::move(sketch)));
      } else {
        found.refused.push_back({Family::kName + (" " + plan::to_string(design)), support.refusal()});
      }
    }
  }

  static registry::KernelPtr kernel(const op::GemmSignature& signature, const Design& design,
                                    typename Family::Sketch sketch) {
    registry::KernelMetadata metadata{Family::kName, signature, design};
    metadata.promises = {.deterministic = true,
                         .batch_invariant = bool(plan::check_order_of_epilogue(signature.epilogue))};
    return std::make_shared<PlannedGemm<Family>>(std::move(metadata), std::move(sketch));
  }
};

}  // namespace tilewright::kernels
