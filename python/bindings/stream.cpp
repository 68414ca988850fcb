#include "python/bindings/stream.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "python/bindings/engine.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/runtime/capture.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/event.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

constexpr std::uint64_t kLegacyStream = 1;  // CU_STREAM_LEGACY of cuda.h, which is also the null stream

std::uint64_t current_of_torch(int ordinal) {
  static PyObject* current = nullptr;  // guarded by the GIL; modules are never unloaded
  const nb::handle function = function_of("torch", "_C", "_cuda_getCurrentRawStream", current);
  return function.is_valid() ? nb::cast<std::uint64_t>(function(ordinal)) : 0;
}

std::uint64_t current_of_cupy(int ordinal) {
  static PyObject* current = nullptr;  // guarded by the GIL
  const nb::handle function = function_of("cupy", "cuda", "get_current_stream", current);
  return function.is_valid() ? nb::cast<std::uint64_t>(function(ordinal).attr("ptr")) : 0;
}

std::uint64_t current_of(const ExchangeTable& table, int ordinal) {
  void* stream = nullptr;
  if (table.current_stream(nb::device::cuda::value, ordinal, &stream) != 0) throw nb::python_error();
  return reinterpret_cast<std::uint64_t>(stream);
}

std::uint64_t current_of(const StreamSource& source, int ordinal) {
  switch (source.kind) {
    case StreamSource::Kind::fixed:
    case StreamSource::Kind::lent:
      return source.handle;
    case StreamSource::Kind::torch:
      return current_of_torch(ordinal);
    case StreamSource::Kind::cupy:
      return current_of_cupy(ordinal);
    case StreamSource::Kind::table:
      return current_of(*source.table, ordinal);
    case StreamSource::Kind::none:
      break;
  }
  return 0;
}

/// @throws InvalidArgument if the stream object of PyTorch or CuPy belongs to another GPU than `device`
void check_device(nb::handle stream, const op::MemoryDevice& device) {
  if (device.kind != op::MemoryDevice::Kind::cuda) return;
  for (const char* ordinal : {"device_index", "device_id"}) {
    if (!nb::hasattr(stream, ordinal)) continue;
    const nb::object value = stream.attr(ordinal);
    const int of_stream = nb::isinstance<nb::int_>(value) ? read_integer<int>(value, "the device of a stream") : -1;
    if (of_stream < 0 || of_stream == device.ordinal) return;
    throw InvalidArgument(
        fmt::format("the stream belongs to cuda:{}, but the arrays are on {}", of_stream, op::to_string(device)));
  }
}

runtime::StreamHandle handle_of(std::uint64_t stream) { return reinterpret_cast<runtime::StreamHandle>(stream); }

/// Whether the array itself names the stream, as opposed to the current stream of its framework.
bool is_named_by_array(const StreamSource& source) {
  return source.kind == StreamSource::Kind::fixed || source.kind == StreamSource::Kind::lent;
}

std::shared_ptr<runtime::CudaContext> context_of(const op::MemoryDevice& device) {
  const auto gpu = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_for(device)->device());
  TILEWRIGHT_CHECK(gpu != nullptr, "{} is no GPU", op::to_string(device));
  return gpu->context();
}

void wait_for(std::uint64_t awaited, std::uint64_t waiting, const op::MemoryDevice& device) {
  const Unlocked unlocked;
  const runtime::Event ready(context_of(device), runtime::Event::Timing::disabled);
  ready.record(handle_of(awaited));
  ready.make_wait(handle_of(waiting));
}

/// Both handles of the null stream become 0.
std::uint64_t normalized(std::uint64_t stream) { return stream == kLegacyStream ? 0 : stream; }

