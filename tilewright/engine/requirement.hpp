// A Requirement has the promises that a caller requires of the kernels of one problem; check() says whether a kernel
// meets it.
#pragma once

#include <span>

#include "tilewright/plan/sum_order.hpp"
#include "tilewright/registry/registry.hpp"

namespace tilewright::engine {

struct Requirement {
  registry::Promises promises;
  /// With batch_invariant: the order that every kernel must have, which is that of the first provider that has one for
  /// every M; or the reasons why none has. Kernels whose order is not known are judged by their metadata then.
  Result<plan::SumOrder> order = refuse("batch_invariant is not required");

  /// The order, if there is one.
  std::optional<plan::SumOrder> known_order() const;
};

/// @pre op::validate(problem)
Requirement make_requirement(const registry::Promises& promises, std::span<const registry::ProviderPtr> providers,
                             const op::Problem& problem, const Target& target);

/// Refuses a kernel that does not make the promises, or has another order. @pre kernel.supports(problem)
Support check(const Requirement& requirement, const registry::Kernel& kernel, const op::Problem& problem);

}  // namespace tilewright::engine
