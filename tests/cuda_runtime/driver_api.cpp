// Loads PTX through the driver API, and finds the driver's functions by name, too. Prints "all right" at the end.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "checks.hpp"

const char* const kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.global .u32 bias = 7;
.visible .entry add_bias(.param .u64 p, .param .u32 by) {
  .reg .u64 %a<3>;
  .reg .u32 %r<6>;
  ld.param.u64 %a0, [p];
  ld.param.u32 %r0, [by];
  ld.global.u32 %r1, [bias];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %a1, %r2, 4;
  add.u64 %a2, %a0, %a1;
  add.u32 %r3, %r0, %r1;
  add.u32 %r3, %r3, %r2;
  st.global.u32 [%a2], %r3;
  ret;
}
)";

int main() {
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, kPtx));
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, "add_bias"));
  int ptx_version = 0, binary_version = 0;
  CHECK(cuFuncGetAttribute(&ptx_version, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
  CHECK(cuFuncGetAttribute(&binary_version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
  if (ptx_version != 80 || binary_version != 90) return 1;  // CUB chooses its tuning by the first
  if (cuModuleGetFunction(&function, module, "none") != CUDA_ERROR_NOT_FOUND) return 1;
  CHECK(cuModuleGetFunction(&function, module, "add_bias"));
  CUdeviceptr bias, out;
  size_t bytes = 0;
  CHECK(cuModuleGetGlobal(&bias, &bytes, module, "bias"));
  const unsigned ten = 10;
  CHECK(cuMemcpyHtoD(bias, &ten, bytes));
  void* entry = nullptr;
  // Before CUDA 13, cuCtxGetDevice has one parameter.
  CHECK(cuGetProcAddress("cuCtxGetDevice", &entry, 12080, 0, nullptr));
  if (entry != reinterpret_cast<void*>(&cuCtxGetDevice)) return 1;
  CHECK(cuGetProcAddress("cuCtxGetDevice", &entry, 13000, 0, nullptr));
  if (entry != reinterpret_cast<void*>(&cuCtxGetDevice_v2)) return 1;
  CHECK(cuGetProcAddress("cuMemAlloc", &entry, 12000, 0, nullptr));
  CHECK(reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t)>(entry)(&out, 32 * 4));
  CUmemoryPool pool;
  CUdeviceptr pooled;
  cuuint64_t used = 0;
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  CHECK(cuMemAllocFromPoolAsync(&pooled, 128, pool, nullptr));
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  if (used != 128) return 1;
  CHECK(cuMemFreeAsync(pooled, nullptr));
  if (cuMemFreeAsync(pooled, nullptr) != CUDA_ERROR_INVALID_VALUE) return 1;
  CHECK(cuMemPoolCreate(&pool, nullptr));
  CHECK(cuMemPoolTrimTo(pool, 0));
  CHECK(cuMemPoolDestroy(pool));
  unsigned by = 100;
  void* parameters[] = {&out, &by};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  unsigned host[32];
  CHECK(cuMemcpyDtoH(host, out, sizeof(host)));
  for (unsigned i = 0; i < 32; ++i) {
    if (host[i] != 110 + i) return 1;
  }
  // A captured launch, as a graph.
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned long long id = 0;
  unsigned flags = 0;
  CHECK(cuStreamGetId(stream, &id));
  CHECK(cuStreamGetFlags(stream, &flags));
  if (id == 0 || flags != CU_STREAM_NON_BLOCKING) return 1;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  by = 300;
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
  CUstreamCaptureStatus status;
  CHECK(cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return 1;
  CUgraph graph;
  CHECK(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
  if (nodes != 1) return 1;
  CHECK(cuGetProcAddress("cuGraphInstantiate", &entry, 12000, 0, nullptr));
  CUgraphExec executable;
  CHECK(reinterpret_cast<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>(entry)(&executable, graph, 0));
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  // The third and fourth word of each eight, as two rows.
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = out;
  rows.srcXInBytes = 8;
  rows.srcPitch = 32;
  rows.dstMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstHost = host;
  rows.WidthInBytes = 8;
  rows.Height = 2;
  CHECK(cuMemcpy2D(&rows));
  rows.srcPitch = rows.srcXInBytes + rows.WidthInBytes - 1;  // a row would reach into the next
  if (cuMemcpy2D(&rows) != CUDA_ERROR_INVALID_VALUE) return 1;
  rows.Height = 1;
  CHECK(cuMemcpy2D(&rows));
  if (host[0] != 312 || host[1] != 313 || host[2] != 320 || host[3] != 321) return 1;
  CHECK(cuGraphExecDestroy(executable));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuStreamDestroy(stream));
  int grid = 0, block = 0;
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
  if (grid == 0 || block != 1024) return 1;
  CHECK(cuMemGetDefaultMemPool(&pool, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED));
  CUmemAccess_flags access;
  CHECK(cuMemPoolGetAccess(&access, pool, nullptr));
  if (access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return 1;
  CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
  CHECK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
  if (bytes != 8192) return 1;
  if (cuGetProcAddress("cuNothing", &entry, 13000, 0, nullptr) != CUDA_ERROR_NOT_FOUND) return 1;
  // The parameters as one buffer.
  struct {
    CUdeviceptr out;
    unsigned by;
  } buffer{out, 200};
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  CHECK(cuMemcpyDtoH(host, out, sizeof(host)));
  if (host[5] != 215) return 1;
  // The same kernel, and a function of another text that it calls.
  const char* const caller =
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 r) nine();\n"
      ".visible .entry store_nine(.param .u64 p) { .reg .u64 %a; .reg .u32 %r; ld.param.u64 %a, [p];\n"
      "{ .param .b32 r; call (r), nine; ld.param.u32 %r, [r]; }\n st.global.u32 [%a], %r; ret; }\n";
  const char* const callee =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func (.param .b32 r) nine() {\n"
      ".reg .u32 %r; mov.u32 %r, 9; st.param.u32 [r], %r; ret; }\n";
  CUlinkState link;
  CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
  for (const char* const text : {caller, callee}) {
    CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, "text", 0, nullptr,
                        nullptr));
  }
  void* image = nullptr;
  CHECK(cuLinkComplete(link, &image, &bytes));
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuLinkDestroy(link));
  CHECK(cuModuleGetFunction(&function, module, "store_nine"));
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(cuMemcpyDtoH(host, out, sizeof(host)));
  if (host[0] != 9) return 1;
  CHECK(cuMemFree(out));
  if (cuMemFree(out) != CUDA_ERROR_INVALID_VALUE) return 1;
  std::printf("all right\n");
}
