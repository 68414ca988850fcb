// tilewright.layout.
#include <nanobind/nanobind.h>

#include "python/bindings/module.hpp"

namespace tilewright::python {

void bind_layout(nanobind::module_& module) {
  module.doc() = "Layouts: functions from coordinates to offsets, given by a shape and a stride, and their algebra.";
}

}  // namespace tilewright::python
