// How each function of cuBLAS is implemented: by a lambda on the machine, which throws BlasError.
#pragma once

#include <cublas_v2.h>

#include <exception>
#include <string>
#include <utility>

#include "tools/cuda_runtime/blas/matrix.hpp"
#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime::blas {

/// Thrown by what a function of cuBLAS calls; the function returns the status, and the report says why.
struct BlasError {
  cublasStatus_t status;
  std::string reason;
};

[[noreturn]] inline void refuse(cublasStatus_t status, std::string reason) {
  throw BlasError{status, std::move(reason)};
}
inline void require_argument(bool condition, const char* reason) {
  if (!condition) refuse(CUBLAS_STATUS_INVALID_VALUE, reason);
}

/// A cublasHandle_t.
struct Handle {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  int multiprocessors = 0;  // cublasSetSmCountTarget()
};

/// @throws BlasError CUBLAS_STATUS_NOT_INITIALIZED
Handle& handle_of(cublasHandle_t handle);

std::string_view name_of(cublasStatus_t status);
/// The name of a function in the source of programs, where the headers rename cublasSgemm to cublasSgemm_v2.
std::string source_name(std::string_view function);

/// Notes a call that has failed, and returns the status.
cublasStatus_t note_failure(Machine& machine, const char* function, const BlasError& error);

/// Calls f(machine), and returns its status. `function` is the name of the function that the program has called.
template <class F>
cublasStatus_t call(F&& f, const char* function = __builtin_FUNCTION()) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  if (machine.sticky != CUDA_SUCCESS) return CUBLAS_STATUS_EXECUTION_FAILED;
  try {
    f(machine);
    return CUBLAS_STATUS_SUCCESS;
  } catch (const BlasError& error) {
    return note_failure(machine, function, error);
  } catch (const ApiError& error) {
    machine.note_failure(function, error);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  } catch (const std::exception& error) {
    return note_failure(machine, function, {CUBLAS_STATUS_INTERNAL_ERROR, error.what()});
  }
}

/// alpha or beta: a number, or where it is in device memory when the work runs.
struct Scalar {
  double value = 0;
  Vector device;  // n is 0 for a number

  /// False if the device memory cannot be read.
  bool resolve(LibraryMemory& memory, const char* what) {
    if (device.n == 0) return true;
    if (!memory.reads(what, device.bytes())) return false;
    value = read(device).front();
    return true;
  }
};
/// @throws BlasError for a null pointer
Scalar scalar_of(cublasPointerMode_t mode, cudaDataType type, const void* pointer, const char* what);

/// Enqueues the work in a stream. `key` is that of LibraryCall.
void enqueue(Machine& machine, cudaStream_t stream, const char* function, std::function<void(LibraryMemory&)> run,
             const std::string& key = {});

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

template <class T>
constexpr cudaDataType kDataType = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;

}  // namespace tilewright::cuda_runtime::blas
