#include "tilewright/engine/requirement.hpp"

#include <string>
#include <vector>

namespace tilewright::engine {
namespace {

const op::Epilogue* epilogue_of(const op::Signature& signature) {
  if (signature.gemm() != nullptr) return &signature.gemm()->epilogue;
  return signature.reduce_split_k() != nullptr ? &signature.reduce_split_k()->epilogue : nullptr;
}

}  // namespace

std::optional<plan::SumOrder> Requirement::known_order() const { return order ? std::optional(*order) : std::nullopt; }

Requirement make_requirement(const registry::Promises& promises, std::span<const registry::ProviderPtr> providers,
                             const op::Problem& problem, const Target& target) {
  Requirement requirement{.promises = promises};
  if (!promises.batch_invariant) return requirement;
  std::vector<std::string> reasons;
  for (const registry::ProviderPtr& provider : providers) {
    const Support runs = provider->runs_on(target);
    Result<plan::SumOrder> order =
        runs ? provider->invariant_order(problem, target) : Result<plan::SumOrder>(runs.refusal());
    if (order) {
      requirement.order = *std::move(order);
      return requirement;
    }
    reasons.push_back(fmt::format("{}: {}", provider->family(), order.reason()));
  }
  requirement.order =
      refuse("no family has kernels with one order of summation for every M ({})", fmt::join(reasons, "; "))
          .as(RefusalCode::promises);
  return requirement;
}

Support check(const Requirement& requirement, const registry::Kernel& kernel, const op::Problem& problem) {
  const registry::Promises& required = requirement.promises;
  if (!required.any()) return {};
  if (required.batch_invariant) {
    if (const op::Epilogue* const epilogue = epilogue_of(kernel.metadata().signature); epilogue != nullptr) {
      if (const Support fits = plan::check_order_of_epilogue(*epilogue); !fits) return fits;
    }
  }
  if (const Support makes = registry::check(kernel.metadata().promises, required); !makes || !required.batch_invariant)
    return makes;
  const std::optional<plan::SumOrder> order = kernel.sum_order(problem);
  if (order && !requirement.order) return requirement.order.refusal();
  if (order) return plan::check_order(*order, *requirement.order);
  if (!requirement.order) return {};
  return refuse(
             "batch_invariant requires the order [{}] for every M, and the order of this kernel is not known: name its "
             "provider, or choose the kernel yourself",
             plan::to_string(*requirement.order))
      .as(RefusalCode::promises);
}

}  // namespace tilewright::engine
