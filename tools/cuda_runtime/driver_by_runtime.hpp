// How functions of the driver API call those of the runtime that do the same.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {

/// The result of a call of the runtime, whose last error stays as it was. The codes of both APIs for the errors of
/// these functions are the same numbers. `function` is the name of the function that the program has called.
template <class F>
CUresult by_runtime(F&& f, const char* function = __builtin_FUNCTION()) {
  const cudaError_t before = last_error;
  driver_function = function;
  const cudaError_t code = f();
  driver_function = nullptr;
  last_error = before;
  return static_cast<CUresult>(code);
}

/// Calls f(machine) as call() does, as the function of the driver API whose name is `function`.
template <class F>
CUresult call_driver(F&& f, const char* function = __builtin_FUNCTION()) {
  return by_runtime([&] { return call(f, function); }, function);
}

inline void* pointer_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// The work that a box of the driver API describes. @throws ApiError, also for arrays
Copy copy_of(Machine& machine, const CUDA_MEMCPY3D* box);

}  // namespace tilewright::cuda_runtime
