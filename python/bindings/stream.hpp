// Chooses the CUDA stream of a launch from the caller's stream and the arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "python/bindings/dlpack_exchange.hpp"
#include "tilewright/op/tensor.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::python {

/// Where to find the stream that work on a GPU array is ordered by.
struct StreamSource {
  enum class Kind {
    none,   // there is no stream: the array needs no synchronization
    fixed,  // `handle`: the array's producer was enqueued on it
    lent,   // `handle`: the exporter made it wait for the array's producer, and the array's owner must be kept alive
            // until the kernel has finished
    torch,  // the current stream of PyTorch
    cupy,   // the current stream of CuPy
    table,  // the current stream of the framework, from DLPack's C exchange API (`table`)
  };
  Kind kind = Kind::none;
  std::uint64_t handle = 0;
  const ExchangeTable* table = nullptr;

  bool operator==(const StreamSource&) const = default;
};

/// The distinct stream sources of a problem's arrays. The common case of a single source allocates no memory.
class StreamSources {
 public:
  void add(const StreamSource& source) {
    if (source.kind == StreamSource::Kind::none || std::ranges::find(all(), source) != all().end()) return;
    if (all().empty()) {
      first_ = source;
      return;
    }
    if (several_.empty()) several_.push_back(first_);
    several_.push_back(source);
  }
  std::span<const StreamSource> all() const {
    if (!several_.empty()) return several_;
    return {&first_, first_.kind == StreamSource::Kind::none ? std::size_t{0} : std::size_t{1}};
  }

 private:
  StreamSource first_;
  std::vector<StreamSource> several_;
};

/// The module if it has been imported, else None.
nanobind::object imported(const char* name);

/// The function `first`.`second` of a module, or an invalid handle if the module is not imported or lacks it. `known`
/// caches it.
nanobind::handle function_of(const char* module, const char* first, const char* second, PyObject*& known);

/// The stream to launch on. `stream` is an int, an object with cuda_stream, ptr, handle or __cuda_stream__(), or None.
/// None stands for the current stream of the arrays' frameworks; if they have none, for a stream that an array names;
/// else for the null stream. The launch stream is made to wait for all streams that arrays name.
/// @throws InvalidArgument if the stream belongs to another GPU than `device`, or if `stream` is None and the current
///         streams of the frameworks differ
runtime::StreamHandle stream_for(nanobind::handle stream, std::span<const StreamSource> sources,
                                 const op::MemoryDevice& device);

/// The CUstream of a stream object of any framework, as an integer. @throws InvalidArgument
std::uint64_t read_stream(nanobind::handle stream);

/// Keeps the objects alive until `stream` has completed the work that is enqueued on it now.
void keep_until_passed(const std::vector<nanobind::object>& lent, const op::MemoryDevice& device,
                       runtime::StreamHandle stream);

/// Waits for that work on all streams, and releases the objects.
void release_all_lent();

void bind_stream(nanobind::module_& module);

}  // namespace tilewright::python
