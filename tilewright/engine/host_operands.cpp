#include "tilewright/engine/host_operands.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::engine {
namespace {

/// Whether bytes of the tensor's span may belong to no element.
bool has_gaps(const op::Tensor& tensor) {
  std::int64_t elements = 1;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    if (tensor.stride[mode] != 0 || tensor.shape[mode] == 0) elements *= tensor.shape[mode];
  }
  return op::span_bytes(tensor) > elements * bytes(tensor.dtype);
}

/// Whether a kernel accesses no matrix of group `index`. A group without elements along k has a D.
bool is_empty_group(const op::GemmView& view, std::int64_t index) {
  if (view.groups == op::GroupedMode::independent) {
    const op::IndependentGroup group = op::independent_group(view, index);
    return group.m == 0 || group.n == 0;
  }
  return (op::differs_in_m(view.groups) || op::differs_in_n(view.groups)) &&
         op::group_interval(view, index).size() == 0;
}

/// The matrices of an operand that is a pointer array of a host problem. Those that no kernel accesses have no
/// elements.
/// @throws InvalidArgument if another one is null
std::vector<op::Tensor> matrices_of(const op::Problem& host, const op::Operand& operand) {
  const auto* const grouped = std::get_if<op::GroupedGemm>(&host);
  const std::optional<op::GemmView> groups = grouped == nullptr ? std::nullopt : std::optional(op::view(*grouped));
  const bool has_own_extents = groups && groups->groups == op::GroupedMode::independent && operand.name.size() == 1;
  std::vector<op::Tensor> matrices;
  for (std::int64_t i = 0; i < operand.tensor->batch(); ++i) {
    op::Tensor matrix = op::slice(*operand.tensor, i);
    if (groups && is_empty_group(*groups, i)) {
      matrix.shape[0] = 0;
    } else if (has_own_extents) {
      matrix = op::matrix_of_group(*groups, operand.name[0], i);
    }
    if (matrix.address == 0 && !matrix.is_empty())
      throw InvalidArgument(fmt::format("matrix {} of {} is null", i, op::quoted(operand.name)));
    matrices.push_back(matrix);
  }
  return matrices;
}

struct CopiedMode {
  std::int64_t from, to;  // strides in bytes
  std::int64_t extent, index = 0;
};

/// The modes of two tensors of one shape that have several elements, the innermost first. Elements that a mode
/// broadcasts are one.
std::vector<CopiedMode> copied_modes(const op::Tensor& from, const op::Tensor& to) {
  const op::Tensor strided = op::strided_modes(from);
  const op::Dims to_strides = op::strided_modes(to).stride;
  std::vector<CopiedMode> modes;
  for (int mode = 0; mode < strided.shape.rank(); ++mode) {
    if (strided.shape[mode] == 1 || strided.stride[mode] == 0) continue;
    modes.push_back(
        {strided.stride[mode] * bytes(from.dtype), to_strides[mode] * bytes(to.dtype), strided.shape[mode]});
  }
  std::ranges::sort(modes, {}, &CopiedMode::from);
  return modes;
}

/// Copies elements between memory with the strides of `from` and memory with those of `to`. Runs of adjacent elements
/// are copied at once. No other byte is read or written.
void copy_elements(const op::Tensor& from, const std::byte* from_memory, const op::Tensor& to, std::byte* to_memory) {
  if (to.is_empty()) return;
  std::vector<CopiedMode> modes = copied_modes(from, to);
  std::int64_t run = bytes(to.dtype);
  auto outer = modes.begin();
  for (; outer != modes.end() && outer->from == run && outer->to == run; ++outer) run *= outer->extent;
  std::int64_t from_offset = 0, to_offset = 0;
  const auto advance = [&] {
    for (auto mode = outer; mode != modes.end(); ++mode) {
      from_offset += mode->from;
      to_offset += mode->to;
      if (++mode->index < mode->extent) return true;
      from_offset -= mode->from * mode->extent;
      to_offset -= mode->to * std::exchange(mode->index, 0);
    }
    return false;
  };
  do {
    std::memcpy(to_memory + to_offset, from_memory + from_offset, static_cast<std::size_t>(run));
  } while (advance());
}

