// Devices, versions and errors of the CUDA runtime.
#include <algorithm>
#include <cstring>
#include <map>

#include "tilewright/arch/limits.hpp"
#include "tools/cuda_runtime/device_attribute.hpp"
#include "tools/cuda_runtime/error_table.hpp"
#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {

thread_local cudaError_t last_error = cudaSuccess;
thread_local const char* driver_function = nullptr;
thread_local bool runtime_has_context = false;

namespace {

void require_device(int device) { require(device == 0, CUDA_ERROR_INVALID_DEVICE); }

std::map<cudaLimit, std::size_t>& limits() {
  static std::map<cudaLimit, std::size_t> all{{cudaLimitStackSize, std::size_t{1} << 20},
                                              {cudaLimitPrintfFifoSize, std::size_t{1} << 20},
                                              {cudaLimitMallocHeapSize, std::size_t{8} << 20},
                                              {cudaLimitDevRuntimeSyncDepth, 2},
                                              {cudaLimitDevRuntimePendingLaunchCount, 2048},
                                              {cudaLimitMaxL2FetchGranularity, 64},
                                              {cudaLimitPersistingL2CacheSize, 0}};
  return all;
}

template <class T>
cudaError_t store(T* to, T value) {
  return call([&](Machine&) {
    require(to != nullptr);
    *to = value;
  });
}

}  // namespace

