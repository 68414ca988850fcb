// A problem on host arrays, carried to the device and back through its memory pool.
#pragma once

#include <memory>

#include "tilewright/op/gemm.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Where memory of this device lives, as tensors say it.
op::MemoryDevice memory_device(const runtime::DeviceProperties& properties);

class HostOperands {
 public:
  /// Copies in what the call reads: A and B unless their product counts as 0, C where it is read, the epilogue's
  /// tensors, and of D and the epilogue's outputs those with gaps between rows or matrices, which must come back as
  /// they were. @pre op::validate(host) accepted it
  HostOperands(const op::Gemm& host, const std::shared_ptr<runtime::Device>& device, runtime::StreamHandle stream);

  /// The same problem on device tensors.
  const op::Gemm& on_device() const { return on_device_; }

  /// Waits for the stream and copies D and the epilogue's outputs out.
  void copy_out();

 private:
  runtime::DeviceBuffer place(op::Tensor& tensor, bool copies_in);

  std::shared_ptr<runtime::Device> device_;
  runtime::StreamHandle stream_;
  std::vector<op::Tensor> host_outputs_;
  op::Gemm on_device_;
  runtime::DeviceBuffer a_, b_, c_, d_;
  std::vector<runtime::DeviceBuffer> tensors_;  // of the epilogue
  std::vector<std::uint64_t> outputs_;          // where the host's outputs are on the device
};

}  // namespace tilewright::engine
