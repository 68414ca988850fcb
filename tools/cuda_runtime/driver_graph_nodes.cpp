// Nodes of graphs of the driver API, and the changes of executable graphs.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/cuda_runtime/driver_by_runtime.hpp"
#include "tools/cuda_runtime/graph_nodes.hpp"

namespace tilewright::cuda_runtime {
namespace {

CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, CUgraphNodeType type,
             auto&& make, const char* function = __builtin_FUNCTION()) {
  return by_runtime([&] { return add_node(node, graph, dependencies, count, type, make, function); }, function);
}

/// The launch of a kernel node. `parameters` is a CUDA_KERNEL_NODE_PARAMS, or the member `kernel` of CUgraphNodeParams,
/// which has the same members.
template <class Parameters>
KernelLaunch launch_of(Machine& machine, const Parameters& parameters) {
  runtime::LaunchConfig config;
  config.grid = {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ};
  config.block = {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ};
  config.dynamic_smem_bytes = parameters.sharedMemBytes;
  const void* const function = parameters.func != nullptr ? static_cast<const void*>(parameters.func) : parameters.kern;
  return machine.make_launch(machine.function(function), config, parameters.kernelParams, parameters.extra);
}

/// The fill of a memset node. `parameters` is a CUDA_MEMSET_NODE_PARAMS, or the member `memset` of CUgraphNodeParams.
template <class Parameters>
Fill fill_of(const Parameters& parameters) {
  return {parameters.dst,   parameters.pitch,      parameters.width, std::max<std::size_t>(parameters.height, 1),
          parameters.value, parameters.elementSize};
}

/// @throws ApiError for a null pointer
template <class Parameters>
const Parameters& checked(const Parameters* parameters) {
  if (parameters == nullptr) fail(CUDA_ERROR_INVALID_VALUE, "the parameters of the node are a null pointer");
  return *parameters;
}

Work work_of(Machine& machine, CUgraphNodeParams& parameters) {
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return launch_of(machine, parameters.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_of(machine, &parameters.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill_of(parameters.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      return HostCall{parameters.host.fn, parameters.host.userData};
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return ChildGraph{machine.graph(parameters.graph.graph)->clone()};
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return Nothing{};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventWait{machine.event(parameters.eventWait.event)};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventRecord{machine.event(parameters.eventRecord.event)};
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      Allocate allocation = machine.graph_allocation(parameters.alloc.bytesize);
      parameters.alloc.dptr = allocation.address;
      return allocation;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return Free{parameters.free.dptr};
    default:
      machine.note_unsupported("a graph node of a semaphore, of a batch of memory operations or of a condition");
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

void set_work(Machine& machine, Node* node, CUgraphNodeParams* parameters) {
  check_settable(node, checked(parameters).type);
  set_work(node, work_of(machine, *parameters));
}

}  // namespace

// Nodes --------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_KERNEL,
             [&](Machine& machine) { return launch_of(machine, checked(parameters)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                size_t count, const CUDA_MEMCPY3D* parameters, CUcontext) {
  return add(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY,
             [&](Machine& machine) { return copy_of(machine, parameters); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return add(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET,
             [&](Machine&) { return fill_of(checked(parameters)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                              size_t count, const CUDA_HOST_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST, [&](Machine&) {
    return HostCall{checked(parameters).fn, checked(parameters).userData};
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                     size_t count, CUevent event) {
  return by_runtime([&] { return cudaGraphAddEventRecordNode(node, graph, dependencies, count, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                   size_t count, CUevent event) {
  return by_runtime([&] { return cudaGraphAddEventWaitNode(node, graph, dependencies, count, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                  size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](Machine& machine) {
    Allocate allocation = machine.graph_allocation(checked(parameters).bytesize);
    parameters->dptr = allocation.address;
    return allocation;
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                 size_t count, CUdeviceptr address) {
  return by_runtime([&] { return cudaGraphAddMemFreeNode(node, graph, dependencies, count, pointer_of(address)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData*, size_t count, CUgraphNodeParams* parameters) {
  const CUgraphNodeType type = parameters != nullptr ? parameters->type : CU_GRAPH_NODE_TYPE_EMPTY;
  return add(node, graph, dependencies, count, type, [&](Machine& machine) {
    checked(parameters);
    return work_of(machine, *parameters);
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphDestroyNode(CUgraphNode node) {
  return by_runtime([&] { return cudaGraphDestroyNode(node); });
}

// Edges --------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return by_runtime([&] { return cudaGraphGetRootNodes(graph, nodes, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                                           size_t* count) {
  return by_runtime(
      [&] { return cudaGraphGetEdges(graph, from, to, reinterpret_cast<cudaGraphEdgeData*>(edges), count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                                      size_t* count) {
  return by_runtime(
      [&] { return cudaGraphNodeGetDependencies(node, nodes, reinterpret_cast<cudaGraphEdgeData*>(edges), count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                                        size_t* count) {
  return by_runtime(
      [&] { return cudaGraphNodeGetDependentNodes(node, nodes, reinterpret_cast<cudaGraphEdgeData*>(edges), count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                  const CUgraphEdgeData*, size_t count) {
  return by_runtime([&] { return cudaGraphAddDependencies(graph, from, to, nullptr, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                     const CUgraphEdgeData*, size_t count) {
  return by_runtime([&] { return cudaGraphRemoveDependencies(graph, from, to, nullptr, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  return by_runtime([&] { return cudaGraphNodeFindInClone(node, original, clone); });
}

// Parameters of nodes ------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  return by_runtime([&] {
    cudaKernelNodeParams of_runtime{};
    const cudaError_t code = cudaGraphKernelNodeGetParams(node, &of_runtime);
    if (code != cudaSuccess) return code;
    return call([&](Machine&) {
      checked(parameters);
      *parameters = {};
      parameters->func = reinterpret_cast<CUfunction>(work_of<KernelLaunch>(node_of(node)).function);
      parameters->gridDimX = of_runtime.gridDim.x;
      parameters->gridDimY = of_runtime.gridDim.y;
      parameters->gridDimZ = of_runtime.gridDim.z;
      parameters->blockDimX = of_runtime.blockDim.x;
      parameters->blockDimY = of_runtime.blockDim.y;
      parameters->blockDimZ = of_runtime.blockDim.z;
      parameters->sharedMemBytes = of_runtime.sharedMemBytes;
      parameters->kernelParams = of_runtime.kernelParams;
    });
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call_driver([&](Machine& machine) { set_launch(node_of(node), launch_of(machine, checked(parameters))); });
}
TILEWRIGHT_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                                         const CUlaunchAttributeValue* value) {
  return by_runtime([&] {
    return cudaGraphKernelNodeSetAttribute(node, static_cast<cudaLaunchAttributeID>(attribute),
                                           reinterpret_cast<const cudaLaunchAttributeValue*>(value));
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                                         CUlaunchAttributeValue* value) {
  return by_runtime([&] {
    return cudaGraphKernelNodeGetAttribute(node, static_cast<cudaLaunchAttributeID>(attribute),
                                           reinterpret_cast<cudaLaunchAttributeValue*>(value));
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return by_runtime([&] { return cudaGraphKernelNodeCopyAttributes(to, from); });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* parameters) {
  return call_driver([&](Machine&) {
    const Copy& copy = work_of<Copy>(node_of(node));
    checked(parameters);
    *parameters = {};
    const auto type_of = [&](bool is_device, Copy::Kind kind) {
      return kind == Copy::Kind::inferred ? CU_MEMORYTYPE_UNIFIED
             : is_device                  ? CU_MEMORYTYPE_DEVICE
                                          : CU_MEMORYTYPE_HOST;
    };
    parameters->srcMemoryType =
        type_of(copy.kind == Copy::Kind::device_to_host || copy.kind == Copy::Kind::device_to_device, copy.kind);
    parameters->dstMemoryType =
        type_of(copy.kind == Copy::Kind::host_to_device || copy.kind == Copy::Kind::device_to_device, copy.kind);
    parameters->srcHost = copy.from;
    parameters->srcDevice = address_of(copy.from);
    parameters->srcPitch = copy.from_pitch;
    parameters->srcHeight = copy.from_height;
    parameters->dstHost = copy.to;
    parameters->dstDevice = address_of(copy.to);
    parameters->dstPitch = copy.to_pitch;
    parameters->dstHeight = copy.to_height;
    parameters->WidthInBytes = copy.width;
    parameters->Height = copy.height;
    parameters->Depth = copy.depth;
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
  return call_driver([&](Machine& machine) { work_of<Copy>(node_of(node)) = copy_of(machine, parameters); });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* parameters) {
  return call_driver([&](Machine&) {
    const Fill& fill = work_of<Fill>(node_of(node));
    checked(parameters);
    *parameters = {fill.to, fill.pitch, fill.value, static_cast<unsigned>(fill.element_bytes), fill.width, fill.height};
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters) {
  return call_driver([&](Machine&) { work_of<Fill>(node_of(node)) = fill_of(checked(parameters)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters) {
  return call_driver([&](Machine&) {
    const HostCall& host = work_of<HostCall>(node_of(node));
    checked(parameters);
    *parameters = {host.function, host.data};
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  return call_driver([&](Machine&) {
    work_of<HostCall>(node_of(node)) = HostCall{checked(parameters).fn, checked(parameters).userData};
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return by_runtime([&] { return cudaGraphChildGraphNodeGetGraph(node, graph); });
}
TILEWRIGHT_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return by_runtime([&] { return cudaGraphEventRecordNodeGetEvent(node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return by_runtime([&] { return cudaGraphEventRecordNodeSetEvent(node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return by_runtime([&] { return cudaGraphEventWaitNodeGetEvent(node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return by_runtime([&] { return cudaGraphEventWaitNodeSetEvent(node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return call_driver([&](Machine&) {
    const Allocate& allocation = work_of<Allocate>(node_of(node));
    checked(parameters);
    *parameters = {};
    parameters->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters->bytesize = allocation.bytes;
    parameters->dptr = allocation.address;
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return by_runtime([&] { return cudaGraphMemFreeNodeGetParams(node, address); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  return call_driver([&](Machine& machine) { set_work(machine, node_of(node), parameters); });
}

// Executable graphs --------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph,
                                             CUgraphExecUpdateResultInfo* result) {
  return by_runtime(
      [&] { return cudaGraphExecUpdate(executable, graph, reinterpret_cast<cudaGraphExecUpdateResultInfo*>(result)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec executable, cuuint64_t* flags) {
  return by_runtime([&] { return cudaGraphExecGetFlags(executable, reinterpret_cast<unsigned long long*>(flags)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call_driver([&](Machine& machine) {
    set_launch(node_in(machine, executable, node), launch_of(machine, checked(parameters)));
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_MEMCPY3D* parameters, CUcontext) {
  return call_driver(
      [&](Machine& machine) { work_of<Copy>(node_in(machine, executable, node)) = copy_of(machine, parameters); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return call_driver(
      [&](Machine& machine) { work_of<Fill>(node_in(machine, executable, node)) = fill_of(checked(parameters)); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                        const CUDA_HOST_NODE_PARAMS* parameters) {
  return call_driver([&](Machine& machine) {
    work_of<HostCall>(node_in(machine, executable, node)) =
        HostCall{checked(parameters).fn, checked(parameters).userData};
  });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return by_runtime([&] { return cudaGraphExecChildGraphNodeSetParams(executable, node, child); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return by_runtime([&] { return cudaGraphExecEventRecordNodeSetEvent(executable, node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return by_runtime([&] { return cudaGraphExecEventWaitNodeSetEvent(executable, node, event); });
}
TILEWRIGHT_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                    CUgraphNodeParams* parameters) {
  return call_driver([&](Machine& machine) { set_work(machine, node_in(machine, executable, node), parameters); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
  return by_runtime([&] { return cudaGraphNodeSetEnabled(executable, node, enabled); });
}
TILEWRIGHT_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned* enabled) {
  return by_runtime([&] { return cudaGraphNodeGetEnabled(executable, node, enabled); });
}

// User objects -------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned references,
                                              unsigned flags) {
  return by_runtime([&] { return cudaUserObjectCreate(object, data, destroy, references, flags); });
}
TILEWRIGHT_EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  return by_runtime([&] { return cudaUserObjectRetain(object, count); });
}
TILEWRIGHT_EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  return by_runtime([&] { return cudaUserObjectRelease(object, count); });
}
TILEWRIGHT_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  return by_runtime([&] { return cudaGraphRetainUserObject(graph, object, count, flags); });
}
TILEWRIGHT_EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  return by_runtime([&] { return cudaGraphReleaseUserObject(graph, object, count); });
}

}  // namespace tilewright::cuda_runtime
