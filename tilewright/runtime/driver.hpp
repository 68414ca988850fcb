// The CUDA driver, opened at run time, without CUDA headers: its functions as checked calls, its errors as exceptions.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/base/fork.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::runtime {

/// CUresult.
using DriverCode = int;

using ContextHandle = struct ContextRecord*;    // CUcontext
using EventHandle = struct EventRecord*;        // CUevent
using FunctionHandle = struct FunctionRecord*;  // CUfunction
using KernelHandle = struct KernelRecord*;      // CUkernel
using LibraryHandle = struct LibraryRecord*;    // CUlibrary
using PoolHandle = struct PoolRecord*;          // CUmemoryPool
using GpuOrdinal = int;                         // CUdevice
using HostFunction = void (*)(void*);           // CUhostFn

/// The result codes that are handled individually; values of CUresult in cuda.h.
inline constexpr DriverCode kSuccess = 0;
inline constexpr DriverCode kInvalidValue = 1;
inline constexpr DriverCode kOutOfMemory = 2;
inline constexpr DriverCode kNotReady = 600;
inline constexpr DriverCode kNotInitialized = 3;
inline constexpr DriverCode kDeinitialized = 4;
inline constexpr DriverCode kStubLibrary = 34;
inline constexpr DriverCode kNoDevice = 100;

/// Whether the code leaves the context unusable, so that every later call fails: memory faults, launch failures, ECC
/// and NVLink errors, a terminated MPS server. According to cuda.h, the process must then be terminated.
bool is_fatal(DriverCode code);

/// CUdevice_attribute.
enum class GpuAttribute : int {
  max_threads_per_block = 1,
  max_block_x = 2,
  max_block_y = 3,
  max_block_z = 4,
  max_grid_x = 5,
  max_grid_y = 6,
  max_grid_z = 7,
  clock_khz = 13,
  sm_count = 16,
  l2_bytes = 38,
  capability_major = 75,
  capability_minor = 76,
  smem_per_sm_bytes = 81,
  registers_per_sm = 82,
  smem_per_block_optin_bytes = 97,
  memory_pools_supported = 115,
  cluster_launch = 120,
};

/// CUfunction_attribute.
enum class KernelAttribute : int {
  max_threads_per_block = 0,
  static_smem_bytes = 1,
  max_dynamic_smem_bytes = 8,
};

/// CUmemPool_attribute.
enum class PoolAttribute : int { release_threshold = 4, reserved_bytes = 5 };

/// CUstreamCaptureMode: which calls are prohibited during a capture, on which threads.
enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

/// CUstreamCaptureStatus.
enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;

/// CUmemPoolProps: device memory, not exported.
struct PoolProperties {
  int allocation_type = 1;  // pinned
  int handle_types = 0;
  int location_type = 1;  // device
  int location_id = 0;
  void* security_attributes = nullptr;
  std::size_t maximum_bytes = 0;  // 0: the system default
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(PoolProperties) == 88);

/// CUlaunchAttribute: an id and 64 bytes of value.
struct LaunchAttribute {
  static constexpr int kCooperative = 2;
  static constexpr int kClusterDimension = 4;
  static constexpr int kProgrammaticStreamSerialization = 6;
  int id;
  int padding;
  union {
    Dim3 cluster;
    int allowed;
    unsigned char bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchRecord {
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_smem_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchRecord) == 56);

/// The keys of cuLaunchKernelEx's `extra` list.
inline void* const kParameterEnd = nullptr;
inline void* const kParameterBuffer = reinterpret_cast<void*>(std::uintptr_t{1});
inline void* const kParameterBufferSize = reinterpret_cast<void*>(std::uintptr_t{2});

/// "13.0" for 13000: 1000 * major + 10 * minor.
std::string cuda_version_text(int version);

struct DriverOptions {
  std::string library_path = "libcuda.so.1";  // as dlopen takes it
};

class Driver;

enum class Presence { required, optional };

/// A function of the driver. A call throws as Driver::check does, and without calling the driver after a fatal error.
template <class... Parameters>
class DriverCall {
 public:
  /// Looks up the function with the ABI of CUDA `version` (1000 * major + 10 * minor).
  /// @throws DriverError if the driver does not have it and it is required
  DriverCall(Driver& driver, const char* symbol, int version = 12000, Presence presence = Presence::required);

  /// @throws DriverError, OutOfMemory
  void operator()(Parameters... parameters) const;
  /// The unchecked call. The caller must pass the code to Driver::check or Driver::note.
  DriverCode raw(Parameters... parameters) const { return function_(parameters...); }
  const char* symbol() const { return symbol_; }
  bool present() const { return function_ != nullptr; }

 private:
  Driver& driver_;
  const char* symbol_;
  DriverCode (*function_)(Parameters...);
};

/// The opened driver library. Opening does not initialise CUDA; initialize() does. Thread-safe.
/// The library is never unloaded, because the driver has its own threads.
class Driver {
  struct Library {
    explicit Library(const DriverOptions& options);
    void* handle;
    void* get_procedure;
  };
  Library library_;  // must precede the calls below, whose constructors look up their functions in it

