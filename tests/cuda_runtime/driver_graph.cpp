// Graphs whose nodes the driver API adds and changes, what it tells of kernels, and memory operations of streams.
// Prints "all right" at the end.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "checks.hpp"

const char* const kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 by) {
  .reg .u64 %a<3>;
  .reg .u32 %r<4>;
  ld.param.u64 %a0, [p];
  ld.param.u32 %r0, [by];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %a1, %r1, 4;
  add.u64 %a2, %a0, %a1;
  ld.global.u32 %r2, [%a2];
  add.u32 %r3, %r2, %r0;
  st.global.u32 [%a2], %r3;
  ret;
}
)";

constexpr unsigned kThreads = 32;
constexpr size_t kBytes = kThreads * sizeof(int);

CUstream stream;
int* host;  // pinned

int run(CUgraphExec executable) {
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  for (unsigned i = 1; i < kThreads; ++i) EXPECT(host[i] == host[0]);
  return host[0];
}

void check_graphs(CUfunction function, CUcontext context) {
  CUdeviceptr memory;
  CHECK(cuMemAlloc(&memory, kBytes));
  unsigned by = 5;
  void* arguments[] = {&memory, &by};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kThreads;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  CUDA_MEMSET_NODE_PARAMS fill{memory, kBytes, 1, 4, kThreads, 1};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  int calls = 0;
  CUDA_HOST_NODE_PARAMS call{[](void* count) { ++*static_cast<int*>(count); }, &calls};

  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode filled, first, empty, second, copied, called;
  CHECK(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context));
  CHECK(cuGraphAddKernelNode(&first, graph, &filled, 1, &kernel));
  CHECK(cuGraphAddEmptyNode(&empty, graph, &first, 1));
  by = 10;
  // The parameters of a kernel as one buffer.
  struct {
    CUdeviceptr memory;
    unsigned by;
  } buffer{memory, by};
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS packed = kernel;
  packed.kernelParams = nullptr;
  packed.extra = extra;
  size = 8;  // less than the parameters
  EXPECT(cuGraphAddKernelNode(&second, graph, &empty, 1, &packed) == CUDA_ERROR_INVALID_VALUE);
  size = sizeof(buffer);
  packed.kernelParams = kernel.kernelParams;
  EXPECT(cuGraphAddKernelNode(&second, graph, &empty, 1, &packed) == CUDA_ERROR_INVALID_VALUE);
  packed.kernelParams = nullptr;
  CHECK(cuGraphAddKernelNode(&second, graph, &empty, 1, &packed));
  CHECK(cuGraphAddMemcpyNode(&copied, graph, &second, 1, &copy, context));
  CHECK(cuGraphAddHostNode(&called, graph, &copied, 1, &call));
  size_t count = 0;
  CHECK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == 5);
  CUgraphNode root;
  count = 1;
  CHECK(cuGraphGetRootNodes(graph, &root, &count));
  EXPECT(count == 1 && root == filled);
  CHECK(cuGraphNodeGetDependencies(second, &root, nullptr, &count));
  EXPECT(count == 1 && root == empty);
  CHECK(cuGraphNodeGetDependentNodes(second, &root, nullptr, &count));
  EXPECT(count == 1 && root == copied);

  CUgraphExec executable;
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  EXPECT(run(executable) == 16 && calls == 1);
  by = 100;
  CHECK(cuGraphExecKernelNodeSetParams(executable, second, &kernel));
  EXPECT(run(executable) == 106);
  fill.value = 7;
  CHECK(cuGraphExecMemsetNodeSetParams(executable, filled, &fill, context));
  CHECK(cuGraphExecMemcpyNodeSetParams(executable, copied, &copy, context));
  CHECK(cuGraphNodeSetEnabled(executable, called, 0));
  unsigned enabled = 1;
  CHECK(cuGraphNodeGetEnabled(executable, called, &enabled));
  EXPECT(enabled == 0);
  EXPECT(run(executable) == 112 && calls == 2);

  // An update takes the parameters of the graph, and refuses other edges.
  CUDA_KERNEL_NODE_PARAMS read{};
  CHECK(cuGraphKernelNodeGetParams(first, &read));
  EXPECT(read.func == function && read.blockDimX == kThreads && *static_cast<unsigned*>(read.kernelParams[1]) == 5);
  by = 1000;
  CHECK(cuGraphKernelNodeSetParams(first, &kernel));
  CUgraphExecUpdateResultInfo result{};
  CHECK(cuGraphExecUpdate(executable, graph, &result));
  EXPECT(result.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT(run(executable) == 1011);
  CHECK(cuGraphRemoveDependencies(graph, &empty, &second, nullptr, 1));
  CHECK(cuGraphAddDependencies(graph, &filled, &second, nullptr, 1));
  EXPECT(cuGraphExecUpdate(executable, graph, &result) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT(result.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(cuGraphRemoveDependencies(graph, &filled, &second, nullptr, 1));
  CHECK(cuGraphAddDependencies(graph, &empty, &second, nullptr, 1));

  // Attributes of a node are no parameters of it.
  CUlaunchAttributeValue cluster{};
  cluster.clusterDim = {1, 1, 1};
  CHECK(cuGraphKernelNodeSetAttribute(second, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster));
  cluster.cooperative = 1;
  CHECK(cuGraphKernelNodeSetAttribute(second, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cluster));
  CHECK(cuGraphKernelNodeSetParams(second, &kernel));
  cluster = {};
  CHECK(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cluster));
  EXPECT(cluster.cooperative == 1);

  // Child graphs, events, memory, and nodes of any type.
  CUgraph parent, child, clone;
  CUgraphNode nested, recorded, awaited, allocated, freed, any, found;
  CHECK(cuGraphCreate(&parent, 0));
  CHECK(cuGraphAddChildGraphNode(&nested, parent, nullptr, 0, graph));
  CHECK(cuGraphChildGraphNodeGetGraph(nested, &child));
  CHECK(cuGraphGetNodes(child, nullptr, &count));
  EXPECT(count == 6);
  CUevent event, other;
  CHECK(cuEventCreate(&event, 0));
  CHECK(cuEventCreate(&other, 0));
  CHECK(cuGraphAddEventRecordNode(&recorded, parent, &nested, 1, event));
  CHECK(cuGraphAddEventWaitNode(&awaited, parent, &recorded, 1, event));
  CUevent named;
  CHECK(cuGraphEventRecordNodeGetEvent(recorded, &named));
  EXPECT(named == event);
  CHECK(cuGraphEventWaitNodeSetEvent(awaited, other));
  CHECK(cuGraphEventWaitNodeGetEvent(awaited, &named));
  EXPECT(named == other);
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  allocation.bytesize = kBytes;
  CHECK(cuGraphAddMemAllocNode(&allocated, parent, &awaited, 1, &allocation));
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
  parameters.memset.dst = allocation.dptr;
  parameters.memset.elementSize = 4;
  parameters.memset.width = kThreads;
  parameters.memset.height = 1;
  CHECK(cuGraphAddNode(&any, parent, &allocated, nullptr, 1, &parameters));
  CHECK(cuGraphAddMemFreeNode(&freed, parent, &any, 1, allocation.dptr));
  CUdeviceptr of_node = 0;
  CHECK(cuGraphMemFreeNodeGetParams(freed, &of_node));
  EXPECT(of_node == allocation.dptr);
  CHECK(cuGraphClone(&clone, parent));
  CHECK(cuGraphNodeFindInClone(&found, any, clone));
  CHECK(cuGraphDestroyNode(awaited));
  CHECK(cuGraphNodeSetParams(any, &parameters));
  EXPECT(cuGraphNodeSetParams(nested, &parameters) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams other_allocation{};
  other_allocation.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  other_allocation.alloc.poolProps = allocation.poolProps;
  other_allocation.alloc.bytesize = 2 * kBytes;
  EXPECT(cuGraphNodeSetParams(allocated, &other_allocation) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec of_parent;
  CHECK(cuGraphInstantiate(&of_parent, parent, 0));
  by = 2000;
  CHECK(cuGraphKernelNodeSetParams(first, &kernel));
  CHECK(cuGraphExecChildGraphNodeSetParams(of_parent, nested, graph));
  EXPECT(run(of_parent) == 3001);
  CHECK(cuGraphExecDestroy(of_parent));
  CHECK(cuGraphExecDestroy(executable));
}

int main() {
  CHECK(cuInit(0));
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, kPtx));
  CUfunction function, only;
  CHECK(cuModuleGetFunction(&function, module, "add"));
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&host), kBytes));
  check_graphs(function, context);

  CHECK(cuModuleEnumerateFunctions(&only, 1, module));
  EXPECT(only == function);
  size_t offset = 0, size = 0;
  CHECK(cuFuncGetParamInfo(function, 1, &offset, &size));
  EXPECT(offset == 8 && size == 4);
  CUmodule of_function;
  CHECK(cuFuncGetModule(&of_function, function));
  EXPECT(of_function == module);
  CUlibrary library;
  CUkernel kernel;
  CHECK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned kernels = 0;
  CHECK(cuLibraryGetKernelCount(&kernels, library));
  CHECK(cuLibraryEnumerateKernels(&kernel, 1, library));
  const char* name = nullptr;
  CHECK(cuKernelGetName(&name, kernel));
  EXPECT(kernels == 1 && name[0] == 'a');
  int most = 0;
  CHECK(cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  EXPECT(most == 1024);

  CUdeviceptr memory;
  CHECK(cuMemAlloc(&memory, 256));
  CHECK(cuMemsetD2D16Async(memory, 16, 0x0203, 8, 16, stream));
  CHECK(cuStreamWriteValue64(stream, memory + 8, 0x100000007, 0));
  CHECK(cuStreamWaitValue64(stream, memory + 8, 0x100000006, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT(cuStreamWaitValue32(stream, memory, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_ERROR_NOT_SUPPORTED);
  std::vector<unsigned> words(4);
  CHECK(cuMemcpyDtoHAsync(words.data(), memory, 16, stream));
  EXPECT(words[0] == 0x02030203 && words[2] == 7 && words[3] == 1);
  int called = 0;
  CHECK(cuStreamAddCallback(
      stream, [](CUstream, CUresult, void* to) { *static_cast<int*>(to) = 1; }, &called, 0));
  EXPECT(called == 1);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  unsigned type = 0;
  void* values[] = {&type, &size};
  CHECK(cuPointerGetAttributes(2, attributes, values, memory + 4));
  EXPECT(type == CU_MEMORYTYPE_DEVICE && size == 256);
  CHECK(cuPointerGetAttributes(2, attributes, values, reinterpret_cast<CUdeviceptr>(&type)));
  EXPECT(type == 0 && size == 0);
  std::printf("all right\n");
}
