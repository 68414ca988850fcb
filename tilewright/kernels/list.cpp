#include "tilewright/kernels/list.hpp"

namespace tilewright::kernels {

std::vector<std::unique_ptr<registry::Provider>> make_providers() {
  std::vector<std::unique_ptr<registry::Provider>> providers;
  providers.push_back(make_sm90_gemm_provider());
  providers.push_back(make_sm80_gemm_provider());
  providers.push_back(make_simt_gemm_provider());
  return providers;
}

}  // namespace tilewright::kernels
