// Where Python enters.
#include "python/bindings/module.hpp"

namespace python = tilewright::python;

NB_MODULE(_tilewright, module) {
  module.doc() = "The extension behind the package tilewright. Import from tilewright, not from here.";
  module.attr("__version__") = TILEWRIGHT_VERSION;
  python::bind_errors();
  nanobind::module_ layout = module.def_submodule("layout");
  python::bind_layout(layout);
}
