// Libraries of kernels of the CUDA runtime (cudaLibraryLoadData()), which are those of the driver.
#include <algorithm>

#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {
namespace {

cudaError_t runtime_code(CUresult code) {
  if (code != CUDA_SUCCESS) last_error = static_cast<cudaError_t>(code);
  return static_cast<cudaError_t>(code);
}

CUlibrary driver_handle(cudaLibrary_t library) { return reinterpret_cast<CUlibrary>(library); }

}  // namespace

TILEWRIGHT_EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**,
                                                  unsigned, cudaLibraryOption*, void**, unsigned) {
  return runtime_code(
      cuLibraryLoadData(reinterpret_cast<CUlibrary*>(library), image, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption*, void**,
                                                      unsigned, cudaLibraryOption*, void**, unsigned) {
  return runtime_code(
      cuLibraryLoadFromFile(reinterpret_cast<CUlibrary*>(library), path, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return runtime_code(cuLibraryUnload(driver_handle(library)));
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return runtime_code(cuLibraryGetKernel(reinterpret_cast<CUkernel*>(kernel), driver_handle(library), name));
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                                                   const char* name) {
  return call([&](Machine& machine) {
    const auto [begin, size] = machine.module(library)->variable(name);
    if (address != nullptr) *address = reinterpret_cast<void*>(begin);
    if (bytes != nullptr) *bytes = size;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return call(
      [&](Machine& machine) { *count = static_cast<unsigned>(machine.module(library)->all_functions().size()); });
}
TILEWRIGHT_EXPORT cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                                          cudaLibrary_t library) {
  return call([&](Machine& machine) {
    const std::vector<Function*> all = machine.module(library)->all_functions();
    for (std::size_t i = 0; i < std::min<std::size_t>(count, all.size()); ++i)
      kernels[i] = reinterpret_cast<cudaKernel_t>(all[i]);
  });
}

}  // namespace tilewright::cuda_runtime
