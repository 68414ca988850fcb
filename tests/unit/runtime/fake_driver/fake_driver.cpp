// A libcuda for tests: counts handles, fails on request, and executes nothing but host functions.
#include "fake_driver.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using fake_driver::Launch;
using fake_driver::State;

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kStreamCaptureUnsupported = 900;

State g_state;
std::mutex g_mutex;
/// Never destroyed, so that handles left by an unusable context are not reported as leaks of the process.
std::map<void*, std::string>& g_handles = *new std::map<void*, std::string>;
/// The host functions of each stream. Never destroyed, because those of an unusable context are not waited for.
std::multimap<void*, std::thread>& g_host_functions = *new std::multimap<void*, std::thread>;
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

/// Runs the function at once. Work that is enqueued later does not wait for it, but synchronizing with the stream does.
int launch_host_function(void* stream, void (*function)(void*), void* data) {
  if (const int code = enter_with_context("cuLaunchHostFunc"); code != kSuccess) return code;
  const std::scoped_lock lock(g_mutex);
  g_state.stream_work.push_back({"host function", stream});
  g_host_functions.emplace(stream, std::thread(function, data));
  return kSuccess;
}

void wait_for_host_functions(void* stream) {
  while (true) {
    std::thread function;
    {
      const std::scoped_lock lock(g_mutex);
      const auto entry = g_host_functions.find(stream);
      if (entry == g_host_functions.end()) return;
      function = std::move(entry->second);
      g_host_functions.erase(entry);
    }
    function.join();
  }
}

int destroy_stream(void* stream) {
  wait_for_host_functions(stream);
  return destroy("cuStreamDestroy", "stream", stream);
}

int record_event(void* event, void* stream) {
  if (const int code = enter_with_context("cuEventRecord"); code != kSuccess) return code;
  g_state.stream_work.push_back({"event", stream});
  g_state.event_times_ms[event] = g_state.clock_ms;
  g_state.clock_ms += fake_driver::kRecordMs;
  return kSuccess;
}

int elapsed_time(float* milliseconds, void* start, void* stop) {
  if (const int code = enter_with_context("cuEventElapsedTime"); code != kSuccess) return code;
  if (!g_state.event_times_ms.contains(start) || !g_state.event_times_ms.contains(stop)) return kInvalidHandle;
  *milliseconds = g_state.event_times_ms[stop] - g_state.event_times_ms[start];
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

/// The arguments that cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col have in common.
struct TensorMapArguments {
  int type;
  unsigned rank;
  std::uint64_t address;
  const std::uint64_t* extents;
  const std::uint64_t* strides;
  const unsigned* element_strides;
  int interleave, swizzle, promotion, fill;

  unsigned element_bytes() const {
    constexpr unsigned kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return kBytes[type];
  }
  bool is_float() const { return type >= 6; }

  /// The rules of both functions in cuda.h, for types and swizzles of sm_90 and without interleave.
  bool are_valid() const {
    const auto is_in = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) {
      return value >= least && value <= most;
    };
    if (type < 0 || type > 12 || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3) return false;
    if (interleave != 0 || fill < 0 || fill > 1 || (fill == 1 && !is_float())) return false;
    if (rank < 1 || rank > 5 || address % 16 != 0) return false;
    for (unsigned i = 0; i < rank; ++i) {
      if (!is_in(extents[i], 1, std::uint64_t{1} << 32) || !is_in(element_strides[i], 1, 8)) return false;
      if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= std::uint64_t{1} << 40)) return false;
    }
    return true;
  }
  /// The rule for the innermost mode of a box.
  bool fits_swizzle(unsigned elements) const {
    return swizzle == 0 || elements * element_bytes() <= 16U << static_cast<unsigned>(swizzle);
  }

  fake_driver::TensorMap record() const {
    fake_driver::TensorMap map{};
    map.type = type;
    map.address = address;
    map.extents = {extents, extents + rank};
    map.strides = {strides, strides + rank - 1};
    map.element_strides = {element_strides, element_strides + rank};
    map.interleave = interleave;
    map.swizzle = swizzle;
    map.promotion = promotion;
    map.fill = fill;
    return map;
  }
};