/// The current stream of the arrays' frameworks, or nullopt if no array has such a framework.
/// @throws InvalidArgument if the current streams of several frameworks differ
std::optional<std::uint64_t> current_of_all(std::span<const StreamSource> sources, int ordinal) {
  std::optional<std::uint64_t> common;
  for (const StreamSource& source : sources) {
    if (is_named_by_array(source)) continue;
    const std::uint64_t current = normalized(current_of(source, ordinal));
    if (common.value_or(current) != current) {
      throw InvalidArgument(fmt::format(
          "the current streams of the arrays' frameworks differ, {:#x} and {:#x}: synchronize them and pass stream=",
          *common, current));
    }
    common = current;
  }
  return common;
}

struct Lent {
  runtime::Event done;  // recorded after the last kernel that uses the memory
  std::vector<nb::object> owners;
};
std::vector<Lent>& all_lent() {
  static auto* all = new std::vector<Lent>;  // guarded by the GIL; lives as long as the process
  return *all;
}

}  // namespace

nb::object imported(const char* name) {
  PyObject* const found = PyDict_GetItemString(PyImport_GetModuleDict(), name);
  return found == nullptr ? nb::none() : nb::borrow(found);
}

nb::handle function_of(const char* module, const char* first, const char* second, PyObject*& known) {
  if (known == nullptr) {
    const nb::object loaded = imported(module);
    if (loaded.is_none() || !nb::hasattr(loaded, first) || !nb::hasattr(loaded.attr(first), second)) return {};
    known = nb::object(loaded.attr(first).attr(second)).release().ptr();
  }
  return known;
}

std::uint64_t read_stream(nb::handle stream) {
  constexpr const char* kWhat = "the handle of a stream";
  if (nb::isinstance<nb::int_>(stream)) return read_unsigned(stream, kWhat);
  const Locked gil;  // stream classes may be written in Python
  if (nb::hasattr(stream, "__cuda_stream__"))
    return read_unsigned(nb::int_(stream.attr("__cuda_stream__")()[1]), kWhat);
  for (const char* handle : {"cuda_stream", "ptr", "handle"}) {
    if (nb::hasattr(stream, handle)) return read_unsigned(nb::int_(stream.attr(handle)), kWhat);
  }
  throw InvalidArgument("stream must be None, an int, a PyTorch or CuPy stream, or an object with __cuda_stream__()");
}

runtime::StreamHandle stream_for(nb::handle stream, std::span<const StreamSource> sources,
                                 const op::MemoryDevice& device) {
  if (!stream.is_none()) check_device(stream, device);
  std::optional<std::uint64_t> chosen;
  if (!stream.is_none()) chosen = normalized(read_stream(stream));
  if (device.kind != op::MemoryDevice::Kind::cuda) return handle_of(chosen.value_or(0));
  if (!chosen) chosen = current_of_all(sources, device.ordinal);
  for (const StreamSource& source : sources) {
    if (!is_named_by_array(source)) continue;
    if (!chosen) chosen = normalized(source.handle);
    if (normalized(source.handle) != *chosen) wait_for(source.handle, *chosen, device);
  }
  return handle_of(chosen.value_or(0));
}

void keep_until_passed(const std::vector<nb::object>& lent, const op::MemoryDevice& device,
                       runtime::StreamHandle stream) {
  const std::shared_ptr<runtime::CudaContext> context = [&] {
    const Unlocked unlocked;
    return context_of(device);
  }();
  {
    const runtime::ContextScope scope(*context);
    if (runtime::is_capturing(context->driver(), stream)) return;  // who replays a graph must keep its arrays alive
  }
  // Not before the check: to query an event would end the capture with an error.
  std::vector<Lent>& all = all_lent();
  std::erase_if(all, [](const Lent& each) { return each.done.is_complete(); });
  runtime::Event done(context, runtime::Event::Timing::disabled);
  done.record(stream);
  all.push_back({std::move(done), lent});
}

void release_all_lent() {
  std::vector<Lent> all;
  std::swap(all, all_lent());
  const Unlocked unlocked;
  for (const Lent& each : all) each.done.synchronize();
}

void bind_stream(nb::module_& module) {
  module.def("_stream_handle", &read_stream, nb::arg("stream"),
             "The CUstream of a stream object of any framework, as an integer.");
}

}  // namespace tilewright::python
