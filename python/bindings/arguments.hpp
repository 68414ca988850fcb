// tilewright.Arguments and tilewright.GemmArguments: problems on Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <variant>
#include <vector>

#include "python/bindings/stream.hpp"
#include "tilewright/engine/call.hpp"

namespace tilewright::python {

/// A problem, and what keeps its memory.
struct Arguments {
  engine::Call call;
  StreamSources streams;  // of its arrays on a GPU: where kernels go unless told otherwise
  std::vector<nanobind::object> owners;
  std::vector<nanobind::object> lent;  // of these, what a run must keep until it is done

  const op::Problem& problem() const { return call.problem(); }
  op::MemoryDevice memory() const { return op::device(problem()); }
  /// Arrays in memory of the host, which are copied to the device and back.
  bool is_on_host() const { return memory().kind == op::MemoryDevice::Kind::host; }
};

struct GemmArguments : Arguments {
  const op::Gemm& gemm() const { return std::get<op::Gemm>(problem()); }
};

/// One tensor of a problem as authors of kernels see it.
struct Operand {
  op::Tensor tensor;
};

/// Reads arrays into a problem, and remembers what must live on.
struct ArgumentsReader {
  /// @throws InvalidArgument where `is_written` and the array is read-only; see read_tensor()
  op::Tensor read(nanobind::handle array, bool is_written, const char* role);

  StreamSources streams;
  std::vector<nanobind::object> owners, lent;
};

/// The arguments of a problem whose memory others keep, as an author's methods are given them. A kernel of GEMMs gets
/// GemmArguments, also for a problem that is only seen as a GEMM. @pre the problem is valid, the GIL is held
nanobind::object arguments_of(const op::Problem& problem, bool is_for_gemm);

/// Arguments, Operation, Slot: problems of an author's operation. After bind_arguments().
void bind_operation(nanobind::module_& module);
void bind_arguments(nanobind::module_& module);

}  // namespace tilewright::python
