// Stream capture, graphs, limits and the profiler of the driver API, which are those of the runtime.
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/cuda_runtime/driver_by_runtime.hpp"

namespace tilewright::cuda_runtime {
// Streams and capture ------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return by_runtime([&] { return cudaStreamGetId(stream, id); });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return by_runtime([&] { return cudaStreamGetFlags(stream, flags); });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return by_runtime([&] { return cudaStreamGetPriority(stream, priority); });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return by_runtime([&] { return cudaStreamGetDevice(stream, device); });
}
TILEWRIGHT_EXPORT CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return by_runtime([&] { return cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)); });
}
TILEWRIGHT_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return by_runtime([&] { return cudaStreamEndCapture(stream, graph); });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                                     CUgraph* graph, const CUgraphNode** dependencies,
                                                     const CUgraphEdgeData** edges, size_t* count) {
  return by_runtime([&] {
    return cudaStreamGetCaptureInfo(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status),
                                    reinterpret_cast<unsigned long long*>(id), graph, dependencies,
                                    reinterpret_cast<const cudaGraphEdgeData**>(edges), count);
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                                     CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
TILEWRIGHT_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return by_runtime(
      [&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)); });
}

// Graphs -------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  return by_runtime([&] { return cudaGraphCreate(graph, flags); });
}
TILEWRIGHT_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  return by_runtime([&] { return cudaGraphDestroy(graph); });
}
TILEWRIGHT_EXPORT CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  return by_runtime([&] { return cudaGraphClone(clone, graph); });
}
TILEWRIGHT_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                       unsigned long long flags) {
  return by_runtime([&] { return cudaGraphInstantiate(executable, graph, flags); });
}
TILEWRIGHT_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                                        CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return cuGraphInstantiateWithFlags(executable, graph, 0);
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return cuGraphInstantiateWithFlags(executable, graph, parameters->flags);
}
TILEWRIGHT_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return by_runtime([&] { return cudaGraphExecDestroy(executable); });
}
TILEWRIGHT_EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  return by_runtime([&] { return cudaGraphUpload(executable, stream); });
}
TILEWRIGHT_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return by_runtime([&] { return cudaGraphLaunch(executable, stream); });
}
TILEWRIGHT_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return by_runtime([&] { return cudaGraphGetNodes(graph, nodes, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return by_runtime([&] { return cudaGraphNodeGetType(node, reinterpret_cast<cudaGraphNodeType*>(type)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                               size_t count) {
  return by_runtime([&] { return cudaGraphAddEmptyNode(node, graph, dependencies, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                    size_t count, CUgraph child) {
  return by_runtime([&] { return cudaGraphAddChildGraphNode(node, graph, dependencies, count, child); });
}
TILEWRIGHT_EXPORT CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  return by_runtime([&] { return cudaGraphDebugDotPrint(graph, path, flags); });
}

// Limits, pools, occupancy and the profiler --------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return by_runtime([&] { return cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value); });
}
TILEWRIGHT_EXPORT CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return by_runtime([&] { return cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)); });
}
TILEWRIGHT_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation*, CUmemAllocationType) {
  return by_runtime([&] { return cudaDeviceGetDefaultMemPool(pool, 0); });
}
TILEWRIGHT_EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation*) {
  return by_runtime([&] { return cudaMemPoolGetAccess(reinterpret_cast<cudaMemAccessFlags*>(flags), pool, nullptr); });
}
TILEWRIGHT_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                                            CUoccupancyB2DSize shared_of_block, size_t shared,
                                                            int limit) {
  return by_runtime([&] {
    return call([&](Machine& machine) {
      require(grid != nullptr && block != nullptr);
      Function* const function = machine.function(handle);
      const std::uint32_t maximum = machine.kernel(function).program().maximum_block;
      const int most = std::min(limit <= 0 ? 1024 : limit, maximum == 0 ? 1024 : static_cast<int>(maximum));
      int best = 0;
      for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
        const std::size_t bytes = shared_of_block == nullptr ? shared : shared_of_block(threads);
        const int blocks = machine.max_blocks_per_multiprocessor(function, threads, bytes);
        if (blocks * threads <= best) continue;
        best = blocks * threads;
        *block = threads;
        *grid = blocks * machine.properties.sm_count;
      }
      require(best > 0);
    });
  });
}
TILEWRIGHT_EXPORT CUresult cuProfilerStart() { return by_runtime(cudaProfilerStart); }
TILEWRIGHT_EXPORT CUresult cuProfilerStop() { return by_runtime(cudaProfilerStop); }

}  // namespace tilewright::cuda_runtime
