// The kernel families that Tilewright ships: one provider each.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/registry/registry.hpp"

namespace tilewright::kernels {

std::unique_ptr<registry::Provider> make_sm90_gemm_provider();
std::unique_ptr<registry::Provider> make_sm80_gemm_provider();
std::unique_ptr<registry::Provider> make_simt_gemm_provider();
std::unique_ptr<registry::Provider> make_skinny_gemm_provider();
std::unique_ptr<registry::Provider> make_cuda_program_provider();
/// Offers no kernels where the library that translates MLIR is missing.
std::unique_ptr<registry::Provider> make_mlir_provider();
std::unique_ptr<registry::Provider> make_stem_conv_provider();
std::unique_ptr<registry::Provider> make_stem_wgrad_provider();
std::unique_ptr<registry::Provider> make_group_conv_provider();
std::unique_ptr<registry::Provider> make_group_wgrad_provider();
std::unique_ptr<registry::Provider> make_depthwise_conv_provider();
std::unique_ptr<registry::Provider> make_reduce_split_k_provider();
/// Offers kernels for contractions that copy operands and compute a GEMM of one of the families above.
std::unique_ptr<registry::Provider> make_permuted_gemm_provider();
/// Offers kernels for convolutions that copy tensors and compute a convolution of sm90_gemm or sm80_gemm.
std::unique_ptr<registry::Provider> make_repacked_conv_provider();

/// All providers, that of weight_gemm.hpp among them. simt_gemm, the last one of GEMMs, supports every valid GEMM;
/// reduce_split_k every valid reduction.
std::vector<registry::ProviderPtr> make_providers();

/// A registry with all providers and the operation weight_gemm, to which user-defined ones can be added.
std::shared_ptr<registry::Registry> make_registry();

}  // namespace tilewright::kernels
