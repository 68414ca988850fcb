// Arrays of every framework as op::Tensor, without copies.
#pragma once

#include <nanobind/nanobind.h>

#include "python/bindings/stream.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::python {

/// What an array is to us. The caller keeps the Python object alive for as long as the memory is used.
struct ReadTensor {
  op::Tensor tensor;
  bool is_read_only = false;
  StreamSource stream = {};
  nanobind::object owner;  // what keeps the memory; the object itself, or a capsule of it
};

/// Tries, in this order: DLPack's table of C functions; a torch.Tensor's own attributes; ShapeOnly; what NumPy's and
/// CuPy's arrays have (their interfaces, which are cheaper); our own; __dlpack__; __cuda_array_interface__;
/// __array_interface__. Torch's fake and meta tensors, and ShapeOnly, are shapes without memory. `dtype`, if not none,
/// is what the elements are taken for where the array says only their width: codes of 8-bit floats in uint8. Nothing is
/// waited for: work on the array goes on in the stream that is read, where the kernel is enqueued as well. Who exports
/// by __dlpack__ is asked to have the null stream wait.
/// @throws InvalidArgument, or TypeError, with `role` and what is missing; what the array's own methods raise
ReadTensor read_tensor(nanobind::handle object, const char* role, nanobind::handle dtype = nanobind::none());

/// Of a sequence of integers. @throws InvalidArgument naming `what` where there are more than a tensor has
op::Dims dims_of(nanobind::handle sequence, const char* what);
/// Row-major, in elements.
op::Dims packed_strides(const op::Dims& shape);

/// What DLPack calls it.
nanobind::dlpack::dtype dlpack_type(DType type);

void bind_tensor(nanobind::module_& module);

}  // namespace tilewright::python
