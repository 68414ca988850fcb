#include "tilewright/base/support.hpp"

#include <array>

namespace tilewright {

std::string_view name(RefusalCode code) {
  constexpr std::array<std::string_view, 19> kNames{"other",        "types",     "shape",    "strides",  "alignment",
                                                    "overlap",      "memory",    "scalars",  "epilogue", "math",
                                                    "architecture", "resources", "design",   "filter",   "duplicate",
                                                    "artifact",     "operation", "provider", "promises"};
  return kNames[static_cast<std::size_t>(code)];
}

const std::string& Support::reason() const {
  static const std::string none;
  return refusal_ ? refusal_->reason : none;
}

const Refusal& Support::refusal() const {
  TILEWRIGHT_CHECK(refusal_, "access to the refusal of a Support without one");
  return *refusal_;
}

}  // namespace tilewright
