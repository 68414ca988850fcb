#include "tilewright/engine/host_operands.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

/// Copies the elements of `to`, a host tensor, from memory that has its strides. Runs of adjacent elements are copied
/// at once.
void copy_elements(const std::byte* from, const op::Tensor& to) {
  if (to.is_empty()) return;
  struct Mode {
    std::int64_t stride, extent, index = 0;  // the stride is in bytes
  };
  const op::Tensor strided = op::strided_modes(to);
  std::vector<Mode> modes;
  for (int mode = 0; mode < strided.shape.rank(); ++mode) {
    if (strided.shape[mode] > 1) modes.push_back({strided.stride[mode] * bytes(to.dtype), strided.shape[mode]});
  }
  std::ranges::sort(modes, {}, &Mode::stride);
  std::int64_t run = bytes(to.dtype);
  auto outer = modes.begin();
  for (; outer != modes.end() && outer->stride == run; ++outer) run *= outer->extent;
  std::int64_t offset = 0;
  const auto advance = [&] {
    for (auto mode = outer; mode != modes.end(); ++mode) {
      offset += mode->stride;
      if (++mode->index < mode->extent) return true;
      offset -= mode->stride * std::exchange(mode->index, 0);
    }
    return false;
  };
  do {
    std::memcpy(reinterpret_cast<std::byte*>(to.address) + offset, from + offset, static_cast<std::size_t>(run));
  } while (advance());
}

}  // namespace

op::MemoryDevice memory_device(const runtime::DeviceProperties& properties) {
  return {properties.emulated ? op::MemoryDevice::Kind::emulator : op::MemoryDevice::Kind::cuda, properties.ordinal};
}

HostOperands::HostOperands(const op::Problem& host, const std::shared_ptr<runtime::Device>& device,
                           runtime::StreamHandle stream, bool copies_outputs)
    : device_(device), stream_(stream), on_device_(host) {
  const std::vector<op::Operand> all = op::operands(on_device_);
  std::vector<op::Operand> own, shared;  // inputs that are the elements of an output share its memory
  for (const op::Operand& operand : all) {
    if (!operand.is_used) continue;
    const bool is_shared =
        operand.may_be_output && std::ranges::any_of(all, [&](const op::Operand& other) {
          return op::is_written(other.access) && op::are_same_elements(*other.tensor, *operand.tensor);
        });
    (is_shared ? shared : own).push_back(operand);
  }
  for (const op::Operand& operand : own) {
    const op::Tensor on_host = *operand.tensor;
    const auto is_same = [&](const op::Operand& input) { return op::are_same_elements(*input.tensor, on_host); };
    const bool is_written = op::is_written(operand.access);
    const bool is_read = op::is_read(operand.access) || std::ranges::any_of(shared, is_same);
    const bool copies_in = is_read || operand.is_partly_written || copies_outputs;
    const Output placed = on_host.is_pointer_array()
                              ? place_pointer_array(*operand.tensor, matrices_of(host, operand), copies_in)
                              : place(*operand.tensor, copies_in);
    if (!is_written) continue;
    outputs_.push_back(placed);
    for (const op::Operand& input : shared) {
      if (!is_same(input)) continue;
      input.tensor->address = operand.tensor->address;
      input.tensor->device = operand.tensor->device;
    }
  }
}

HostOperands::Output HostOperands::place(op::Tensor& tensor, bool copies_in) {
  const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
  Output placed{.on_host = tensor, .bytes = size};
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
  Output placed{.on_host = tensor, .matrices = std::move(on_host)};
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
    if (output.bytes == 0) continue;
    if (output.matrices.empty() && is_packed(output.on_host)) {
      device_->copy_out(reinterpret_cast<void*>(output.on_host.address), output.on_device, output.bytes, stream_);
    } else {
      copy_elements_out(output);
    }
  }
  device_->synchronize(stream_);
}

void HostOperands::copy_elements_out(const Output& output) {
  gathered_.resize(output.bytes);
  device_->copy_out(gathered_.data(), output.on_device, gathered_.size(), stream_);
  device_->synchronize(stream_);
  if (output.matrices.empty()) return copy_elements(gathered_.data(), output.on_host);
  for (std::size_t i = 0; i < output.matrices.size(); ++i)
    copy_elements(gathered_.data() + output.offsets[i], output.matrices[i]);
}

}  // namespace tilewright::engine
