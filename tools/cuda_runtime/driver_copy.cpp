// Copies of rows and boxes, and fills of rows, of the driver API.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tools/cuda_runtime/driver_by_runtime.hpp"

namespace tilewright::cuda_runtime {
namespace {

/// The address of one side of a copy of rows. @throws ApiError for an array
std::byte* side_of(Machine& machine, CUmemorytype type, const void* host, CUdeviceptr device, std::size_t offset) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    machine.note_unsupported("a copy from or to a CUarray");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  const auto base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  return reinterpret_cast<std::byte*>(base + offset);
}

Copy::Kind kind_of(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return Copy::Kind::inferred;
  const bool of_device = from == CU_MEMORYTYPE_DEVICE, to_device = to == CU_MEMORYTYPE_DEVICE;
  return of_device ? (to_device ? Copy::Kind::device_to_device : Copy::Kind::device_to_host)
                   : (to_device ? Copy::Kind::host_to_device : Copy::Kind::host_to_host);
}

/// The distance of rows, which are packed if it is 0. @throws ApiError if a row, `width` bytes from byte `x` on,
/// reaches into the next
std::size_t pitch_of(std::string_view side, std::size_t pitch, std::size_t x, std::size_t width, bool has_several) {
  if (pitch == 0) return width;
  if (has_several && pitch < x + width) {
    fail(CUDA_ERROR_INVALID_VALUE,
         fmt::format("the pitch of the {} is {} bytes, and a row has {} from byte {} on", side, pitch, width, x));
  }
  return pitch;
}

Copy copy_of(Machine& machine, const CUDA_MEMCPY2D* rows) {
  require(rows != nullptr);
  Copy copy;
  const bool has_several = rows->Height > 1;
  copy.from_pitch = pitch_of("source", rows->srcPitch, rows->srcXInBytes, rows->WidthInBytes, has_several);
  copy.to_pitch = pitch_of("destination", rows->dstPitch, rows->dstXInBytes, rows->WidthInBytes, has_several);
  copy.from = side_of(machine, rows->srcMemoryType, rows->srcHost, rows->srcDevice,
                      rows->srcXInBytes + rows->srcY * copy.from_pitch);
  copy.to = side_of(machine, rows->dstMemoryType, rows->dstHost, rows->dstDevice,
                    rows->dstXInBytes + rows->dstY * copy.to_pitch);
  copy.width = rows->WidthInBytes;
  copy.height = rows->Height;
  copy.kind = kind_of(rows->srcMemoryType, rows->dstMemoryType);
  return copy;
}

}  // namespace

Copy copy_of(Machine& machine, const CUDA_MEMCPY3D* box) {
  require(box != nullptr);
  Copy copy;
  const bool has_several = box->Height > 1 || box->Depth > 1;
  copy.from_pitch = pitch_of("source", box->srcPitch, box->srcXInBytes, box->WidthInBytes, has_several);
  copy.to_pitch = pitch_of("destination", box->dstPitch, box->dstXInBytes, box->WidthInBytes, has_several);
  copy.from_height = box->srcHeight != 0 ? box->srcHeight : box->Height;
  copy.to_height = box->dstHeight != 0 ? box->dstHeight : box->Height;
  copy.from = side_of(machine, box->srcMemoryType, box->srcHost, box->srcDevice,
                      box->srcXInBytes + (box->srcZ * copy.from_height + box->srcY) * copy.from_pitch);
  copy.to = side_of(machine, box->dstMemoryType, box->dstHost, box->dstDevice,
                    box->dstXInBytes + (box->dstZ * copy.to_height + box->dstY) * copy.to_pitch);
  copy.width = box->WidthInBytes;
  copy.height = box->Height;
  copy.depth = box->Depth;
  copy.kind = kind_of(box->srcMemoryType, box->dstMemoryType);
  return copy;
}

