#include "tilewright/op/operand.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

namespace tilewright::op {
namespace {

bool is_operand_letter(std::string_view name) { return name.size() == 1 && name[0] >= 'A' && name[0] <= 'D'; }

bool overlap(const Interval& x, const Interval& y) { return x.begin < y.end && y.begin < x.end; }

/// The strides in bytes of the modes with more than one element, as `strided_modes` has them, and the element's size.
struct ByteModes {
  explicit ByteModes(const Tensor& tensor) : begin(tensor.address), element(bytes(tensor.dtype)) {
    const Tensor strided = strided_modes(tensor);
    for (int mode = 0; mode < strided.shape.rank(); ++mode) {
      if (strided.shape[mode] > 1) modes.push_back({strided.stride[mode] * element, strided.shape[mode]});
    }
  }

  /// The residues modulo `period` of all bytes, as an interval that begins below `period` and may end above it. Nothing
  /// if the interval would have every residue.
  std::optional<Interval> residues(std::int64_t period) const {
    std::int64_t span = element;
    for (const auto& [stride, extent] : modes) {
      if (stride % period == 0) continue;
      const std::int64_t most = (period - span) / stride;  // steps that still fit
      if (extent - 1 > most) return std::nullopt;
      span += stride * (extent - 1);
    }
    const std::uint64_t first = begin % static_cast<std::uint64_t>(period);
    if (span >= period) return std::nullopt;
    return Interval{first, first + static_cast<std::uint64_t>(span)};
  }

  struct Mode {
    std::int64_t stride, extent;
  };
  std::uint64_t begin;
  std::int64_t element;
  std::vector<Mode> modes;
};

/// Whether no byte belongs to both tensors, found from the residues of addresses modulo a common divisor of strides:
/// two slices of columns of one array have different residues modulo its leading dimension. False does not mean that
/// there is such a byte. Pointer arrays are compared by their spans only.
bool interleave(const Tensor& x, const Tensor& y) {
  if (x.is_pointer_array() || y.is_pointer_array()) return false;
  const ByteModes of_x(x), of_y(y);
  std::vector<std::int64_t> strides;
  for (const ByteModes* each : {&of_x, &of_y}) {
    for (const ByteModes::Mode& mode : each->modes) {
      if (mode.stride != 0) strides.push_back(mode.stride);
    }
  }
  for (auto one = strides.begin(); one != strides.end(); ++one) {
    for (auto other = one; other != strides.end(); ++other) {
      const std::int64_t period = std::gcd(*one, *other);
      const std::optional<Interval> first = of_x.residues(period), second = of_y.residues(period);
      if (!first || !second) continue;
      const auto shift = static_cast<std::uint64_t>(period);
      const Interval next_first{first->begin + shift, first->end + shift};
      const Interval next_second{second->begin + shift, second->end + shift};
      if (!overlap(*first, *second) && !overlap(*first, next_second) && !overlap(next_first, *second)) return true;
    }
  }
  return false;
}

Support check_overlap(const ConstOperand& later, const ConstOperand& earlier) {
  if (!is_written(later.access) && !is_written(earlier.access)) return {};
  const ConstOperand& input = is_written(later.access) ? earlier : later;
  if (input.may_be_output && are_same_elements(*later.tensor, *earlier.tensor)) return {};
  const Interval x = interval(*later.tensor), y = interval(*earlier.tensor);
  if (!overlap(x, y) || interleave(*later.tensor, *earlier.tensor)) return {};
  return refuse("{} [{:#x}, {:#x}) overlaps {} [{:#x}, {:#x})", quoted(later.name), x.begin, x.end,
                quoted(earlier.name), y.begin, y.end)
      .as(RefusalCode::overlap)
      .of(later.name == "D" ? earlier.name : later.name);
}

}  // namespace

std::string_view name(Access access) {
  constexpr std::array<std::string_view, 3> kNames{"read", "write", "update"};
  return kNames[static_cast<std::size_t>(access)];
}

std::string quoted(std::string_view operand) {
  return is_operand_letter(operand) ? std::string(operand) : fmt::format("'{}'", operand);
}

Interval interval(const Tensor& tensor) {
  return {tensor.address, tensor.address + static_cast<std::uint64_t>(span_bytes(tensor))};
}

Support check_memory(const std::vector<ConstOperand>& operands) {
  const auto output = std::ranges::find_if(operands, [](const ConstOperand& each) { return is_written(each.access); });
  if (output == operands.end()) return {};
  const MemoryDevice& device = output->tensor->device;
  const bool is_shape_only = device.kind == MemoryDevice::Kind::shape;
  for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
    if (!operand->is_used) continue;
    const Tensor& tensor = *operand->tensor;
    const auto element = static_cast<std::uint64_t>(bytes(tensor.dtype));
    if (tensor.address == 0 && !is_shape_only)
      return refuse("{} is a null pointer", quoted(operand->name)).as(RefusalCode::memory).of(operand->name);
    if (tensor.is_pointer_array() && tensor.address % kPointerBytes != 0) {
      return refuse("{} must be an array of pointers that is aligned to {} bytes, got address {:#x}",
                    quoted(operand->name), kPointerBytes, tensor.address)
          .as(RefusalCode::alignment)
          .of(operand->name);
    }
    if (!tensor.is_pointer_array() && tensor.address % element != 0) {
      return refuse("{} must be aligned to its element size of {} bytes, got address {:#x}", quoted(operand->name),
                    element, tensor.address)
          .as(RefusalCode::alignment)
          .of(operand->name);
    }
    if (tensor.device != device) {
      return refuse("{} is on {}, but {} is on {}", quoted(operand->name), to_string(tensor.device),
                    quoted(output->name), to_string(device))
          .as(RefusalCode::memory)
          .of(operand->name);
    }
    if (is_shape_only) continue;
    for (auto earlier = operands.begin(); earlier != operand; ++earlier) {
      if (!earlier->is_used) continue;
      if (const Support apart = check_overlap(*operand, *earlier); !apart) return apart;
    }
  }
  return {};
}

}  // namespace tilewright::op
