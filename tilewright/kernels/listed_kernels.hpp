// The list of a family's kernels: those that it offers for a fixed set of representative problems.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// Representative problem `index`, or nothing past the end: every combination of operand types and math and every
/// layout of A, B and D, with packed operands of maximum alignment and a linear combination. Each is listed with
/// several extents, which are consecutive, since the design search depends on the extents.
std::optional<op::Gemm> listed_problem(std::size_t index);
/// The number of extents listed for each combination.
std::size_t listed_extents();

/// Discovers the kernels of one representative problem after the other, without duplicates.
class ListedKernels final : public registry::KernelStream {
 public:
  /// `provider` must outlive this.
  ListedKernels(const registry::Provider& provider, Target target) : provider_(provider), target_(target) {}
  registry::KernelPtr next() override;

 private:
  const registry::Provider& provider_;
  Target target_;
  std::size_t problem_ = 0;
  std::vector<registry::KernelPtr> kernels_;  // kernels of the last problem in reverse order
  std::unordered_set<std::string> seen_;      // names already listed for this combination of types and layouts
};

}  // namespace tilewright::kernels