namespace {

template <class Parameters>
CUresult copy_and_wait(const Parameters* parameters, const char* function = __builtin_FUNCTION()) {
  return by_runtime(
      [&] { return call([&](Machine& machine) { machine.copy_and_wait(copy_of(machine, parameters)); }, function); },
      function);
}

template <class Parameters>
CUresult copy_in(CUstream stream, const Parameters* parameters, const char* function = __builtin_FUNCTION()) {
  return by_runtime(
      [&] {
        return call([&](Machine& machine) { machine.enqueue(machine.stream(stream), copy_of(machine, parameters)); },
                    function);
      },
      function);
}

}  // namespace

// Copies of rows -----------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuMemcpy2D(const CUDA_MEMCPY2D* rows) { return copy_and_wait(rows); }
TILEWRIGHT_EXPORT CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* rows) { return copy_and_wait(rows); }
TILEWRIGHT_EXPORT CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* rows, CUstream stream) { return copy_in(stream, rows); }
TILEWRIGHT_EXPORT CUresult cuMemcpy3D(const CUDA_MEMCPY3D* box) { return copy_and_wait(box); }
TILEWRIGHT_EXPORT CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* box, CUstream stream) { return copy_in(stream, box); }

/// Hints have no effect.
TILEWRIGHT_EXPORT CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) {
  return by_runtime([] { return call([](Machine&) {}); });
}

TILEWRIGHT_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return by_runtime([&] { return cudaMemcpyPeer(pointer_of(to), 0, pointer_of(from), 0, bytes); });
}
TILEWRIGHT_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                                             CUstream stream) {
  return by_runtime([&] { return cudaMemcpyPeerAsync(pointer_of(to), 0, pointer_of(from), 0, bytes, stream); });
}

// Fills of rows ------------------------------------------------------------------------------------------------------

namespace {

/// Fills `height` rows of `width` elements, whose starts are `pitch` bytes apart.
template <class Element>
CUresult fill_rows(CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, std::size_t height,
                   CUstream stream, const char* function = __builtin_FUNCTION()) {
  return by_runtime(
      [&] {
        return call(
            [&](Machine& machine) {
              if (height > 1 && pitch < width * sizeof(Element))
                fail(CUDA_ERROR_INVALID_VALUE, fmt::format("the pitch of {} bytes is smaller than a row of {} bytes",
                                                           pitch, width * sizeof(Element)));
              machine.enqueue(machine.stream(stream), Fill{to, pitch, width, height, value, sizeof(Element)});
            },
            function);
      },
      function);
}

}  // namespace

TILEWRIGHT_EXPORT CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                        size_t height) {
  return fill_rows(to, pitch, value, width, height, nullptr);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                         size_t height) {
  return fill_rows(to, pitch, value, width, height, nullptr);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill_rows(to, pitch, value, width, height, nullptr);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                             size_t height, CUstream stream) {
  return fill_rows(to, pitch, value, width, height, stream);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                              size_t height, CUstream stream) {
  return fill_rows(to, pitch, value, width, height, stream);
}
TILEWRIGHT_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                              CUstream stream) {
  return fill_rows(to, pitch, value, width, height, stream);
}

// Managed memory -----------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned,
                                              CUstream stream) {
  return by_runtime([&] { return cudaMemPrefetchAsync(pointer_of(address), bytes, {}, 0, stream); });
}
TILEWRIGHT_EXPORT CUresult cuMemRangeGetAttribute(void* data, size_t bytes, CUmem_range_attribute attribute,
                                                  CUdeviceptr address, size_t count) {
  return by_runtime([&] {
    return cudaMemRangeGetAttribute(data, bytes, static_cast<cudaMemRangeAttribute>(attribute), pointer_of(address),
                                    count);
  });
}
TILEWRIGHT_EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  return by_runtime([&] { return cudaStreamAttachMemAsync(stream, pointer_of(address), bytes, flags); });
}
TILEWRIGHT_EXPORT CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return by_runtime([&] { return cudaHostGetFlags(flags, pointer); });
}

}  // namespace tilewright::cuda_runtime
