#include "tilewright/engine/kernel_listing.hpp"

namespace tilewright::engine {

registry::KernelPtr KernelListing::next() {
  while (true) {
    while (stream_ == nullptr) {
      if (provider_ == providers_->providers.size()) return nullptr;
      const registry::Provider& provider = *providers_->providers[provider_++];
      if (provider.runs_on(target_)) stream_ = provider.list(target_);
    }
    while (registry::KernelPtr kernel = stream_->next()) {
      if (!filter_ || filter_(kernel->metadata())) return kernel;
    }
    stream_ = nullptr;
  }
}

}  // namespace tilewright::engine
