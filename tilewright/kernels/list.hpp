// The kernel families that Tilewright ships: one provider each.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

std::unique_ptr<registry::Provider> make_sm90_gemm_provider();
std::unique_ptr<registry::Provider> make_sm80_gemm_provider();
std::unique_ptr<registry::Provider> make_simt_gemm_provider();

/// All of them; the one that serves every valid problem last.
std::vector<std::unique_ptr<registry::Provider>> make_providers();

}  // namespace tilewright::kernels
