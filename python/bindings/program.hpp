// The bindings of the room tilewright/program/ in the submodule `program`, behind tilewright.program.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "python/bindings/read.hpp"
#include "tilewright/program/value.hpp"

namespace tilewright::python {

/// Reads "b16", "b32", "b64", "f32" or "f64". @throws InvalidArgument
program::RegisterType read_register_type(const Text& text);

/// Binds Value, the cells, KernelBuilder and Program. @pre bind_number(), bind_kernel()
void bind_program(nanobind::module_& module);
/// Binds the functions of program/instructions.hpp. @pre bind_program()
void bind_instructions(nanobind::module_& module);
/// Binds rings, roles, tiles, and the builders of copies and products. @pre bind_program(), bind_arch()
void bind_program_tiles(nanobind::module_& module);

/// Binds the room tilewright/arch/ in the submodule `arch`.
void bind_arch(nanobind::module_& module);

}  // namespace tilewright::python
