// tilewright.GemmArguments: a problem on Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "python/bindings/stream.hpp"
#include "tilewright/engine/call.hpp"

namespace tilewright::python {

/// A problem, and what keeps its memory.
struct GemmArguments {
  engine::Call call;
  StreamSources streams;  // of its arrays on a GPU: where kernels go unless told otherwise
  std::vector<nanobind::object> owners;
  std::vector<nanobind::object> lent;  // of these, what a run must keep until it is done

  /// Arrays in memory of the host, which are copied to the device and back.
  bool is_on_host() const { return gemm().d.device.kind == op::MemoryDevice::Kind::host; }
  const op::Gemm& gemm() const { return call.arguments(); }
};

void bind_arguments(nanobind::module_& module);

}  // namespace tilewright::python
