// Element types of every framework as tilewright::DType.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tilewright/base/dtype.hpp"

namespace tilewright::python {

/// Of a tilewright.DType, a torch, NumPy, CuPy, JAX or ml_dtypes type, an object with such a `dtype` or `name`, or a
/// name
/// ("float16", "f16", "half"). @throws InvalidArgument naming what it is
DType read_dtype(nanobind::handle object);

/// None: nothing.
std::optional<DType> read_optional_dtype(nanobind::handle object);

/// "float16": what NumPy and ml_dtypes call it.
const char* numpy_name(DType type);

void bind_dtype(nanobind::module_& module);

}  // namespace tilewright::python
