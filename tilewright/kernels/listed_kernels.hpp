// Every kernel that a family offers for problems of the kinds below: what a listing without arguments gives.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// Problem `index` of those whose kernels are listed, or none past the end: every combination of operand types and
/// math, every layout of A, B and D, packed operands of the largest alignment, a linear combination, and extents from
/// small to large, since searches depend on them. All extents of one kind follow each other.
std::optional<op::Gemm> listed_problem(std::size_t index);
/// Problems of one kind.
std::size_t listed_extents();

/// Discovers problem after problem; a kernel that several are offered comes once.
class ListedKernels final : public registry::KernelStream {
 public:
  /// `provider` must outlive this.
  ListedKernels(const registry::Provider& provider, Target target) : provider_(provider), target_(target) {}
  registry::KernelPtr next() override;

 private:
  const registry::Provider& provider_;
  Target target_;
  std::size_t problem_ = 0;
  std::vector<registry::KernelPtr> kernels_;  // of the last problem, the next one last
  std::unordered_set<std::string> seen_;      // names of this kind
};

}  // namespace tilewright::kernels
