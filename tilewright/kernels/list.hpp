// The kernel families that Tilewright ships: one provider each.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/registry/registry.hpp"

namespace tilewright::kernels {

std::unique_ptr<registry::Provider> make_sm90_gemm_provider();
std::unique_ptr<registry::Provider> make_sm80_gemm_provider();
std::unique_ptr<registry::Provider> make_simt_gemm_provider();

/// All providers. The last one, simt_gemm, supports every valid GEMM.
std::vector<registry::ProviderPtr> make_providers();

/// A registry with all providers, to which user-defined ones can be added.
std::shared_ptr<registry::Registry> make_registry();

}  // namespace tilewright::kernels
