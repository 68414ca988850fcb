// Batches whose matrices lie anywhere in memory: lists of arrays, and tilewright.PointerArray.
#pragma once

#include <nanobind/nanobind.h>

#include "python/bindings/arguments.hpp"

namespace tilewright::python {

/// Reads A, B, C or out of a GEMM: an array, a list or a tuple of arrays, or a PointerArray. The arrays of a list must
/// have one shape, stride, element type and device. Their addresses are gathered on the host if they are host arrays,
/// else copied to memory on their GPU, which `reader.lent` keeps until the kernel has finished.
/// @throws InvalidArgument, with the number of the array, if the arrays of a list differ, if the list is empty, or if
/// it has GPU arrays while their current stream is captured; and what ArgumentsReader::read() throws
op::Tensor read_operand(ArgumentsReader& reader, nanobind::handle operand, bool is_written, const char* role);

void bind_pointer_array(nanobind::module_& module);

}  // namespace tilewright::python
