// Memory management of the CUDA runtime.
#include <algorithm>
#include <cstring>

#include "tools/cuda_runtime/runtime_call.hpp"

#include "tilewright/base/rounding.hpp"

namespace tilewright::cuda_runtime {

Copy::Kind kind_of(cudaMemcpyKind kind) {
  require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault,
          static_cast<CUresult>(cudaErrorInvalidMemcpyDirection));
  return static_cast<Copy::Kind>(kind);
}

Copy copy_of(Machine& machine, const cudaMemcpy3DParms& parameters) {
  if (parameters.srcArray != nullptr || parameters.dstArray != nullptr) {
    machine.note_unsupported("a copy from or to a cudaArray");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  const cudaPitchedPtr& to = parameters.dstPtr;
  const cudaPitchedPtr& from = parameters.srcPtr;
  Copy copy;
  copy.to = static_cast<std::byte*>(to.ptr) + parameters.dstPos.x +
            (parameters.dstPos.z * to.ysize + parameters.dstPos.y) * to.pitch;
  copy.from = static_cast<const std::byte*>(from.ptr) + parameters.srcPos.x +
              (parameters.srcPos.z * from.ysize + parameters.srcPos.y) * from.pitch;
  copy.to_pitch = to.pitch;
  copy.to_height = to.ysize;
  copy.from_pitch = from.pitch;
  copy.from_height = from.ysize;
  copy.width = parameters.extent.width;
  copy.height = parameters.extent.height;
  copy.depth = parameters.extent.depth;
  copy.kind = kind_of(parameters.kind);
  return copy;
}

std::byte* symbol_address(Machine& machine, const void* symbol, std::size_t count, std::size_t offset) {
  const auto [address, size] = symbol_of(machine, symbol);
  if (offset > size || count > size - offset) {
    fail(CUDA_ERROR_INVALID_VALUE,
         fmt::format("the copy has {} bytes from byte {} on of a variable of {} bytes", count, offset, size));
  }
  return reinterpret_cast<std::byte*>(address + offset);
}

namespace {

Copy linear(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Copy copy;
  copy.to = static_cast<std::byte*>(to);
  copy.from = static_cast<const std::byte*>(from);
  copy.width = bytes;
  copy.kind = kind_of(kind);
  return copy;
}

/// @throws ApiError if rows of this width overlap
void check_pitch(std::size_t pitch, std::size_t width) {
  if (pitch < width) {
    fail(static_cast<CUresult>(cudaErrorInvalidPitchValue),
         fmt::format("the pitch is {} bytes, and a row has {}", pitch, width));
  }
}

Copy rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
          std::size_t height, cudaMemcpyKind kind) {
  check_pitch(to_pitch, width);
  check_pitch(from_pitch, width);
  Copy copy = linear(to, from, width, kind);
  copy.to_pitch = to_pitch;
  copy.from_pitch = from_pitch;
  copy.height = height;
  return copy;
}

cudaError_t enqueue(cudaStream_t stream, auto&& make, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine& machine) { machine.enqueue(machine.stream(stream), make(machine)); }, function);
}

/// The work that `make` returns in the default stream, for which the host waits.
cudaError_t copy_and_wait(auto&& make, const char* function = __builtin_FUNCTION()) {
  return call([&](Machine& machine) { machine.copy_and_wait(make(machine)); }, function);
}

cudaError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        if (capture_mode == cudaStreamCaptureModeGlobal) machine.check_unsafe_call(true);
        require(pointer != nullptr);
        *pointer = bytes == 0 ? nullptr : reinterpret_cast<void*>(machine.allocate(bytes, kind));
      },
      function);
}

constexpr std::size_t kPitch = 512;

std::size_t pitch_of(std::size_t width) { return round_up(width, kPitch); }

