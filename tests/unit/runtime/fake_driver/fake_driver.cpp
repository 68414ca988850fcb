// A libcuda for tests: counts handles, fails on request, executes nothing.
#include "fake_driver.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace {

using fake_driver::Launch;
using fake_driver::State;

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;

State g_state;
std::mutex g_mutex;
/// Never destroyed, so that handles left by an unusable context are not reported as leaks of the process.
std::map<void*, std::string>& g_handles = *new std::map<void*, std::string>;
thread_local void* t_current_context = nullptr;
char g_primary_context;

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_smem_bytes;
  void* stream;
  struct Attribute {
    int id;
    int padding;
    unsigned words[16];
  } * attributes;
  unsigned attribute_count;
};

/// Counts the call. Returns the code with which the test wants it to fail, else 0.
int enter(const char* symbol) {
  const std::scoped_lock lock(g_mutex);
  ++g_state.calls[symbol];
  const auto failure = g_state.failures.find(symbol);
  return failure == g_state.failures.end() ? kSuccess : failure->second;
}

int enter_with_context(const char* symbol) {
  const int code = enter(symbol);
  return code != kSuccess ? code : t_current_context == nullptr ? kInvalidContext : kSuccess;
}

template <class Handle>
int create(const char* symbol, const char* kind, Handle* out, std::size_t bytes = 16) {
  if (const int code = enter_with_context(symbol); code != kSuccess) return code;
  void* handle = std::malloc(std::max<std::size_t>(bytes, 1));
  const std::scoped_lock lock(g_mutex);
  g_handles[handle] = kind;
  ++g_state.live[kind];
  *out = (Handle)handle;
  return kSuccess;
}

int destroy(const char* symbol, const char* kind, void* handle) {
  if (const int code = enter_with_context(symbol); code != kSuccess) return code;
  const std::scoped_lock lock(g_mutex);
  const auto entry = g_handles.find(handle);
  if (entry == g_handles.end() || entry->second != kind) {
    ++g_state.bad_releases;
    return kInvalidValue;
  }
  --g_state.live[kind];
  g_handles.erase(entry);
  std::free(handle);
  return kSuccess;
}

int attribute_value(int attribute) {
  switch (attribute) {
    case 1:
      return 1024;  // threads per block
    case 2:
    case 3:
      return 1024;  // block x, y
    case 4:
      return 64;  // block z
    case 5:
      return 2147483647;  // grid x
    case 6:
    case 7:
      return 65535;  // grid y, z
    case 13:
      return 1980000;  // kHz
    case 16:
      return 132;  // SMs
    case 38:
      return 50 << 20;  // L2
    case 75:
      return 9;  // capability
    case 76:
      return 0;
    case 81:
      return 233472;  // shared memory per SM
    case 82:
      return 65536;  // registers per SM
    case 97:
      return 232448;  // shared memory per block
    case 115:
      return g_state.memory_pools_supported;
    case 120:
      return 1;  // clusters
    default:
      return 0;
  }
}

int launch(const LaunchConfig* config, void*, void** parameters, void** extra) {
  if (const int code = enter_with_context("cuLaunchKernelEx"); code != kSuccess) return code;
  Launch record{};
  std::copy_n(config->grid, 3, record.grid);
  std::copy_n(config->block, 3, record.block);
  record.dynamic_smem_bytes = config->dynamic_smem_bytes;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const auto& attribute = config->attributes[i];
    record.attributes[attribute.id] = {attribute.words[0], attribute.words[1], attribute.words[2]};
  }
  if (parameters != nullptr) {
    const auto* bytes = static_cast<const std::byte*>(parameters[0]);
    record.parameters.assign(bytes, bytes + g_state.parameter_sizes.at(0));
  } else if (extra != nullptr) {
    const auto* bytes = static_cast<const std::byte*>(extra[1]);
    record.parameters.assign(bytes, bytes + *static_cast<const std::size_t*>(extra[3]));
  }
  g_state.launches.push_back(record);
  return kSuccess;
}

int pool_allocate(std::uint64_t* address, std::size_t bytes, void*, void*) {
  if (bytes > g_state.free_bytes) {
    const int code = enter_with_context("cuMemAllocFromPoolAsync");
    return code != kSuccess ? code : kOutOfMemory;
  }
  return create("cuMemAllocFromPoolAsync", "allocation", address, bytes);
}

