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
  /// Copies the operands that the call reads to the device, and also outputs that are not packed, since their padding
  /// must not change. The matrices of a pointer array are gathered in one copy. @pre op::validate(host)
  HostOperands(const op::Problem& host, const std::shared_ptr<runtime::Device>& device, runtime::StreamHandle stream);

  /// The problem with device tensors.
  const op::Problem& on_device() const { return on_device_; }

  /// Copies the outputs to the host and waits for the stream.
  void copy_out();

 private:
  struct Output {
    op::Tensor on_host;
    std::uint64_t on_device = 0;  // of the first matrix
    // The matrices of a pointer array, and where they lie from `on_device` on, in `bytes`.
    std::vector<op::Tensor> matrices = {};
    std::vector<std::size_t> offsets = {};
    std::size_t bytes = 0;
  };

  /// Replaces the tensor by one on the device, and returns its place there.
  Output place(op::Tensor& tensor, bool copies_in);
  Output place_pointer_array(op::Tensor& tensor, std::vector<op::Tensor> on_host, bool copies_in);
  /// Copies the matrices of a pointer array to the host.
  void scatter(const Output& output);

  std::shared_ptr<runtime::Device> device_;
  runtime::StreamHandle stream_;
  op::Problem on_device_;
  std::vector<runtime::DeviceBuffer> buffers_;
  std::vector<Output> outputs_;
  std::vector<std::byte> gathered_;  // the matrices of one pointer array
};

}  // namespace tilewright::engine
