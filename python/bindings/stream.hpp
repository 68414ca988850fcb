// Streams of Python's frameworks: where work on their arrays goes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>

#include "python/bindings/dlpack_exchange.hpp"
#include "tilewright/op/tensor.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::python {

/// Who says in which stream an array of a GPU is worked on.
struct StreamSource {
  enum class Kind {
    none,   // nobody: whatever made the array is done
    fixed,  // the array itself: what made it was enqueued on `handle`, or that waits for it
    torch,
    cupy,
    table,  // its framework, by the function of DLPack's table
  };
  Kind kind = Kind::none;
  std::uint64_t handle = 0;
  const ExchangeTable* table = nullptr;

  bool operator==(const StreamSource&) const = default;
};

/// The module if the program has imported it, else None.
nanobind::object imported(const char* name);

/// `stream`: an int, or an object with cuda_stream, ptr, handle or __cuda_stream__(). None: the one that all sources
/// name, the null stream where there is none. @throws InvalidArgument for a stream of another GPU than `device`, and
/// where sources name different ones
runtime::StreamHandle stream_for(nanobind::handle stream, std::span<const StreamSource> sources,
                                 const op::MemoryDevice& device);

/// The handle of a stream that is given. @throws InvalidArgument
std::uint64_t read_stream(nanobind::handle stream);

void bind_stream(nanobind::module_& module);

}  // namespace tilewright::python