int parameter_info(void*, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (const int code = enter_with_context("cuKernelGetParamInfo"); code != kSuccess) return code;
  if (index >= g_state.parameter_sizes.size()) return kInvalidValue;
  *offset = 0;
  for (std::size_t i = 0; i < index; ++i) *offset += g_state.parameter_sizes[i];
  *size = g_state.parameter_sizes[index];
  return kSuccess;
}

/// Sets every bit of the map, so that tests see which bits the caller clears.
int encode_tensor_map(void* map, int type, unsigned rank, std::uint64_t address, const std::uint64_t* extents,
                      const std::uint64_t* strides, const unsigned* box, const unsigned* element_strides,
                      int interleave, int swizzle, int promotion, int fill) {
  if (const int code = enter_with_context("cuTensorMapEncodeTiled"); code != kSuccess) return code;
  g_state.tensor_maps.push_back({type,
                                 address,
                                 {extents, extents + rank},
                                 {strides, strides + rank - 1},
                                 {box, box + rank},
                                 {element_strides, element_strides + rank},
                                 interleave,
                                 swizzle,
                                 promotion,
                                 fill});
  std::memset(map, 0xff, 128);
  return kSuccess;
}

/// A driver call that only returns a result: `answer` writes it unless the call fails.
#define ANSWER(symbol, parameters, ...)                     \
  {                                                         \
    symbol, reinterpret_cast<void*>(+[] parameters -> int { \
      const int code = enter(symbol);                       \
      if (code != kSuccess) return code;                    \
      __VA_ARGS__;                                          \
      return kSuccess;                                      \
    })                                                      \
  }
#define WITH_CONTEXT(symbol, parameters, ...)               \
  {                                                         \
    symbol, reinterpret_cast<void*>(+[] parameters -> int { \
      const int code = enter_with_context(symbol);          \
      if (code != kSuccess) return code;                    \
      __VA_ARGS__;                                          \
      return kSuccess;                                      \
    })                                                      \
  }
#define FORWARD(symbol, parameters, expression)                                   \
  {                                                                               \
    symbol, reinterpret_cast<void*>(+[] parameters -> int { return expression; }) \
  }

struct Function {
  const char* symbol;
  void* address;
};

