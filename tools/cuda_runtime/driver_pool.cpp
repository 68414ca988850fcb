// Memory pools of the driver API, which are those of the runtime.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tools/cuda_runtime/driver_by_runtime.hpp"

namespace tilewright::cuda_runtime {
TILEWRIGHT_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return by_runtime([&] { return cudaMallocAsync(reinterpret_cast<void**>(address), bytes, stream); });
}
TILEWRIGHT_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                   CUstream stream) {
  return by_runtime([&] { return cudaMallocFromPoolAsync(reinterpret_cast<void**>(address), bytes, pool, stream); });
}
TILEWRIGHT_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return by_runtime([&] { return cudaFreeAsync(pointer_of(address), stream); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps*) {
  return by_runtime([&] { return cudaMemPoolCreate(pool, nullptr); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return by_runtime([&] { return cudaMemPoolDestroy(pool); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
  return by_runtime([&] { return cudaMemPoolTrimTo(pool, bytes); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc*, size_t count) {
  return by_runtime([&] { return cudaMemPoolSetAccess(pool, nullptr, count); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return by_runtime([&] { return cudaMemPoolSetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return by_runtime([&] { return cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}
TILEWRIGHT_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return by_runtime([&] { return cudaDeviceGetDefaultMemPool(pool, device); });
}
TILEWRIGHT_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return by_runtime([&] { return cudaDeviceGetMemPool(pool, device); });
}

}  // namespace tilewright::cuda_runtime
