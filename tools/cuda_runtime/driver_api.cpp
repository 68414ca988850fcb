// The CUDA driver API. Its handles and error codes are those of the runtime.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "tilewright/base/tensor_map.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"
#include "tools/cuda_runtime/device_attribute.hpp"
#include "tools/cuda_runtime/driver_entry_points.hpp"
#include "tools/cuda_runtime/error_table.hpp"
#include "tools/cuda_runtime/fat_binary.hpp"
#include "tools/cuda_runtime/machine.hpp"
#include "tools/cuda_runtime/runtime_context.hpp"

#define TILEWRIGHT_EXPORT extern "C" __attribute__((visibility("default")))

namespace tilewright::cuda_runtime {
namespace {

/// The only context, which is never destroyed.
char only_context;
CUcontext context() { return reinterpret_cast<CUcontext>(&only_context); }
thread_local std::vector<CUcontext> contexts;

template <class F>
CUresult call(F&& f, const char* function = __builtin_FUNCTION()) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  if (machine.sticky != CUDA_SUCCESS) return machine.sticky;
  try {
    f(machine);
  } catch (const ApiError& error) {
    machine.note_failure(function, error);
    return error_row(error.code).driver_name == nullptr ? CUDA_ERROR_INVALID_VALUE : error.code;
  } catch (const std::exception& error) {
    machine.note(error.what());
    return CUDA_ERROR_UNKNOWN;
  }
  return CUDA_SUCCESS;
}

template <class T>
CUresult store(T* to, T value, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine&) {
        require(to != nullptr);
        *to = value;
      },
      function);
}

CUresult nothing() {
  return call([](Machine&) {});
}

Copy linear(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, Copy::Kind kind) {
  Copy copy;
  copy.to = reinterpret_cast<std::byte*>(to);
  copy.from = reinterpret_cast<const std::byte*>(from);
  copy.width = bytes;
  copy.kind = kind;
  return copy;
}

CUresult enqueue(CUstream stream, auto&& make, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine& machine) { machine.enqueue(machine.stream(stream), make(machine)); }, function);
}

/// The same in the default stream, and the host waits for it.
CUresult copy_and_wait(const Copy& copy, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine& machine) { machine.copy_and_wait(copy); }, function);
}

CUdeviceptr host(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

Module* load(Machine& machine, const void* image) {
  require(image != nullptr);
  constexpr std::uint32_t kWrapperMagic = 0x466243b1;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic == kWrapperMagic) std::memcpy(&image, static_cast<const char*>(image) + 8, sizeof(image));
  std::string ptx;
  if (is_fat_binary(image)) {
    ptx = ptx_for(image, machine.target);
  } else {
    if (std::memcmp(image, "\177ELF", 4) == 0) {
      machine.note("the program loads machine code (a cubin), which the emulator does not run: load PTX instead");
      fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    ptx = static_cast<const char*>(image);
  }
  Module* const module = machine.add_module([ptx = std::move(ptx)] { return ptx; });
  try {
    module->loaded();
  } catch (...) {
    machine.remove_module(module);
    throw;
  }
  return module;
}

Module* load_file(Machine& machine, const char* path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  std::ostringstream text;
  text << file.rdbuf();
  return load(machine, text.str().c_str());
}

runtime::LaunchConfig config_of(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                unsigned shared) {
  runtime::LaunchConfig config;
  config.grid = {gx, gy, gz};
  config.block = {bx, by, bz};
  config.dynamic_smem_bytes = shared;
  return config;
}

KernelLaunch make_launch(Machine& machine, CUfunction handle, const runtime::LaunchConfig& config, void** arguments,
                         void** extra) {
  return machine.make_launch(machine.function(handle), config, arguments, extra);
}

}  // namespace

