#include "tilewright/kernels/list.hpp"

#include "tilewright/kernels/weight_gemm.hpp"

namespace tilewright::kernels {

std::vector<registry::ProviderPtr> make_providers() {
  std::vector<registry::ProviderPtr> providers;
  providers.push_back(make_sm90_gemm_provider());
  providers.push_back(make_sm80_gemm_provider());
  providers.push_back(make_skinny_gemm_provider());
  providers.push_back(make_stem_conv_provider());
  providers.push_back(make_stem_wgrad_provider());
  providers.push_back(make_group_conv_provider());
  providers.push_back(make_group_wgrad_provider());
  providers.push_back(make_cuda_program_provider());
  providers.push_back(make_mlir_provider());
  providers.push_back(make_permuted_gemm_provider());
  providers.push_back(make_repacked_conv_provider());
  providers.push_back(make_simt_gemm_provider());
  providers.push_back(make_depthwise_conv_provider());
  providers.push_back(make_reduce_split_k_provider());
  providers.push_back(make_weight_gemm_provider());
  return providers;
}

std::shared_ptr<registry::Registry> make_registry() {
  auto registry = std::make_shared<registry::Registry>(make_providers());
  registry->add(weight_gemm_operation()).or_throw();
  return registry;
}

}  // namespace tilewright::kernels
