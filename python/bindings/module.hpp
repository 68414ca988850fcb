// The extension tilewright._tilewright: one function for each file of bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

/// The library's log becomes the logger "tilewright" of Python's logging.
void bind_logging(nanobind::module_& module);
/// C++ exceptions of this library become the Python exceptions of tilewright/errors.py.
void bind_errors();

// The submodule layout, which is tilewright/layout/ under CuTe's names.

/// Scaled basis elements, and the functions on trees of integers.
void bind_int_tuple(nanobind::module_& module);
/// The classes Swizzle, Layout and ComposedLayout. First Drawing must be there.
void bind_layout(nanobind::module_& module);
/// The functions on them.
void bind_layout_algebra(nanobind::module_& module);
/// The class Drawing.
void bind_drawing(nanobind::module_& module);

}  // namespace tilewright::python
