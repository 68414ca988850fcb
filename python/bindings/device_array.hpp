// Arrays of our own memory on a GPU.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/bindings/tensor.hpp"

namespace tilewright::python {

/// Nothing where the object is none.
std::optional<ReadTensor> read_device_array(nanobind::handle object);

void bind_device_array(nanobind::module_& module);

}  // namespace tilewright::python
