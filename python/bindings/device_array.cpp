// The class _DeviceArray: GPU memory for results of frameworks whose arrays cannot be written (JAX), which take it over
// by DLPack.
#include <nanobind/ndarray.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "python/bindings/device_array.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/runtime/capture.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/event.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// Waits for all work on the GPU; returns false if that is not possible.
bool wait_for_all(const runtime::CudaContext& context) noexcept {
  try {
    const runtime::ContextScope scope(context);
    const runtime::RelaxedCapture relaxed(context.driver());
    return context.driver().ctx_synchronize.raw() == runtime::kSuccess;
  } catch (const std::exception&) {
    return false;
  }
}

/// Memory that a framework shares by DLPack. The framework reads it on streams that are not known here, and releases it
/// once its reads are enqueued. Therefore the destructor waits for all work on the GPU before it frees the memory.
struct SharedMemory {
  SharedMemory(std::shared_ptr<runtime::CudaDevice> on, std::size_t bytes, runtime::StreamHandle stream)
      : device(std::move(on)), address(device->allocate(bytes, stream)) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  /// @pre the GIL is held
  ~SharedMemory() {
    const Unlocked unlocked;              // the work on the GPU may itself wait for Python
    const ScopedInterruptCheck none({});  // a destructor must not throw
    if (wait_for_all(*device->context())) {
      device->deallocate(address, nullptr);
    } else {
      spdlog::warn("{:#x} stays allocated: a graph is being captured, or the GPU has failed", address);
    }
  }

  std::shared_ptr<runtime::CudaDevice> device;
  runtime::DeviceAddress address = 0;
};

}  // namespace

class DeviceArray {
 public:
  DeviceArray(const op::Dims& shape, DType dtype, int ordinal, runtime::StreamHandle stream) : stream_(stream) {
    tensor_.dtype = dtype;
    tensor_.shape = shape;
    tensor_.stride = packed_strides(shape);
    tensor_.device = {op::MemoryDevice::Kind::cuda, ordinal};
    const Unlocked unlocked;
    auto device = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_for(tensor_.device)->device());
    TILEWRIGHT_CHECK(device != nullptr, "cuda:{} is no GPU", ordinal);
    const auto bytes = static_cast<std::size_t>(op::span_bytes(tensor_));
    memory_ = std::make_shared<SharedMemory>(std::move(device), bytes, stream);
    tensor_.address = memory_->address;
  }

  const op::Tensor& tensor() const { return tensor_; }
  std::uint64_t stream() const { return reinterpret_cast<std::uint64_t>(stream_); }

  nb::typed<nb::tuple, int, int> dlpack_device() const {
    return nb::make_tuple(static_cast<int>(nb::device::cuda::value), tensor_.device.ordinal);
  }

  /// Implements __dlpack__: makes `stream` wait for the work that is enqueued on the array's own stream.
  nb::object dlpack(nb::handle stream, nb::handle max_version) const {
    constexpr std::int64_t kNoOrder = -1;
    const bool is_ordered =
        !nb::isinstance<nb::int_>(stream) || read_integer<std::int64_t>(stream, "a stream") != kNoOrder;
    if (is_ordered) {
      const runtime::StreamHandle waiting = stream_for(stream, {}, {});
      const Unlocked unlocked;
      const runtime::Event written(memory_->device->context(), runtime::Event::Timing::disabled);
      written.record(stream_);
      written.make_wait(waiting);
    }
    std::vector<std::size_t> shape;
    for (int mode = 0; mode < tensor_.shape.rank(); ++mode)
      shape.push_back(static_cast<std::size_t>(tensor_.shape[mode]));
    const nb::capsule owner(new std::shared_ptr<SharedMemory>(memory_),
                            [](void* held) noexcept { delete static_cast<std::shared_ptr<SharedMemory>*>(held); });
    const nb::ndarray<nb::array_api> array(reinterpret_cast<void*>(tensor_.address), shape.size(), shape.data(), owner,
                                           nullptr, dlpack_type(tensor_.dtype), nb::device::cuda::value,
                                           tensor_.device.ordinal);
    return nb::cast(array).attr("__dlpack__")(nb::arg("max_version") = max_version);
  }

 private:
  op::Tensor tensor_;
  runtime::StreamHandle stream_ = nullptr;
  std::shared_ptr<SharedMemory> memory_;
};

std::optional<ReadTensor> read_device_array(nb::handle object) {
  if (!nb::isinstance<DeviceArray>(object)) return std::nullopt;
  const auto& array = nb::cast<const DeviceArray&>(object);
  return ReadTensor{
      .tensor = array.tensor(),
      .is_read_only = false,
      .stream = {.kind = StreamSource::Kind::fixed, .handle = array.stream(), .table = nullptr},
      .owner = nb::borrow(object),
  };
}

void bind_device_array(nb::module_& module) {
  nb::class_<DeviceArray>(module, "_DeviceArray",
                          "An array in GPU memory that another framework can take over by DLPack.")
      .def(
          "__init__",
          [](DeviceArray* self, nb::handle shape, nb::handle dtype, int ordinal, nb::handle stream) {
            const runtime::StreamHandle handle = stream_for(stream, {}, {});
            new (self) DeviceArray(dims_of(shape, "shape"), read_dtype(dtype), ordinal, handle);
          },
          nb::arg("shape"), nb::arg("dtype"), nb::arg("ordinal"), nb::arg("stream") = nb::none())
      .def_prop_ro("data_ptr", [](const DeviceArray& self) { return self.tensor().address; })
      .def("__dlpack_device__", &DeviceArray::dlpack_device)
      .def(
          "__dlpack__",
          [](const DeviceArray& self, nb::handle stream, nb::handle max_version, nb::handle /*dl_device*/,
             nb::handle /*copy*/) { return self.dlpack(stream, max_version); },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
}

}  // namespace tilewright::python
