// A lazy list of all kernels in a registry.
#pragma once

#include <cstddef>
#include <memory>

#include "tilewright/registry/registry.hpp"

namespace tilewright::engine {

/// A sequence of kernels: see Engine::list_kernels. Not thread-safe.
class KernelListing {
 public:
  /// Null at the end.
  registry::KernelPtr next();

 private:
  friend class Engine;
  std::shared_ptr<const registry::Registry::Snapshot> providers_;
  registry::KernelFilter filter_;
  Target target_;
  std::size_t provider_ = 0;
  std::unique_ptr<registry::KernelStream> stream_;
};

}  // namespace tilewright::engine
