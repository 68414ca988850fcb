#include "tools/cuda_runtime/error_table.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <iterator>

namespace tilewright::cuda_runtime {
namespace {

#define ROW(runtime, driver, text) \
  ErrorRow { runtime, #runtime, #driver, text }
#define RUNTIME_ROW(runtime, text) \
  ErrorRow { runtime, #runtime, nullptr, text }

constexpr ErrorRow kRows[] = {
    ROW(cudaSuccess, CUDA_SUCCESS, "no error"),
    ROW(cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ROW(cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    RUNTIME_ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    RUNTIME_ROW(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    RUNTIME_ROW(cudaErrorInvalidSymbol, "invalid device symbol"),
    RUNTIME_ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    RUNTIME_ROW(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    RUNTIME_ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ROW(cudaErrorInvalidKernelImage, CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ROW(cudaErrorDeviceUninitialized, CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ROW(cudaErrorNoKernelImageForDevice, CUDA_ERROR_NO_BINARY_FOR_GPU,
        "no kernel image is available for execution on the device"),
    ROW(cudaErrorInvalidPtx, CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ROW(cudaErrorFileNotFound, CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ROW(cudaErrorInvalidResourceHandle, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ROW(cudaErrorIllegalState, CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ROW(cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ROW(cudaErrorNotReady, CUDA_ERROR_NOT_READY, "device not ready"),
    ROW(cudaErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ROW(cudaErrorMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ROW(cudaErrorIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ROW(cudaErrorLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ROW(cudaErrorLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ROW(cudaErrorPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ROW(cudaErrorPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ROW(cudaErrorContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ROW(cudaErrorAssert, CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ROW(cudaErrorHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        "part or all of the requested memory range is already mapped"),
    ROW(cudaErrorHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        "pointer does not correspond to a registered memory region"),
    ROW(cudaErrorLaunchFailure, CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ROW(cudaErrorCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        "too many blocks in cooperative launch"),
    ROW(cudaErrorNotPermitted, CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ROW(cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        "capture was not ended in the same stream as it began"),
    ROW(cudaErrorStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ROW(cudaErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    ROW(cudaErrorCapturedEvent, CUDA_ERROR_CAPTURED_EVENT,
        "operation not permitted on an event last recorded in a capturing stream"),
    ROW(cudaErrorStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        "dependency created on uncaptured work in another stream"),
    ROW(cudaErrorGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        "the graph update was not performed because it included changes which violated constraints specific to "
        "instantiated graph update"),
    ROW(cudaErrorInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    ROW(cudaErrorUnknown, CUDA_ERROR_UNKNOWN, "unknown error"),
};

#undef ROW
#undef RUNTIME_ROW

}  // namespace

const ErrorRow& error_row(int code) {
  static constexpr ErrorRow kUnknown{-1, "unrecognized error code", nullptr, "unrecognized error code"};
  const auto* const found = std::ranges::find(kRows, code, &ErrorRow::code);
  return found == std::end(kRows) ? kUnknown : *found;
}

}  // namespace tilewright::cuda_runtime
