// Arrays in GPU memory that Tilewright allocates.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/bindings/tensor.hpp"

namespace tilewright::python {

/// Returns nullopt if the object is no _DeviceArray.
std::optional<ReadTensor> read_device_array(nanobind::handle object);

void bind_device_array(nanobind::module_& module);

}  // namespace tilewright::python