void allocate_from(Machine& machine, Pool& pool, void** pointer, std::size_t bytes, cudaStream_t stream) {
  require(pointer != nullptr);
  Stream* const on = machine.stream(stream);
  if (on->capture) {
    Allocate allocation = machine.graph_allocation(bytes);
    *pointer = reinterpret_cast<void*>(allocation.address);
    machine.enqueue(on, std::move(allocation));
    return;
  }
  const CUdeviceptr address = machine.allocate(std::max<std::size_t>(bytes, 1), MemoryKind::device);
  machine.note_allocation(address, bytes, on);
  machine.pooled[address] = &pool;
  pool.used += bytes;
  pool.high_water = std::max(pool.high_water, pool.used);
  *pointer = reinterpret_cast<void*>(address);
}

/// The pool of cudaDeviceSetMemPool(); null: the default pool.
Pool* chosen_pool = nullptr;

Pool& current_pool(Machine& machine) { return chosen_pool == nullptr ? machine.default_pool : *chosen_pool; }

Pool& pool_of(Machine& machine, cudaMemPool_t handle) {
  auto* const pool = reinterpret_cast<Pool*>(handle);
  require(machine.pools.contains(pool), CUDA_ERROR_INVALID_HANDLE);
  return *pool;
}

}  // namespace

// Allocation ---------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return allocate(pointer, bytes, MemoryKind::device);
}

TILEWRIGHT_EXPORT cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return call([&](Machine& machine) {
    require(pointer != nullptr);
    if (bytes == 0) fail(CUDA_ERROR_INVALID_VALUE, "the size is 0");
    *pointer = reinterpret_cast<void*>(machine.allocate(bytes, MemoryKind::managed));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return allocate(pointer, bytes, MemoryKind::pinned);
}

TILEWRIGHT_EXPORT cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return allocate(pointer, bytes, MemoryKind::pinned);
}

