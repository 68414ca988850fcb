// Construction and printing of basis elements.
#include "tilewright/layout/basis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {

Basis::Basis(std::initializer_list<int> path) {
  for (const int mode : path) *this = child(mode);
}

Basis Basis::child(int mode) const {
  if (depth_ == kMaxDepth)
    throw InvalidArgument(
        fmt::format("mode {} of {}: a basis has at most {} levels", mode, to_string(*this), kMaxDepth));
  if (mode < 0 || mode > 127) throw InvalidArgument(fmt::format("a basis has modes from 0 to 127, got {}", mode));
  Basis result = *this;
  result.modes_[static_cast<std::size_t>(result.depth_++)] = static_cast<std::int8_t>(mode);
  return result;
}

bool Basis::is_prefix_of(const Basis& other) const {
  return depth_ <= other.depth_ && std::equal(begin(), end(), other.begin());
}

std::string to_string(const Basis& basis) {
  std::string text;
  for (int i = basis.depth() - 1; i >= 0; --i) text += fmt::format("@{}", basis[i]);
  return text;
}

}  // namespace tilewright::layout
