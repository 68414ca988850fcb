// The initialization of the extension module tilewright._tilewright.
#include "python/bindings/module.hpp"

#include "python/bindings/arguments.hpp"
#include "python/bindings/device_array.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/function_keys.hpp"
#include "python/bindings/kernel.hpp"
#include "python/bindings/number.hpp"
#include "python/bindings/pointer_array.hpp"
#include "python/bindings/program.hpp"
#include "python/bindings/repeated_products.hpp"
#include "python/bindings/stream.hpp"
#include "python/bindings/tensor.hpp"
#include "python/bindings/unlocked.hpp"

namespace python = tilewright::python;

NB_MODULE(_tilewright, module) {
  module.doc() = "The extension behind the package tilewright. Import from tilewright, not from here.";
  module.attr("__version__") = TILEWRIGHT_VERSION;
  // At exit, tracebacks and caches of the program may still hold bound objects, which is no leak of this module.
  nanobind::set_leak_warnings(false);
  python::bind_errors();
  python::bind_logging(module);
  python::bind_dtype(module);
  python::bind_stream(module);
  python::bind_tensor(module);
  python::bind_device_array(module);
  python::bind_pointer_array(module);
  python::bind_arguments(module);
  python::bind_operation(module);
  python::bind_metadata(module);
  python::bind_kernel(module);
  python::bind_provider(module);
  python::bind_engine(module);
  python::bind_function_keys(module);
  python::bind_repeated_products(module);
  python::bind_checked(module);
  python::bind_profile(module);
  python::bind_weights(module);
  python::bind_exit(module);
  nanobind::module_ emulator = module.def_submodule("emulator");
  emulator.doc() = "The extension behind tilewright.emulator. Import from there.";
  python::bind_emulator(emulator);
  nanobind::module_ layout = module.def_submodule("layout");
  layout.doc() = "The extension behind tilewright.layout. Import from there.";
  python::bind_drawing(layout);
  python::bind_layout(layout);
  python::bind_int_tuple(layout);
  python::bind_layout_algebra(layout);
  nanobind::module_ arch = module.def_submodule("arch");
  arch.doc() = "The extension behind tilewright.arch. Import from there.";
  python::bind_arch(arch);
  nanobind::module_ program = module.def_submodule("program");
  program.doc() = "The extension behind tilewright.program. Import from there.";
  python::bind_number(program);
  python::bind_program(program);
  python::bind_instructions(program);
  python::bind_program_tiles(program);
}
