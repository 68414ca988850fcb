// Visits the elements of a tensor of any rank.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Calls visit(index of the packed tensor, offset in elements) for each element, the last mode fastest.
template <class Visit>
void for_each_element(const Tensor& tensor, const Visit& visit) {
  if (tensor.is_empty()) return;
  std::vector<std::int64_t> at(static_cast<std::size_t>(tensor.shape.rank()));
  for (std::size_t index = 0;; ++index) {
    std::int64_t offset = 0;
    for (int mode = 0; mode < tensor.shape.rank(); ++mode)
      offset += at[static_cast<std::size_t>(mode)] * tensor.stride[mode];
    visit(index, offset);
    int mode = tensor.shape.rank() - 1;
    while (mode >= 0 && ++at[static_cast<std::size_t>(mode)] == tensor.shape[mode])
      at[static_cast<std::size_t>(mode--)] = 0;
    if (mode < 0) return;
  }
}

}  // namespace tilewright::op
