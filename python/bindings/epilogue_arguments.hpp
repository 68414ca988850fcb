// Reads the epilogue of a problem, and what else the constructors of all arguments take.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <optional>
#include <string>

#include "tilewright/op/problem.hpp"

namespace tilewright::python {

/// The epilogue of a name or a text, with values of its scalars. @throws InvalidArgument
op::Epilogue make_epilogue(const std::string& text, DType output, DType compute,
                           const std::map<std::string, double>& scalars);

/// An epilogue, as a caller gave it, for a problem of known types.
struct ReadEpilogue {
  op::Epilogue epilogue;
  nanobind::object tensors;           // a dict of the arrays that are bound to the epilogue, or None
  std::optional<double> alpha, beta;  // of the problem, where the epilogue binds them
};

/// The output of a problem as a matrix, or a batch of matrices.
struct OutputExtents {
  nanobind::object batch;  // None: a single matrix
  std::int64_t m = 0, n = 0;
  /// The kinds of the output's modes, which tensors of the epilogue have too: 'b' of the batch, 'm' of the rows, 'n' of
  /// the columns. Empty if tensors are matrices, or batches of matrices.
  std::string modes = {};
};

/// Reads None (a linear combination), an Epilogue, a str (text or name), or an object with _bind(batch, m, n, compute,
/// output[, modes]) -> (Epilogue, tensors, scalars). @throws InvalidArgument, TypeError, and what _bind() raises
ReadEpilogue read_epilogue(nanobind::handle epilogue, const OutputExtents& extents, DType compute, DType output);

/// A caller may bind an array to the value of an epilogue that is stored to D. `epilogue` is what read_epilogue() has
/// read, `output` the array of the caller that is written, and `name` its name. @throws InvalidArgument if the arrays
/// differ, since the array of the epilogue would not be written
void check_bound_output(nanobind::handle epilogue, nanobind::handle output, const char* name);

/// Not every epilogue uses alpha, beta and C. @throws InvalidArgument for one that is given and not used, and for a C
/// that is read and not given
void check_used(const op::Epilogue& epilogue, double alpha, double beta, bool has_c);

/// Reads the name of a math operation; None is multiply_add. @throws InvalidArgument
op::MathOperation read_math(nanobind::handle math);

/// "f16(4,8) on host"
std::string describe(const op::Tensor& tensor);

}  // namespace tilewright::python
