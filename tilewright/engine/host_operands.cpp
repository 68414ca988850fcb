#include "tilewright/engine/host_operands.hpp"

#include <algorithm>

namespace tilewright::engine {
namespace {

bool is_packed(const op::Tensor& tensor) {
  std::int64_t elements = 1;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) elements *= tensor.shape[mode];
  return op::span_bytes(tensor) == elements * bytes(tensor.dtype);
}

}  // namespace

op::MemoryDevice memory_device(const runtime::DeviceProperties& properties) {
  return {properties.emulated ? op::MemoryDevice::Kind::emulator : op::MemoryDevice::Kind::cuda, properties.ordinal};
}

HostOperands::HostOperands(const op::Problem& host, const std::shared_ptr<runtime::Device>& device,
                           runtime::StreamHandle stream)
    : device_(device), stream_(stream), on_device_(host) {
  const std::vector<op::Operand> operands = op::operands(on_device_);
  std::vector<op::Operand> shared;  // inputs that are identical to an output and share its memory
  for (const op::Operand& operand : operands) {
    if (!operand.is_used) continue;
    const op::Tensor on_host = *operand.tensor;
    const auto is_same = [&](const op::Operand& other) {
      return op::is_written(other.access) && *other.tensor == on_host;
    };
    if (!op::is_written(operand.access)) {
      if (operand.may_be_output && std::ranges::any_of(operands, is_same)) {
        shared.push_back(operand);
      } else {
        place(*operand.tensor, true);
      }
      continue;
    }
    const bool is_input = op::is_read(operand.access) ||
                          std::ranges::any_of(shared, [&](const op::Operand& each) { return *each.tensor == on_host; });
    place(*operand.tensor, is_input || !is_packed(on_host));
    outputs_.push_back({on_host, operand.tensor->address});
    for (const op::Operand& each : shared) {
      if (*each.tensor == on_host) *each.tensor = *operand.tensor;
    }
  }
}

void HostOperands::place(op::Tensor& tensor, bool copies_in) {
  const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
  const runtime::DeviceBuffer& buffer = buffers_.emplace_back(device_, size, stream_);
  if (copies_in && size != 0) {
    device_->copy_in(buffer.address(), reinterpret_cast<const void*>(tensor.address), size, stream_);
  }
  tensor.address = buffer.address();
  tensor.device = memory_device(device_->properties());
}

void HostOperands::copy_out() {
  for (const Output& output : outputs_) {
    const auto size = static_cast<std::size_t>(op::span_bytes(output.on_host));
    if (size != 0) device_->copy_out(reinterpret_cast<void*>(output.on_host.address), output.on_device, size, stream_);
  }
  device_->synchronize(stream_);
}

}  // namespace tilewright::engine
