// Handles of cuBLAS, their settings, and copies of vectors and matrices.
#include <map>
#include <memory>

#include "tools/cuda_runtime/blas/blas_call.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

/// The version that cublasGetVersion() returns: of the headers that this library is compiled with.
constexpr int kVersion = CUBLAS_VERSION;

std::map<const void*, std::unique_ptr<Handle>>& handles() {
  static auto* const all = new std::map<const void*, std::unique_ptr<Handle>>;
  return *all;
}

struct StatusRow {
  cublasStatus_t status;
  const char* name;
  const char* text;
};
constexpr StatusRow kStatuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "the operation completed"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the handle was not created by cublasCreate"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "memory could not be allocated"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument is invalid"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the GPU does not have the feature"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "GPU memory could not be accessed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the work could not be run"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the function is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license could not be checked"},
};
const StatusRow& row_of(cublasStatus_t status) {
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) return row;
  }
  static constexpr StatusRow kUnknown{CUBLAS_STATUS_INTERNAL_ERROR, "unknown", "unknown status"};
  return kUnknown;
}

/// Sets or gets a member of a handle.
template <class T>
cublasStatus_t set(cublasHandle_t handle, T Handle::*member, T value, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine&) { handle_of(handle).*member = value; }, function);
}
template <class T>
cublasStatus_t get(cublasHandle_t handle, T Handle::*member, T* value, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        require_argument(value != nullptr, "the pointer to the result is null");
        *value = handle_of(handle).*member;
      },
      function);
}

/// A copy of `lines` pieces of `width` elements, whose pitches are in elements.
cublasStatus_t copy_elements(std::int64_t width, std::int64_t lines, std::int64_t element, const void* from,
                             std::int64_t from_pitch, void* to, std::int64_t to_pitch, Copy::Kind kind,
                             const cudaStream_t* stream, const char* function) {
  return call(
      [&](Machine& machine) {
        require_argument(element > 0 && width >= 0 && lines >= 0,
                         "an extent is negative, or the element size is not positive");
        require_argument(from_pitch >= width && to_pitch >= width, "an increment or leading dimension is too small");
        if (width == 0 || lines == 0) return;
        Copy copy;
        copy.to = static_cast<std::byte*>(to);
        copy.from = static_cast<const std::byte*>(from);
        copy.width = static_cast<std::size_t>(width * element);
        copy.height = static_cast<std::size_t>(lines);
        copy.to_pitch = static_cast<std::size_t>(to_pitch * element);
        copy.from_pitch = static_cast<std::size_t>(from_pitch * element);
        copy.kind = kind;
        if (stream == nullptr) return machine.copy_and_wait(copy);
        machine.enqueue(machine.stream(*stream), copy);
      },
      function);
}

}  // namespace

Handle& handle_of(cublasHandle_t handle) {
  const auto found = handles().find(handle);
  if (found == handles().end()) refuse(CUBLAS_STATUS_NOT_INITIALIZED, "the handle was not created by cublasCreate");
  return *found->second;
}

std::string_view name_of(cublasStatus_t status) { return row_of(status).name; }

std::string source_name(std::string_view function) {
  return std::string(function.substr(0, function.size() - (function.ends_with("_v2") ? 3 : 0)));
}

cublasStatus_t note_failure(Machine& machine, const char* function, const BlasError& error) {
  if (error.status == CUBLAS_STATUS_NOT_SUPPORTED) {
    machine.note_unsupported(fmt::format("{} ({})", source_name(function), error.reason));
  } else {
    machine.note(fmt::format("{} returned {}: {}", source_name(function), name_of(error.status), error.reason));
  }
  return error.status;
}

Scalar scalar_of(cublasPointerMode_t mode, cudaDataType type, const void* pointer, const char* what) {
  if (pointer == nullptr) refuse(CUBLAS_STATUS_INVALID_VALUE, fmt::format("{} is null", what));
  if (mode == CUBLAS_POINTER_MODE_DEVICE) return {0, {address(pointer), type, 1, 1}};
  return {read_element(type, pointer), {0, type, 0, 1}};
}