// Initialisation, devices and contexts -------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuInit(unsigned) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuDriverGetVersion(int* version) { return store(version, CUDA_VERSION); }
TILEWRIGHT_EXPORT CUresult cuDeviceGetCount(int* count) { return store(count, 1); }
TILEWRIGHT_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call([&](Machine&) {
    require(ordinal == 0, CUDA_ERROR_INVALID_DEVICE);
    *device = 0;
  });
}
TILEWRIGHT_EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  return call([&](Machine& machine) {
    require(name != nullptr && bytes > 0);
    std::snprintf(name, static_cast<std::size_t>(bytes), "%s", machine.properties.name.c_str());
  });
}
TILEWRIGHT_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
  return call([&](Machine&) {
    *uuid = {};
    uuid->bytes[0] = 1;
  });
}
TILEWRIGHT_EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  return call([&](Machine& machine) { *bytes = static_cast<std::size_t>(machine.settings.memory_bytes); });
}
TILEWRIGHT_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call([&](Machine& machine) {
    require(device == 0, CUDA_ERROR_INVALID_DEVICE);
    *value = device_attribute(machine, attribute);
  });
}
TILEWRIGHT_EXPORT CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
  return call([&](Machine& machine) {
    *major = machine.target.sm / 10;
    *minor = machine.target.sm % 10;
  });
}
TILEWRIGHT_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { return store(can, 0); }
TILEWRIGHT_EXPORT CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice) {
  return call([&](Machine&) { std::snprintf(text, static_cast<std::size_t>(bytes), "0000:01:00.0"); });
}

TILEWRIGHT_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice) { return store(made, context()); }
TILEWRIGHT_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice, unsigned) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  return call([&](Machine&) {
    *flags = 0;
    *active = 1;
  });
}
TILEWRIGHT_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuCtxCreate(CUcontext* made, CUctxCreateParams*, unsigned, CUdevice) {
  contexts.push_back(context());
  return store(made, context());
}
#undef cuCtxCreate_v2
TILEWRIGHT_EXPORT CUresult cuCtxCreate_v2(CUcontext* made, unsigned, CUdevice) {
  contexts.push_back(context());
  return store(made, context());
}
TILEWRIGHT_EXPORT CUresult cuCtxDestroy(CUcontext) {
  if (!contexts.empty()) contexts.pop_back();
  return nothing();
}
TILEWRIGHT_EXPORT CUresult cuCtxGetCurrent(CUcontext* current) {
  CUcontext const without = runtime_has_context ? context() : nullptr;
  return store(current, contexts.empty() ? without : contexts.back());
}
TILEWRIGHT_EXPORT CUresult cuCtxSetCurrent(CUcontext current) {
  if (!contexts.empty()) contexts.pop_back();
  if (current != nullptr) contexts.push_back(current);
  return nothing();
}
TILEWRIGHT_EXPORT CUresult cuCtxPushCurrent(CUcontext current) {
  contexts.push_back(current);
  return nothing();
}
TILEWRIGHT_EXPORT CUresult cuCtxPopCurrent(CUcontext* current) {
  if (current != nullptr) *current = contexts.empty() ? nullptr : contexts.back();
  if (!contexts.empty()) contexts.pop_back();
  return nothing();
}
TILEWRIGHT_EXPORT CUresult cuCtxGetDevice(CUdevice* device) { return store(device, 0); }
TILEWRIGHT_EXPORT CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext) { return store(device, 0); }
TILEWRIGHT_EXPORT CUresult cuCtxGetFlags(unsigned* flags) { return store(flags, 0U); }
TILEWRIGHT_EXPORT CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) { return store(version, 3020U); }
TILEWRIGHT_EXPORT CUresult cuCtxSynchronize() {
  return call([](Machine& machine) { machine.wait_for_all(); });
}
TILEWRIGHT_EXPORT CUresult cuCtxSynchronize_v2(CUcontext) { return cuCtxSynchronize(); }
TILEWRIGHT_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Machine&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}

TILEWRIGHT_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error_row(error).driver_name;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
TILEWRIGHT_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  const ErrorRow& row = error_row(error);
  *text = row.driver_name == nullptr ? nullptr : row.text;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Linking and NVRTC --------------------------------------------------------------------------------------------------

