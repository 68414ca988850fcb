// Uses the CUDA runtime as programs do, and checks every result. Prints "all right" at the end.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "checks.hpp"

namespace cg = cooperative_groups;

__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__managed__ int managed = 6;

__global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factors[i % 4];
  if (i == 0) {
    atomicAdd(&counter, 1);
    ++managed;
  }
}

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void grid_sum(const int* values, int* partial, int* sum) {
  const cg::grid_group grid = cg::this_grid();
  if (threadIdx.x == 0) partial[blockIdx.x] = values[blockIdx.x];
  grid.sync();
  if (grid.thread_rank() == 0) {
    *sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) *sum += partial[i];
  }
}

__global__ void __cluster_dims__(2, 1, 1) exchange(int* out) {
  __shared__ int value;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = static_cast<int>(blockIdx.x) + 10;
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  cluster.sync();
}

__global__ void use_dynamic_shared(int* out) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x + 14000] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = buffer[14000 + 31 - threadIdx.x];
}

struct Wide {
  double first;
  char text[20];
};
__global__ void take_struct(Wide wide, char* out) { out[threadIdx.x] = wide.text[threadIdx.x]; }

void launch_and_copy() {
  constexpr int kSize = 100;
  float* device = nullptr;
  CHECK(cudaMalloc(&device, kSize * sizeof(float)));
  std::vector<float> host(kSize), back(kSize);
  for (int i = 0; i < kSize; ++i) host[i] = static_cast<float>(i);
  CHECK(cudaMemcpy(device, host.data(), kSize * sizeof(float), cudaMemcpyHostToDevice));
  const float changed[4] = {2, 3, 4, 5};
  CHECK(cudaMemcpyToSymbol(factors, changed, sizeof(changed)));
  scale<<<1, 128>>>(device, kSize);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(back.data(), device, kSize * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kSize; ++i) EXPECT(back[i] == host[i] * changed[i % 4]);
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
  EXPECT(count == 6);
  EXPECT(managed == 7);
  void* symbol = nullptr;
  size_t size = 0;
  CHECK(cudaGetSymbolAddress(&symbol, factors));
  CHECK(cudaGetSymbolSize(&size, factors));
  EXPECT(symbol != nullptr && size == 16);
  CHECK(cudaFree(device));
}

void copies_of_rows() {
  unsigned char *device = nullptr, host[3][5], back[3][5] = {};
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&device, &pitch, 5, 3));
  for (int i = 0; i < 15; ++i) host[i / 5][i % 5] = static_cast<unsigned char>(i);
  CHECK(cudaMemcpy2D(device, pitch, host, 5, 5, 3, cudaMemcpyHostToDevice));
  CHECK(cudaMemset2D(device + pitch, pitch, 0xab, 2, 1));
  CHECK(cudaMemcpy2D(back, 5, device, pitch, 5, 3, cudaMemcpyDeviceToHost));
  EXPECT(back[0][4] == 4 && back[1][0] == 0xab && back[1][1] == 0xab && back[1][2] == 7 && back[2][4] == 14);
  CHECK(cudaFree(device));
}

void streams_and_events() {
  cudaStream_t streams[2];
  cudaEvent_t begin, end;
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin, streams[0]));
  float *pinned = nullptr, *device = nullptr;
  CHECK(cudaMallocHost(&pinned, 64 * sizeof(float)));
  CHECK(cudaMallocAsync(&device, 64 * sizeof(float), streams[0]));
  for (int i = 0; i < 64; ++i) pinned[i] = 1;
  CHECK(cudaMemcpyAsync(device, pinned, 64 * sizeof(float), cudaMemcpyHostToDevice, streams[0]));
  scale<<<1, 64, 0, streams[0]>>>(device, 64);
  CHECK(cudaEventRecord(end, streams[0]));
  CHECK(cudaStreamWaitEvent(streams[1], end, 0));
  CHECK(cudaMemcpyAsync(pinned, device, 64 * sizeof(float), cudaMemcpyDeviceToHost, streams[1]));
  int called = 0;
  CHECK(cudaLaunchHostFunc(
      streams[1], [](void* data) { ++*static_cast<int*>(data); }, &called));
  CHECK(cudaStreamSynchronize(streams[1]));
  EXPECT(called == 1 && pinned[3] == 5);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  EXPECT(milliseconds >= 0);
  CHECK(cudaFreeAsync(device, streams[0]));
  CHECK(cudaFreeHost(pinned));
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  EXPECT(cudaStreamQuery(streams[0]) == cudaErrorInvalidResourceHandle);
  EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle && cudaGetLastError() == cudaSuccess);
}

