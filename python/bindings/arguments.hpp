// tilewright.OperationArguments, GemmArguments, GroupedGemmArguments, Conv2dArguments, ContractionArguments and
// ReduceSplitKArguments: problems on Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "python/bindings/placed_matrices.hpp"
#include "python/bindings/stream.hpp"
#include "tilewright/engine/call.hpp"

namespace tilewright::python {

/// A problem, with references to the Python objects that keep its memory alive.
struct OperationArguments {
  engine::Call call;
  StreamSources streams;  // determine the stream of a launch when the caller passes none
  std::vector<nanobind::object> owners;
  std::vector<nanobind::object> lent;  // the owners that must stay alive until the kernel has finished
  /// Why no kernel can compute the arguments that the caller gave, for which these stand. Kernels refuse them with it.
  std::optional<std::string> refusal = std::nullopt;

  const op::Problem& problem() const { return call.problem(); }
  op::MemoryDevice memory() const { return op::device(problem()); }
  /// Whether the arrays are in host memory: they are copied to the device and back.
  bool is_on_host() const { return memory().kind == op::MemoryDevice::Kind::host; }
};

struct GemmArguments : OperationArguments {
  const op::Gemm& gemm() const { return std::get<op::Gemm>(problem()); }
};

struct GroupedGemmArguments : OperationArguments {
  const op::GroupedGemm& grouped() const { return std::get<op::GroupedGemm>(problem()); }
};

struct Conv2dArguments : OperationArguments {
  const op::Conv2d& conv() const { return std::get<op::Conv2d>(problem()); }
};

struct ContractionArguments : OperationArguments {
  const op::Contraction& contraction() const { return std::get<op::Contraction>(problem()); }
};

struct ReduceSplitKArguments : OperationArguments {
  const op::ReduceSplitK& reduction() const { return std::get<op::ReduceSplitK>(problem()); }
};

/// One tensor of a problem, as the methods of a Python kernel receive it.
struct Operand {
  op::Tensor tensor;
};

/// Converts Python arrays to tensors, and collects their streams and owners.
struct ArgumentsReader {
  /// `role` is the array's name in messages.
  /// @throws InvalidArgument if `is_written` and the array is read-only, and what read_tensor() throws
  op::Tensor read(nanobind::handle array, bool is_written, const char* role);

  StreamSources streams;
  std::vector<nanobind::object> owners, lent;
  std::vector<PlacedMatrix> matrices;  // of the operands that may be lists
};

/// The Python object that the methods of a Python kernel receive for a problem; it does not keep the problem's memory
/// alive. If `is_for_gemm`, it is a GemmArguments, also for an operation that is viewed as a GEMM; else it is an
/// OperationArguments.
/// @pre the problem is valid, the GIL is held
nanobind::object arguments_of(const op::Problem& problem, bool is_for_gemm);

/// Binds Operation and OperandDeclaration, and the members of OperationArguments that need them. @pre bind_arguments()
/// was called
void bind_operation(nanobind::module_& module);
/// Binds Conv2dArguments. @pre OperationArguments and Operand are bound
void bind_conv2d(nanobind::module_& module);
/// Binds ContractionArguments. @pre OperationArguments and Operand are bound
void bind_contraction(nanobind::module_& module);
void bind_arguments(nanobind::module_& module);

}  // namespace tilewright::python