namespace {

/// The PTX of a CUlinkState.
struct Link {
  std::string ptx;
};
std::map<const void*, std::unique_ptr<Link>> links;

Link& link_of(CUlinkState state) {
  const auto found = links.find(state);
  require(found != links.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

void add_to_link(Machine& machine, CUlinkState state, CUjitInputType type, const char* image, std::size_t bytes) {
  Link& link = link_of(state);
  require(image != nullptr);
  if (type == CU_JIT_INPUT_PTX) {
    link.ptx += std::string(image, strnlen(image, bytes)) + '\n';
  } else if (type == CU_JIT_INPUT_FATBINARY) {
    link.ptx += ptx_for(image, machine.target) + '\n';
  } else {
    machine.note_unsupported("cuLinkAddData() of other than PTX and fat binaries");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

/// NVRTC's function of that name, which this library stands in front of.
template <class F>
int call_nvrtc(const char* name, void* program, F* out) {
  auto* const function = reinterpret_cast<int (*)(void*, F*)>(dlsym(RTLD_NEXT, name));
  constexpr int kInternalError = 11;
  return function == nullptr ? kInternalError : function(program, out);
}

}  // namespace

TILEWRIGHT_EXPORT CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
  return call([&](Machine&) {
    require(state != nullptr);
    auto made = std::make_unique<Link>();
    *state = reinterpret_cast<CUlinkState>(made.get());
    links[made.get()] = std::move(made);
  });
}
TILEWRIGHT_EXPORT CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*,
                                         unsigned, CUjit_option*, void**) {
  return call([&](Machine& machine) { add_to_link(machine, state, type, static_cast<const char*>(data), bytes); });
}
TILEWRIGHT_EXPORT CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                                         CUjit_option*, void**) {
  return call([&](Machine& machine) {
    std::ifstream file(path, std::ios::binary);
    require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
    std::ostringstream text;
    text << file.rdbuf();
    add_to_link(machine, state, type, text.str().c_str(), text.str().size());
  });
}
/// What is linked is PTX, too.
TILEWRIGHT_EXPORT CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return call([&](Machine&) {
    Link& link = link_of(state);
    require(image != nullptr);
    *image = link.ptx.data();
    if (bytes != nullptr) *bytes = link.ptx.size();
  });
}
TILEWRIGHT_EXPORT CUresult cuLinkDestroy(CUlinkState state) {
  return call([&](Machine&) { require(links.erase(state) != 0, CUDA_ERROR_INVALID_HANDLE); });
}

/// Programs that ask NVRTC for machine code get the PTX that it was made of, which cuModuleLoadData() takes, too.
TILEWRIGHT_EXPORT int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  return call_nvrtc("nvrtcGetPTXSize", program, bytes);
}
TILEWRIGHT_EXPORT int nvrtcGetCUBIN(void* program, char* code) { return call_nvrtc("nvrtcGetPTX", program, code); }

// Modules ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return call([&](Machine& machine) { *module = reinterpret_cast<CUmodule>(load_file(machine, path)); });
}
TILEWRIGHT_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return call([&](Machine& machine) { *module = reinterpret_cast<CUmodule>(load(machine, image)); });
}
/// The options of the just-in-time compiler have no effect.
TILEWRIGHT_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
TILEWRIGHT_EXPORT CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}
TILEWRIGHT_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return call([&](Machine& machine) { machine.remove_module(machine.module(module)); });
}
TILEWRIGHT_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call([&](Machine& machine) {
    Function* const found = machine.module(module)->find_function(name);
    require(found != nullptr, CUDA_ERROR_NOT_FOUND);
    *function = reinterpret_cast<CUfunction>(found);
  });
}
TILEWRIGHT_EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return call(
      [&](Machine& machine) { *count = static_cast<unsigned>(machine.module(module)->all_functions().size()); });
}
TILEWRIGHT_EXPORT CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return call([&](Machine& machine) {
    const auto [at, size] = machine.module(module)->variable(name);
    if (address != nullptr) *address = at;
    if (bytes != nullptr) *bytes = size;
  });
}

