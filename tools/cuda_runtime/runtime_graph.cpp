// Graphs of the CUDA runtime. A launch of a graph runs its nodes in an order that their dependencies allow.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tools/cuda_runtime/graph_nodes.hpp"

namespace tilewright::cuda_runtime {
namespace {

KernelLaunch launch_of(Machine& machine, const cudaKernelNodeParams& parameters) {
  runtime::LaunchConfig config;
  config.grid = {parameters.gridDim.x, parameters.gridDim.y, parameters.gridDim.z};
  config.block = {parameters.blockDim.x, parameters.blockDim.y, parameters.blockDim.z};
  config.dynamic_smem_bytes = parameters.sharedMemBytes;
  return machine.make_launch(function_of(machine, parameters.func), config, parameters.kernelParams, parameters.extra);
}

Fill fill_of(const cudaMemsetParams& parameters) {
  return {address_of(parameters.dst), parameters.pitch,
          parameters.width,           std::max<std::size_t>(parameters.height, 1),
          parameters.value,           parameters.elementSize};
}

Copy copy_of(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Copy copy;
  copy.to = static_cast<std::byte*>(to);
  copy.from = static_cast<const std::byte*>(from);
  copy.width = bytes;
  copy.kind = kind_of(kind);
  return copy;
}

void list(const std::vector<Node*>& nodes, cudaGraphNode_t* handles, std::size_t* count) {
  require(count != nullptr);
  if (handles != nullptr) {
    for (std::size_t i = 0; i < *count; ++i)
      handles[i] = i < nodes.size() ? reinterpret_cast<cudaGraphNode_t>(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
}

/// An object of the program that graphs keep alive.
struct UserObject {
  void* data = nullptr;
  cudaHostFn_t destroy = nullptr;
  std::uint64_t references = 0;
};

void release(UserObject* object, std::uint64_t count) {
  require(object != nullptr && count <= object->references);
  object->references -= count;
  if (object->references != 0) return;
  object->destroy(object->data);
  delete object;
}

/// The references to user objects that a graph or an executable graph holds, by its handle.
std::map<const void*, std::map<UserObject*, std::uint64_t>> held_objects;

void hold_objects_of(const void* graph, const void* other) {
  const auto found = held_objects.find(other);
  if (found == held_objects.end()) return;
  const std::map<UserObject*, std::uint64_t> objects = found->second;
  for (const auto& [object, count] : objects) object->references += count;
  held_objects[graph] = objects;
}

void release_objects_of(const void* graph) {
  const auto found = held_objects.find(graph);
  if (found == held_objects.end()) return;
  const std::map<UserObject*, std::uint64_t> objects = std::move(found->second);
  held_objects.erase(found);
  for (const auto& [object, count] : objects) release(object, count);
}

/// The nodes of a cloned graph, by the nodes that they were made of.
std::map<cudaGraph_t, std::map<const Node*, Node*>> nodes_of_clones;

/// The work of a node that is described by the parameters for any type. @throws ApiError
Work work_of(Machine& machine, cudaGraphNodeParams& parameters) {
  switch (parameters.type) {
    case cudaGraphNodeTypeKernel: {
      cudaKernelNodeParams kernel{};
      kernel.func = parameters.kernel.func;
      kernel.gridDim = parameters.kernel.gridDim;
      kernel.blockDim = parameters.kernel.blockDim;
      kernel.sharedMemBytes = parameters.kernel.sharedMemBytes;
      kernel.kernelParams = parameters.kernel.kernelParams;
      kernel.extra = parameters.kernel.extra;
      return launch_of(machine, kernel);
    }
    case cudaGraphNodeTypeMemcpy:
      return copy_of(machine, parameters.memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& fill = parameters.memset;
      return Fill{address_of(fill.dst), fill.pitch,      fill.width, std::max<std::size_t>(fill.height, 1),
                  fill.value,           fill.elementSize};
    }
    case cudaGraphNodeTypeHost:
      return HostCall{parameters.host.fn, parameters.host.userData};
    case cudaGraphNodeTypeGraph:
      return ChildGraph{machine.graph(parameters.graph.graph)->clone()};
    case cudaGraphNodeTypeEmpty:
      return Nothing{};
    case cudaGraphNodeTypeWaitEvent:
      return EventWait{machine.event(parameters.eventWait.event)};
    case cudaGraphNodeTypeEventRecord:
      return EventRecord{machine.event(parameters.eventRecord.event)};
    case cudaGraphNodeTypeMemAlloc: {
      Allocate allocation = machine.graph_allocation(parameters.alloc.bytesize);
      parameters.alloc.dptr = reinterpret_cast<void*>(allocation.address);
      return allocation;
    }
    case cudaGraphNodeTypeMemFree:
      return Free{address_of(parameters.free.dptr)};
    default:
      machine.note_unsupported("cudaGraphAddNode of a semaphore or a conditional node");
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

void set_work(Machine& machine, Node* node, cudaGraphNodeParams* parameters) {
  require(parameters != nullptr);
  check_settable(node, static_cast<CUgraphNodeType>(parameters->type));
  set_work(node, work_of(machine, *parameters));
}

std::string_view name_of(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "CHILD GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "MEM ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "MEM FREE";
    default:
      return "NODE";
  }
}

/// Whether the graphs have the same types of nodes, in the order of their creation, and the same edges.
bool have_same_topology(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  std::map<const Node*, const Node*> partners;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) partners[a.nodes[i].get()] = b.nodes[i].get();
  return std::ranges::equal(a.nodes, b.nodes, [&](const auto& of_a, const auto& of_b) {
    std::set<const Node*> expected;
    for (const Node* const each : of_a->dependencies) expected.insert(partners[each]);
    return of_a->type == of_b->type &&
           expected == std::set<const Node*>(of_b->dependencies.begin(), of_b->dependencies.end());
  });
}

std::unique_ptr<ExecutableGraph> instantiate(const Graph& graph) {
  auto executable = std::make_unique<ExecutableGraph>();
  executable->graph = graph.clone(&executable->copies);
  for (const auto& node : graph.nodes) executable->originals.push_back(node.get());
  static_cast<void>(graph.in_order());  // refuses a cycle
  return executable;
}

}  // namespace

void set_child(Node* node, const Graph& child) {
  ChildGraph& work = work_of<ChildGraph>(node);
  if (!have_same_topology(*work.graph, child))
    fail(CUDA_ERROR_INVALID_VALUE, "the child graph has other types of nodes or other edges");
  work.graph = child.clone();
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return call([&](Machine& machine) { *graph = machine.keep(std::make_shared<Graph>()); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&](Machine& machine) {
    machine.destroy(graph);
    nodes_of_clones.erase(graph);
    release_objects_of(graph);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return call([&](Machine& machine) {
    std::map<const Node*, Node*> copies;
    *clone = machine.keep(machine.graph(graph)->clone(&copies));
    nodes_of_clones[*clone] = std::move(copies);
    hold_objects_of(*clone, graph);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                                       cudaGraph_t clone) {
  return call([&](Machine&) {
    const auto found = nodes_of_clones.find(clone);
    require(node != nullptr && found != nodes_of_clones.end());
    const auto copy = found->second.find(node_of(original));
    require(copy != found->second.end());
    *node = reinterpret_cast<cudaGraphNode_t>(copy->second);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return call([&](Machine& machine) {
    std::map<const Node*, std::size_t> numbers;
    std::ofstream file(path);
    file << "digraph dot {\n";
    for (const auto& node : machine.graph(graph)->nodes) {
      const std::size_t number = numbers.size();
      numbers[node.get()] = number;
      const auto* const launch = std::get_if<KernelLaunch>(&node->work);
      file << fmt::format("  node_{} [label=\"{} {}{}{}\"];\n", number, number, name_of(node->type),
                          launch != nullptr ? " " : "", launch != nullptr ? launch->function->name : "");
    }
    for (const auto& node : machine.graph(graph)->nodes) {
      for (const Node* const each : node->dependencies)
        file << fmt::format("  node_{} -> node_{};\n", numbers[each], numbers[node.get()]);
    }
    file << "}\n";
    require(static_cast<bool>(file.flush()), CUDA_ERROR_OPERATING_SYSTEM);
  });
}

// User objects -------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                                   unsigned references, unsigned flags) {
  return call([&](Machine&) {
    require(object != nullptr && destroy != nullptr && references != 0 && flags == cudaUserObjectNoDestructorSync);
    *object = reinterpret_cast<cudaUserObject_t>(new UserObject{data, destroy, references});
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return call([&](Machine&) {
    require(object != nullptr && count != 0);
    reinterpret_cast<UserObject*>(object)->references += count;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return call([&](Machine&) { release(reinterpret_cast<UserObject*>(object), count); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count,
                                                        unsigned flags) {
  return call([&](Machine& machine) {
    machine.graph(graph);
    auto* const object = reinterpret_cast<UserObject*>(handle);
    require(object != nullptr && count != 0);
    // With the flag, the graph takes over references of the caller.
    if ((flags & cudaGraphUserObjectMove) == 0) object->references += count;
    held_objects[graph][object] += count;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count) {
  return call([&](Machine& machine) {
    machine.graph(graph);
    auto* const object = reinterpret_cast<UserObject*>(handle);
    std::uint64_t& held = held_objects[graph][object];
    require(count <= held);
    held -= count;
    if (held == 0) held_objects[graph].erase(object);
    release(object, count);
  });
}

// Nodes --------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies, size_t count,
                                                     const cudaKernelNodeParams* parameters) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_KERNEL,
                  [&](Machine& machine) { return launch_of(machine, *parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies, size_t count,
                                                     const cudaMemcpy3DParms* parameters) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](Machine& machine) { return copy_of(machine, *parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                                       const cudaGraphNode_t* dependencies, size_t count, void* to,
                                                       const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](Machine&) { return copy_of(to, from, bytes, kind); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies, size_t count,
                                                     const cudaMemsetParams* parameters) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&](Machine&) { return fill_of(*parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                   const cudaGraphNode_t* dependencies, size_t count,
                                                   const cudaHostNodeParams* parameters) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST, [&](Machine&) {
    return HostCall{parameters->fn, parameters->userData};
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                    const cudaGraphNode_t* dependencies, size_t count) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY, [](Machine&) { return Nothing{}; });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                         const cudaGraphNode_t* dependencies, size_t count,
                                                         cudaGraph_t child) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH,
                  [&](Machine& machine) { return ChildGraph{machine.graph(child)->clone()}; });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                          const cudaGraphNode_t* dependencies, size_t count,
                                                          cudaEvent_t event) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                  [&](Machine& machine) { return EventRecord{machine.event(event)}; });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                        const cudaGraphNode_t* dependencies, size_t count,
                                                        cudaEvent_t event) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                  [&](Machine& machine) { return EventWait{machine.event(event)}; });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                       const cudaGraphNode_t* dependencies, size_t count,
                                                       cudaMemAllocNodeParams* parameters) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](Machine& machine) {
    Allocate allocation = machine.graph_allocation(parameters->bytesize);
    parameters->dptr = reinterpret_cast<void*>(allocation.address);
    return allocation;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                      const cudaGraphNode_t* dependencies, size_t count, void* memory) {
  return add_node(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_FREE,
                  [&](Machine&) { return Free{address_of(memory)}; });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                               const cudaGraphNode_t* dependencies, const cudaGraphEdgeData*,
                                               size_t count, cudaGraphNodeParams* parameters) {
  if (parameters == nullptr) {
    return call([](Machine&) { fail(CUDA_ERROR_INVALID_VALUE); });
  }
  return add_node(node, graph, dependencies, count, static_cast<CUgraphNodeType>(parameters->type),
                  [&](Machine& machine) { return work_of(machine, *parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return call([&](Machine& machine) { set_work(machine, node_of(node), parameters); });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return call([&](Machine&) {
    Node* const node = node_of(handle);
    for (const auto& each : node->graph->nodes) std::erase(each->dependencies, node);
    std::erase_if(node->graph->nodes, [&](const auto& each) { return each.get() == node; });
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                       const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                                       size_t count) {
  return call([&](Machine& machine) {
    machine.graph(graph);
    for (std::size_t i = 0; i < count; ++i) node_of(to[i])->dependencies.push_back(node_of(from[i]));
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                          const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                                          size_t count) {
  return call([&](Machine& machine) {
    machine.graph(graph);
    for (std::size_t i = 0; i < count; ++i) std::erase(node_of(to[i])->dependencies, node_of(from[i]));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call([&](Machine& machine) {
    std::vector<Node*> all;
    for (const auto& node : machine.graph(graph)->nodes) all.push_back(node.get());
    list(all, nodes, count);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call([&](Machine& machine) {
    std::vector<Node*> roots;
    for (const auto& node : machine.graph(graph)->nodes) {
      if (node->dependencies.empty()) roots.push_back(node.get());
    }
    list(roots, nodes, count);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                                cudaGraphEdgeData*, size_t* count) {
  return call([&](Machine& machine) {
    std::vector<Node*> begins, ends;
    for (const auto& node : machine.graph(graph)->nodes) {
      for (Node* const each : node->dependencies) {
        begins.push_back(each);
        ends.push_back(node.get());
      }
    }
    std::size_t ends_count = count == nullptr ? 0 : *count;
    list(begins, from, count);
    if (to != nullptr) list(ends, to, &ends_count);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                           cudaGraphEdgeData*, size_t* count) {
  return call([&](Machine&) { list(node_of(node)->dependencies, nodes, count); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t handle, cudaGraphNode_t* nodes,
                                                             cudaGraphEdgeData*, size_t* count) {
  return call([&](Machine&) {
    Node* const node = node_of(handle);
    std::vector<Node*> dependents;
    for (const auto& each : node->graph->nodes) {
      if (std::ranges::find(each->dependencies, node) != each->dependencies.end()) dependents.push_back(each.get());
    }
    list(dependents, nodes, count);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call([&](Machine&) { *type = static_cast<cudaGraphNodeType>(node_of(node)->type); });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* parameters) {
  return call([&](Machine& machine) {
    auto& launch = work_of<KernelLaunch>(node_of(handle));
    const emulator::Program& program = machine.kernel(launch.function).program();
    launch.parameter_pointers.clear();
    for (const emulator::ParameterRange& each : program.parameters)
      launch.parameter_pointers.push_back(launch.parameters.data() + each.begin);
    const runtime::LaunchConfig& config = launch.config;
    *parameters = {};
    parameters->func = const_cast<void*>(handle_of(launch.function));
    parameters->gridDim = {config.grid.x, config.grid.y, config.grid.z};
    parameters->blockDim = {config.block.x, config.block.y, config.block.z};
    parameters->sharedMemBytes = config.dynamic_smem_bytes;
    parameters->kernelParams = launch.parameter_pointers.data();
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                           const cudaKernelNodeParams* parameters) {
  return call([&](Machine& machine) { set_launch(node_of(node), launch_of(machine, *parameters)); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return call([&](Machine&) { work_of<Fill>(node_of(node)) = fill_of(*parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return call([&](Machine& machine) { work_of<Copy>(node_of(node)) = copy_of(machine, *parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                                             size_t bytes, cudaMemcpyKind kind) {
  return call([&](Machine&) { work_of<Copy>(node_of(node)) = copy_of(to, from, bytes, kind); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return call([&](Machine&) { work_of<HostCall>(node_of(node)) = HostCall{parameters->fn, parameters->userData}; });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  return call([&](Machine&) {
    const auto& host = work_of<HostCall>(node_of(node));
    *parameters = {host.function, host.data};
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  return call([&](Machine&) {
    const auto& fill = work_of<Fill>(node_of(node));
    *parameters = {};
    parameters->dst = reinterpret_cast<void*>(fill.to);
    parameters->pitch = fill.pitch;
    parameters->value = fill.value;
    parameters->elementSize = static_cast<unsigned>(fill.element_bytes);
    parameters->width = fill.width;
    parameters->height = fill.height;
  });
}
/// Attributes that change nothing on the emulator, such as priorities, are accepted, and read as zeros.
TILEWRIGHT_EXPORT cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                                              const cudaLaunchAttributeValue* value) {
  return call([&](Machine&) {
    runtime::LaunchConfig& config = work_of<KernelLaunch>(node_of(node)).config;
    require(value != nullptr);
    if (attribute == cudaLaunchAttributeCooperative) config.cooperative = value->cooperative != 0;
    if (attribute == cudaLaunchAttributeClusterDimension)
      config.cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                                              cudaLaunchAttributeValue* value) {
  return call([&](Machine&) {
    const runtime::LaunchConfig& config = work_of<KernelLaunch>(node_of(node)).config;
    require(value != nullptr);
    *value = {};
    if (attribute == cudaLaunchAttributeCooperative) value->cooperative = config.cooperative ? 1 : 0;
    if (attribute == cudaLaunchAttributeClusterDimension) {
      value->clusterDim.x = config.cluster.x;
      value->clusterDim.y = config.cluster.y;
      value->clusterDim.z = config.cluster.z;
    }
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return call([&](Machine&) {
    const runtime::LaunchConfig& source = work_of<KernelLaunch>(node_of(from)).config;
    runtime::LaunchConfig& config = work_of<KernelLaunch>(node_of(to)).config;
    config.cooperative = source.cooperative;
    config.cluster = source.cluster;
  });
}

// Executable graphs --------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                   unsigned long long flags) {
  return call([&](Machine& machine) {
    require(executable != nullptr);
    std::unique_ptr<ExecutableGraph> made = instantiate(*machine.graph(graph));
    made->flags = flags;
    *executable = machine.keep(std::move(made));
    hold_objects_of(*executable, graph);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                            unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                             cudaGraphInstantiateParams* parameters) {
  if (parameters == nullptr) return cudaGraphInstantiate(executable, graph, 0);
  parameters->result_out = cudaGraphInstantiateSuccess;
  return cudaGraphInstantiate(executable, graph, parameters->flags);
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&](Machine& machine) {
    machine.destroy(executable);
    release_objects_of(executable);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Machine& machine) {
    machine.executable(executable);
    machine.stream(stream);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Machine& machine) {
    const ExecutableGraph& graph = machine.executable(executable);
    Stream* const on = machine.stream(stream);
    if (on->capture) {
      machine.enqueue(on, ChildGraph{graph.graph->clone()});
    } else {
      machine.launch_graph(graph, on);
    }
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t graph,
                                                  cudaGraphExecUpdateResultInfo* result) {
  return call([&](Machine& machine) {
    ExecutableGraph& executable = machine.executable(handle);
    const std::shared_ptr<Graph> updated = machine.graph(graph);
    const bool fits = have_same_topology(*executable.graph, *updated);
    if (result != nullptr) {
      *result = {};
      result->result = fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    }
    require(fits, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    // The nodes of the graph that was instantiated still name the executable graph's nodes, in the same order.
    const std::vector<const Node*> originals = executable.originals;
    std::map<const Node*, Node*> copies;
    executable.graph = updated->clone();
    for (std::size_t i = 0; i < originals.size(); ++i) copies[originals[i]] = executable.graph->nodes[i].get();
    executable.copies = std::move(copies);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                         cudaGraphNodeParams* parameters) {
  return call([&](Machine& machine) { set_work(machine, node_in(machine, executable, node), parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                               const cudaKernelNodeParams* parameters) {
  return call(
      [&](Machine& machine) { set_launch(node_in(machine, executable, node), launch_of(machine, *parameters)); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                                 void* to, const void* from, size_t bytes,
                                                                 cudaMemcpyKind kind) {
  return call(
      [&](Machine& machine) { work_of<Copy>(node_in(machine, executable, node)) = copy_of(to, from, bytes, kind); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                               const cudaMemcpy3DParms* parameters) {
  return call(
      [&](Machine& machine) { work_of<Copy>(node_in(machine, executable, node)) = copy_of(machine, *parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                               const cudaMemsetParams* parameters) {
  return call([&](Machine& machine) { work_of<Fill>(node_in(machine, executable, node)) = fill_of(*parameters); });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                             const cudaHostNodeParams* parameters) {
  return call([&](Machine& machine) {
    work_of<HostCall>(node_in(machine, executable, node)) = HostCall{parameters->fn, parameters->userData};
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                      unsigned enabled) {
  return call([&](Machine& machine) { node_in(machine, executable, node)->enabled = enabled != 0; });
}
TILEWRIGHT_EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                      unsigned* enabled) {
  return call([&](Machine& machine) { *enabled = node_in(machine, executable, node)->enabled ? 1 : 0; });
}

}  // namespace tilewright::cuda_runtime
