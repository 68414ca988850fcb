// Parameters of the nodes of graphs that name events, child graphs, memory or variables of the program.
#include "tools/cuda_runtime/graph_nodes.hpp"

namespace tilewright::cuda_runtime {
namespace {

/// A copy to a variable of the program if `to_symbol`, else one from it. `memory` is the other side.
Copy copy_of_symbol(Machine& machine, bool to_symbol, const void* symbol, const void* memory, std::size_t bytes,
                    std::size_t offset, cudaMemcpyKind kind) {
  auto* const variable = symbol_address(machine, symbol, bytes, offset);
  auto* const other = static_cast<std::byte*>(const_cast<void*>(memory));
  Copy copy;
  copy.to = to_symbol ? variable : other;
  copy.from = to_symbol ? other : variable;
  copy.width = bytes;
  copy.kind = kind_of(kind);
  return copy;
}

/// The handle of an event that a node names.
cudaEvent_t handle_of_event(Event* event) { return reinterpret_cast<cudaEvent_t>(event); }

}  // namespace

TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                             const cudaGraphNode_t* dependencies, size_t count,
                                                             const void* symbol, const void* from, size_t bytes,
                                                             size_t offset, cudaMemcpyKind kind) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](Machine& machine) { return copy_of_symbol(machine, true, symbol, from, bytes, offset, kind); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                               const cudaGraphNode_t* dependencies, size_t count,
                                                               void* to, const void* symbol, size_t bytes,
                                                               size_t offset, cudaMemcpyKind kind) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](Machine& machine) { return copy_of_symbol(machine, false, symbol, to, bytes, offset, kind); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                                   const void* from, size_t bytes, size_t offset,
                                                                   cudaMemcpyKind kind) {
  return call([&](Machine& machine) {
    work_of<Copy>(node_of(node)) = copy_of_symbol(machine, true, symbol, from, bytes, offset, kind);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol,
                                                                     size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return call([&](Machine& machine) {
    work_of<Copy>(node_of(node)) = copy_of_symbol(machine, false, symbol, to, bytes, offset, kind);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                                       const void* symbol, const void* from,
                                                                       size_t bytes, size_t offset,
                                                                       cudaMemcpyKind kind) {
  return call([&](Machine& machine) {
    work_of<Copy>(node_in(machine, executable, node)) =
        copy_of_symbol(machine, true, symbol, from, bytes, offset, kind);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable,
                                                                         cudaGraphNode_t node, void* to,
                                                                         const void* symbol, size_t bytes,
                                                                         size_t offset, cudaMemcpyKind kind) {
  return call([&](Machine& machine) {
    work_of<Copy>(node_in(machine, executable, node)) = copy_of_symbol(machine, false, symbol, to, bytes, offset, kind);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  return call([&](Machine&) {
    const Copy& copy = work_of<Copy>(node_of(node));
    require(parameters != nullptr);
    *parameters = {};
    parameters->srcPtr = {const_cast<std::byte*>(copy.from), copy.from_pitch, copy.width, copy.from_height};
    parameters->dstPtr = {copy.to, copy.to_pitch, copy.width, copy.to_height};
    parameters->extent = {copy.width, copy.height, copy.depth};
    parameters->kind = static_cast<cudaMemcpyKind>(copy.kind);
  });
}

/// The handle stays valid as long as the node's graph does, and must not be destroyed, as on a GPU.
TILEWRIGHT_EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return call([&](Machine& machine) {
    require(graph != nullptr);
    *graph = machine.keep(work_of<ChildGraph>(node_of(node)).graph);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                                   cudaGraph_t child) {
  return call([&](Machine& machine) { set_child(node_in(machine, executable, node), *machine.graph(child)); });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return call([&](Machine&) {
    require(event != nullptr);
    *event = handle_of_event(work_of<EventRecord>(node_of(node)).event);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return call([&](Machine& machine) { work_of<EventRecord>(node_of(node)).event = machine.event(event); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return call([&](Machine&) {
    require(event != nullptr);
    *event = handle_of_event(work_of<EventWait>(node_of(node)).event);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return call([&](Machine& machine) { work_of<EventWait>(node_of(node)).event = machine.event(event); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                                   cudaEvent_t event) {
  return call(
      [&](Machine& machine) { work_of<EventRecord>(node_in(machine, executable, node)).event = machine.event(event); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                                 cudaEvent_t event) {
  return call(
      [&](Machine& machine) { work_of<EventWait>(node_in(machine, executable, node)).event = machine.event(event); });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* parameters) {
  return call([&](Machine&) {
    const Allocate& allocation = work_of<Allocate>(node_of(node));
    require(parameters != nullptr);
    *parameters = {};
    parameters->poolProps.allocType = cudaMemAllocationTypePinned;
    parameters->poolProps.location.type = cudaMemLocationTypeDevice;
    parameters->bytesize = allocation.bytes;
    parameters->dptr = reinterpret_cast<void*>(allocation.address);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address) {
  return call([&](Machine&) {
    require(address != nullptr);
    *static_cast<CUdeviceptr*>(address) = work_of<Free>(node_of(node)).address;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
  return call([&](Machine& machine) {
    require(flags != nullptr);
    *flags = machine.executable(executable).flags;
  });
}

}  // namespace tilewright::cuda_runtime