TILEWRIGHT_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                                             CUlibraryOption*, void**, unsigned) {
  return call([&](Machine& machine) { *library = reinterpret_cast<CUlibrary>(load(machine, image)); });
}
TILEWRIGHT_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned,
                                                 CUlibraryOption*, void**, unsigned) {
  return call([&](Machine& machine) { *library = reinterpret_cast<CUlibrary>(load_file(machine, path)); });
}
TILEWRIGHT_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  return call([&](Machine& machine) { machine.remove_module(machine.module(library)); });
}
TILEWRIGHT_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(kernel), reinterpret_cast<CUmodule>(library), name);
}
TILEWRIGHT_EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return store(module, reinterpret_cast<CUmodule>(library));
}
TILEWRIGHT_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return store(function, reinterpret_cast<CUfunction>(kernel));
}

// Kernels ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return call([&](Machine& machine) {
    Function* const function = machine.function(handle);
    const emulator::Program& program = machine.kernel(function).program();
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = program.maximum_block == 0 ? 1024 : static_cast<int>(program.maximum_block);
        return;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(program.static_shared_bytes);
        return;
      case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(program.local_bytes);
        return;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = machine.kernel(function).ptx_version();
        return;
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = machine.target.sm;
        return;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->max_dynamic_shared;
        return;
      default:
        *value = 0;
    }
  });
}
TILEWRIGHT_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return call([&](Machine& machine) {
    Function* const function = machine.function(handle);
    const emulator::Program& program = machine.kernel(function).program();
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      require(value >= 0 && value <= machine.properties.smem_per_block_bytes - program.static_shared_bytes);
      function->max_dynamic_shared = value;
    } else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
      function->non_portable_cluster = value != 0;
    }
  });
}
TILEWRIGHT_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}
TILEWRIGHT_EXPORT CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return nothing(); }
TILEWRIGHT_EXPORT CUresult cuFuncGetName(const char** name, CUfunction function) {
  return call([&](Machine& machine) { *name = machine.function(function)->name.c_str(); });
}

TILEWRIGHT_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void** arguments,
                                          void** extra) {
  return enqueue(stream, [&](Machine& machine) {
    return make_launch(machine, function, config_of(gx, gy, gz, bx, by, bz, shared), arguments, extra);
  });
}
TILEWRIGHT_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                                     CUstream stream, void** arguments) {
  return enqueue(stream, [&](Machine& machine) {
    runtime::LaunchConfig config = config_of(gx, gy, gz, bx, by, bz, shared);
    config.cooperative = true;
    return make_launch(machine, function, config, arguments, nullptr);
  });
}
TILEWRIGHT_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* given, CUfunction function, void** arguments,
                                            void** extra) {
  return enqueue(given->hStream, [&](Machine& machine) {
    runtime::LaunchConfig config = config_of(given->gridDimX, given->gridDimY, given->gridDimZ, given->blockDimX,
                                             given->blockDimY, given->blockDimZ, given->sharedMemBytes);
    for (unsigned i = 0; i < given->numAttrs; ++i) {
      const CUlaunchAttribute& attribute = given->attrs[i];
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) config.cooperative = attribute.value.cooperative != 0;
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        const auto& cluster = attribute.value.clusterDim;
        config.cluster = {cluster.x, cluster.y, cluster.z};
      }
    }
    KernelLaunch launch = make_launch(machine, function, config, arguments, extra);
    for (unsigned i = 0; i < given->numAttrs; ++i) {
      const CUlaunchAttribute& attribute = given->attrs[i];
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        launch.starts_early = attribute.value.programmaticStreamSerializationAllowed != 0;
    }
    return launch;
  });
}
TILEWRIGHT_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return enqueue(stream, [&](Machine&) { return HostCall{function, data}; });
}
TILEWRIGHT_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                                       size_t shared) {
  return call([&](Machine& machine) {
    *blocks = machine.max_blocks_per_multiprocessor(machine.function(function), threads, shared);
  });
}

