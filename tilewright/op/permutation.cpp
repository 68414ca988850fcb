#include "tilewright/op/permutation.hpp"

#include <algorithm>
#include <utility>

namespace tilewright::op {

std::vector<PermutedMode> permuted_modes(const Permutation& permutation) {
  const auto& [from, to] = permutation;
  std::vector<PermutedMode> all;
  for (int mode = 0; mode < from.shape.rank(); ++mode) {
    if (from.shape[mode] == 1 || to.stride[mode] == 0) continue;
    all.push_back({from.shape[mode], from.stride[mode], to.stride[mode]});
  }
  std::ranges::stable_sort(all, {}, [](const PermutedMode& each) { return std::pair{each.to, each.from}; });
  std::vector<PermutedMode> merged;
  for (const PermutedMode& each : all) {
    const bool follows = !merged.empty() && each.from == merged.back().extent * merged.back().from &&
                         each.to == merged.back().extent * merged.back().to;
    if (follows) {
      merged.back().extent *= each.extent;
    } else {
      merged.push_back(each);
    }
  }
  return merged;
}

std::int64_t elements(const Permutation& permutation) {
  std::int64_t count = 1;
  for (const PermutedMode& mode : permuted_modes(permutation)) count *= mode.extent;
  return count;
}

}  // namespace tilewright::op