TILEWRIGHT_EXPORT cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&](Machine& machine) {
    require(pointer != nullptr && pitch != nullptr);
    *pitch = pitch_of(width);
    *pointer = reinterpret_cast<void*>(machine.allocate(*pitch * height, MemoryKind::device));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return call([&](Machine& machine) {
    require(pointer != nullptr);
    const std::size_t pitch = pitch_of(extent.width);
    const CUdeviceptr address = machine.allocate(pitch * extent.height * extent.depth, MemoryKind::device);
    *pointer = {reinterpret_cast<void*>(address), pitch, extent.width, extent.height};
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaFree(void* pointer) {
  return call([&](Machine& machine) {
    if (pointer == nullptr) return;
    machine.wait_for_all();
    machine.free(address_of(pointer), {MemoryKind::device, MemoryKind::managed, MemoryKind::graph});
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaFreeHost(void* pointer) {
  return call([&](Machine& machine) {
    machine.wait_for_all();
    if (pointer != nullptr) machine.free(address_of(pointer), {MemoryKind::pinned});
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return call([&](Machine& machine) { machine.register_host(pointer, bytes); });
}

TILEWRIGHT_EXPORT cudaError_t cudaHostUnregister(void* pointer) {
  return call([&](Machine& machine) { machine.unregister_host(pointer); });
}

TILEWRIGHT_EXPORT cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call([&](Machine& machine) {
    require(device != nullptr && machine.find(address_of(host)).second != nullptr);
    *device = host;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return call([&](Machine& machine) {
    const Allocation* const found = machine.find(address_of(host)).second;
    require(flags != nullptr && found != nullptr && found->kind != MemoryKind::device);
    *flags = cudaHostAllocMapped;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&](Machine& machine) {
    require(free != nullptr && total != nullptr);
    *total = static_cast<std::size_t>(machine.settings.memory_bytes);
    *free = machine.free_bytes();
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&](Machine& machine) {
    require(attributes != nullptr);
    *attributes = {};
    const auto found = machine.known_memory(address_of(pointer));
    attributes->device = found ? 0 : -2;
    attributes->hostPointer = const_cast<void*>(pointer);
    attributes->type = cudaMemoryTypeUnregistered;
    if (!found) return;
    attributes->devicePointer = const_cast<void*>(pointer);
    attributes->type = found->kind == MemoryKind::device    ? cudaMemoryTypeDevice
                       : found->kind == MemoryKind::managed ? cudaMemoryTypeManaged
                                                            : cudaMemoryTypeHost;
    if (found->kind == MemoryKind::device) attributes->hostPointer = nullptr;
  });
}

/// Hints have no effect.
TILEWRIGHT_EXPORT cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return call([](Machine&) {});
}
/// As hints have no effect, no memory is read-mostly, and none has a preferred or last location.
TILEWRIGHT_EXPORT cudaError_t cudaMemRangeGetAttribute(void* data, size_t bytes, cudaMemRangeAttribute attribute,
                                                       const void* pointer, size_t count) {
  return call([&](Machine& machine) {
    require(data != nullptr && bytes != 0 && bytes % sizeof(int) == 0);
    require(machine.memory()->find(address_of(pointer), count).has_value());
    const int value = attribute == cudaMemRangeAttributeReadMostly ? 0 : cudaInvalidDeviceId;
    for (std::size_t i = 0; i < bytes; i += sizeof(int)) std::memcpy(static_cast<char*>(data) + i, &value, sizeof(int));
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned,
                                                   cudaStream_t stream) {
  return call([&](Machine& machine) {
    machine.stream(stream);
    require(machine.memory()->find(address_of(pointer), bytes).has_value());
  });
}

// Copies -------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy_and_wait([&](Machine&) { return linear(to, from, bytes, kind); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                              cudaStream_t stream) {
  return enqueue(stream, [&](Machine&) { return linear(to, from, bytes, kind); });
}

/// The copies are in the stream's order, which is one of those that the function allows.
TILEWRIGHT_EXPORT cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* bytes,
                                                   size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                                   cudaStream_t stream) {
  return call([&](Machine& machine) {
    require(to != nullptr && from != nullptr && bytes != nullptr);
    for (std::size_t i = 0; i < count; ++i)
      machine.enqueue(machine.stream(stream), linear(to[i], from[i], bytes[i], cudaMemcpyDefault));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                                  cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                                size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return enqueue(stream, [&](Machine&) { return rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                           size_t height, cudaMemcpyKind kind) {
  return copy_and_wait([&](Machine&) { return rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return enqueue(stream, [&](Machine& machine) {
    require(parameters != nullptr);
    return copy_of(machine, *parameters);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return copy_and_wait([&](Machine& machine) {
    require(parameters != nullptr);
    return copy_of(machine, *parameters);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return enqueue(stream, [&](Machine& machine) {
    return linear(symbol_address(machine, symbol, bytes, offset), from, bytes, kind);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                                 cudaMemcpyKind kind) {
  return copy_and_wait(
      [&](Machine& machine) { return linear(symbol_address(machine, symbol, bytes, offset), from, bytes, kind); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                                        cudaMemcpyKind kind, cudaStream_t stream) {
  return enqueue(stream, [&](Machine& machine) {
    return linear(to, symbol_address(machine, symbol, bytes, offset), bytes, kind);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind kind) {
  return copy_and_wait(
      [&](Machine& machine) { return linear(to, symbol_address(machine, symbol, bytes, offset), bytes, kind); });
}

TILEWRIGHT_EXPORT cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call([&](Machine& machine) {
    require(address != nullptr);
    *address = reinterpret_cast<void*>(symbol_of(machine, symbol).first);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return call([&](Machine& machine) {
    require(size != nullptr);
    *size = symbol_of(machine, symbol).second;
  });
}

// Fills --------------------------------------------------------------------------------------------------------------

namespace {

// The functions with and without a stream; `function` is the name of the one that the program has called.

cudaError_t fill(void* to, int value, std::size_t bytes, cudaStream_t stream,
                 const char* function = __builtin_FUNCTION()) {
  const auto byte = static_cast<std::uint32_t>(value) & 0xff;
  return enqueue(
      stream, [&](Machine&) { return Fill{address_of(to), 0, bytes, 1, byte, 1}; }, function);
}
cudaError_t fill_rows(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                      cudaStream_t stream, const char* function = __builtin_FUNCTION()) {
  const auto byte = static_cast<std::uint32_t>(value) & 0xff;
  return enqueue(
      stream,
      [&](Machine&) {
        if (height > 1) check_pitch(pitch, width);
        return Fill{address_of(to), pitch, width, height, byte, 1};
      },
      function);
}
cudaError_t fill_box(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream,
                     const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        if (extent.height > 1) check_pitch(to.pitch, extent.width);
        for (std::size_t z = 0; z < extent.depth; ++z) {
          machine.enqueue(machine.stream(stream),
                          Fill{address_of(to.ptr) + z * to.pitch * to.ysize, to.pitch, extent.width, extent.height,
                               static_cast<std::uint32_t>(value) & 0xff, 1});
        }
      },
      function);
}

}  // namespace

TILEWRIGHT_EXPORT cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return fill(to, value, bytes, stream);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemset(void* to, int value, size_t bytes) { return fill(to, value, bytes, nullptr); }

TILEWRIGHT_EXPORT cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                                cudaStream_t stream) {
  return fill_rows(to, pitch, value, width, height, stream);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return fill_rows(to, pitch, value, width, height, nullptr);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return fill_box(to, value, extent, stream);
}

TILEWRIGHT_EXPORT cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return fill_box(to, value, extent, nullptr);
}

// Pools --------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return call([&](Machine& machine) { allocate_from(machine, current_pool(machine), pointer, bytes, stream); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                                      cudaStream_t stream) {
  return call([&](Machine& machine) { allocate_from(machine, pool_of(machine, pool), pointer, bytes, stream); });
}

TILEWRIGHT_EXPORT cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    if (on->capture) {
      machine.enqueue(on, Free{address_of(pointer)});
    } else if (pointer != nullptr) {
      machine.free_in_order(address_of(pointer), on);
    }
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return call([&](Machine& machine) {
    require(pool != nullptr);
    auto* const created = new Pool;
    machine.pools.insert(created);
    *pool = reinterpret_cast<cudaMemPool_t>(created);
  });
}

/// The pool's allocations stay valid, as on a GPU.
TILEWRIGHT_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return call([&](Machine& machine) {
    Pool& pool = pool_of(machine, handle);
    require(&pool != &machine.default_pool);
    std::erase_if(machine.pooled, [&](const auto& each) { return each.second == &pool; });
    machine.pools.erase(&pool);
    if (chosen_pool == &pool) chosen_pool = nullptr;
    delete &pool;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return call([&](Machine& machine) {
    require(pool != nullptr);
    *pool = reinterpret_cast<cudaMemPool_t>(&machine.default_pool);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int) {
  return call([&](Machine& machine) {
    require(pool != nullptr);
    *pool = reinterpret_cast<cudaMemPool_t>(&current_pool(machine));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return call([&](Machine& machine) {
    require(device == 0, CUDA_ERROR_INVALID_DEVICE);
    chosen_pool = &pool_of(machine, pool);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return call([&](Machine& machine) { pool_of(machine, pool); });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return call([&](Machine& machine) { pool_of(machine, pool); });
}

/// Memory is accessible from the only device.
TILEWRIGHT_EXPORT cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation*) {
  return call([&](Machine& machine) {
    require(flags != nullptr);
    pool_of(machine, pool);
    *flags = cudaMemAccessFlagsProtReadWrite;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call([&](Machine& machine) {
    Pool& pool = pool_of(machine, handle);
    if (attribute == cudaMemPoolAttrReleaseThreshold) std::memcpy(&pool.release_threshold, value, 8);
    if (attribute == cudaMemPoolAttrUsedMemHigh) pool.high_water = pool.used;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call([&](Machine& machine) {
    const Pool& pool = pool_of(machine, handle);
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies: {
        const int on = 1;
        std::memcpy(value, &on, sizeof(on));
        return;
      }
      case cudaMemPoolAttrReleaseThreshold:
        std::memcpy(value, &pool.release_threshold, 8);
        return;
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent:
        std::memcpy(value, &pool.used, 8);
        return;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        std::memcpy(value, &pool.high_water, 8);
        return;
      default:
        fail(CUDA_ERROR_INVALID_VALUE);
    }
  });
}

}  // namespace tilewright::cuda_runtime