void launches_of_all_kinds() {
  int *values = nullptr, *partial = nullptr, *sum = nullptr;
  CHECK(cudaMallocManaged(&values, 4 * sizeof(int)));
  CHECK(cudaMalloc(&partial, 4 * sizeof(int)));
  CHECK(cudaMallocManaged(&sum, 64 * sizeof(int)));
  for (int i = 0; i < 4; ++i) values[i] = i + 1;
  void* arguments[] = {&values, &partial, &sum};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(grid_sum), dim3(4), dim3(32), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(*sum == 10);

  exchange<<<2, 32>>>(sum);
  CHECK(cudaDeviceSynchronize());
  EXPECT(sum[0] == 11 && sum[1] == 10);

  use_dynamic_shared<<<1, 32, 60000>>>(sum);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(use_dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  use_dynamic_shared<<<1, 32, 60000>>>(sum);
  CHECK(cudaGetLastError());
  EXPECT(sum[0] == 31 && sum[31] == 0);
  use_dynamic_shared<<<1, 2048, 60000>>>(sum);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);

  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(20);
  Wide wide{1, "nineteen characters"};
  char* out = nullptr;
  CHECK(cudaMallocManaged(&out, 20));
  CHECK(cudaLaunchKernelEx(&configuration, take_struct, wide, out));
  CHECK(cudaDeviceSynchronize());
  EXPECT(std::strcmp(out, wide.text) == 0);

  int blocks = 0, attribute = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, use_dynamic_shared, 32, 60000));
  EXPECT(blocks == 3);
  CHECK(cudaDeviceGetAttribute(&attribute, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT(attribute == 9);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, use_dynamic_shared));
  EXPECT(attributes.maxDynamicSharedSizeBytes == 60000);
  cudaPointerAttributes pointer;
  CHECK(cudaPointerGetAttributes(&pointer, values));
  EXPECT(pointer.type == cudaMemoryTypeManaged);
}

void graphs() {
  float *a = nullptr, *b = nullptr, *sum = nullptr, host[32], back[32];
  CHECK(cudaMalloc(&a, sizeof(host)));
  CHECK(cudaMalloc(&b, sizeof(host)));
  CHECK(cudaMalloc(&sum, sizeof(host)));
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork));
  CHECK(cudaMemcpyAsync(a, host, sizeof(host), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(b, host, sizeof(host), cudaMemcpyHostToDevice, other));
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaStreamWaitEvent(stream, join));
  add<<<1, 32, 0, stream>>>(a, b, sum, 32);
  CHECK(cudaMemcpyAsync(back, sum, sizeof(host), cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 4);
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 32; ++i) host[i] = static_cast<float>(i + round);
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 32; ++i) EXPECT(back[i] == 2 * host[i]);
  }

  // The same by hand, with the dependencies added in the other order.
  cudaGraph_t built;
  CHECK(cudaGraphCreate(&built, 0));
  int n = 32;
  void* arguments[] = {&a, &b, &sum, &n};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  cudaGraphNode_t kernel_node, fill_node;
  CHECK(cudaGraphAddKernelNode(&kernel_node, built, nullptr, 0, &kernel));
  cudaKernelNodeParams added;
  CHECK(cudaGraphKernelNodeGetParams(kernel_node, &added));
  EXPECT(added.func == kernel.func);
  cudaMemsetParams fill = {};
  fill.dst = a;
  fill.elementSize = 4;
  fill.width = 32;
  fill.height = 1;
  fill.value = 0x40000000;  // 2.0f
  CHECK(cudaGraphAddMemsetNode(&fill_node, built, nullptr, 0, &fill));
  CHECK(cudaGraphAddDependencies(built, &fill_node, &kernel_node, nullptr, 1));
  cudaGraphExec_t second;
  CHECK(cudaGraphInstantiate(&second, built, 0));
  CHECK(cudaGraphLaunch(second, stream));
  CHECK(cudaMemcpy(back, sum, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) EXPECT(back[i] == 2 + host[i]);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
}

