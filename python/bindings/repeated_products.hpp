// Calls of tilewright.matmul that are like an earlier one.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

/// Binds _repeat_product() and _remember_product(), with which tilewright/product.py computes a call that differs from
/// an earlier one at most in the addresses of its arrays without reading its arguments in Python. @pre bind_engine()
void bind_repeated_products(nanobind::module_& module);

}  // namespace tilewright::python
