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

/// The matrices of one operand of independent groups (op::GroupedMode).
struct GroupMatrices {
  op::Tensor tensor;  // the pointer array; its extents are still those of the first matrix
  std::vector<op::Dims> shapes;
  std::vector<std::int64_t> leading_dimensions;
  op::MatrixLayout layout = op::MatrixLayout::row_major;
};

/// Reads a list or tuple of matrices of any shapes, whose element type, device and layout are the same.
/// @throws InvalidArgument, with the number of the array, and what ArgumentsReader::read() throws
GroupMatrices read_group_matrices(ArgumentsReader& reader, nanobind::handle list, bool is_written, const char* role);

/// A matrix of s32 with a row for each group, where `device` is, which `reader` keeps alive.
op::Tensor group_numbers(ArgumentsReader& reader, const std::vector<std::int32_t>& numbers, std::int64_t groups,
                         const op::MemoryDevice& device);

void bind_pointer_array(nanobind::module_& module);

}  // namespace tilewright::python