void enqueue(Machine& machine, cudaStream_t stream, const char* function, std::function<void(LibraryMemory&)> run,
             const std::string& key) {
  machine.enqueue(machine.stream(stream), LibraryCall{source_name(function), key, std::move(run)});
}

TILEWRIGHT_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return call([&](Machine&) {
    require_argument(handle != nullptr, "the pointer to the handle is null");
    auto created = std::make_unique<Handle>();
    *handle = reinterpret_cast<cublasHandle_t>(created.get());
    handles()[*handle] = std::move(created);
  });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return call([&](Machine& machine) {
    handle_of(handle);  // refuses what is no handle
    machine.wait_for_all();
    handles().erase(handle);
  });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  return call([&](Machine&) {
    require_argument(version != nullptr, "the pointer to the version is null");
    *version = kVersion;
  });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return call([&](Machine&) {
    require_argument(value != nullptr && type <= PATCH_LEVEL, "there is no such property, or the pointer is null");
    *value = type == MAJOR_VERSION ? kVersion / 10000 : type == MINOR_VERSION ? kVersion / 100 % 100 : kVersion % 100;
  });
}
TILEWRIGHT_EXPORT size_t cublasGetCudartVersion() { return CUDART_VERSION; }
TILEWRIGHT_EXPORT const char* cublasGetStatusName(cublasStatus_t status) { return row_of(status).name; }
TILEWRIGHT_EXPORT const char* cublasGetStatusString(cublasStatus_t status) { return row_of(status).text; }

TILEWRIGHT_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return call([&](Machine& machine) {
    machine.stream(stream);
    handle_of(handle).stream = stream;
  });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return get(handle, &Handle::stream, stream);
}
/// Work is computed on the host, and needs no workspace.
TILEWRIGHT_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*, size_t) {
  return call([&](Machine&) { handle_of(handle); });
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set(handle, &Handle::pointer_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return get(handle, &Handle::pointer_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set(handle, &Handle::math_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return get(handle, &Handle::math_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return set(handle, &Handle::atomics_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return get(handle, &Handle::atomics_mode, mode);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  return set(handle, &Handle::multiprocessors, count);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return get(handle, &Handle::multiprocessors, count);
}

TILEWRIGHT_EXPORT cublasStatus_t cublasSetVector(int n, int size, const void* x, int x_step, void* y, int y_step) {
  return copy_elements(1, n, size, x, x_step, y, y_step, Copy::Kind::host_to_device, nullptr, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetVector(int n, int size, const void* x, int x_step, void* y, int y_step) {
  return copy_elements(1, n, size, x, x_step, y, y_step, Copy::Kind::device_to_host, nullptr, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetVectorAsync(int n, int size, const void* x, int x_step, void* y, int y_step,
                                                      cudaStream_t stream) {
  return copy_elements(1, n, size, x, x_step, y, y_step, Copy::Kind::host_to_device, &stream, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetVectorAsync(int n, int size, const void* x, int x_step, void* y, int y_step,
                                                      cudaStream_t stream) {
  return copy_elements(1, n, size, x, x_step, y, y_step, Copy::Kind::device_to_host, &stream, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                                                 int ldb) {
  return copy_elements(rows, columns, size, a, lda, b, ldb, Copy::Kind::host_to_device, nullptr, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                                                 int ldb) {
  return copy_elements(rows, columns, size, a, lda, b, ldb, Copy::Kind::device_to_host, nullptr, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* a, int lda, void* b,
                                                      int ldb, cudaStream_t stream) {
  return copy_elements(rows, columns, size, a, lda, b, ldb, Copy::Kind::host_to_device, &stream, __func__);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* a, int lda, void* b,
                                                      int ldb, cudaStream_t stream) {
  return copy_elements(rows, columns, size, a, lda, b, ldb, Copy::Kind::device_to_host, &stream, __func__);
}

}  // namespace tilewright::cuda_runtime::blas
