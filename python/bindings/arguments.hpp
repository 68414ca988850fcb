// tilewright.GemmArguments: a problem on Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tilewright/op/gemm.hpp"

namespace tilewright::python {

/// A problem, and what keeps its memory.
struct GemmArguments {
  op::Gemm gemm;
  bool is_torch = false;  // its arrays', whose current stream is where kernels go unless told otherwise
  std::vector<nanobind::object> owners;

  /// Arrays in memory of the host, which are copied to the device and back.
  bool is_on_host() const { return gemm.d.device.kind == op::MemoryDevice::Kind::host; }
};

void bind_arguments(nanobind::module_& module);

}  // namespace tilewright::python
