// Copies a problem's host operands to device memory from the pool, and its outputs back.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// The MemoryDevice of tensors on this device.
op::MemoryDevice memory_device(const runtime::DeviceProperties& properties);

class HostOperands {
 public:
  /// Copies the operands that the call reads to the device. `copies_outputs` says that outputs are copied too, for
  /// kernels that may leave elements of them unwritten. The matrices of a pointer array are gathered in one copy, and
  /// those of empty groups are not read. Memory between elements is not read either; where it is most of the operand,
  /// the tensor on the device has smaller strides, with the same alignment.
  /// @pre op::validate(host)
  /// @throws InvalidArgument if an address in a pointer array is null
  HostOperands(const op::Problem& host, const std::shared_ptr<runtime::Device>& device, runtime::StreamHandle stream,
               bool copies_outputs = false);

  /// The problem with device tensors.
  const op::Problem& on_device() const { return on_device_; }

  /// Copies the elements of the outputs to the host and waits for the stream. Memory between these elements does not
  /// change: it may belong to another output, or to an array that another thread uses.
  void copy_out();

 private:
  struct Output {
    op::Tensor on_host;
    op::Tensor layout = {};       // its strides on the device
    std::uint64_t on_device = 0;  // of the first matrix
    std::size_t bytes = 0;        // on the device
    // The matrices of a pointer array, and where they lie from `on_device` on.
    std::vector<op::Tensor> matrices = {};
    std::vector<std::size_t> offsets = {};
  };

  /// Replaces the tensor by one on the device with the strides of `closer`, and returns its place there.
  Output place(op::Tensor& tensor, const op::Tensor& closer, bool copies_in);
  Output place_pointer_array(op::Tensor& tensor, std::vector<op::Tensor> on_host, bool copies_in);
  /// Copies the elements of an output that is not packed, or of the matrices of a pointer array, to the host.
  void copy_elements_out(const Output& output);

  std::shared_ptr<runtime::Device> device_;
  runtime::StreamHandle stream_;
  op::Problem on_device_;
  std::vector<runtime::DeviceBuffer> buffers_;
  std::vector<Output> outputs_;
  std::vector<std::byte> gathered_;  // one operand as it is on the device
};

}  // namespace tilewright::engine
