#include "tilewright/engine/host_operands.hpp"

#include <algorithm>
#include <cstring>

#include "tilewright/base/rounding.hpp"

namespace tilewright::engine {
namespace {

bool is_packed(const op::Tensor& tensor) {
  if (tensor.is_pointer_array()) return is_packed(op::matrix_at(tensor, 0));
  std::int64_t elements = 1;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) elements *= tensor.shape[mode];
  return op::span_bytes(tensor) == elements * bytes(tensor.dtype);
}

/// The matrices of an operand that is a pointer array of a host problem.
std::vector<op::Tensor> matrices_of(const op::Problem& host, const op::Operand& operand) {
  const auto* const grouped = std::get_if<op::GroupedGemm>(&host);
  const bool has_own_extents = grouped != nullptr && grouped->mode == op::GroupedMode::independent;
  std::vector<op::Tensor> matrices;
  for (std::int64_t i = 0; i < operand.tensor->batch(); ++i) {
    matrices.push_back(has_own_extents ? op::matrix_of_group(op::view(*grouped), operand.name[0], i)
                                       : op::slice(*operand.tensor, i));
  }
  return matrices;
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
  const auto place_operand = [&](const op::Operand& operand, bool copies_in) {
    if (!operand.tensor->is_pointer_array()) return place(*operand.tensor, copies_in);
    return place_pointer_array(*operand.tensor, matrices_of(host, operand), copies_in);
  };
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
        place_operand(operand, true);
      }
      continue;
    }
    const bool is_input = op::is_read(operand.access) ||
                          std::ranges::any_of(shared, [&](const op::Operand& each) { return *each.tensor == on_host; });
    const bool is_whole = is_packed(on_host) && !operand.is_partly_written;
    outputs_.push_back(place_operand(operand, is_input || !is_whole));
    for (const op::Operand& each : shared) {
      if (*each.tensor == on_host) *each.tensor = *operand.tensor;
    }
  }
}

HostOperands::Output HostOperands::place(op::Tensor& tensor, bool copies_in) {
  Output placed{tensor, 0, {}, {}};
  const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
  const runtime::DeviceBuffer& buffer = buffers_.emplace_back(device_, size, stream_);
  if (copies_in && size != 0) {
    device_->copy_in(buffer.address(), reinterpret_cast<const void*>(tensor.address), size, stream_);
  }
  tensor.address = buffer.address();
  tensor.device = memory_device(device_->properties());
  placed.on_device = tensor.address;
  return placed;
}

// Each matrix is aligned as much as the problem declares, since the steps are multiples of an allocation's alignment.
HostOperands::Output HostOperands::place_pointer_array(op::Tensor& tensor, std::vector<op::Tensor> on_host,
                                                       bool copies_in) {
  Output placed{tensor, 0, std::move(on_host), {}};
  const auto declared = static_cast<std::size_t>(tensor.pointer_alignment);
  const std::size_t alignment = std::max(declared, runtime::kAllocationAlignment);
  std::size_t end = 0;
  for (const op::Tensor& matrix : placed.matrices) {
    placed.offsets.push_back(end);
    const auto size = static_cast<std::size_t>(op::span_bytes(matrix));
    end += round_up(size, alignment);
  }
  placed.bytes = end;
  const runtime::DeviceBuffer& matrices = buffers_.emplace_back(device_, end + alignment, stream_);
  placed.on_device = round_up(matrices.address(), alignment);
  const std::size_t count = placed.matrices.size();
  if (copies_in && end != 0) {
    gathered_.resize(end);
    for (std::size_t i = 0; i < count; ++i) {
      const op::Tensor& from = placed.matrices[i];
      const auto size = static_cast<std::size_t>(op::span_bytes(from));
      if (size != 0) std::memcpy(&gathered_[placed.offsets[i]], reinterpret_cast<const void*>(from.address), size);
    }
    device_->copy_in(placed.on_device, gathered_.data(), gathered_.size(), stream_);
    device_->synchronize(stream_);  // the next operand uses the same host memory
  }
  std::vector<std::uint64_t> addresses(count);
  for (std::size_t i = 0; i < count; ++i) addresses[i] = placed.on_device + placed.offsets[i];
  const runtime::DeviceBuffer& array = buffers_.emplace_back(device_, count * sizeof(std::uint64_t), stream_);
  device_->copy_in(array.address(), addresses.data(), count * sizeof(std::uint64_t), stream_);
  device_->synchronize(stream_);  // `addresses` ends here
  tensor.address = array.address();
  tensor.device = memory_device(device_->properties());
  return placed;
}

void HostOperands::copy_out() {
  for (const Output& output : outputs_) {
    if (!output.matrices.empty()) {
      scatter(output);
      continue;
    }
    const auto size = static_cast<std::size_t>(op::span_bytes(output.on_host));
    if (size != 0) device_->copy_out(reinterpret_cast<void*>(output.on_host.address), output.on_device, size, stream_);
  }
  device_->synchronize(stream_);
}

// Lines are copied one by one, because those of another matrix may lie between them.
void HostOperands::scatter(const Output& output) {
  gathered_.resize(output.bytes);
  if (output.bytes == 0) return;
  device_->copy_out(gathered_.data(), output.on_device, gathered_.size(), stream_);
  device_->synchronize(stream_);
  for (std::size_t i = 0; i < output.matrices.size(); ++i) {
    const op::Tensor& to = output.matrices[i];
    if (to.is_empty()) continue;
    const op::MatrixView view = *op::view_matrix(to, "D");
    const std::int64_t element = bytes(to.dtype);
    for (std::int64_t line = 0; line < view.lines(to); ++line) {
      const std::int64_t offset = line * view.ld * element;
      std::memcpy(reinterpret_cast<std::byte*>(to.address) + offset,
                  &gathered_[output.offsets[i] + static_cast<std::size_t>(offset)],
                  static_cast<std::size_t>(view.line(to) * element));
    }
  }
}

}  // namespace tilewright::engine
