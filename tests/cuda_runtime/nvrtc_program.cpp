// Compiles a kernel to machine code with NVRTC, as many programs do, and loads that. Prints "all right" at the end.
#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <string>

int main() {
  nvrtcProgram program;
  const char* const text = "extern \"C\" __global__ void fill(int* x) { x[threadIdx.x] = 7; }";
  const char* const options[] = {"--gpu-architecture=sm_80"};
  if (nvrtcCreateProgram(&program, text, "fill.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) return 1;
  if (nvrtcCompileProgram(program, 1, options) != NVRTC_SUCCESS) return 2;
  size_t bytes = 0;
  if (nvrtcGetCUBINSize(program, &bytes) != NVRTC_SUCCESS || bytes == 0) return 3;
  std::string code(bytes, '\0');
  if (nvrtcGetCUBIN(program, code.data()) != NVRTC_SUCCESS) return 4;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr x;
  int host[32] = {};
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 5;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuModuleLoadData(&module, code.data()) != CUDA_SUCCESS) return 6;
  if (cuModuleGetFunction(&function, module, "fill") != CUDA_SUCCESS) return 7;
  if (cuMemAlloc(&x, sizeof(host)) != CUDA_SUCCESS) return 8;
  void* parameters[] = {&x};
  if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) != CUDA_SUCCESS) return 9;
  if (cuMemcpyDtoH(host, x, sizeof(host)) != CUDA_SUCCESS || host[31] != 7) return 10;
  std::printf("all right\n");
}