// Devices ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaGetDeviceCount(int* count) { return store(count, 1); }
TILEWRIGHT_EXPORT cudaError_t cudaGetDevice(int* device) { return store(device, 0); }
TILEWRIGHT_EXPORT cudaError_t cudaSetDevice(int device) {
  return call([&](Machine&) { require_device(device); });
}
TILEWRIGHT_EXPORT cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
TILEWRIGHT_EXPORT cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return store(device, 0); }
TILEWRIGHT_EXPORT cudaError_t cudaSetDeviceFlags(unsigned) {
  return call([](Machine&) {});
}
TILEWRIGHT_EXPORT cudaError_t cudaGetDeviceFlags(unsigned* flags) { return store(flags, 0U); }
TILEWRIGHT_EXPORT cudaError_t cudaSetValidDevices(int*, int) {
  return call([](Machine&) {});
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&](Machine& machine) {
    require(value != nullptr);
    require_device(device);
    *value = device_attribute(machine, attribute);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Machine& machine) {
    require(properties != nullptr);
    require_device(device);
    const auto get = [&](cudaDeviceAttr attribute) { return device_attribute(machine, attribute); };
    const auto size = [&](cudaDeviceAttr attribute) { return static_cast<std::size_t>(get(attribute)); };
    cudaDeviceProp& all = *properties;
    std::memset(&all, 0, sizeof(all));
    const std::string& name = machine.properties.name;
    std::memcpy(all.name, name.c_str(), std::min(name.size() + 1, sizeof(all.name) - 1));
    all.uuid.bytes[0] = 1;
    all.totalGlobalMem = static_cast<std::size_t>(machine.settings.memory_bytes);
    all.sharedMemPerBlock = size(cudaDevAttrMaxSharedMemoryPerBlock);
    all.regsPerBlock = get(cudaDevAttrMaxRegistersPerBlock);
    all.warpSize = get(cudaDevAttrWarpSize);
    all.memPitch = size(cudaDevAttrMaxPitch);
    all.maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
    all.maxThreadsDim[0] = get(cudaDevAttrMaxBlockDimX);
    all.maxThreadsDim[1] = get(cudaDevAttrMaxBlockDimY);
    all.maxThreadsDim[2] = get(cudaDevAttrMaxBlockDimZ);
    all.maxGridSize[0] = get(cudaDevAttrMaxGridDimX);
    all.maxGridSize[1] = get(cudaDevAttrMaxGridDimY);
    all.maxGridSize[2] = get(cudaDevAttrMaxGridDimZ);
    all.totalConstMem = kTotalConstantBytes;
    all.major = get(cudaDevAttrComputeCapabilityMajor);
    all.minor = get(cudaDevAttrComputeCapabilityMinor);
    all.textureAlignment = size(cudaDevAttrTextureAlignment);
    all.texturePitchAlignment = size(cudaDevAttrTexturePitchAlignment);
    all.multiProcessorCount = get(cudaDevAttrMultiProcessorCount);
    all.canMapHostMemory = get(cudaDevAttrCanMapHostMemory);
    all.surfaceAlignment = size(cudaDevAttrSurfaceAlignment);
    all.concurrentKernels = get(cudaDevAttrConcurrentKernels);
    all.pciBusID = get(cudaDevAttrPciBusId);
    all.asyncEngineCount = get(cudaDevAttrAsyncEngineCount);
    all.unifiedAddressing = get(cudaDevAttrUnifiedAddressing);
    all.memoryBusWidth = get(cudaDevAttrGlobalMemoryBusWidth);
    all.l2CacheSize = get(cudaDevAttrL2CacheSize);
    all.persistingL2CacheMaxSize = get(cudaDevAttrMaxPersistingL2CacheSize);
    all.accessPolicyMaxWindowSize = get(cudaDevAttrMaxAccessPolicyWindowSize);
    all.maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
    all.streamPrioritiesSupported = get(cudaDevAttrStreamPrioritiesSupported);
    all.globalL1CacheSupported = get(cudaDevAttrGlobalL1CacheSupported);
    all.localL1CacheSupported = get(cudaDevAttrLocalL1CacheSupported);
    all.sharedMemPerMultiprocessor = size(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    all.regsPerMultiprocessor = get(cudaDevAttrMaxRegistersPerMultiprocessor);
    all.managedMemory = get(cudaDevAttrManagedMemory);
    all.concurrentManagedAccess = get(cudaDevAttrConcurrentManagedAccess);
    all.computePreemptionSupported = get(cudaDevAttrComputePreemptionSupported);
    all.canUseHostPointerForRegisteredMem = get(cudaDevAttrCanUseHostPointerForRegisteredMem);
    all.cooperativeLaunch = get(cudaDevAttrCooperativeLaunch);
    all.sharedMemPerBlockOptin = size(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    all.maxBlocksPerMultiProcessor = get(cudaDevAttrMaxBlocksPerMultiprocessor);
    all.reservedSharedMemPerBlock = size(cudaDevAttrReservedSharedMemoryPerBlock);
    all.hostRegisterSupported = get(cudaDevAttrHostRegisterSupported);
    all.memoryPoolsSupported = get(cudaDevAttrMemoryPoolsSupported);
    all.clusterLaunch = get(cudaDevAttrClusterLaunch);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call([&](Machine&) {
    require(text != nullptr && bytes > 0);
    require_device(device);
    std::snprintf(text, static_cast<std::size_t>(bytes), "0000:01:00.0");
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int* device, const char*) { return store(device, 0); }

TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Machine&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return store(can, 0); }

TILEWRIGHT_EXPORT cudaError_t cudaDeviceSynchronize() {
  return call([](Machine& machine) {
    machine.check_unsafe_call(false);
    machine.wait_for_all();
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceReset() {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  machine.reset();
  return cudaSuccess;
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return call([](Machine&) {});
}
TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return store(config, cudaFuncCachePreferNone);
}
TILEWRIGHT_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return call([](Machine&) {});
}
TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return store(config, cudaSharedMemBankSizeFourByte);
}
TILEWRIGHT_EXPORT cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([](Machine&) {});
}

/// Limits have no effect, as the emulator has its own; they can be read again.
TILEWRIGHT_EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call([&](Machine&) {
    require(limits().contains(limit));
    limits()[limit] = value;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call([&](Machine&) {
    const auto found = limits().find(limit);
    require(value != nullptr && found != limits().end());
    *value = found->second;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDriverGetVersion(int* version) { return store(version, CUDART_VERSION); }
TILEWRIGHT_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) { return store(version, CUDART_VERSION); }

TILEWRIGHT_EXPORT cudaError_t cudaProfilerStart() {
  return call([](Machine&) {});
}
TILEWRIGHT_EXPORT cudaError_t cudaProfilerStop() {
  return call([](Machine&) {});
}

// Errors -------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaPeekAtLastError() {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  return machine.sticky != CUDA_SUCCESS ? static_cast<cudaError_t>(machine.sticky) : last_error;
}

TILEWRIGHT_EXPORT cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

TILEWRIGHT_EXPORT const char* cudaGetErrorName(cudaError_t error) { return error_row(error).runtime_name; }
TILEWRIGHT_EXPORT const char* cudaGetErrorString(cudaError_t error) { return error_row(error).text; }

}  // namespace tilewright::cuda_runtime
