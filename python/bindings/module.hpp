// Functions that each bind a part of the extension module tilewright._tilewright.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

/// Forwards the library's log messages to the logger "tilewright" of Python's logging.
void bind_logging(nanobind::module_& module);
/// Translates the library's C++ exceptions to the Python exceptions of tilewright/errors.py.
void bind_errors();

/// Binds the functions below tilewright/checked.py.
void bind_checked(nanobind::module_& module);

/// Binds the functions below tilewright/profiling.py. @pre OperationArguments is bound
void bind_profile(nanobind::module_& module);

/// Binds what tilewright/weights.py needs. @pre Operation and OperationArguments are bound
void bind_weights(nanobind::module_& module);

/// Binds the submodule `emulator`: kernels of the user's on the emulator.
void bind_emulator(nanobind::module_& module);

// These bind the submodule `layout`: the room tilewright/layout/ under CuTe's names.

/// Binds ScaledBasis and the functions on integer tuples.
void bind_int_tuple(nanobind::module_& module);
/// Binds the classes Swizzle, Layout and ComposedLayout. @pre bind_drawing() was called
void bind_layout(nanobind::module_& module);
/// Binds the functions on these classes.
void bind_layout_algebra(nanobind::module_& module);
/// Binds the class Drawing.
void bind_drawing(nanobind::module_& module);

}  // namespace tilewright::python