__global__ void set(int* x, int value) { x[threadIdx.x] = value; }

// Each launch of a graph allocates its memory anew at the same address, wherever that was freed.
void memory_of_graphs() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  int *memory = nullptr, host[32] = {};
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&memory, sizeof(host), stream));
  set<<<1, 32, 0, stream>>>(memory, 7);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 3; ++round) {
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(host, memory, sizeof(host), cudaMemcpyDeviceToHost, stream));
    EXPECT(cudaGraphLaunch(executable, stream) == cudaErrorInvalidValue);  // not freed yet
    static_cast<void>(cudaGetLastError());
    CHECK(round == 1 ? cudaFree(memory) : cudaFreeAsync(memory, stream));
    EXPECT(host[31] == 7);
  }
  EXPECT(cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());
}

// Nodes that copy to and from variables, and what the functions of nodes tell of them.
void copies_of_variables_in_graphs() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  const int values[] = {7};
  int read = 0, other = 0;
  cudaGraphNode_t to, from;
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, counter, values, 4, 0, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, &read, counter, 4, 0, cudaMemcpyDeviceToHost));
  EXPECT(cudaGraphMemcpyNodeSetParamsFromSymbol(from, &read, counter, 8, 0, cudaMemcpyDeviceToHost) ==
         cudaErrorInvalidValue);
  cudaMemcpy3DParms parameters;
  CHECK(cudaGraphMemcpyNodeGetParams(from, &parameters));
  EXPECT(parameters.dstPtr.ptr == &read && parameters.extent.width == 4 && parameters.kind == cudaMemcpyDeviceToHost);
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  unsigned long long flags = 0;
  CHECK(cudaGraphExecGetFlags(executable, &flags));
  EXPECT(flags == cudaGraphInstantiateFlagAutoFreeOnLaunch);
  CHECK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, from, &other, counter, 4, 0, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(read == 0 && other == 7);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
}

void attributes_of_pointers() {
  void* variable = nullptr;
  CHECK(cudaGetSymbolAddress(&variable, counter));
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, variable));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == variable);
  CHECK(cudaPointerGetAttributes(&attributes, &managed));
  EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == &managed);
  CHECK(cudaPointerGetAttributes(&attributes, &attributes));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
}

