// The exception of Engine::make_kernel().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::engine {

/// No family can make a kernel with a design. `what()` has the reasons.
class RefusedDesign : public InvalidArgument {
 public:
  RefusedDesign(const std::string& message, std::vector<registry::RefusedKernel> refused)
      : InvalidArgument(message), refused_(std::move(refused)) {}

  /// The refusal of each family.
  const std::vector<registry::RefusedKernel>& refused() const { return refused_; }

 private:
  std::vector<registry::RefusedKernel> refused_;
};

}  // namespace tilewright::engine
