// Binds kernels: the built-in ones, and classes that Python programs derive from tilewright.Kernel.
#pragma once

#include <nanobind/nanobind.h>

#include "tilewright/registry/kernel.hpp"

namespace tilewright::python {

/// The family of a kernel class, which is the name of the class, or of a str, which is the name itself.
/// @throws TypeError for other objects
std::string family_of(nanobind::handle kernel_class);

/// The registered Python class of a family; tilewright.Kernel if there is none.
nanobind::object class_of_family(const std::string& family);

/// Sets the target that a Python kernel is compiled for; does nothing for built-in kernels.
/// @throws InvalidArgument if the kernel was already made for another target
void set_target(registry::Kernel& kernel, const Target& target);

/// The same, with the target of the engine for operands in `memory`, for a Python kernel that has no target yet because
/// the program has made it, instead of a provider. `kernel` may be null. @pre the GIL is held
void choose_target(registry::Kernel* kernel, const op::MemoryDevice& memory);

void bind_metadata(nanobind::module_& module);
void bind_kernel(nanobind::module_& module);
/// Binds register() and unregister().
void bind_provider(nanobind::module_& module);

}  // namespace tilewright::python