// Memory -------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  return call([&](Machine& machine) {
    require(address != nullptr && bytes != 0);
    *address = machine.allocate(bytes, MemoryKind::device);
  });
}
TILEWRIGHT_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return call([&](Machine& machine) {
    require(address != nullptr && bytes != 0);
    *address = machine.allocate(bytes, MemoryKind::managed);
  });
}
TILEWRIGHT_EXPORT CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
  return call([&](Machine& machine) {
    *pitch = (width + 511) / 512 * 512;
    *address = machine.allocate(*pitch * height, MemoryKind::device);
  });
}
TILEWRIGHT_EXPORT CUresult cuMemFree(CUdeviceptr address) {
  return call([&](Machine& machine) {
    if (address == 0) return;
    machine.wait_for_all();
    machine.free(address, {MemoryKind::device, MemoryKind::managed});
  });
}
TILEWRIGHT_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return call(
      [&](Machine& machine) { *pointer = reinterpret_cast<void*>(machine.allocate(bytes, MemoryKind::pinned)); });
}
TILEWRIGHT_EXPORT CUresult cuMemAllocHost(void** pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }
TILEWRIGHT_EXPORT CUresult cuMemFreeHost(void* pointer) {
  return call([&](Machine& machine) { machine.free(host(pointer), {MemoryKind::pinned}); });
}
TILEWRIGHT_EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned) {
  return store(address, host(pointer));
}
TILEWRIGHT_EXPORT CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned) {
  return call([&](Machine& machine) { machine.register_host(pointer, bytes); });
}
TILEWRIGHT_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  return call([&](Machine& machine) { machine.unregister_host(pointer); });
}
TILEWRIGHT_EXPORT CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return call([&](Machine& machine) {
    *total = static_cast<std::size_t>(machine.settings.memory_bytes);
    *free = machine.free_bytes();
  });
}
TILEWRIGHT_EXPORT CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return call([&](Machine& machine) {
    const auto [begin, found] = machine.find(address);
    require(found != nullptr, CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = begin;
    if (size != nullptr) *size = found->bytes;
  });
}

TILEWRIGHT_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return linear(to, from, bytes, Copy::Kind::inferred); });
}
TILEWRIGHT_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_and_wait(linear(to, from, bytes, Copy::Kind::inferred));
}
TILEWRIGHT_EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return linear(to, host(from), bytes, Copy::Kind::host_to_device); });
}
TILEWRIGHT_EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_and_wait(linear(to, host(from), bytes, Copy::Kind::host_to_device));
}
TILEWRIGHT_EXPORT CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return linear(host(to), from, bytes, Copy::Kind::device_to_host); });
}
TILEWRIGHT_EXPORT CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return copy_and_wait(linear(host(to), from, bytes, Copy::Kind::device_to_host));
}
TILEWRIGHT_EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return linear(to, from, bytes, Copy::Kind::device_to_device); });
}
TILEWRIGHT_EXPORT CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_and_wait(linear(to, from, bytes, Copy::Kind::device_to_device));
}

TILEWRIGHT_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return Fill{to, 0, count, 1, value, 1}; });
}
TILEWRIGHT_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return Fill{to, 0, count, 1, value, 2}; });
}
TILEWRIGHT_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return enqueue(stream, [&](Machine&) { return Fill{to, 0, count, 1, value, 4}; });
}
TILEWRIGHT_EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return cuMemsetD16Async(to, value, count, nullptr);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}

TILEWRIGHT_EXPORT CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return call([&](Machine& machine) {
    const auto found = machine.known_memory(address);
    if (!found) fail(CUDA_ERROR_INVALID_VALUE, fmt::format("{:#x} is no address of CUDA's memory", address));
    const auto put = [&](auto what) { *static_cast<decltype(what)*>(value) = what; };
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put(context());
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(found->kind == MemoryKind::device || found->kind == MemoryKind::managed ? CU_MEMORYTYPE_DEVICE
                                                                                           : CU_MEMORYTYPE_HOST);
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return put(address);
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put(static_cast<unsigned>(found->kind == MemoryKind::managed));
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put(0);
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(found->begin);
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(found->bytes);
      default:
        machine.note_unsupported(fmt::format("cuPointerGetAttribute({})", static_cast<int>(attribute)));
        fail(CUDA_ERROR_NOT_SUPPORTED);
    }
  });
}

/// Attributes of memory that is no allocation of CUDA are zeros.
TILEWRIGHT_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                                  CUdeviceptr address) {
  const bool is_known = [&] {
    Machine& machine = Machine::get();
    const MachineLock lock(machine);
    return machine.known_memory(address).has_value();
  }();
  for (unsigned i = 0; i < count; ++i) {
    if (is_known) {
      if (const CUresult code = cuPointerGetAttribute(values[i], attributes[i], address); code != CUDA_SUCCESS)
        return code;
      continue;
    }
    const bool is_word = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                         attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                         attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    std::memset(values[i], 0, is_word ? sizeof(int) : sizeof(void*));
  }
  return nothing();
}

