// Registration of a program's fat binaries, launches, kernel attributes and occupancy.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/text.hpp"
#include "tools/cuda_runtime/driver_entry_points.hpp"
#include "tools/cuda_runtime/fat_binary.hpp"
#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {
namespace {

/// What a program registers before main().
struct Registered {
  Module* module = nullptr;
  std::string name;
  std::size_t size = 0;
  void** managed = nullptr;  // the host's pointer to a managed variable, which is set when the module is loaded
};

struct Registry {
  std::unordered_map<const void*, Registered> functions, variables;
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

/// What __cudaRegisterFatBinary gets: fatBinaryCtl.h of the toolkit.
struct FatBinaryWrapper {
  int magic;
  int version;
  const void* image;
  const void* const* parts;  // version 2: the fat binaries of separately compiled files, up to a null pointer
};

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<CallConfiguration> call_configurations;

runtime::Dim3 extents(const dim3& value) { return {value.x, value.y, value.z}; }

runtime::LaunchConfig config_of(const dim3& grid, const dim3& block, std::size_t shared) {
  runtime::LaunchConfig config;
  config.grid = extents(grid);
  config.block = extents(block);
  require(shared <= 0x7fffffff);
  config.dynamic_smem_bytes = static_cast<std::uint32_t>(shared);
  return config;
}

cudaError_t launch(const void* kernel, const dim3& grid, const dim3& block, void** arguments, std::size_t shared,
                   cudaStream_t stream, bool cooperative, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        runtime::LaunchConfig config = config_of(grid, block, shared);
        config.cooperative = cooperative;
        Stream* const on = machine.stream(stream);
        machine.enqueue(on, machine.make_launch(function_of(machine, kernel), config, arguments));
      },
      function);
}

void set_managed_variables(Machine& machine) {
  for (auto& [host, variable] : registry().variables) {
    if (variable.managed == nullptr) continue;
    const auto [address, bytes] = variable.module->variable(variable.name);
    *variable.managed = reinterpret_cast<void*>(address);
    machine.note_managed_variable(address, bytes);
    variable.managed = nullptr;
  }
}

int max_blocks(Machine& machine, const void* kernel, int threads, std::size_t shared) {
  return machine.max_blocks_per_multiprocessor(function_of(machine, kernel), threads, shared);
}

}  // namespace

Function* function_of(Machine& machine, const void* kernel) {
  const auto found = registry().functions.find(kernel);
  if (found == registry().functions.end()) {
    try {
      return machine.function(kernel);
    } catch (const ApiError&) {
      fail(static_cast<CUresult>(cudaErrorInvalidDeviceFunction));
    }
  }
  Function* const function = found->second.module->find_function(found->second.name);
  require(function != nullptr, static_cast<CUresult>(cudaErrorInvalidDeviceFunction));
  return function;
}

const void* handle_of(const Function* function) {
  for (const auto& [host, registered] : registry().functions) {
    if (registered.module == function->module && registered.name == function->name) return host;
  }
  return function;
}

std::pair<CUdeviceptr, std::size_t> symbol_of(Machine& machine, const void* symbol) {
  const auto found = registry().variables.find(symbol);
  if (found == registry().variables.end()) {
    // A managed variable is passed by its address in device memory.
    if (const auto region = machine.memory()->find(address_of(symbol), 1);
        region && region->begin == address_of(symbol))
      return {region->begin, region->end - region->begin};
    fail(static_cast<CUresult>(cudaErrorInvalidSymbol));
  }
  return found->second.module->variable(found->second.name);
}

// Registration -------------------------------------------------------------------------------------------------------

// nvcc and the runtime call these functions by their reserved names.
// NOLINTBEGIN(bugprone-reserved-identifier)
TILEWRIGHT_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  const auto* const binary = static_cast<const FatBinaryWrapper*>(wrapper);
  return reinterpret_cast<void**>(machine.add_module([binary, target = machine.target] {
    return binary->version == 2 ? linked_ptx_for(binary->parts, target) : ptx_for(binary->image, target);
  }));
}

TILEWRIGHT_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

/// Programs do this when they end, and may use CUDA after it.
TILEWRIGHT_EXPORT void __cudaUnregisterFatBinary(void**) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  machine.write_report();
}

TILEWRIGHT_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                                              uint3*, dim3*, dim3*, int*) {
  registry().functions[host] = {reinterpret_cast<Module*>(handle), name, 0, nullptr};
}

TILEWRIGHT_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int,
                                         int) {
  registry().variables[host] = {reinterpret_cast<Module*>(handle), name, size, nullptr};
}

