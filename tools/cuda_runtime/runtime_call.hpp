// How each function of the CUDA runtime is implemented: by a lambda on the machine, which throws ApiError.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>

#include "tools/cuda_runtime/machine.hpp"
#include "tools/cuda_runtime/runtime_context.hpp"

/// A function that programs see.
#define TILEWRIGHT_EXPORT extern "C" __attribute__((visibility("default")))

namespace tilewright::cuda_runtime {

/// What cudaGetLastError() returns.
extern thread_local cudaError_t last_error;

/// The function of the driver API that the program has called, while it calls one of the runtime; otherwise null.
extern thread_local const char* driver_function;

/// The mode that cudaThreadExchangeStreamCaptureMode() sets: it says which calls of this thread are refused while
/// streams are captured.
extern thread_local cudaStreamCaptureMode capture_mode;

/// Calls f(machine), and returns its error code. `function` is the name of the function that the program has called,
/// unless driver_function is.
template <class F>
cudaError_t call(F&& f, const char* function = __builtin_FUNCTION()) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  runtime_has_context = runtime_has_context || driver_function == nullptr;
  auto code = static_cast<cudaError_t>(machine.sticky);
  if (code == cudaSuccess) {
    try {
      f(machine);
    } catch (const ApiError& error) {
      code = static_cast<cudaError_t>(error.code);
      machine.note_failure(driver_function != nullptr ? driver_function : function, error);
    } catch (const std::exception& error) {
      machine.note(error.what());
      code = cudaErrorUnknown;
    }
  }
  if (code != cudaSuccess) last_error = code;
  return code;
}

inline cudaError_t unsupported(const char* function) {
  return call([&](Machine& machine) {
    machine.note_unsupported(function);
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

/// The kernel that a program passes to the runtime: the address of its host function, or a cudaKernel_t.
/// @throws ApiError CUDA_ERROR_NOT_FOUND, which the runtime reports as cudaErrorInvalidDeviceFunction
Function* function_of(Machine& machine, const void* kernel);
/// The inverse: the address that a program knows a kernel by.
const void* handle_of(const Function* function);
/// The address and size of a __device__ or __constant__ variable, by the address of its host variable.
std::pair<CUdeviceptr, std::size_t> symbol_of(Machine& machine, const void* symbol);

/// Where a copy of `count` bytes from or to a variable begins, `offset` bytes after the variable. @throws ApiError if
/// the variable is too small
std::byte* symbol_address(Machine& machine, const void* symbol, std::size_t count, std::size_t offset);

Copy::Kind kind_of(cudaMemcpyKind kind);
/// cudaMemcpy3DParms without arrays. @throws ApiError
Copy copy_of(Machine& machine, const cudaMemcpy3DParms& parameters);

}  // namespace tilewright::cuda_runtime
