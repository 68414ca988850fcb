// Keys of Python functions: functions with the same key compute the same.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

/// Whether the object is a function written in Python.
bool is_function(nanobind::handle object);

/// The key that tilewright.tracing.identity remembered for the function, which is compared by identity. An invalid
/// object if there is none, or if the function now has other code, another closure or other defaults, or one of the
/// globals that it may read is another object; functions that it calls are looked up too.
nanobind::object find_function_key(nanobind::handle function);

/// Binds _find_function_key() and _remember_function_key().
void bind_function_keys(nanobind::module_& module);

}  // namespace tilewright::python