TILEWRIGHT_EXPORT void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t size,
                                                int, int) {
  registry().variables[host] = {reinterpret_cast<Module*>(handle), name, size, host};
}

TILEWRIGHT_EXPORT void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
TILEWRIGHT_EXPORT void __cudaRegisterUnifiedTable(void**, void*) {}

TILEWRIGHT_EXPORT char __cudaInitModule(void**) {
  return call([](Machine& machine) { set_managed_variables(machine); }) == cudaSuccess ? 1 : 0;
}

// Launches -----------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  call_configurations.push_back({grid, block, shared, stream});
  return 0;
}

TILEWRIGHT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  return call([&](Machine&) {
    require(!call_configurations.empty(), static_cast<CUresult>(cudaErrorMissingConfiguration));
    const CallConfiguration last = call_configurations.back();
    call_configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *static_cast<cudaStream_t*>(stream) = last.stream;
  });
}

TILEWRIGHT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return call([&](Machine& machine) {
    const auto found = registry().functions.find(host);
    require(found != registry().functions.end(), static_cast<CUresult>(cudaErrorInvalidDeviceFunction));
    // The PTX is parsed at the first launch, so that kernels which are never launched cost nothing.
    *kernel = reinterpret_cast<cudaKernel_t>(found->second.module->function(found->second.name));
    static_cast<void>(machine);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return __cudaGetKernel(kernel, host);
}

TILEWRIGHT_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                 size_t shared, cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, false);
}

// NOLINTEND(bugprone-reserved-identifier)

TILEWRIGHT_EXPORT cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               size_t shared, cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, false);
}

TILEWRIGHT_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                                          size_t shared, cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, true);
}

TILEWRIGHT_EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* kernel,
                                                  void** arguments) {
  return call([&](Machine& machine) {
    require(configuration != nullptr);
    runtime::LaunchConfig config =
        config_of(configuration->gridDim, configuration->blockDim, configuration->dynamicSmemBytes);
    for (unsigned i = 0; i < configuration->numAttrs; ++i) {
      const cudaLaunchAttribute& attribute = configuration->attrs[i];
      if (attribute.id == cudaLaunchAttributeCooperative) config.cooperative = attribute.val.cooperative != 0;
      if (attribute.id == cudaLaunchAttributeClusterDimension) {
        const auto& cluster = attribute.val.clusterDim;
        config.cluster = {cluster.x, cluster.y, cluster.z};
      }
    }
    Stream* const on = machine.stream(configuration->stream);
    KernelLaunch launch = machine.make_launch(function_of(machine, kernel), config, arguments);
    for (unsigned i = 0; i < configuration->numAttrs; ++i) {
      const cudaLaunchAttribute& attribute = configuration->attrs[i];
      if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
        launch.starts_early = attribute.val.programmaticStreamSerializationAllowed != 0;
    }
    machine.enqueue(on, std::move(launch));
    for (unsigned i = 0; i < configuration->numAttrs; ++i) {
      const cudaLaunchAttribute& attribute = configuration->attrs[i];
      if (attribute.id == cudaLaunchAttributeLaunchCompletionEvent)
        machine.record(machine.event(attribute.val.launchCompletionEvent.event), on);
      if (attribute.id == cudaLaunchAttributeProgrammaticEvent)
        machine.record(machine.event(attribute.val.programmaticEvent.event), on);
    }
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call([&](Machine& machine) { machine.enqueue(machine.stream(stream), HostCall{function, data}); });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                                    unsigned) {
  return call([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    require(!on->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    machine.wait_for(on);  // the callback may tell other threads that the work before it is done
    callback(stream, static_cast<cudaError_t>(machine.sticky), data);
  });
}

// Attributes ---------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return call([&](Machine& machine) {
    require(attributes != nullptr);
    Function* const function = function_of(machine, kernel);
    const emulator::EmulatedKernel& of_function = machine.kernel(function);
    const emulator::Program& program = of_function.program();
    std::memset(attributes, 0, sizeof(*attributes));
    attributes->sharedSizeBytes = program.static_shared_bytes;
    attributes->localSizeBytes = program.local_bytes;
    attributes->maxThreadsPerBlock = program.maximum_block == 0 ? 1024 : static_cast<int>(program.maximum_block);
    attributes->numRegs = 32;  // PTX does not say how many the machine code would use
    attributes->ptxVersion = of_function.ptx_version();
    attributes->binaryVersion = machine.target.sm;
    attributes->maxDynamicSharedSizeBytes = function->max_dynamic_shared;
    attributes->clusterDimMustBeSet = program.required_cluster[0] != 0 ? 1 : 0;
    attributes->requiredClusterWidth = static_cast<int>(program.required_cluster[0]);
    attributes->requiredClusterHeight = static_cast<int>(program.required_cluster[1]);
    attributes->requiredClusterDepth = static_cast<int>(program.required_cluster[2]);
    attributes->nonPortableClusterSizeAllowed = function->non_portable_cluster ? 1 : 0;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call([&](Machine& machine) {
    Function* const function = function_of(machine, kernel);
    const emulator::Program& program = machine.kernel(function).program();
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      const std::int64_t limit = machine.properties.smem_per_block_bytes - program.static_shared_bytes;
      if (value < 0 || value > limit) {
        fail(CUDA_ERROR_INVALID_VALUE,
             fmt::format(
                 "the kernel may have at most {} bytes of dynamic shared memory beside its {} static ones, not {}",
                 limit, program.static_shared_bytes, value));
      }
      function->max_dynamic_shared = value;
    } else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
      function->non_portable_cluster = value != 0;
    }
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache) {
  return call([&](Machine& machine) { function_of(machine, kernel); });
}
TILEWRIGHT_EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void* kernel, cudaSharedMemConfig) {
  return call([&](Machine& machine) { function_of(machine, kernel); });
}
TILEWRIGHT_EXPORT cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  return call([&](Machine& machine) { *name = function_of(machine, kernel)->name.c_str(); });
}
TILEWRIGHT_EXPORT cudaError_t cudaFuncGetParamInfo(const void* kernel, size_t index, size_t* offset, size_t* size) {
  return call([&](Machine& machine) {
    const emulator::Program& program = machine.kernel(function_of(machine, kernel)).program();
    require(index < program.parameters.size());
    if (offset != nullptr) *offset = program.parameters[index].begin;
    if (size != nullptr) *size = program.parameters[index].size;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return call([&](Machine& machine) { *function = reinterpret_cast<cudaFunction_t>(function_of(machine, symbol)); });
}

// Occupancy ----------------------------------------------------------------------------------------------------------

namespace {

/// `function` is the name of the function that the program has called.
cudaError_t store_max_blocks(int* blocks, const void* kernel, int threads, std::size_t shared,
                             const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        require(blocks != nullptr && threads > 0);
        *blocks = max_blocks(machine, kernel, threads, shared);
      },
      function);
}

}  // namespace