/// The tensor with smaller strides, if most of its memory is between its elements. A stride keeps its residue modulo
/// the alignment of allocations, so that all elements are aligned as before, and modes that are adjacent stay adjacent.
op::Tensor without_gaps(const op::Tensor& tensor) {
  constexpr std::int64_t kSmall = 64 << 10, kMaxRatio = 2;
  if (tensor.is_empty() || tensor.interleaved != op::InterleavedMode::none) return tensor;
  struct Mode {
    std::int64_t stride, extent;
    int number;
  };
  std::int64_t elements = 1;
  std::vector<Mode> modes;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    if (tensor.shape[mode] == 1 || tensor.stride[mode] == 0) continue;
    modes.push_back({tensor.stride[mode], tensor.shape[mode], mode});
    elements *= tensor.shape[mode];
  }
  if (op::span_bytes(tensor) <= kSmall + kMaxRatio * elements * bytes(tensor.dtype)) return tensor;
  std::ranges::sort(modes, {}, &Mode::stride);
  const std::int64_t period = static_cast<std::int64_t>(runtime::kAllocationAlignment) / bytes(tensor.dtype);
  op::Tensor closer = tensor;
  std::int64_t span = 1, new_span = 1;
  for (const Mode& mode : modes) {
    if (mode.stride < span) return tensor;  // its elements overlap
    const std::int64_t residue = mode.stride % period;
    const std::int64_t least = residue + round_up(std::max<std::int64_t>(0, new_span - residue), period);
    closer.stride[mode.number] = mode.stride == span ? new_span : std::min(mode.stride, least);
    span = mode.stride * mode.extent;
    new_span = closer.stride[mode.number] * mode.extent;
  }
  return closer;
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
    // Kernels of user-defined operations may require the strides that they were given.
    const bool keeps_strides = std::holds_alternative<op::Custom>(host);
    const Output placed = on_host.is_pointer_array()
                              ? place_pointer_array(*operand.tensor, matrices_of(host, operand), copies_in)
                              : place(*operand.tensor, keeps_strides ? on_host : without_gaps(on_host), copies_in);
    if (!is_written) continue;
    outputs_.push_back(placed);
    for (const op::Operand& input : shared) {
      if (!is_same(input)) continue;
      if (!keeps_strides) *input.tensor = without_gaps(*input.tensor);
      input.tensor->address = operand.tensor->address;
      input.tensor->device = operand.tensor->device;
    }
  }
}

HostOperands::Output HostOperands::place(op::Tensor& tensor, const op::Tensor& closer, bool copies_in) {
  const auto size = static_cast<std::size_t>(op::span_bytes(closer));
  Output placed{.on_host = tensor, .layout = closer, .bytes = size};
  const runtime::DeviceBuffer& buffer = buffers_.emplace_back(device_, size, stream_);
  if (copies_in && size != 0) {
    const auto* const from = reinterpret_cast<const std::byte*>(tensor.address);
    if (!has_gaps(tensor)) {
      device_->copy_in(buffer.address(), from, size, stream_);
    } else {
      gathered_.resize(size);
      copy_elements(tensor, from, closer, gathered_.data());
      device_->copy_in(buffer.address(), gathered_.data(), size, stream_);
      device_->synchronize(stream_);  // the next operand uses the same host memory
    }
  }
  tensor = closer;
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
      copy_elements(from, reinterpret_cast<const std::byte*>(from.address), from, gathered_.data() + placed.offsets[i]);
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
    if (output.matrices.empty() && !has_gaps(output.on_host)) {
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
  const auto copy = [](const op::Tensor& from, const std::byte* memory, const op::Tensor& to) {
    copy_elements(from, memory, to, reinterpret_cast<std::byte*>(to.address));
  };
  if (output.matrices.empty()) return copy(output.layout, gathered_.data(), output.on_host);
  for (std::size_t i = 0; i < output.matrices.size(); ++i)
    copy(output.matrices[i], gathered_.data() + output.offsets[i], output.matrices[i]);
}

}  // namespace tilewright::engine