// Nodes that are added and changed by cudaGraphNodeParams, clones, attributes of nodes, and user objects.
void graphs_of_any_nodes() {
  int *memory = nullptr, host[32] = {}, calls = 0, destroyed = 0, value = 3;
  CHECK(cudaMalloc(&memory, sizeof(host)));
  cudaGraph_t graph, clone;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t kernel_node, copy_node, host_node, found;
  void* arguments[] = {&memory, &value};
  cudaGraphNodeParams kernel = {};
  kernel.type = cudaGraphNodeTypeKernel;
  kernel.kernel.func = reinterpret_cast<void*>(set);
  kernel.kernel.gridDim = dim3(1);
  kernel.kernel.blockDim = dim3(32);
  kernel.kernel.kernelParams = arguments;
  CHECK(cudaGraphAddNode(&kernel_node, graph, nullptr, nullptr, 0, &kernel));
  cudaGraphNodeParams copy = {};
  copy.type = cudaGraphNodeTypeMemcpy;
  copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(memory, sizeof(host), 32, 1);
  copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(host, sizeof(host), 32, 1);
  copy.memcpy.copyParams.extent = make_cudaExtent(sizeof(host), 1, 1);
  copy.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaGraphAddNode(&copy_node, graph, &kernel_node, nullptr, 1, &copy));
  cudaGraphNodeParams call = {};
  call.type = cudaGraphNodeTypeHost;
  call.host.fn = [](void* data) { ++*static_cast<int*>(data); };
  call.host.userData = &calls;
  CHECK(cudaGraphAddNode(&host_node, graph, &copy_node, nullptr, 1, &call));
  cudaHostNodeParams host_params;
  CHECK(cudaGraphHostNodeGetParams(host_node, &host_params));
  EXPECT(host_params.fn == call.host.fn && host_params.userData == &calls);
  size_t dependents = 1;
  CHECK(cudaGraphNodeGetDependentNodes(kernel_node, &found, nullptr, &dependents));
  EXPECT(dependents == 1 && found == copy_node);
  cudaKernelNodeAttrValue attribute = {}, read = {};
  attribute.cooperative = 1;
  CHECK(cudaGraphKernelNodeSetAttribute(kernel_node, cudaLaunchAttributeCooperative, &attribute));
  CHECK(cudaGraphKernelNodeGetAttribute(kernel_node, cudaLaunchAttributeCooperative, &read));
  EXPECT(read.cooperative == 1);

  cudaUserObject_t object;
  CHECK(cudaUserObjectCreate(&object, &destroyed, call.host.fn, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  CHECK(cudaGraphClone(&clone, graph));
  CHECK(cudaGraphNodeFindInClone(&found, kernel_node, clone));
  EXPECT(found != kernel_node && cudaGraphNodeFindInClone(&found, found, clone) == cudaErrorInvalidValue);
  CHECK(cudaGraphDebugDotPrint(clone, "/dev/null", 0));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (value = 4; value < 6; ++value) {
    CHECK(cudaGraphExecNodeSetParams(executable, kernel_node, &kernel));
    CHECK(cudaGraphLaunch(executable, nullptr));
    CHECK(cudaDeviceSynchronize());
    EXPECT(host[31] == value && calls == value - 3);
  }
  EXPECT(cudaGraphExecNodeSetParams(executable, copy_node, &kernel) == cudaErrorInvalidValue);
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(clone));
  EXPECT(destroyed == 0);
  CHECK(cudaGraphExecDestroy(executable));
  EXPECT(destroyed == 1);
  static_cast<void>(cudaGetLastError());
}

void attributes_of_streams() {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  cudaStreamAttrValue window = {}, read = {};
  window.accessPolicyWindow.num_bytes = 64;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window));
  CHECK(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &read));
  EXPECT(read.accessPolicyWindow.num_bytes == 0);
  CHECK(cudaStreamCopyAttributes(other, stream));
  CHECK(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &read));
  EXPECT(read.accessPolicyWindow.num_bytes == 64);
}