// Streams and events -------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return call([&](Machine& machine) { *stream = reinterpret_cast<CUstream>(machine.create_stream(flags, priority)); });
}
TILEWRIGHT_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
TILEWRIGHT_EXPORT CUresult cuStreamDestroy(CUstream stream) {
  return call([&](Machine& machine) { machine.destroy_stream(stream); });
}
TILEWRIGHT_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return call([&](Machine& machine) { machine.wait_for(machine.stream(stream)); });
}
TILEWRIGHT_EXPORT CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }
TILEWRIGHT_EXPORT CUresult cuStreamGetCtx(CUstream, CUcontext* current) { return store(current, context()); }
TILEWRIGHT_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return call([&](Machine& machine) { machine.wait(machine.stream(stream), machine.event(event)); });
}
TILEWRIGHT_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call([&](Machine& machine) {
    *status = machine.stream(stream)->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  });
}
TILEWRIGHT_EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return call([&](Machine& machine) { *event = reinterpret_cast<CUevent>(machine.create_event(flags)); });
}
TILEWRIGHT_EXPORT CUresult cuEventDestroy(CUevent event) {
  return call([&](Machine& machine) { machine.destroy_event(event); });
}
TILEWRIGHT_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call([&](Machine& machine) { machine.record(machine.event(event), machine.stream(stream)); });
}
TILEWRIGHT_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return call([&](Machine& machine) { machine.wait_for(machine.event(event)); });
}
TILEWRIGHT_EXPORT CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }
TILEWRIGHT_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return call([&](Machine& machine) {
    const Event* const from = machine.event(begin);
    const Event* const to = machine.event(end);
    require(from->recorded && to->recorded, CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
    machine.report.timed = true;
  });
}

// Tensor maps --------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* encoded, CUtensorMapDataType type, cuuint32_t rank,
                                                  void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                                                  const cuuint32_t* box, const cuuint32_t* element_strides,
                                                  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                  CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return call([&](Machine& machine) {
    require(encoded != nullptr && rank >= 1 && rank <= kMaxTensorMapRank && extents != nullptr && box != nullptr &&
            element_strides != nullptr && (rank == 1 || strides != nullptr));
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
        type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) {
      machine.note_unsupported("cuTensorMapEncodeTiled with an interleave, a swizzle with atoms or a 4-bit type");
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    TensorMap map;
    map.type = static_cast<TensorMapType>(type);
    map.rank = static_cast<int>(rank);
    map.address = host(address);
    for (std::size_t i = 0; i < rank; ++i) {
      map.extents[i] = extents[i];
      map.box[i] = box[i];
      map.element_strides[i] = element_strides[i];
      if (i != 0) map.strides[i] = strides[i - 1];
    }
    map.swizzle = static_cast<TensorMapSwizzle>(swizzle);
    map.promotion = static_cast<TensorMapPromotion>(promotion);
    map.fill = static_cast<TensorMapFill>(fill);
    if (const Support support = check(map); !support) {
      machine.note("cuTensorMapEncodeTiled: " + support.reason());
      fail(CUDA_ERROR_INVALID_VALUE);
    }
    const EncodedTensorMap bytes = emulator::encode_tensor_map(map);
    static_assert(sizeof(bytes) == sizeof(*encoded));
    std::memcpy(encoded, &bytes, sizeof(bytes));
  });
}

// Entry points -------------------------------------------------------------------------------------------------------

