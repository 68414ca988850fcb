// The extension tilewright._tilewright: one function for each file of bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

/// C++ exceptions of this library become the Python exceptions of tilewright/errors.py.
void bind_errors();
/// The submodule layout: tuples of integers, layouts, swizzles and the algebra of tilewright/layout/.
void bind_layout(nanobind::module_& module);

}  // namespace tilewright::python
