#include "tilewright/engine/host_operands.hpp"

#include <algorithm>
#include <cstring>

namespace tilewright::engine {
namespace {

bool is_packed(const op::Tensor& tensor) {
  if (tensor.is_pointer_array()) return is_packed(op::matrix_at(tensor, 0));
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
    const bool is_whole = is_packed(on_host) && !operand.is_partly_written;
    outputs_.push_back(place(*operand.tensor, is_input || !is_whole));
    for (const op::Operand& each : shared) {
      if (*each.tensor == on_host) *each.tensor = *operand.tensor;
    }
  }
}

HostOperands::Output HostOperands::place(op::Tensor& tensor, bool copies_in) {
  if (tensor.is_pointer_array()) return place_pointer_array(tensor, copies_in);
  const Output placed{tensor, 0, 0};
  const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
  const runtime::DeviceBuffer& buffer = buffers_.emplace_back(device_, size, stream_);
  if (copies_in && size != 0) {
    device_->copy_in(buffer.address(), reinterpret_cast<const void*>(tensor.address), size, stream_);
  }
  tensor.address = buffer.address();
  tensor.device = memory_device(device_->properties());
  return {placed.on_host, tensor.address, 0};
}

// Each matrix is aligned as much as the problem declares, since the steps are multiples of an allocation's alignment.
HostOperands::Output HostOperands::place_pointer_array(op::Tensor& tensor, bool copies_in) {
  const auto matrix = static_cast<std::size_t>(op::span_bytes(op::matrix_at(tensor, 0)));
  const auto declared = static_cast<std::size_t>(tensor.pointer_alignment);
  const std::size_t alignment = std::max(declared, runtime::kAllocationAlignment);
  const std::size_t step = (matrix + alignment - 1) / alignment * alignment;
  const auto count = static_cast<std::size_t>(tensor.batch());
  const runtime::DeviceBuffer& matrices = buffers_.emplace_back(device_, count * step + alignment, stream_);
  const std::uint64_t first = (matrices.address() + alignment - 1) / alignment * alignment;
  if (copies_in && matrix != 0) {
    gathered_.resize(count * step);
    for (std::size_t i = 0; i < count; ++i) {
      const op::Tensor from = op::slice(tensor, static_cast<std::int64_t>(i));
      std::memcpy(&gathered_[i * step], reinterpret_cast<const void*>(from.address), matrix);
    }
    device_->copy_in(first, gathered_.data(), gathered_.size(), stream_);
    device_->synchronize(stream_);  // the next operand uses the same host memory
  }
  std::vector<std::uint64_t> addresses(count);
  for (std::size_t i = 0; i < count; ++i) addresses[i] = first + i * step;
  const runtime::DeviceBuffer& array = buffers_.emplace_back(device_, count * sizeof(std::uint64_t), stream_);
  device_->copy_in(array.address(), addresses.data(), count * sizeof(std::uint64_t), stream_);
  device_->synchronize(stream_);  // `addresses` ends here
  const Output placed{tensor, first, step};
  tensor.address = array.address();
  tensor.device = memory_device(device_->properties());
  return placed;
}

void HostOperands::copy_out() {
  for (const Output& output : outputs_) {
    if (output.matrix_step_bytes != 0) {
      scatter(output);
      continue;
    }
    const auto size = static_cast<std::size_t>(op::span_bytes(output.on_host));
    if (size != 0) device_->copy_out(reinterpret_cast<void*>(output.on_host.address), output.on_device, size, stream_);
  }
  device_->synchronize(stream_);
}

void HostOperands::scatter(const Output& output) {
  const auto matrix = static_cast<std::size_t>(op::span_bytes(op::matrix_at(output.on_host, 0)));
  const auto count = static_cast<std::size_t>(output.on_host.batch());
  gathered_.resize(count * output.matrix_step_bytes);
  device_->copy_out(gathered_.data(), output.on_device, gathered_.size(), stream_);
  device_->synchronize(stream_);
  for (std::size_t i = 0; i < count; ++i) {
    const op::Tensor to = op::slice(output.on_host, static_cast<std::int64_t>(i));
    std::memcpy(reinterpret_cast<void*>(to.address), &gathered_[i * output.matrix_step_bytes], matrix);
  }
}

}  // namespace tilewright::engine