 public:
  /// @throws ToolchainNotFound if there is no driver library, only the toolkit's stub, or a driver before CUDA 12.0
  explicit Driver(const DriverOptions& options = {});
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// cuInit, once for this process.
  /// @throws ToolchainNotFound if there is no usable driver or GPU, DriverError for any other failure
  void initialize();

  /// @throws OutOfMemory for kOutOfMemory; else, if not kSuccess, DriverError with code, name, text and call.
  /// A fatal code is remembered: this and every later call throws it.
  void check(DriverCode code, const char* call) {
    if (code != kSuccess) [[unlikely]]
      fail(code, call);
  }
  /// For destructors: remembers a fatal code, logs other errors, and ignores a driver that is shutting down.
  void note(DriverCode code, const char* call) noexcept;

  /// @throws DriverError after a fatal error (the first one), or in a fork of the process that called initialize()
  void require_usable() const {
    if (poison_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
      throw_poisoned();
    if (!is_owner_process()) [[unlikely]]
      throw_forked();
  }
  bool poisoned() const { return poison_.load(std::memory_order_acquire) != nullptr; }
  bool is_owner_process() const {
    const std::uint64_t owner = owner_generation_.load(std::memory_order_relaxed);
    return owner == kNoOwner || owner == fork_generation();  // no system call, because every launch asks
  }

  /// "CUDA_ERROR_INVALID_VALUE (1): invalid argument"
  std::string describe(DriverCode code) const;

 private:
  template <class... Parameters>
  friend class DriverCall;

  /// The first fatal error.
  struct Poison {
    DriverCode code;
    std::string message;
  };

  void* find(const char* symbol, int version, Presence presence) const;
  void poison(DriverCode code, const char* call);
  [[noreturn]] void fail(DriverCode code, const char* call);
  [[noreturn]] void throw_poisoned() const;
  [[noreturn]] void throw_forked() const;

  std::atomic<const Poison*> poison_{nullptr};
  std::unique_ptr<const Poison> first_poison_;
  std::mutex poison_mutex_;
  std::mutex initialize_mutex_;
  bool initialized_ = false;
  static constexpr std::uint64_t kNoOwner = ~std::uint64_t{0};
  // The process that initialised CUDA: its id, for messages, and its fork_generation().
  std::atomic<pid_t> owner_{0};
  std::atomic<std::uint64_t> owner_generation_{kNoOwner};

 public:
  const DriverCall<DriverCode, const char**> get_error_name{*this, "cuGetErrorName"};
  const DriverCall<DriverCode, const char**> get_error_string{*this, "cuGetErrorString"};
  const DriverCall<unsigned> init{*this, "cuInit"};
  const DriverCall<int*> driver_get_version{*this, "cuDriverGetVersion"};

  const DriverCall<int*> device_get_count{*this, "cuDeviceGetCount"};
  const DriverCall<GpuOrdinal*, int> device_get{*this, "cuDeviceGet"};
  const DriverCall<char*, int, GpuOrdinal> device_get_name{*this, "cuDeviceGetName"};
  const DriverCall<std::size_t*, GpuOrdinal> device_total_mem{*this, "cuDeviceTotalMem"};
  const DriverCall<int*, GpuAttribute, GpuOrdinal> device_get_attribute{*this, "cuDeviceGetAttribute"};
  const DriverCall<ContextHandle*, GpuOrdinal> primary_ctx_retain{*this, "cuDevicePrimaryCtxRetain"};
  const DriverCall<GpuOrdinal> primary_ctx_release{*this, "cuDevicePrimaryCtxRelease"};
  const DriverCall<ContextHandle> ctx_set_current{*this, "cuCtxSetCurrent"};
  const DriverCall<ContextHandle*> ctx_get_current{*this, "cuCtxGetCurrent"};
  const DriverCall<> ctx_synchronize{*this, "cuCtxSynchronize"};

  const DriverCall<LibraryHandle*, const void*, int*, void**, unsigned, int*, void**, unsigned> library_load_data{
      *this, "cuLibraryLoadData"};
  const DriverCall<LibraryHandle> library_unload{*this, "cuLibraryUnload"};
  const DriverCall<KernelHandle*, LibraryHandle, const char*> library_get_kernel{*this, "cuLibraryGetKernel"};
  const DriverCall<KernelAttribute, int, KernelHandle, GpuOrdinal> kernel_set_attribute{*this, "cuKernelSetAttribute"};
  const DriverCall<int*, KernelAttribute, KernelHandle, GpuOrdinal> kernel_get_attribute{*this, "cuKernelGetAttribute"};
  const DriverCall<KernelHandle, std::size_t, std::size_t*, std::size_t*> kernel_get_param_info{
      *this, "cuKernelGetParamInfo", 12040, Presence::optional};
  const DriverCall<FunctionHandle*, KernelHandle> kernel_get_function{*this, "cuKernelGetFunction"};
  const DriverCall<const LaunchRecord*, FunctionHandle, void**, void**> launch_kernel{*this, "cuLaunchKernelEx"};

  const DriverCall<StreamHandle*, unsigned> stream_create{*this, "cuStreamCreate"};
  const DriverCall<StreamHandle> stream_destroy{*this, "cuStreamDestroy"};
  const DriverCall<StreamHandle> stream_synchronize{*this, "cuStreamSynchronize"};
  const DriverCall<StreamHandle, CaptureStatus*> stream_is_capturing{*this, "cuStreamIsCapturing"};
  const DriverCall<StreamHandle, std::uint64_t*> stream_get_id{*this, "cuStreamGetId"};
  /// Results: status, id of the capture, graph, dependencies of the next node, number of dependencies.
  const DriverCall<StreamHandle, CaptureStatus*, std::uint64_t*, void**, const void**, std::size_t*>
      stream_get_capture_info{*this, "cuStreamGetCaptureInfo"};
  const DriverCall<CaptureMode*> thread_exchange_capture_mode{*this, "cuThreadExchangeStreamCaptureMode"};
  const DriverCall<StreamHandle, EventHandle, unsigned> stream_wait_event{*this, "cuStreamWaitEvent"};
  const DriverCall<StreamHandle, HostFunction, void*> launch_host_function{*this, "cuLaunchHostFunc"};
  const DriverCall<EventHandle*, unsigned> event_create{*this, "cuEventCreate"};
  const DriverCall<EventHandle> event_destroy{*this, "cuEventDestroy"};
  const DriverCall<EventHandle, StreamHandle> event_record{*this, "cuEventRecord"};
  const DriverCall<EventHandle> event_query{*this, "cuEventQuery"};
  const DriverCall<EventHandle> event_synchronize{*this, "cuEventSynchronize"};
  const DriverCall<float*, EventHandle, EventHandle> event_elapsed_time{*this, "cuEventElapsedTime"};

  const DriverCall<PoolHandle*, const PoolProperties*> mem_pool_create{*this, "cuMemPoolCreate"};
  const DriverCall<PoolHandle> mem_pool_destroy{*this, "cuMemPoolDestroy"};
  const DriverCall<PoolHandle, PoolAttribute, void*> mem_pool_set_attribute{*this, "cuMemPoolSetAttribute"};
  const DriverCall<PoolHandle, PoolAttribute, void*> mem_pool_get_attribute{*this, "cuMemPoolGetAttribute"};
  const DriverCall<PoolHandle, std::size_t> mem_pool_trim_to{*this, "cuMemPoolTrimTo"};
  const DriverCall<DeviceAddress*, std::size_t, PoolHandle, StreamHandle> mem_alloc_from_pool{
      *this, "cuMemAllocFromPoolAsync"};
  const DriverCall<DeviceAddress, StreamHandle> mem_free{*this, "cuMemFreeAsync"};
  const DriverCall<std::size_t*, std::size_t*> mem_get_info{*this, "cuMemGetInfo"};
  const DriverCall<DeviceAddress, const void*, std::size_t, StreamHandle> copy_host_to_device{*this,
                                                                                              "cuMemcpyHtoDAsync"};
  const DriverCall<void*, DeviceAddress, std::size_t, StreamHandle> copy_device_to_host{*this, "cuMemcpyDtoHAsync"};
  const DriverCall<DeviceAddress, DeviceAddress, std::size_t, StreamHandle> copy_device_to_device{*this,
                                                                                                  "cuMemcpyDtoDAsync"};
  const DriverCall<DeviceAddress, unsigned char, std::size_t, StreamHandle> fill_bytes{*this, "cuMemsetD8Async"};
  /// map, type, rank, address, extents, strides of modes 1.., box, element strides, interleave, swizzle, promotion,
  /// fill
  const DriverCall<EncodedTensorMap*, int, unsigned, DeviceAddress, const std::uint64_t*, const std::uint64_t*,
                   const std::uint32_t*, const std::uint32_t*, int, int, int, int>
      tensor_map_encode_tiled{*this, "cuTensorMapEncodeTiled"};
  /// map, type, rank, address, extents, strides of modes 1.., lower and upper corner of the bounding box, channels per
  /// pixel, pixels per column, element strides, interleave, swizzle, promotion, fill
  const DriverCall<EncodedTensorMap*, int, unsigned, DeviceAddress, const std::uint64_t*, const std::uint64_t*,
                   const std::int32_t*, const std::int32_t*, std::uint32_t, std::uint32_t, const std::uint32_t*, int,
                   int, int, int>
      tensor_map_encode_im2col{*this, "cuTensorMapEncodeIm2col"};
};

template <class... Parameters>
DriverCall<Parameters...>::DriverCall(Driver& driver, const char* symbol, int version, Presence presence)
    : driver_(driver),
      symbol_(symbol),
      function_(reinterpret_cast<DriverCode (*)(Parameters...)>(driver.find(symbol, version, presence))) {}

template <class... Parameters>
void DriverCall<Parameters...>::operator()(Parameters... parameters) const {
  driver_.require_usable();
  driver_.check(function_(parameters...), symbol_);
}

}  // namespace tilewright::runtime