TILEWRIGHT_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                                     int threads, size_t shared,
                                                                                     unsigned) {
  return store_max_blocks(blocks, kernel, threads, shared);
}

TILEWRIGHT_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                                            int threads, size_t shared) {
  return store_max_blocks(blocks, kernel, threads, shared);
}

TILEWRIGHT_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* kernel, int blocks,
                                                                        int) {
  return call([&](Machine& machine) {
    require(bytes != nullptr && blocks > 0);
    const emulator::Program& program = machine.kernel(function_of(machine, kernel)).program();
    const auto& limits = machine.properties;
    const std::size_t each = static_cast<std::size_t>(limits.smem_per_sm_bytes) / static_cast<std::size_t>(blocks);
    const std::size_t used = program.static_shared_bytes + 1024;
    *bytes = each <= used ? 0 : std::min(each - used, static_cast<std::size_t>(limits.smem_per_block_bytes));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* kernel,
                                                                   const cudaLaunchConfig_t*) {
  return call([&](Machine& machine) {
    require(size != nullptr);
    *size = function_of(machine, kernel)->non_portable_cluster ? 16 : 8;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                                             const cudaLaunchConfig_t* configuration) {
  return call([&](Machine& machine) {
    require(clusters != nullptr && configuration != nullptr);
    const dim3& block = configuration->blockDim;
    const int blocks =
        max_blocks(machine, kernel, static_cast<int>(block.x * block.y * block.z), configuration->dynamicSmemBytes);
    unsigned size = 1;
    for (unsigned i = 0; i < configuration->numAttrs; ++i) {
      if (configuration->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
      const auto& cluster = configuration->attrs[i].val.clusterDim;
      size = cluster.x * cluster.y * cluster.z;
    }
    *clusters = static_cast<int>(static_cast<unsigned>(blocks * machine.properties.sm_count) / std::max(size, 1U));
  });
}

// Entry points of the driver -----------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                               unsigned long long,
                                                               cudaDriverEntryPointQueryResult* status) {
  return call([&](Machine&) {
    require(symbol != nullptr && function != nullptr);
    *function = driver_entry_point(symbol, static_cast<int>(version));
    if (status != nullptr)
      *status = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                                      cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

}  // namespace tilewright::cuda_runtime