/// Sets every bit of the map, so that tests see which bits the caller clears.
int encode_tiled(void* map, int type, unsigned rank, std::uint64_t address, const std::uint64_t* extents,
                 const std::uint64_t* strides, const unsigned* box, const unsigned* element_strides, int interleave,
                 int swizzle, int promotion, int fill) {
  if (const int code = enter_with_context("cuTensorMapEncodeTiled"); code != kSuccess) return code;
  const TensorMapArguments arguments{type,       rank,    address,   extents, strides, element_strides,
                                     interleave, swizzle, promotion, fill};
  if (!arguments.are_valid() || !arguments.fits_swizzle(box[0])) return kInvalidValue;
  if (box[0] * arguments.element_bytes() % 16 != 0) return kInvalidValue;
  if (std::any_of(box, box + rank, [](unsigned extent) { return extent < 1 || extent > 256; })) return kInvalidValue;
  fake_driver::TensorMap record = arguments.record();
  record.box = {box, box + rank};
  g_state.tensor_maps.push_back(std::move(record));
  std::memset(map, 0xff, 128);
  return kSuccess;
}

int encode_im2col(void* map, int type, unsigned rank, std::uint64_t address, const std::uint64_t* extents,
                  const std::uint64_t* strides, const int* lower, const int* upper, unsigned channels, unsigned pixels,
                  const unsigned* element_strides, int interleave, int swizzle, int promotion, int fill) {
  if (const int code = enter_with_context("cuTensorMapEncodeIm2col"); code != kSuccess) return code;
  const TensorMapArguments arguments{type,       rank,    address,   extents, strides, element_strides,
                                     interleave, swizzle, promotion, fill};
  if (!arguments.are_valid() || rank < 3 || !arguments.fits_swizzle(channels)) return kInvalidValue;
  if (channels > 256 || pixels > 1024) return kInvalidValue;
  const int limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  for (unsigned i = 0; i < rank - 2; ++i) {
    if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit || upper[i] >= limit) return kInvalidValue;
    const std::int64_t end = static_cast<std::int64_t>(extents[i + 1]) + upper[i];
    if (end <= lower[i] || end > std::numeric_limits<std::int32_t>::max()) return kInvalidValue;
  }
  fake_driver::TensorMap record = arguments.record();
  record.lower_corner = {lower, lower + rank - 2};
  record.upper_corner = {upper, upper + rank - 2};
  record.channels_per_pixel = channels;
  record.pixels_per_column = pixels;
  g_state.tensor_maps.push_back(std::move(record));
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
    {"cuStreamDestroy", reinterpret_cast<void*>(&destroy_stream)},
    WITH_CONTEXT("cuStreamSynchronize", (void* stream), wait_for_host_functions(stream)),
    WITH_CONTEXT("cuStreamIsCapturing", (void*, int* status), *status = g_state.capture_status),
    WITH_CONTEXT("cuStreamGetId", (void* stream, std::uint64_t* id),
                 if (g_state.capture_status != 0) return kStreamCaptureUnsupported;
                 *id = reinterpret_cast<std::uintptr_t>(stream) + 1),
    WITH_CONTEXT("cuStreamGetCaptureInfo", (void*, int* status, std::uint64_t* id, void**, const void**, std::size_t*),
                 *status = g_state.capture_status;
                 *id = g_state.capture_id),
    ANSWER("cuThreadExchangeStreamCaptureMode", (int* mode), std::swap(*mode, g_state.capture_mode)),
    WITH_CONTEXT("cuStreamWaitEvent", (void*, void*, unsigned), ),
    {"cuLaunchHostFunc", reinterpret_cast<void*>(&launch_host_function)},
    FORWARD("cuEventCreate", (void** event, unsigned), create("cuEventCreate", "event", event)),
    FORWARD("cuEventDestroy", (void* event), destroy("cuEventDestroy", "event", event)),
    {"cuEventRecord", reinterpret_cast<void*>(&record_event)},
    WITH_CONTEXT("cuEventQuery", (void*), ),
    WITH_CONTEXT("cuEventSynchronize", (void*), ),
    {"cuEventElapsedTime", reinterpret_cast<void*>(&elapsed_time)},

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
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&encode_tiled)},
    {"cuTensorMapEncodeIm2col", reinterpret_cast<void*>(&encode_im2col)},
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
