// Queries of the driver API about kernels, modules and libraries, occupancy, and memory operations of streams.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "tools/cuda_runtime/driver_by_runtime.hpp"

namespace tilewright::cuda_runtime {
namespace {

template <class Handle>
void list_functions(Machine& machine, const void* module, Handle* handles, unsigned count) {
  require(handles != nullptr || count == 0);
  const std::vector<Function*> all = machine.module(module)->all_functions();
  for (std::size_t i = 0; i < std::min<std::size_t>(count, all.size()); ++i)
    handles[i] = reinterpret_cast<Handle>(all[i]);
}

/// The configuration of the runtime, as far as the functions of occupancy look at it: with the extents of the cluster,
/// for which `attribute` is the storage.
cudaLaunchConfig_t config_of(const CUlaunchConfig& given, cudaLaunchAttribute* attribute) {
  cudaLaunchConfig_t config{};
  config.gridDim = {given.gridDimX, given.gridDimY, given.gridDimZ};
  config.blockDim = {given.blockDimX, given.blockDimY, given.blockDimZ};
  config.dynamicSmemBytes = given.sharedMemBytes;
  config.attrs = attribute;
  for (unsigned i = 0; i < given.numAttrs; ++i) {
    if (given.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& cluster = given.attrs[i].value.clusterDim;
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = cluster.x;
    attribute->val.clusterDim.y = cluster.y;
    attribute->val.clusterDim.z = cluster.z;
    config.numAttrs = 1;
  }
  return config;
}

/// Whether the value in memory, `now`, ends the wait of cuStreamWaitValue() for `value`.
template <class Value>
bool is_reached(Value now, Value value, unsigned flags) {
  switch (flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<Value>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return static_cast<Value>(~(now | value)) != 0;
  }
}

template <class Value>
CUresult wait_for_value(CUstream stream, CUdeviceptr address, Value value, unsigned flags,
                        const char* function = __builtin_FUNCTION()) {
  return call_driver(
      [&](Machine& machine) {
        require(!machine.stream(stream)->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        if (!machine.memory()->find(address, sizeof(Value)))
          fail(CUDA_ERROR_INVALID_VALUE, fmt::format("{:#x} is no address of CUDA's memory", address));
        Value now = 0;
        std::memcpy(&now, pointer_of(address), sizeof(now));
        if (is_reached(now, value, flags)) return;
        fail(CUDA_ERROR_NOT_SUPPORTED,
             fmt::format("it waits for the value {} at {:#x}, which is {}; work runs when it is enqueued, so that the "
                         "value must be there by then",
                         value, address, now));
      },
      function);
}

template <class Value>
CUresult write_value(CUstream stream, CUdeviceptr address, Value value, const char* function = __builtin_FUNCTION()) {
  return call_driver(
      [&](Machine& machine) {
        for (std::size_t at = 0; at < sizeof(Value); at += 4) {
          std::uint32_t word = 0;
          std::memcpy(&word, reinterpret_cast<const std::byte*>(&value) + at, sizeof(word));
          machine.enqueue(machine.stream(stream), Fill{address + at, 0, 1, 1, word, sizeof(word)});
        }
      },
      function);
}

}  // namespace

// Kernels ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return by_runtime([&] { return cudaFuncGetParamInfo(function, index, offset, size); });
}
TILEWRIGHT_EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return call_driver([&](Machine& machine) {
    require(module != nullptr);
    *module = reinterpret_cast<CUmodule>(machine.function(function)->module);
  });
}
TILEWRIGHT_EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return call_driver([&](Machine& machine) {
    require(state != nullptr);
    machine.function(function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}
TILEWRIGHT_EXPORT CUresult cuFuncLoad(CUfunction function) {
  return call_driver([&](Machine& machine) { machine.kernel(machine.function(function)); });
}
TILEWRIGHT_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return by_runtime([&] { return cudaFuncGetParamInfo(kernel, index, offset, size); });
}
TILEWRIGHT_EXPORT CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}
TILEWRIGHT_EXPORT CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return cuFuncGetModule(reinterpret_cast<CUmodule*>(library), reinterpret_cast<CUfunction>(kernel));
}
TILEWRIGHT_EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}
TILEWRIGHT_EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return call_driver([&](Machine& machine) { machine.function(kernel); });
}

// Modules and libraries ----------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return call_driver([&](Machine& machine) { list_functions(machine, module, functions, count); });
}
TILEWRIGHT_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call_driver([&](Machine&) {
    require(mode != nullptr);
    *mode = CU_MODULE_LAZY_LOADING;
  });
}
TILEWRIGHT_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return call_driver([&](Machine& machine) { list_functions(machine, library, kernels, count); });
}
TILEWRIGHT_EXPORT CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return by_runtime([&] { return cudaLibraryGetKernelCount(count, reinterpret_cast<cudaLibrary_t>(library)); });
}
TILEWRIGHT_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                              const char* name) {
  return cuModuleGetGlobal(address, bytes, reinterpret_cast<CUmodule>(library), name);
}

// Occupancy ----------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                                int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
TILEWRIGHT_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                                     CUoccupancyB2DSize shared_of_block, size_t shared,
                                                                     int limit, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of_block, shared, limit);
}
TILEWRIGHT_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks,
                                                                   int threads) {
  return by_runtime([&] { return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads); });
}
TILEWRIGHT_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  return by_runtime([&] { return cudaOccupancyMaxPotentialClusterSize(size, function, nullptr); });
}
TILEWRIGHT_EXPORT CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                        const CUlaunchConfig* given) {
  return by_runtime([&] {
    cudaLaunchAttribute attribute{};
    const cudaLaunchConfig_t config = given == nullptr ? cudaLaunchConfig_t{} : config_of(*given, &attribute);
    return cudaOccupancyMaxActiveClusters(clusters, function, given == nullptr ? nullptr : &config);
  });
}

// Streams ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  return call_driver([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    require(callback != nullptr);
    require(!on->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    machine.wait_for(on);
    callback(stream, machine.sticky, data);
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                                                const CUlaunchAttributeValue* value) {
  return by_runtime([&] {
    return cudaStreamSetAttribute(stream, static_cast<cudaLaunchAttributeID>(attribute),
                                  reinterpret_cast<const cudaLaunchAttributeValue*>(value));
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                                                CUlaunchAttributeValue* value) {
  return by_runtime([&] {
    return cudaStreamGetAttribute(stream, static_cast<cudaLaunchAttributeID>(attribute),
                                  reinterpret_cast<cudaLaunchAttributeValue*>(value));
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return by_runtime([&] { return cudaStreamCopyAttributes(to, from); });
}
TILEWRIGHT_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                                       const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  return by_runtime([&] {
    return cudaStreamBeginCaptureToGraph(stream, graph, dependencies, nullptr, count,
                                         static_cast<cudaStreamCaptureMode>(mode));
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                                             const CUgraphEdgeData*, size_t count, unsigned flags) {
  return by_runtime([&] { return cudaStreamUpdateCaptureDependencies(stream, dependencies, nullptr, count, flags); });
}
TILEWRIGHT_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}

TILEWRIGHT_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  return write_value(stream, address, value);
}
TILEWRIGHT_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  return write_value(stream, address, value);
}
TILEWRIGHT_EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return wait_for_value(stream, address, value, flags);
}
TILEWRIGHT_EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return wait_for_value(stream, address, value, flags);
}

}  // namespace tilewright::cuda_runtime