namespace {

/// The first version of CUDA in which a name stands for this function, whose parameters are others than before. Source:
/// cudaTypedefs.h of CUDA 13.0. Functions of versions before 9.0 are left out: they stand for their names in all
/// programs.
struct Revision {
  std::string_view function;
  int since;
};
constexpr Revision kRevisions[] = {
    {"cuCtxCreate_v3", 11040},
    {"cuCtxCreate_v4", 12050},
    {"cuCtxGetDevice_v2", 13000},
    {"cuCtxSynchronize_v2", 13000},
    {"cuDeviceGetUuid_v2", 11040},
    {"cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxReset_v2", 11000},
    {"cuDevicePrimaryCtxSetFlags_v2", 11000},
    {"cuEventElapsedTime_v2", 12080},
    {"cuGetProcAddress_v2", 12000},
    {"cuGraphAddDependencies_v2", 12030},
    {"cuGraphAddKernelNode_v2", 12000},
    {"cuGraphAddNode_v2", 12030},
    {"cuGraphExecKernelNodeSetParams_v2", 12000},
    {"cuGraphExecUpdate_v2", 12000},
    {"cuGraphGetEdges_v2", 12030},
    {"cuGraphInstantiate_v2", 11000},
    {"cuGraphKernelNodeGetParams_v2", 12000},
    {"cuGraphKernelNodeSetParams_v2", 12000},
    {"cuGraphNodeGetDependencies_v2", 12030},
    {"cuGraphNodeGetDependentNodes_v2", 12030},
    {"cuGraphRemoveDependencies_v2", 12030},
    {"cuIpcOpenMemHandle_v2", 11000},
    {"cuMemAdvise_v2", 12020},
    {"cuMemPrefetchAsync_v2", 12020},
    {"cuMemcpy3DBatchAsync_v2", 13000},
    {"cuMemcpyBatchAsync_v2", 13000},
    {"cuStreamBatchMemOp_v2", 11070},
    {"cuStreamBeginCapture_v2", 10010},
    {"cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCtx_v2", 12050},
    {"cuStreamUpdateCaptureDependencies_v2", 12030},
    {"cuStreamWaitValue32_v2", 11070},
    {"cuStreamWaitValue64_v2", 11070},
    {"cuStreamWriteValue32_v2", 11070},
    {"cuStreamWriteValue64_v2", 11070},
};

bool is_newer(std::string_view function, int version) {
  const auto* const found = std::ranges::find(kRevisions, function, &Revision::function);
  return found != std::end(kRevisions) && found->since > version;
}

}  // namespace

void* driver_entry_point(std::string_view name, int version) {
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&error_row), &info);
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  if (name == "cuGraphInstantiate" && version >= 12000) name = "cuGraphInstantiateWithFlags";
  void* newer = nullptr;  // the best that there is if no older function is exported
  for (const char* const revision : {"_v4", "_v3", "_v2", ""}) {
    const std::string function = std::string(name) + revision;
    void* const found = dlsym(self, function.c_str());
    if (found == nullptr) continue;
    if (!is_newer(function, version)) return found;
    newer = found;
  }
  return newer;
}

TILEWRIGHT_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t,
                                            CUdriverProcAddressQueryResult* status) {
  return call([&](Machine&) {
    *function = driver_entry_point(name, version);
    if (status != nullptr)
      *status = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    if (*function == nullptr) fail(CUDA_ERROR_NOT_FOUND, fmt::format("there is no {}", printable(name, 100)));
  });
}

/// Tables that are not documented, which the static runtime and NVIDIA's libraries use.
TILEWRIGHT_EXPORT CUresult cuGetExportTable(const void**, const CUuuid*) {
  Dl_info caller{};
  const bool is_known = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr;
  const std::filesystem::path file = is_known ? caller.dli_fname : "";
  return call([&](Machine& machine) {
    std::error_code error;
    const bool is_program = !is_known || std::filesystem::equivalent(file, "/proc/self/exe", error);
    const std::string name = file.filename();
    if (is_program) {
      machine.note(
          "the program calls cuGetExportTable, which is not documented and not emulated: link the CUDA runtime as a "
          "shared library (nvcc -cudart shared)");
    } else if (!name.starts_with("libnvrtc")) {  // NVRTC does without the tables
      machine.note(
          fmt::format("{} calls cuGetExportTable, which is not documented and not emulated: of NVIDIA's libraries, "
                      "only NVRTC, cuBLAS "
                      "and cuBLASLt run",
                      printable(name)));
    }
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

}  // namespace tilewright::cuda_runtime
