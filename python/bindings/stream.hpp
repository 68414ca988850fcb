// Streams of Python's frameworks: where work on their arrays goes.
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

/// Who says in which stream an array of a GPU is worked on.
struct StreamSource {
  enum class Kind {
    none,   // nobody: whatever made the array is done
    fixed,  // the array itself: what made it was enqueued on `handle`
    lent,   // its exporter: `handle` waits for what made it, and the memory is ours until the owner is let go of
    torch,
    cupy,
    table,  // its framework, by the function of DLPack's table
  };
  Kind kind = Kind::none;
  std::uint64_t handle = 0;
  const ExchangeTable* table = nullptr;

  bool operator==(const StreamSource&) const = default;
};

/// Those of a problem's arrays, each once; mostly there is one, which needs no memory of its own.
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

/// The module if the program has imported it, else None.
nanobind::object imported(const char* name);

/// `stream`: an int, or an object with cuda_stream, ptr, handle or __cuda_stream__(). None: the current one of the
/// frameworks, else one that an array names, else the null stream. It waits for the others that arrays name.
/// @throws InvalidArgument for a stream of another GPU than `device`, and where the frameworks' current ones differ
runtime::StreamHandle stream_for(nanobind::handle stream, std::span<const StreamSource> sources,
                                 const op::MemoryDevice& device);

/// The handle of a stream that is given. @throws InvalidArgument
std::uint64_t read_stream(nanobind::handle stream);

/// Keeps what is lent until the stream has passed what was enqueued until now.
void keep_until_passed(const std::vector<nanobind::object>& lent, const op::MemoryDevice& device,
                       runtime::StreamHandle stream);

/// Waits for all that is kept so, and lets go of it.
void let_go_of_lent();

void bind_stream(nanobind::module_& module);

}  // namespace tilewright::python