const Function kFunctions[] = {
    ANSWER("cuInit", (unsigned), ),
    ANSWER("cuDriverGetVersion", (int* version), *version = g_state.version),
    ANSWER("cuDeviceGetCount", (int* count), *count = g_state.device_count),
    ANSWER("cuDeviceGet", (int* device, int ordinal), *device = ordinal),
    ANSWER("cuDeviceGetName", (char* name, int size, int), std::strncpy(name, "Fake GPU", std::size_t(size))),
    ANSWER("cuDeviceTotalMem", (std::size_t * bytes, int), *bytes = std::size_t{1} << 30),
    ANSWER("cuDeviceGetAttribute", (int* value, int attribute, int), *value = attribute_value(attribute)),
    ANSWER("cuDevicePrimaryCtxRetain", (void** context, int), *context = &g_primary_context;
           ++g_state.live["primary context"]),
    ANSWER("cuDevicePrimaryCtxRelease", (int), --g_state.live["primary context"]),
    ANSWER("cuCtxSetCurrent", (void* context), t_current_context = context),
    ANSWER("cuCtxGetCurrent", (void** context), *context = t_current_context),
    WITH_CONTEXT("cuCtxSynchronize", (), ),
    ANSWER("cuGetErrorName", (int error, const char** name),
           *name = error == kInvalidValue ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_FAKE"),
    ANSWER("cuGetErrorString", (int, const char** text), *text = "a scripted failure"),

    FORWARD("cuLibraryLoadData", (void** library, const void*, int*, void**, unsigned, int*, void**, unsigned),
            create("cuLibraryLoadData", "library", library)),
    FORWARD("cuLibraryUnload", (void* library),
            (g_state.capture_mode_at_unload = g_state.capture_mode, destroy("cuLibraryUnload", "library", library))),
    WITH_CONTEXT("cuLibraryGetKernel", (void** kernel, void* library, const char* name),
                 if (std::string_view(name) == "missing") return kNotFound;
                 *kernel = library),
    WITH_CONTEXT("cuKernelGetFunction", (void** function, void* kernel), *function = kernel),
    WITH_CONTEXT("cuKernelSetAttribute", (int, int, void*, int), ),
    WITH_CONTEXT("cuKernelGetAttribute", (int* value, int attribute, void*, int),
                 *value = attribute == 0   ? 512
                          : attribute == 1 ? g_state.static_smem_bytes
                                           : 0),
    FORWARD("cuKernelGetParamInfo", (void* kernel, std::size_t index, std::size_t* offset, std::size_t* size),
            parameter_info(kernel, index, offset, size)),
    {"cuLaunchKernelEx", reinterpret_cast<void*>(&launch)},

    FORWARD("cuStreamCreate", (void** stream, unsigned), create("cuStreamCreate", "stream", stream)),
    FORWARD("cuStreamDestroy", (void* stream), destroy("cuStreamDestroy", "stream", stream)),
    WITH_CONTEXT("cuStreamSynchronize", (void*), ),
    WITH_CONTEXT("cuStreamIsCapturing", (void*, int* status), *status = g_state.capture_status),
    WITH_CONTEXT("cuStreamGetId", (void* stream, std::uint64_t* id),
                 *id = reinterpret_cast<std::uintptr_t>(stream) + 1),
    WITH_CONTEXT("cuStreamGetCaptureInfo", (void*, int* status, std::uint64_t* id, void**, const void**, std::size_t*),
                 *status = g_state.capture_status;
                 *id = g_state.capture_id),
    ANSWER("cuThreadExchangeStreamCaptureMode", (int* mode), std::swap(*mode, g_state.capture_mode)),
    WITH_CONTEXT("cuStreamWaitEvent", (void*, void*, unsigned), ),
    FORWARD("cuEventCreate", (void** event, unsigned), create("cuEventCreate", "event", event)),
    FORWARD("cuEventDestroy", (void* event), destroy("cuEventDestroy", "event", event)),
    WITH_CONTEXT("cuEventRecord", (void*, void*), ),
    WITH_CONTEXT("cuEventQuery", (void*), ),
    WITH_CONTEXT("cuEventSynchronize", (void*), ),
    WITH_CONTEXT("cuEventElapsedTime", (float* milliseconds, void*, void*), *milliseconds = 1.5f),

    FORWARD("cuMemPoolCreate", (void** pool, const void*), create("cuMemPoolCreate", "pool", pool)),
    FORWARD("cuMemPoolDestroy", (void* pool), destroy("cuMemPoolDestroy", "pool", pool)),
    WITH_CONTEXT("cuMemPoolSetAttribute", (void*, int attribute, void* value),
                 if (attribute == 4) std::memcpy(&g_state.release_threshold, value, sizeof(std::size_t))),
    WITH_CONTEXT("cuMemPoolGetAttribute", (void*, int, void* value), const std::uint64_t bytes = 4096;
                 std::memcpy(value, &bytes, sizeof bytes)),
    WITH_CONTEXT("cuMemPoolTrimTo", (void*, std::size_t), ),
    {"cuMemAllocFromPoolAsync", reinterpret_cast<void*>(&pool_allocate)},
    FORWARD("cuMemFreeAsync", (std::uint64_t address, void*),
            destroy("cuMemFreeAsync", "allocation", reinterpret_cast<void*>(address))),
    WITH_CONTEXT("cuMemGetInfo", (std::size_t * free, std::size_t* total), *free = g_state.free_bytes;
                 *total = std::size_t{1} << 30),
    WITH_CONTEXT("cuMemcpyHtoDAsync", (std::uint64_t to, const void* from, std::size_t bytes, void*),
                 std::memcpy(reinterpret_cast<void*>(to), from, bytes)),
    WITH_CONTEXT("cuMemcpyDtoHAsync", (void* to, std::uint64_t from, std::size_t bytes, void*),
                 std::memcpy(to, reinterpret_cast<const void*>(from), bytes)),
    WITH_CONTEXT("cuMemcpyDtoDAsync", (std::uint64_t to, std::uint64_t from, std::size_t bytes, void*),
                 std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes)),
    WITH_CONTEXT("cuMemsetD8Async", (std::uint64_t to, unsigned char value, std::size_t bytes, void*),
                 std::memset(reinterpret_cast<void*>(to), value, bytes)),
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&encode_tensor_map)},
};

}  // namespace

extern "C" {

[[gnu::visibility("default")]] State* fake_driver_state() { return &g_state; }

[[gnu::visibility("default")]] int cuGetProcAddress_v2(const char* symbol, void** function, int, std::uint64_t, int*) {
  if (const int code = enter("cuGetProcAddress"); code != kSuccess) return code;
  const auto* found =
      std::ranges::find_if(kFunctions, [&](const Function& f) { return f.symbol == std::string_view(symbol); });
  if (found == std::end(kFunctions) || g_state.failures.contains(std::string("find ") + symbol)) return kNotFound;
  *function = found->address;
  return kSuccess;
}

}  // extern "C"
