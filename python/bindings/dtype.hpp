// Converts the element types of Python frameworks to tilewright::DType.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tilewright/base/dtype.hpp"

namespace tilewright::python {

/// Reads a tilewright.DType, a torch, NumPy, CuPy, JAX or ml_dtypes type, an object whose `dtype` or `name` is one of
/// these, or a name ("float16", "f16", "half"). @throws InvalidArgument that names the unknown type
DType read_dtype(nanobind::handle object);

/// The same; None is nullopt. Errors begin with `what`, the name of the parameter.
std::optional<DType> read_optional_dtype(nanobind::handle object, const char* what);

/// The type's name in NumPy and ml_dtypes, for example "float16".
const char* numpy_name(DType type);

void bind_dtype(nanobind::module_& module);

}  // namespace tilewright::python
