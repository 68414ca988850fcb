// How functions of graphs find nodes by their handles, and change the work of nodes.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {

/// @throws ApiError for a null handle
inline Node* node_of(cudaGraphNode_t handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE);
  return reinterpret_cast<Node*>(handle);
}

inline std::vector<Node*> nodes_of(const cudaGraphNode_t* handles, std::size_t count) {
  require(handles != nullptr || count == 0);
  std::vector<Node*> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(node_of(handles[i]));
  return nodes;
}

/// Adds a node whose work is make(machine). `function` is the name of the function that the program has called.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, std::size_t count,
                     CUgraphNodeType type, auto&& make, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        require(node != nullptr);
        Node* const added = machine.graph(graph)->add(make(machine), type, nodes_of(dependencies, count));
        *node = reinterpret_cast<cudaGraphNode_t>(added);
      },
      function);
}

/// The node of an executable graph that was made of this one. @throws ApiError if there is none
inline Node* node_in(Machine& machine, cudaGraphExec_t executable, cudaGraphNode_t node) {
  ExecutableGraph& graph = machine.executable(executable);
  const auto found = graph.copies.find(node_of(node));
  if (found == graph.copies.end())
    fail(CUDA_ERROR_INVALID_VALUE, "the node is not of the graph that the executable graph was instantiated from");
  return found->second;
}

/// @throws ApiError if the node has work of another type
template <class T>
T& work_of(Node* node) {
  auto* const work = std::get_if<T>(&node->work);
  if (work == nullptr) fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
  return *work;
}

/// New parameters of a kernel node. Its attributes, which are set by other functions, stay as they were.
inline void set_launch(Node* node, KernelLaunch launch) {
  KernelLaunch& old = work_of<KernelLaunch>(node);
  launch.config.cooperative = old.config.cooperative;
  launch.config.cluster = old.config.cluster;
  launch.starts_early = old.starts_early;
  old = std::move(launch);
}

/// @throws ApiError unless a node may get parameters of this type: those of allocations and frees never change
inline void check_settable(const Node* node, CUgraphNodeType type) {
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    fail(CUDA_ERROR_NOT_SUPPORTED, "the parameters of nodes that allocate or free memory cannot be changed");
  if (node->type != type) fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
}

/// New work of a node, of the same type.
inline void set_work(Node* node, Work work) {
  require(node->work.index() == work.index());
  if (auto* const launch = std::get_if<KernelLaunch>(&work)) {
    set_launch(node, std::move(*launch));
  } else {
    node->work = std::move(work);
  }
}

/// Replaces the graph of a child node of an executable graph. @throws ApiError if its nodes are of other types
void set_child(Node* node, const Graph& child);

}  // namespace tilewright::cuda_runtime
