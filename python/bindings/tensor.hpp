// Converts arrays of Python frameworks to op::Tensor without copying them.
#pragma once

#include <nanobind/nanobind.h>

#include "python/bindings/stream.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::python {

/// An array as a tensor. The caller must keep `owner` alive for as long as the memory is used.
struct ReadTensor {
  op::Tensor tensor;
  bool is_read_only = false;
  StreamSource stream = {};
  nanobind::object owner;  // keeps the memory alive: the array, a copy of a scalar, or a capsule of a DLPack tensor
};

/// Reads an array of any framework. It tries, in this order: DLPack's C exchange API; the attributes of a torch.Tensor;
/// ShapeOnly; the array interfaces of NumPy's and CuPy's own arrays, which are cheaper than their __dlpack__, and
/// copies of NumPy's scalars; _DeviceArray; __dlpack__; __cuda_array_interface__; __array_interface__. Fake and meta
/// tensors of PyTorch, and ShapeOnly, become shapes without memory. `dtype`, if not None, overrides the element type of
/// the array, for example where 8-bit floats are stored as uint8. The call does not synchronize: `stream` of the result
/// says what to order the kernel by. An exporter by __dlpack__ is asked to make the null stream wait for the array.
/// @throws InvalidArgument or TypeError, with `role` and the reason, and whatever the array's own methods raise
ReadTensor read_tensor(nanobind::handle object, const char* role, nanobind::handle dtype = nanobind::none());

/// Classes of arrays whose memory is read without calling methods that a program may have written.
enum class ArrayClass : std::uint8_t { torch, numpy, cupy };  // torch.Tensor, numpy.ndarray, cupy.ndarray
/// Whether the object is of the class itself and not of a subclass. False while the framework is not imported.
bool is_exactly(nanobind::handle object, ArrayClass kind);

/// Reads a sequence of integers. @throws InvalidArgument with `what` if it is longer than the largest rank of a tensor
op::Dims dims_of(nanobind::handle sequence, const char* what);
/// Row-major strides without gaps, in elements.
op::Dims packed_strides(const op::Dims& shape);

/// The type in DLPack's encoding. @throws InvalidArgument if DLPack has no such type
nanobind::dlpack::dtype dlpack_type(DType type);

void bind_tensor(nanobind::module_& module);

}  // namespace tilewright::python
