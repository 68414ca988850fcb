// Arrays of every framework as op::Tensor, without copies.
#pragma once

#include <nanobind/nanobind.h>

#include "tilewright/op/tensor.hpp"

namespace tilewright::python {

/// What an array is to us. The caller keeps the Python object alive for as long as the memory is used.
struct ReadTensor {
  op::Tensor tensor;
  bool is_read_only = false;
  bool is_torch = false;
  nanobind::object owner;  // what keeps the memory; the object itself, or a capsule of it
};

/// Tries, in this order: DLPack's table of C functions; a torch.Tensor's own attributes; ShapeOnly;
/// __cuda_array_interface__; __array_interface__; __dlpack__. Torch's fake and meta tensors, and ShapeOnly, are shapes
/// without memory. `dtype`, if not none, is what the elements are taken for where the array says only their width:
/// codes of 8-bit floats in uint8. Nothing is waited for: work on the array goes on in the framework's stream, where
/// the kernel is enqueued as well.
/// @throws InvalidArgument with what is missing
ReadTensor read_tensor(nanobind::handle object, nanobind::handle dtype = nanobind::none());

/// Where torch enqueues work on this device now; the null stream where torch is not loaded.
std::uint64_t current_stream_of_torch(int ordinal);

/// Of None (`current`), an int, an object with cuda_stream, ptr, handle or __cuda_stream__(). @throws InvalidArgument
std::uint64_t read_stream(nanobind::handle object, std::uint64_t current);

void bind_tensor(nanobind::module_& module);

}  // namespace tilewright::python
