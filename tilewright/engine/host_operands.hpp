// A problem on host arrays, carried to the device and back through its memory pool.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Where memory of this device lives, as tensors say it.
op::MemoryDevice memory_device(const runtime::DeviceProperties& properties);

class HostOperands {
 public:
  /// Copies in the operands that the call reads, and outputs with gaps between their elements, since the gaps must come
  /// back as they were. @pre op::validate(host) accepted it
  HostOperands(const op::Problem& host, const std::shared_ptr<runtime::Device>& device, runtime::StreamHandle stream);

  /// The same problem on device tensors.
  const op::Problem& on_device() const { return on_device_; }

  /// Waits for the stream and copies the outputs out.
  void copy_out();

 private:
  void place(op::Tensor& tensor, bool copies_in);

  struct Output {
    op::Tensor on_host;
    std::uint64_t on_device = 0;
  };

  std::shared_ptr<runtime::Device> device_;
  runtime::StreamHandle stream_;
  op::Problem on_device_;
  std::vector<runtime::DeviceBuffer> buffers_;
  std::vector<Output> outputs_;
};

}  // namespace tilewright::engine