void libraries() {
  const char* const ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 number = 9;\n"
      ".visible .entry read_number(.param .u64 out)\n{\n.reg .u64 %out;\n.reg .u32 %n;\nld.param.u64 %out, [out];\n"
      "ld.global.u32 %n, [number];\nst.global.u32 [%out], %n;\nret;\n}\n";
  cudaLibrary_t library;
  CHECK(cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel, same;
  CHECK(cudaLibraryGetKernel(&kernel, library, "read_number"));
  unsigned count = 0;
  CHECK(cudaLibraryGetKernelCount(&count, library));
  CHECK(cudaLibraryEnumerateKernels(&same, 1, library));
  EXPECT(count == 1 && same == kernel);
  void* number = nullptr;
  size_t bytes = 0;
  CHECK(cudaLibraryGetGlobal(&number, &bytes, library, "number"));
  EXPECT(bytes == 4);
  int *out = nullptr, host = 0;
  CHECK(cudaMalloc(&out, sizeof(host)));
  void* arguments[] = {&out};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
  CHECK(cudaMemcpy(&host, out, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT(host == 9);
  EXPECT(cudaLibraryGetKernel(&kernel, library, "none") != cudaSuccess);
  CHECK(cudaLibraryUnload(library));
  static_cast<void>(cudaGetLastError());
}

void pools_and_limits() {
  cudaMemPool_t pool = nullptr, current = nullptr;
  const cudaMemPoolProps properties{};
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaDeviceSetMemPool(0, pool));
  CHECK(cudaDeviceGetMemPool(&current, 0));
  EXPECT(current == pool);
  cudaMemLocation location{cudaMemLocationTypeDevice, 0};
  cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
  CHECK(cudaMemPoolGetAccess(&access, pool, &location));
  EXPECT(access == cudaMemAccessFlagsProtReadWrite);
  int* memory = nullptr;
  CHECK(cudaMallocAsync(&memory, 16, nullptr));
  std::uint64_t used = 0;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT(used == 16);
  const int numbers[2] = {3, 4};
  int read[2] = {};
  void* to[2] = {memory, memory + 1};
  const void* from[2] = {numbers + 1, numbers};
  size_t sizes[2] = {4, 4}, index = 0;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(read, memory, sizeof(read), cudaMemcpyDeviceToHost));
  EXPECT(read[0] == 4 && read[1] == 3);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeAsync(memory, nullptr));
  CHECK(cudaMemPoolDestroy(pool));
  CHECK(cudaMallocManaged(&memory, 16));
  int preferred = 0;
  CHECK(cudaMemRangeGetAttribute(&preferred, 4, cudaMemRangeAttributePreferredLocation, memory, 16));
  EXPECT(preferred == cudaInvalidDeviceId);
  CHECK(cudaFree(memory));
  size_t bytes = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  EXPECT(bytes == 8192);
}

void misuse_of_capture() {
  cudaStream_t a, b;
  cudaEvent_t event;
  cudaGraph_t graph;
  int* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16));
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreate(&event));
  // Work of another stream that the first one does not wait for.
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaStreamWaitEvent(b, event, 0));
  CHECK(cudaMemsetAsync(memory, 0, 16, b));
  EXPECT(cudaEventQuery(event) == cudaErrorCapturedEvent);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureUnjoined);
  // A call that may wait for the device, and one that does.
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  void* other = nullptr;
  EXPECT(cudaMalloc(&other, 16) == cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(a, &status));
  EXPECT(status == cudaStreamCaptureStatusInvalidated);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMalloc(&other, 16));
  EXPECT(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  // Work of the default stream, for which the captured stream would have to wait.
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  EXPECT(cudaMemset(memory, 0, 16) == cudaErrorStreamCaptureImplicit);
  EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  static_cast<void>(cudaGetLastError());
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
}

void refusals() {
  float host[4];
  void* device = nullptr;
  CHECK(cudaMalloc(&device, 16));
  EXPECT(cudaMemcpy(device, host, 17, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  EXPECT(cudaFree(host) == cudaErrorInvalidValue);
  cudaArray_t array;
  const cudaChannelFormatDesc format{32, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT(cudaMallocArray(&array, &format, 4, 4, 0) == cudaErrorNotSupported);
  EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
  static_cast<void>(cudaGetLastError());
  std::vector<char> lent(1 << 16);
  CHECK(cudaHostRegister(lent.data(), lent.size(), 0));
  EXPECT(cudaHostRegister(lent.data(), 8, 0) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostUnregister(lent.data()));
}

int main() {
  launch_and_copy();
  copies_of_rows();
  streams_and_events();
  launches_of_all_kinds();
  graphs();
  memory_of_graphs();
  graphs_of_any_nodes();
  copies_of_variables_in_graphs();
  attributes_of_pointers();
  attributes_of_streams();
  libraries();
  pools_and_limits();
  misuse_of_capture();
  refusals();
  std::printf("all right\n");
}
