// Kernels in Python: those that are shipped, and those whose authors derive from tilewright.Kernel.
#pragma once

#include <nanobind/nanobind.h>

#include "tilewright/registry/kernel.hpp"

namespace tilewright::python {

/// The name of a class of kernels, which may be given as it is. @throws TypeError for what is neither
std::string family_of(nanobind::handle kernel_class);

/// The Python class of an author's kernels, by family; none where it is not known.
nanobind::object class_of_family(const std::string& family);

/// Compiles an author's kernel for `target` from now on; leaves those that are shipped alone.
void set_target(registry::Kernel& kernel, const Target& target);

void bind_metadata(nanobind::module_& module);
void bind_kernel(nanobind::module_& module);
/// register, unregister.
void bind_provider(nanobind::module_& module);

}  // namespace tilewright::python
